//! What surrounds the driver turns hostile: limits, a terminal that goes away or stands still, memory that runs out.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Ran, Workplace, is_alive, kill, number, text};

/// Fails once; then it takes its time.
const FAILS_ONCE: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    static _Atomic int count;\n\
    if (count++ == 0) { waylay_fail(self->services, worker, \"once\"); return WAYLAY_FAILED; }\n\
    usleep(1000);\n\
    return WAYLAY_OK;\n\
  }";

fn place_with(source: &str, more: &str) -> Workplace {
    let place = Workplace::new();
    place.compile("probe", source);
    place.write(
        "waylay.toml",
        &format!(
            "[defaults]\nworkers = 1\nleaks = false\nmax-failures = 0\n[[scenario]]\nname = \"s\"\n{more}\n\
             [[scenario.test]]\nplugin = \"probe\"\n"
        ),
    );
    place
}

/// Runs a campaign under a limit of the shell, as whoever `user` says.
fn run_limited(place: &Workplace, waylay: &Path, user: &[&str], limit: &str) -> Ran {
    let waylay = waylay.display();
    let script = format!("ulimit {limit}; exec '{waylay}' run waylay.toml --duration 1s --json");
    let line = [user, &["sh", "-c", &script]].concat();
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).current_dir(place.path()).env("NO_COLOR", "1");
    place.start_command(command).finish()
}

/// A sentence and an exit code of ours, never a signal or a panic.
fn told(ran: &Ran, limit: &str) {
    assert!(ran.code().is_some_and(|code| code <= 3), "{limit}: {:?}\n{}", ran.status, ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{limit}: {}", ran.stderr);
    assert!(ran.code() != Some(0), "{limit}: {}", ran.stderr);
    assert!(!ran.stderr.trim().is_empty(), "{limit}");
}

#[test]
fn limits_of_the_driver_itself_are_told() {
    let place = place_with(FAILS_ONCE, "");
    let waylay = Path::new(env!("CARGO_BIN_EXE_waylay"));
    for limit in ["-f 4", "-n 12"] {
        told(&run_limited(&place, waylay, &[], limit), limit);
    }
    // From too little to load the command up to enough: the loader itself has words for the least.
    for megabytes in [150, 300, 600, 2000] {
        let limit = format!("-v {}", megabytes << 10);
        let ran = run_limited(&place, waylay, &[], &limit);
        assert!(ran.status.code().is_some(), "{limit}: {:?}\n{}", ran.status, ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{limit}: {}", ran.stderr);
        let words = ran.stderr.contains("failure") || ran.stderr.contains("memory");
        assert!(ran.code() != Some(0) && words, "{limit}: nothing was told\n{}", ran.stderr);
    }
}

/// Root has no such limit, so somebody else is asked, of whom no process is there that would count.
#[test]
fn a_limit_on_processes_is_told() {
    const NOBODY_ELSE: &str = "--reuid=61234";
    let place = place_with(FAILS_ONCE, "");
    let open = |path: &Path| {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(path, all).expect("ours");
    };
    open(place.path());
    // Where it was built, others may have no business.
    let waylay = place.path().join("waylay");
    let built = env!("CARGO_BIN_EXE_waylay");
    fs::hard_link(built, &waylay).or_else(|_| fs::copy(built, &waylay).map(drop)).expect("copied");
    let user = ["setpriv", NOBODY_ELSE, "--clear-groups"];
    let able = Command::new(user[0])
        .args(&user[1..])
        // Another program in between: setpriv itself still has root's rights when it looks for the command.
        .args(["sh", "-c", "exec \"$0\" --version"])
        .arg(&waylay)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !able.is_ok_and(|status| status.success()) {
        eprintln!("note: nobody else can run the command here, so nothing was checked");
        return;
    }
    for most in [1, 3, 5, 7, 10] {
        let limit = format!("-u {most}");
        let script = format!("{limit} || ulimit -p {most}");
        told(&run_limited(&place, &waylay, &user, &script), &limit);
    }
}

/// `nohup` has the hang-up ignored: the campaign goes on to its end, and says what it found.
#[test]
fn a_campaign_under_nohup_outlives_the_terminal() {
    let place = place_with(FAILS_ONCE, "duration = \"2s\"");
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_waylay")).args(["run", "waylay.toml", "--json"]);
    command.current_dir(place.path()).stdin(Stdio::null());
    let running = place.start_command(command);
    running.until("a host", |running| !running.hosts().is_empty());
    for _ in 0..3 {
        running.signal(libc::SIGHUP);
    }
    let ran = running.finish();
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert_eq!(ran.json()["campaign"]["state"], "finished", "{}", ran.stderr);
    assert_eq!(number(&ran.json()["campaign"]["failures"]), 1);
}

/// When memory runs out the kernel is to take the host, which can be replaced.
#[test]
fn the_kernel_takes_hosts_before_the_driver() {
    let place = place_with(FAILS_ONCE, "duration = \"200s\"");
    let before = score("self");
    let running = place.start(&["run", "waylay.toml", "--json"]);
    running.until("a host", |running| !running.hosts().is_empty());
    let (driver, host) = (score(&running.pid().to_string()), score(&running.hosts()[0].to_string()));
    running.signal(libc::SIGTERM);
    running.finish();
    assert!(host >= before.saturating_add(500).min(1000), "the host: {host}, before: {before}");
    // Only some may lower it.
    assert!(driver == -500 || driver == before, "the driver: {driver}, before: {before}");
    assert!(driver < host);
}

fn score(process: &str) -> i32 {
    let text = fs::read_to_string(format!("/proc/{process}/oom_score_adj")).expect("it lives");
    text.trim().parse().expect("a number")
}

/// Nobody reads what is said, and the pipe is full: supervision goes on, and the first signal ends the campaign in order.
#[test]
fn a_reader_that_stands_still_holds_up_nothing() {
    const FAILS_DIFFERENTLY: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
        static _Atomic int count;\n\
        char text[3000];\n\
        int length = snprintf(text, 100, \"failure %c%c \", 'a' + count / 26 % 26, 'a' + count % 26);\n\
        count++;\n\
        memset(text + length, 'x', sizeof text - length - 1);\n\
        text[sizeof text - 1] = 0;\n\
        waylay_fail(self->services, worker, text);\n\
        return WAYLAY_FAILED;\n\
      }";
    let place = place_with(FAILS_DIFFERENTLY, "duration = \"200s\"");
    let mut command = place.command(&["run", "waylay.toml"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let found = || {
        let campaigns = place.campaigns("waylay-out");
        let failures = campaigns.first().map(|campaign| fs::read_dir(campaign.join("failures")));
        failures.and_then(Result::ok).map_or(0, Iterator::count)
    };
    let began = std::time::Instant::now();
    // Their texts are more than a pipe holds.
    while found() < 60 {
        assert!(began.elapsed().as_secs() < 120, "{} failures: it stands still", found());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // SAFETY: a plain call; the child is not waited for yet.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let campaign = place.campaigns("waylay-out").remove(0);
    let state = || {
        let record = fs::read_to_string(campaign.join("campaign.json")).unwrap_or_default();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap_or_default();
        record["state"].as_str().unwrap_or_default().to_owned()
    };
    while state() != "stopped" {
        assert!(began.elapsed().as_secs() < 120, "the signal had no effect: {}", state());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(child.stderr.take());
    let pid = child.id() as i32;
    while is_alive(pid) {
        if began.elapsed().as_secs() > 120 {
            kill(pid);
            panic!("it does not end");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(child.wait().expect("waitable").code(), Some(1));
}

/// Writes over what it shares with the driver after some good iterations, when its neighbour is in one.
const SCRIBBLES: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    (void)self; (void)worker;\n\
    static _Atomic int count;\n\
    usleep(1000);\n\
    if (access(BEGUN, F_OK) != 0 || count++ != 10) return WAYLAY_OK;\n\
    FILE *maps = fopen(\"/proc/self/maps\", \"r\");\n\
    char line[512];\n\
    unsigned long from, to;\n\
    while (fgets(line, sizeof line, maps))\n\
      if (strstr(line, \"memfd:waylay-page\") && sscanf(line, \"%lx-%lx\", &from, &to) == 2) memset((void *)from, 0xff, 256);\n\
    fclose(maps);\n\
    return WAYLAY_OK;\n\
  }";
/// Stays in its first iteration until its host is killed; short ones after that, when it runs alone.
const RESTS: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    (void)self; (void)worker;\n\
    if (access(BEGUN, F_OK) != 0) { fclose(fopen(BEGUN, \"w\")); sleep(600); }\n\
    usleep(1000);\n\
    return WAYLAY_OK;\n\
  }";

/// Of several tests in one process the one that wrote over our memory is found by running each alone.
#[test]
fn who_corrupts_is_named_also_among_others() {
    let place = Workplace::new();
    let mut config =
        "[defaults]\nworkers = 1\nleaks = false\nmax-failures = 2\nhang-timeout = \"300s\"\n[[scenario]]\nname = \"s\"\nduration = \"4s\"\n"
            .to_owned();
    let begun = format!("#define BEGUN {:?}\n", place.path().join("begun"));
    for (name, source) in [("innocent", RESTS), ("scribbler", SCRIBBLES)] {
        let beginning = crate::support::C_BEGINNING.replace("\"probe\"", &format!("\"{name}\""));
        place.compile_whole(name, &format!("{beginning}{begun}{source}\n"));
        config += &format!("[[scenario.test]]\nplugin = \"{name}\"\n");
    }
    place.write("waylay.toml", &config);
    let ran = place.run(1, &[]);
    let failures = ran.failures();
    let corrupted: Vec<_> = failures.iter().filter(|failure| failure.kind() == "corrupted").collect();
    let blamed: Vec<&str> = corrupted.iter().filter_map(|failure| failure.json["test"].as_str()).collect();
    assert_eq!(blamed, ["scribbler"], "{}", ran.stderr);
    let together = corrupted.iter().find(|failure| failure.json["test"].is_null()).expect("seen together");
    assert!(together.what().contains("one of innocent, scribbler wrote over memory"), "{}", together.what());
    let reason = text(&together.json["reason"]);
    // Whether the driver had looked since its iteration began depends on the machine; its stack is there in any case.
    assert!(reason.starts_with("last seen ") && reason.contains("now in iterate"), "{reason}");
}
