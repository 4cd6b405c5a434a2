//! `waylay serve` as a whole: real campaigns, a real history, real connections, real deaths.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use support::{PATIENCE, Running, Workplace, hosts_of, is_alive};
use waylay_history::History;

const MIX: &str = "[[scenario]]\nname = \"many\"\nduration = \"280s\"\n\
    [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"fail-alike\"\nmax-failures = 0\n";

fn place(service: &str) -> Workplace {
    let place = Workplace::new();
    place.write("a.toml", MIX);
    place.write("b.toml", &MIX.replace("fail-alike", "fail-differently"));
    place.write("night.toml", service);
    place
}

/// A service that has told where its dashboard is.
struct Served {
    running: Running,
    address: String,
}

impl Served {
    fn start(place: &Workplace) -> Served {
        let arguments = ["serve", "night.toml", "--listen", "127.0.0.1:0"];
        let running = place.start(&arguments);
        let mut address = None;
        running.until("the dashboard's address", |running| {
            let text = running.stderr();
            let found = text.split("http://").nth(1).and_then(|rest| rest.split('/').next());
            address = found.map(str::to_owned);
            address.is_some()
        });
        Served { running, address: address.unwrap() }
    }

    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.starts_with("HTTP/1.1 200").then(|| text.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Every counter by name and label.
    fn counters(&self) -> Option<BTreeMap<String, f64>> {
        let text = self.get("/metrics")?;
        let samples = text.lines().filter(|line| line.contains("_total"));
        let samples = samples.filter(|line| !line.starts_with('#'));
        Some(
            samples
                .map(|line| line.rsplit_once(' ').unwrap())
                .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
                .collect(),
        )
    }
}

#[test]
fn counters_failures_and_turns_survive_being_killed_again_and_again() {
    let place = place(
        "out = \"out\"\n[[mix]]\nname = \"a\"\nconfig = \"a.toml\"\nduration = \"1s\"\n\
         [[mix]]\nname = \"b\"\nconfig = \"b.toml\"\nduration = \"1s\"\nstop-after-failures = 3\n",
    );
    let mut before: BTreeMap<String, f64> = BTreeMap::new();
    for round in 0..4u32 {
        let mut served = Served::start(&place);
        let began = Instant::now();
        let mut grown = false;
        // Until something was added, and then to some moment of a campaign.
        while !grown || began.elapsed() < Duration::from_millis(u64::from(700 + round * 450)) {
            assert!(began.elapsed() < PATIENCE, "nothing was counted");
            let now = served.counters().unwrap();
            for (name, value) in &before {
                assert!(now.get(name).is_some_and(|now| now >= value), "{name} was {value}: {now:?}");
            }
            grown |= now.get("waylay_iterations_total") > before.get("waylay_iterations_total");
            before = now;
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut hosts = hosts_of(served.running.pid());
        if round < 3 {
            // Between two campaigns there is nothing to interrupt.
            while hosts.is_empty() {
                assert!(began.elapsed() < PATIENCE, "no campaign runs");
                std::thread::sleep(Duration::from_millis(5));
                hosts = hosts_of(served.running.pid());
            }
            served.running.child.kill().unwrap();
            served.running.finish();
        } else {
            served.running.ask_to_end();
            let ran = served.running.finish();
            assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
            assert!(ran.stderr.contains("ends in order"), "{}", ran.stderr);
        }
        for host in hosts {
            let end = Instant::now() + PATIENCE;
            while is_alive(host) {
                assert!(Instant::now() < end, "host {host} outlived its service");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    let history = History::open_to_read(&place.path().join("out")).unwrap();
    let campaigns = history.campaigns(0, 1000).unwrap();
    assert!(campaigns.iter().all(|campaign| campaign.state != "running"), "{campaigns:?}");
    assert!(campaigns.iter().any(|campaign| campaign.state == "interrupted"), "{campaigns:?}");
    let iterations: u64 = campaigns.iter().map(|campaign| campaign.iterations).sum();
    assert!(iterations as f64 >= before["waylay_iterations_total"]);
    assert!(campaigns.iter().any(|campaign| campaign.mix.as_deref() == Some("b")), "{campaigns:?}");
}

#[test]
fn outside_of_its_windows_it_waits_and_ends_at_once_when_asked() {
    // A window that is never near: half a day from now.
    let now = jiff::Timestamp::now() + jiff::Span::new().hours(12);
    let (from, to) = (now.strftime("%H:%M"), (now + jiff::Span::new().minutes(1)).strftime("%H:%M"));
    let place = place(&format!(
        "out = \"out\"\ntime-zone = \"UTC\"\n[[window]]\nfrom = \"{from}\"\nto = \"{to}\"\n\
         [[mix]]\nname = \"a\"\nconfig = \"a.toml\"\n"
    ));
    let served = Served::start(&place);
    served.running.until("the page says that it waits", |_| {
        served.get("/").is_some_and(|page| page.contains("the next window opens"))
    });
    served.running.ask_to_end();
    let ran = served.running.finish();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert_eq!(place.campaigns("out").len(), 0);
}

#[test]
fn somebody_is_told_of_each_new_failure_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (told, messages) = mpsc::channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let mut stream = stream;
            // The first time the other side is out of order: nothing may be lost by that.
            let status = if number == 0 { "500 No" } else { "200 OK" };
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
            if told.send((number, String::from_utf8(body).unwrap())).is_err() {
                return;
            }
        }
    });
    let place = place(&format!(
        "out = \"out\"\n[[mix]]\nname = \"a\"\nconfig = \"a.toml\"\nduration = \"2s\"\n\
         [webhook]\nurl = \"http://{address}/hook\"\nevery = \"1s\"\n"
    ));
    let served = Served::start(&place);
    let first = messages.recv_timeout(PATIENCE).unwrap();
    let second = messages.recv_timeout(PATIENCE).unwrap();
    let read = |body: &str| -> serde_json::Value { serde_json::from_str(body).unwrap() };
    let (refused, message) = (read(&first.1), read(&second.1));
    assert_eq!((first.0, second.0), (0, 1));
    // It may have come more often by then.
    assert_eq!(refused["failures"][0]["signature"], message["failures"][0]["signature"]);
    assert!(message["text"].as_str().unwrap().contains("in fail-alike"), "{message}");
    assert_eq!(message["failures"].as_array().unwrap().len(), 1);
    let (told, text) = (&message["failures"][0], message["text"].as_str().unwrap());
    let signature = told["signature"].as_str().unwrap();
    let link = told["link"].as_str().unwrap();
    assert!(
        link.starts_with("http://127.0.0.1:") && link.ends_with(&format!("/failure/{signature}")),
        "{link}"
    );
    let replay = told["replay"].as_str().unwrap();
    assert!(replay.starts_with("waylay replay ") && replay.ends_with(signature), "{replay}");
    assert!(text.contains(link) && text.contains(replay), "{text}");
    let first = told["builds"]["first"][0]["file"].as_str().unwrap();
    assert!(first.contains("waylay_") && text.contains("first seen in"), "{message}");
    // The same failure in the campaigns after this one is no news.
    served.running.until("two campaigns more", |_| place.campaigns("out").len() >= 3);
    served.running.ask_to_end();
    served.running.finish();
    assert!(messages.try_recv().is_err(), "it was told twice");
}

#[test]
fn what_cannot_be_served_is_said_before_anything_runs() {
    let place = place("[[mix]]\nname = \"a\"\nconfig = \"missing.toml\"\n");
    let ran = place.waylay(&["serve", "night.toml"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("mix a") && ran.stderr.contains("missing.toml"), "{}", ran.stderr);
    let two =
        "[[mix]]\nname = \"a\"\nconfig = \"missing.toml\"\n[[mix]]\nname = \"b\"\nconfig = \"gone.toml\"\n";
    place.write("night.toml", two);
    let ran = place.waylay(&["serve", "night.toml", "--check"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("mix a: ") && ran.stderr.contains("mix b: "), "{}", ran.stderr);
    place.write("night.toml", "[[mix]]\nname = \"a\"\nconfg = \"a.toml\"\n");
    let ran = place.waylay(&["serve", "night.toml", "--check"]);
    assert_eq!(ran.code(), Some(2));
    assert!(ran.stderr.contains("did you mean `config`?"), "{}", ran.stderr);
    place.write("night.toml", "[[mix]]\nname = \"a\"\nconfig = \"a.toml\"\n");
    let ran = place.waylay(&["serve", "night.toml", "--listen", "0.0.0.0:0"]);
    assert_eq!(ran.code(), Some(2));
    assert!(ran.stderr.contains("token"), "{}", ran.stderr);
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/nightly.toml");
    assert_eq!(place.waylay(&["serve", shipped, "--check"]).code(), Some(0));
}

/// Asking what is running is answered in the log, for a test whose threads take turns, too; and it is harmless while the
/// service waits for its window.
// Asks by a signal, which only Linux has.
#[cfg(target_os = "linux")]
#[test]
fn the_log_says_what_is_running_when_asked() {
    let place = Workplace::new();
    place.write(
        "strict.toml",
        "[[scenario]]\nname = \"turns\"\nmode = \"strict\"\nruns = 1000000000\n\
         [[scenario.test]]\nplugin = \"waylay_schedules_c\"\nname = \"deadlock-fixed\"\n",
    );
    // A window of one minute that opens in half a day is not open now.
    let later = jiff::Zoned::now().with_time_zone(jiff::tz::TimeZone::UTC) + jiff::Span::new().hours(12);
    let window = format!(
        "time-zone = \"UTC\"\n[[window]]\nfrom = \"{}\"\nto = \"{}\"\n",
        later.strftime("%H:%M"),
        (&later + jiff::Span::new().minutes(1)).strftime("%H:%M")
    );
    let mix = "[[mix]]\nname = \"strict\"\nconfig = \"strict.toml\"\nduration = \"280s\"\n";
    let log = place.path().join("out/serve.log");
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    let ask_until = |served: &Served, words: &[&str]| {
        let asked = Instant::now();
        while !words.iter().all(|word| read().contains(word)) {
            assert!(asked.elapsed() < PATIENCE, "no answer with {words:?}:\n{}", read());
            served.running.signal(libc::SIGUSR1);
            std::thread::sleep(Duration::from_millis(300));
        }
    };
    let end = |served: Served| {
        served.running.ask_to_end();
        let ran = served.running.finish();
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    };
    place.write("night.toml", &format!("out = \"out\"\n{window}{mix}"));
    let waiting = Served::start(&place);
    // Once without being asked, and not with every look at the clock.
    waiting
        .running
        .until("when the next window opens", |_| read().contains("waits: the next window opens at"));
    ask_until(&waiting, &["nothing is running now: the next window opens at"]);
    end(waiting);
    assert_eq!(read().matches("waits: the next window").count(), 1, "{}", read());
    place.write("night.toml", &format!("out = \"out\"\n{mix}"));
    let running = Served::start(&place);
    let words = [
        "━━ running now ━━ scenario turns",
        "deadlock-fixed#0",
        "strict mode: only the thread whose turn it is",
    ];
    ask_until(&running, &words);
    end(running);
}

/// Mixes that are handed to an engine become campaigns like any other, counted once, also when the service is killed meanwhile.
#[test]
fn nights_on_an_engine_are_merged_into_campaigns_of_the_service() {
    let place = place(
        "out = \"out\"\n[fleet]\non = \"local\"\nshards = 3\n[[mix]]\nname = \"a mix\"\nconfig = \"strict.toml\"\n",
    );
    place.write(
        "strict.toml",
        "seed = 7\n[defaults]\nhang-timeout = '20s'\nmax-failures = 1000\n[[scenario]]\nname = 's'\nmode = 'strict'\n\
         minimize = 'off'\nruns = 130\n[[scenario.test]]\nplugin = 'waylay_schedules_c'\nname = 'lost-update'\n",
    );
    let nights = place.path().join("out/.fleet/a_20mix");
    let begun = || {
        std::fs::read_dir(&nights)
            .is_ok_and(|mut all| all.any(|night| night.unwrap().path().join("fleet.json").exists()))
    };
    let mut served = Served::start(&place);
    served.running.until("a night has begun", |_| begun());
    served.running.child.kill().unwrap();
    served.running.finish();
    let served = Served::start(&place);
    let mut page = String::new();
    served.running.until("the night is put together", |_| {
        // Not more often than the dashboard answers one visitor.
        std::thread::sleep(Duration::from_millis(50));
        page = served.get("/fleet").unwrap_or_default();
        page.contains("Merged night")
    });
    assert!(
        page.contains("3 done, 0 running, 0 waiting, 0 lost") && page.contains("<td class=\"name\">3/3</td>"),
        "{page}"
    );
    let campaign =
        page.split("href=\"/campaign/").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    let live = served.get("/").unwrap();
    assert!(live.contains("href=\"/fleet\">3 shards</a>"), "{live}");
    let mut shown = None;
    served.running.until("the history has it", |_| {
        std::thread::sleep(Duration::from_millis(50));
        shown = served.get(&format!("/campaign/{campaign}"));
        shown.is_some()
    });
    let shown = shown.unwrap();
    let signature =
        shown.split("href=\"/failure/").nth(1).and_then(|rest| rest.split('"').next()).expect(&shown);
    let failure = served.get(&format!("/failure/{signature}")).unwrap();
    assert!(failure.contains("machines"), "{failure}");
    served.running.ask_to_end();
    let ran = served.running.finish();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("its night is on its way already"), "{}", ran.stderr);
    let record = std::fs::read(place.path().join("out").join(&campaign).join("campaign.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["scenarios"][0]["tests"][0]["strict"]["runs"], 130, "each schedule once: {record:#}");
    assert_eq!(record["problems"], serde_json::json!([]), "{record:#}");
}

#[test]
fn an_engine_that_is_not_installed_is_one_sentence() {
    let place = place(
        "out = \"out\"\n[fleet]\non = \"slurm\"\nshards = 3\n[[mix]]\nname = \"a\"\nconfig = \"a.toml\"\n",
    );
    let mut command = place.command(&["serve", "night.toml", "--listen", "127.0.0.1:0"]);
    command.env("PATH", "");
    let ran = place.start_command(command).finish();
    assert_eq!((ran.code(), ran.stderr.lines().count()), (Some(2), 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("Slurm is not installed here"), "{}", ran.stderr);
}
