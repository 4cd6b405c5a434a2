//! What is made of a campaign afterwards, the melting pot, and the service, on Windows as everywhere.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::windows::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::{Place, config};

#[test]
fn a_failure_is_reported_listed_shown_packed_and_run_again() {
    let place = Place::with(&config("waylay_faults", "assert", ""));
    let failures = place.failures();
    assert_eq!(failures.len(), 1, "{}", place.host_log());
    let files =
        ["report", "--html", "r.html", "--junit", "r.xml", "--sarif", "r.sarif", "--markdown", "r.md"];
    let output = place.waylay(&files);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| fs::read_to_string(place.path.join(name)).expect(name);
    assert!(read("r.html").contains("a sum of two parts"));
    assert!(read("r.xml").contains("type=\"assert\""));
    assert!(read("r.sarif").contains("sudden.rs"), "the place in the source is told");
    assert!(read("r.md").contains("failed"));

    let listed = place.json(&["failures", "--json"]);
    let listed = listed["failures"].as_array().expect("a list");
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["kind"], "assert", "{listed:#?}");
    let shown = place.json(&["show", "assert", "--json"]);
    assert_eq!(shown["kind"], "assert", "{shown:#}");
    let packed = place.waylay(&["export", "assert", "--to", "Bündel.zip"]);
    assert_eq!(packed.status.code(), Some(0), "{}", String::from_utf8_lossy(&packed.stderr));
    assert!(fs::read(place.path.join("Bündel.zip")).expect("a bundle").starts_with(b"PK"));

    // It fails again, so it is not fixed.
    let back = place.waylay(&["verify", "assert", "--json", "--duration", "60s"]);
    let said = String::from_utf8_lossy(&back.stderr);
    assert_eq!(back.status.code(), Some(1), "{said}\n{}", String::from_utf8_lossy(&back.stdout));
    let folder = failures[0].folder.display().to_string();
    // By the script beside it, and by the line that people copy into a command prompt.
    let beside = Path::new(env!("CARGO_BIN_EXE_waylay")).parent().expect("a folder");
    let search = format!("{};{}", beside.display(), std::env::var("PATH").unwrap_or_default());
    let mut script = Command::new(failures[0].folder.join("replay.cmd"));
    script.args(["--duration", "60s"]);
    let mut typed = Command::new("cmd");
    typed.raw_arg(format!("/d /s /c \"{} --duration 60s\"", failures[0].text("replay")));
    for mut command in [script, typed] {
        let ran = command
            .env("PATH", &search)
            .current_dir(&place.path)
            .stdin(Stdio::null())
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("reproduced "), "{command:?}: {said}");
    }
    let again = place.waylay(&["replay", &folder, "--json"]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(1), "{said}\n{}", String::from_utf8_lossy(&again.stdout));
}

#[test]
fn two_campaigns_share_a_history() {
    let place = Place::with(&config("waylay_faults", "panic", ""));
    place.failures();
    place.waylay(&["run", "waylay.toml", "--quiet"]);
    assert_eq!(place.campaigns().len(), 2);
    let listed = place.json(&["failures", "--json"]);
    let failures = listed["failures"].as_array().expect("a list");
    let states: Vec<_> =
        failures.iter().map(|failure| failure["state"].as_str().unwrap_or_default()).collect();
    assert_eq!(states, ["ongoing"], "{listed:#}");
}

/// As on Linux the bug needs both tests: at least 3 of 10,000 reads beside a resize fail. 50,000 reads miss it with a
/// probability of e^-15, below 1e-6, and in 30 s there are far more.
#[test]
fn the_melting_pot_finds_the_bug_that_needs_two_tests() {
    let place = Place::with(
        "duration = \"30s\"\n[leaks]\nenabled = false\n[defaults]\nmax-failures = 1\n\
         [[scenario]]\nname = \"pot\"\n[[scenario.test]]\nplugin = \"waylay_melting_pot\"\nworkers = 2\n\
         [[scenario.test.objects]]\nkind = \"row\"\ncount = 1\nlife = 1000000000\n\
         [[scenario.test.contains]]\nplugin = \"waylay_together\"\nname = \"re*\"\n",
    );
    let failures = place.failures();
    let found = failures.iter().find(|failure| failure.text("what").contains("below the length"));
    let found = found.unwrap_or_else(|| panic!("{}", place.host_log()));
    assert_eq!((found.text("kind"), found.text("test")), ("assert", "read"));
}

#[test]
fn the_service_runs_campaigns_and_shows_them() {
    let place = Place::with(&config("waylay_faults", "panic", "").replace("60s", "2s"));
    let service = "out = \"out\"\n[retention]\ncampaigns = 1\n\
                   [[mix]]\nname = \"night\"\nconfig = \"waylay.toml\"\nduration = \"2s\"\n";
    fs::write(place.path.join("night.toml"), service).expect("writable");
    let log = fs::File::create(place.path.join("stderr.txt")).expect("a file");
    let mut child = place
        .command(&["serve", "night.toml", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("the service starts");
    let said = || fs::read_to_string(place.path.join("stderr.txt")).unwrap_or_default();
    let began = Instant::now();
    let mut until = |what: &str, so: &mut dyn FnMut() -> bool| {
        while !so() {
            let ended = child.try_wait().expect("waited");
            if began.elapsed() > Duration::from_secs(120) || ended.is_some() {
                let _ = child.kill();
                panic!("{what}: {ended:?} {}", said());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let mut address = String::new();
    until("an address", &mut || {
        let text = said();
        let found = text.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        address = found.unwrap_or_default().to_owned();
        found.is_some()
    });
    let get = |path: &str| -> Option<String> {
        let mut stream = TcpStream::connect(&address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.starts_with("HTTP/1.1 200").then_some(text)
    };
    until("a campaign that failed is counted", &mut || {
        let Some(text) = get("/metrics") else { return false };
        let failures =
            text.lines().filter(|line| line.starts_with("waylay_failures") && !line.ends_with(" 0"));
        failures.count() > 0
    });
    assert!(get("/failures").is_some_and(|page| page.contains("panic")), "{}", said());
    // One campaign is kept, and of those before only what the open failure needs.
    until("old evidence goes", &mut || said().contains("bytes of old evidence were removed"));
    assert!(get("/").is_some_and(|page| page.contains("night")), "{}", said());
    child.kill().expect("killed");
    child.wait().expect("waited");
}

#[test]
fn the_doctor_says_what_this_machine_allows() {
    let place = Place::with("");
    let checks = place.json(&["doctor", "--json"]);
    let checks = checks["checks"].as_array().expect("a list");
    let health = |name: &str| checks.iter().find(|check| check["name"] == name).map(|check| &check["health"]);
    assert_eq!(health("other processes").and_then(|health| health.as_str()), Some("good"), "{checks:#?}");
    assert!(checks.iter().all(|check| !check.to_string().contains("ptrace")), "{checks:#?}");
    let own = std::process::id().to_string();
    let refused = place.waylay(&["doctor", "--pid", &own, "--json"]);
    assert_eq!(
        refused.status.code(),
        Some(2),
        "our own parent: {}",
        String::from_utf8_lossy(&refused.stdout)
    );
}

/// A program of Rust has hundreds of atomic instructions. The libraries that it is linked with are all the system's.
#[test]
fn doctor_counts_what_can_be_a_step_in_a_program() {
    let place = Place::with("");
    let said = place.json(&["doctor", "--json", env!("CARGO_BIN_EXE_waylay")]);
    let modules = said["modules"].as_array().expect("a list");
    assert_eq!((modules.len(), &modules[0]["module"]), (1, &"waylay.exe".into()), "{said:#}");
    let lock = &modules[0]["sites"]["lock"];
    let number = |name: &str| lock[name].as_u64().expect("a number");
    assert!(number("found") > 500, "{said:#}");
    assert_eq!(number("found"), number("jumps") + number("traps") + number("refused"), "{said:#}");
    assert!(number("jumps") * 20 > number("found") * 19 && number("refused") == 0, "{said:#}");
    println!("{lock}");
}
