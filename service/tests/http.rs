//! The dashboard over real connections: who is answered, with what, and what is refused.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use support::{HOSTILE, Served, nights, thirty_nights};
use waylay_driver::store::CampaignState;
use waylay_history::History;

const PAGES: [&str; 6] = [
    "/",
    "/failures",
    "/failures?state=open&kind=deadlock&q=x&order=count",
    "/campaigns",
    "/trends",
    "/trends?test=map",
];

#[test]
fn pages_are_there_and_every_answer_forbids_what_it_can() {
    let served = Served::new(thirty_nights, "");
    let _campaign = served.at_work(3600);
    let more = [
        "/failure/deadlock-b05fe2c2e43f8fce",
        "/suppressions",
        "/campaign/20261116-220000",
        "/metrics",
        "/health",
        "/nothing",
    ];
    for path in PAGES.into_iter().chain(more) {
        let (status, text) = served.get(path);
        assert_eq!(status, if path == "/nothing" { 404 } else { 200 }, "{path}: {text}");
        let lower = text.to_lowercase();
        for header in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
        ] {
            assert!(lower.contains(header), "{path} has no {header}: {text}");
        }
        assert!(
            !lower.contains("http://www") && !lower.contains("https://"),
            "{path} needs something from outside"
        );
    }
}

#[test]
fn shards_are_shown_with_their_machines_and_what_is_missing() {
    use waylay_fleet::engine::{ShardStanding, State};
    let served = Served::new(thirty_nights, "");
    assert!(served.get("/fleet").1.contains("No night was handed to an engine"));
    let states = [State::Done, State::Running, State::Waiting, State::Lost];
    let shard = |(state, number): (State, u64)| ShardStanding {
        number,
        state,
        machine: Some(HOSTILE.to_owned()),
        iterations: 1000 * number,
        failures: number,
    };
    let mut night = waylay_service::board::FleetNight {
        mix: "a".into(),
        shards: states.into_iter().zip(1..).map(shard).collect(),
        campaign: None,
        missing: Vec::new(),
    };
    served.board.fleet(night.clone());
    let page = served.get("/fleet").1;
    assert!(page.contains("1 done, 1 running, 1 waiting, 1 lost") && page.contains("4/4"), "{page}");
    assert!(page.contains("&lt;img src=x") && !page.contains("<img src=x"), "{page}");
    assert!(served.get("/").1.contains("1 done, 1 running"), "the live page leads there");
    (night.campaign, night.missing) = (Some("20261116-220000".into()), vec!["shard 4/4 was cut off".into()]);
    served.board.fleet(night);
    let page = served.get("/fleet").1;
    assert!(page.contains("/campaign/20261116-220000") && page.contains("not whole"), "{page}");
    assert!(page.contains("shard 4/4 was cut off"), "{page}");
}

#[test]
fn suppressions_are_listed_with_what_they_kept_quiet() {
    let rule = "[[suppression]]\nreason = \"<b>ticket 7\"\nuntil = \"2999-12-31\"\nkind = \"deadlock\"\n";
    let served = Served::new(
        |out| {
            let context = waylay_history::write::Context {
                suppressions: support::config(out, rule).suppressions,
                ..nights::utc()
            };
            let record = nights::campaign(1, &[("map", 5)]);
            let seen =
                waylay_history::sighting::Sighting::of(&nights::entry("d-1", Some("map"), 3, record.started));
            History::open(out).unwrap().put(&record, &[seen], &context).unwrap();
        },
        rule,
    );
    let page = served.get("/suppressions").1;
    assert!(
        page.contains("2999-12-31") && page.contains("&lt;b&gt;ticket 7") && page.contains("d-1"),
        "{page}"
    );
    assert!(served.get("/failures").1.contains("suppressed <span class=\"dim\">1</span>"));
    // What nobody wants to hear of is no news, and is not hidden either.
    let page = served.get("/").1;
    assert!(page.contains("<b>Nothing new</b>") && page.contains("1 more suppressed"), "{page}");
    let night =
        page.split_once("href=\"/night/").and_then(|(_, rest)| rest.split_once('"')).expect("a night").0;
    let page = served.get(&format!("/night/{night}")).1;
    let (_, quiet) = page.split_once("<h2>Suppressed</h2>").expect("a list of them");
    assert!(quiet.contains("d-1") && page.contains("No failure that no night before had"), "{page}");
}

#[test]
fn hostile_text_is_only_text_on_every_page() {
    let served = Served::new(thirty_nights, "");
    let _campaign = served.at_work(60);
    let mut seen = 0;
    for path in PAGES.into_iter().chain(["/failure/assert-00c0ffee00c0ffee", "/campaign/20261117-220000"]) {
        let (_, text) = served.get(path);
        for markup in ["<img src=x", "<svg/onload", "<script>window", "\u{202e}"] {
            assert!(!text.contains(markup), "{path} has {markup}");
        }
        seen += usize::from(text.contains("&lt;img src=x"));
    }
    assert!(seen >= 4, "the text is shown on {seen} pages only");
    // What a visitor types comes back as text, too.
    let typed =
        served.get("/failures?q=%3Cscript%3Ewindow.owned%3D1%3C%2Fscript%3E&state=%22%3E%3Cscript%3E").1;
    assert!(!typed.contains("<script>window") && typed.contains("&lt;script&gt;window.owned=1"));
    assert!(HOSTILE.contains("<script>window"));
}

#[test]
fn other_names_and_other_methods_are_refused_on_the_loopback() {
    let served = Served::new(|_| (), "");
    assert_eq!(served.raw("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").0, 421);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let request = format!(
            "{method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        assert_eq!(served.raw(&request).0, 405, "{method}");
    }
}

#[test]
fn a_token_is_asked_for_and_nothing_is_told_without_it() {
    let served =
        Served::new(thirty_nights, "[dashboard]\nlisten = \"127.0.0.1:1\"\ntoken-file = \"token\"\n");
    for path in ["/", "/failures", "/metrics", "/events", "/files/a/b/c"] {
        let (status, text) = served.get(path);
        assert_eq!(status, 401, "{path}");
        assert!(!text.contains("deadlock") && text.contains("name=\"token\""), "{text}");
    }
    assert_eq!(served.get_with("/", "Authorization: Bearer 0123456789abcdef0124\r\n").0, 401);
    assert_eq!(served.get_with("/failures", "Authorization: Bearer 0123456789abcdef0123\r\n").0, 200);
    let sign_in = |token: &str| {
        let body = format!("token={token}");
        served.raw(&format!(
            "POST /login HTTP/1.1\r\nHost: any\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    assert_eq!(sign_in("wrong").0, 401);
    let (status, text) = sign_in("0123456789abcdef0123");
    assert_eq!(status, 303, "{text}");
    let cookie = text.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(served.get_with("/", &format!("Cookie: {pair}\r\n")).0, 200);
    // Guessing is slowed down soon.
    let answers: Vec<u16> = (0..20).map(|_| sign_in("wrong").0).collect();
    assert!(answers.contains(&429), "{answers:?}");
    // Whoever knows the token is not kept out by that.
    assert_eq!(sign_in("0123456789abcdef0123").0, 303);
}

#[test]
fn too_much_and_too_often_are_refused() {
    let served = Served::new(|_| (), "[dashboard]\nlisten = \"127.0.0.1:1\"\ntoken-file = \"token\"\n");
    let long = "x".repeat(100_000);
    assert!([400, 414, 431, 0].contains(&served.get(&format!("/{long}")).0));
    assert!([400, 431, 0].contains(&served.get_with("/", &format!("X-Long: {long}\r\n")).0));
    let body = "x".repeat(100_000);
    let post = format!(
        "POST /login HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!([413, 0].contains(&served.raw(&post).0));
    // Two thousand requests take longer than the two hundred that are allowed at once, on any machine.
    let mut stream = TcpStream::connect(served.address()).unwrap();
    let many = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1999);
    let mut reader = stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        stream.write_all(many.as_bytes()).unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    });
    let mut answers = String::new();
    reader.read_to_string(&mut answers).unwrap();
    writer.join().unwrap();
    let refused = answers.matches("HTTP/1.1 429").count();
    let answered = answers.matches("HTTP/1.1 401").count();
    assert_eq!(refused + answered, 2000);
    assert!(refused > 0 && answered >= 200, "{answered} answered, {refused} refused");
}

#[test]
fn only_files_of_a_failure_can_be_had() {
    let mut campaign = String::new();
    let served = Served::new(
        |out| {
            campaign = nights::folder(out, CampaignState::Finished, &["crash-1"]);
            let folder = out.join(&campaign).join("failures/crash-1");
            std::fs::write(folder.join("dump.dmp"), vec![7u8; 300_000]).unwrap();
            std::fs::write(folder.join("page.html"), "<script>window.owned=1</script>").unwrap();
            #[cfg(unix)]
            {
                std::os::unix::fs::symlink("/etc/passwd", folder.join("link.txt")).unwrap();
                std::os::unix::fs::symlink("/etc", folder.join("again-9")).unwrap();
                std::os::unix::fs::symlink("/etc", folder.with_file_name("linked")).unwrap();
            }
            std::fs::write(out.join("secret.txt"), "secret").unwrap();
            History::open(out).unwrap().import(&nights::utc()).unwrap();
        },
        "",
    );
    let base = format!("/files/{campaign}/crash-1");
    let (status, text) = served.get(&format!("{base}/stacks.txt"));
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("text/plain") && text.contains("sandbox") && text.ends_with("stacks\n"), "{text}");
    let (status, dump) = served.get(&format!("{base}/dump.dmp"));
    assert_eq!((status, dump.matches('\u{7}').count()), (200, 300_000));
    assert!(dump.to_lowercase().contains("content-disposition: attachment"));
    let page = served.get(&format!("{base}/page.html")).1.to_lowercase();
    assert!(page.contains("application/octet-stream") && page.contains("attachment"), "{page}");
    let (status, zip) = served.get(&format!("{base}/bundle.zip"));
    assert_eq!(status, 200);
    assert!(zip.contains("failures/crash-1/stacks.txt") && zip.contains("PK"), "{} bytes", zip.len());
    assert!(!zip.contains("link.txt") && !zip.contains("passwd"));
    for path in [
        format!("{base}/../../campaign.json"),
        format!("{base}/..%2f..%2fcampaign.json"),
        format!("{base}/%2e%2e/%2e%2e/%2e%2e/secret.txt"),
        format!("{base}/..%5c..%5csecret.txt"),
        format!("{base}/..\\..\\..\\secret.txt"),
        format!("{base}/%252e%252e%252f%252e%252e%252fcampaign.json"),
        format!("{base}/..%252f..%252f..%252fsecret.txt"),
        format!("{base}/%c0%ae%c0%ae/%c0%ae%c0%ae/secret.txt"),
        format!("{base}/again-9/passwd"),
        format!("{base}/again-9%2fpasswd"),
        format!("/files/{campaign}/linked/passwd"),
        format!("/files/{campaign}/linked/bundle.zip"),
        "/files/%2e%2e/crash-1/stacks.txt".to_owned(),
        format!("{base}//etc/passwd"),
        format!("{base}/%2fetc%2fpasswd"),
        format!("{base}/link.txt"),
        format!("{base}/stacks.txt%00.html"),
        format!("/files/../{campaign}/crash-1/stacks.txt"),
        format!("/files/{campaign}/..%2fcrash-1/stacks.txt"),
        format!("/files/{campaign}%2f../crash-1/stacks.txt"),
        "/files/.running/crash-1/stacks.txt".to_owned(),
    ] {
        let (status, text) = served.get(&path);
        assert!(status == 404 || status == 400, "{path}: {text}");
        assert!(!text.contains("secret") && !text.contains("root:"), "{path}: {text}");
    }
}

#[test]
fn what_is_live_is_sent_as_it_changes() {
    let served = Served::new(thirty_nights, "");
    let mut reporter = served.at_work(10);
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    let mut piece = [0; 65536];
    let mut second = 10;
    // Each event is the whole of what is shown; two that differ show that it moves.
    while text.matches("data: {").count() < 2 {
        second += 1;
        served.tell(&mut reporter, second);
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    assert!(text.contains("text/event-stream") && text.contains("libraries until"), "{text}");
}

/// A client that opens connections and never says what it wants takes no place from others.
#[test]
fn clients_that_say_nothing_keep_nobody_out() {
    let served = Served::new(|_| (), "");
    let mut silent = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(served.address()).unwrap();
        // Half a head, or nothing at all.
        if number % 2 == 0 {
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
        }
        silent.push(stream);
    }
    let began = std::time::Instant::now();
    for number in 0..20 {
        assert_eq!(served.get("/health").0, 200, "kept out by {} that say nothing", silent.len());
        // Long before the patience with any of them is over: they were made to leave.
        let patience = std::time::Duration::from_secs(9);
        assert!(number > 0 || began.elapsed() < patience, "{:?}", began.elapsed());
    }
}

/// A token that is sent letter by letter, and never to its end, is not waited for.
#[test]
fn a_body_that_does_not_come_is_given_up() {
    let served = Served::new(|_| (), "[dashboard]\nlisten = \"127.0.0.1:1\"\ntoken-file = \"token\"\n");
    let began = std::time::Instant::now();
    let (status, text) = served.raw("POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\ntoken=");
    assert_eq!(status, 408, "{text}");
    assert!(began.elapsed() >= std::time::Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_night_tells_what_was_new_in_it_and_what_it_guarantees() {
    let served = Served::new(thirty_nights, "");
    let page = served.get("/night/2026-11-17").1;
    let (new, known) = page.split_once("Known before").expect("both kinds");
    assert!(new.contains("leak-77a1b2c3d4e5f607") && !new.contains("deadlock-b05fe2c2e43f8fce"), "{page}");
    assert!(
        known.contains("deadlock-b05fe2c2e43f8fce") && known.contains("What this night guarantees"),
        "{page}"
    );
    assert_eq!(served.get("/night/1999-01-01").0, 404);
    // The page that people open in the morning begins with the same.
    let morning = served.get("/").1;
    assert!(morning.contains("2 new failures") && morning.contains("leak-77a1b2c3d4e5f607"), "{morning}");
    assert!(
        morning.contains("last night: 3 different failures") && morning.contains("/night/2026-11-17"),
        "{morning}"
    );
    let _campaign = served.at_work(60);
    assert!(served.get("/").1.contains("this night so far"));
}
