//! Nights whose shards share nothing but a bucket, through the real `waylay`: what is put together is what one process finds, also
//! when shards are killed and go on on another machine. Schedules are a pure function of the seed, so none of this can fail by chance.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use support::{Server, command, content, succeed};

const PROGRAM: &str = "#include <pthread.h>\nstatic int n;\nstatic void *add(void *x) { int k = n; n = k + 1; return x; }\n\
    int main(void) { pthread_t t, u; pthread_create(&t, 0, add, 0); pthread_create(&u, 0, add, 0);\n\
    pthread_join(t, 0); pthread_join(u, 0); return n == 2 ? 0 : 3; }\n";

/// A folder with a program that fails now and then, a server, and the command.
struct Place {
    folder: tempfile::TempDir,
    server: Server,
    waylay: PathBuf,
}

impl Place {
    /// None where `waylay` was not built beside this command.
    fn new() -> Option<Place> {
        let waylay = Path::new(env!("CARGO_BIN_EXE_waylay-bucket")).with_file_name("waylay");
        if !waylay.is_file() {
            let words =
                "waylay was not built beside waylay-bucket (`cargo build -p waylay`): nothing was tried";
            assert!(std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(), "{words}");
            eprintln!("{words}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lost.c"), PROGRAM).unwrap();
        let built = Command::new("gcc")
            .args(["-g", "-o", "lost", "lost.c", "-lpthread"])
            .current_dir(folder.path())
            .status();
        assert!(built.unwrap().success());
        Some(Place { folder, server: Server::start(), waylay })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let helper = command(self.server.at, support::SECRET, &[]);
        let mut command = Command::new(&self.waylay);
        for (name, value) in helper.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.args(words).current_dir(self.folder.path()).env("TMPDIR", self.folder.path());
        command
    }

    fn waylay(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn explore<'w>(&self, runs: &'w str, more: &[&'w str]) -> Vec<&'w str> {
        let words = ["explore", "--runs", runs, "--seed", "7", "--minimize", "off", "--quiet"];
        [&words[..], more, &["--", "./lost"]].concat()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a merge answers: sum of all schedules, failures, sentences about what is missing.
fn night(output: &Output) -> (String, u64, usize) {
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)));
    let missing = answer["missing"].as_array().unwrap().len();
    (answer["outcomes"].to_string(), answer["campaign"]["failures"].as_u64().unwrap(), missing)
}

#[test]
fn a_night_through_a_bucket_is_that_of_one_process() {
    let Some(place) = Place::new() else { return };
    place.waylay(&place.explore("300", &["--shard", "1/1", "--out", "whole/1"]));
    let whole = night(&place.waylay(&["merge", "whole", "-o", "whole-night", "--json", "--quiet"]));
    let fleet = [
        "fleet",
        "run",
        "--shards",
        "3",
        "--out",
        "fleet",
        "--bucket",
        "s3://nights/a",
        "--json",
        "--quiet",
        "--",
    ];
    let ran = place.waylay(&[&fleet[..], &place.explore("300", &[])].concat());
    assert_eq!(ran.status.code(), Some(1), "{}", said(&ran));
    assert_eq!(night(&ran), whole);
    // The merged night is in the bucket, too, and anybody may merge again from what the shards left.
    let back = place.path("back");
    succeed(place.server.at, &["get", "s3://nights/a/night", back.to_str().unwrap()]);
    assert!(content(&back).keys().any(|name| name.ends_with("/campaign.json")));
    let again = place.waylay(&["merge", "s3://nights/a/shards", "-o", "again", "--json", "--quiet"]);
    assert_eq!(night(&again), whole);
    let collected = place.waylay(&["fleet", "collect", "s3://nights/a", "--json"]);
    assert_eq!(night(&collected), whole);
    let status = place.waylay(&["fleet", "status", "fleet", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["standing"]["done"], 3, "{status:#}");
    // Nothing of it stays on this machine.
    let left: Vec<_> =
        fs::read_dir(place.folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("waylay-results")), "{left:?}");
}

#[test]
fn a_shard_that_is_killed_goes_on_from_what_is_in_the_bucket() {
    let Some(place) = Place::new() else { return };
    place.waylay(&place.explore("6000", &["--shard", "1/1", "--out", "whole/1"]));
    let whole = night(&place.waylay(&["merge", "whole", "-o", "whole-night", "--json", "--quiet"]));
    let first = place.explore("6000", &["--resume", "--shard", "1/2", "--out", "s3://nights/b/shards/1"]);
    let mut running = place.command(&first).spawn().unwrap();
    let began = Instant::now();
    let sent =
        || content(&place.server.folder("b/shards/1")).keys().any(|name| name.ends_with("manifest.json"));
    while !sent() {
        assert!(began.elapsed() < Duration::from_secs(280), "nothing was sent");
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = running.kill();
    running.wait().unwrap();
    let second = place.explore("6000", &["--resume", "--shard", "2/2", "--out", "s3://nights/b/shards/2"]);
    for words in [&first, &second] {
        let ran = place.waylay(words);
        assert_eq!(ran.status.code(), Some(1), "{}", said(&ran));
    }
    let merged = place.waylay(&["merge", "s3://nights/b/shards", "-o", "night", "--json", "--quiet"]);
    assert_eq!(night(&merged), whole);
}

#[test]
fn a_bucket_that_is_not_ours_is_one_sentence_before_anything_runs() {
    let Some(place) = Place::new() else { return };
    for words in [
        place.explore("10", &["--out", "s3://nights/c"]),
        vec!["fleet", "run", "--shards", "2", "--bucket", "s3://nights/c", "--", "explore", "--", "./lost"],
        vec!["merge", "s3://nights/c", "-o", "night"],
    ] {
        let ran = place.command(&words).env("AWS_SECRET_ACCESS_KEY", "another").output().unwrap();
        let said = said(&ran);
        assert_eq!((ran.status.code(), said.lines().count()), (Some(2), 1), "{words:?}: {said}");
        assert!(said.contains("no permission for s3://nights/c"), "{said}");
    }
}
