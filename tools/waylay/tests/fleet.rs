//! A night in several parts, through the real command: however it is divided, the same schedules are made, each once, and what is
//! merged says what one process says. Schedules are a pure function of the seed, so none of this can fail by chance.

#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::small::{LOCKS, build, counter};
use support::{Ran, Workplace};

/// Explores part of a night into a folder of its own.
fn explore(place: &Workplace, out: &str, shard: Option<&str>, more: &[&str], program: &str) -> Ran {
    let mut words = vec!["explore", "--seed", "7", "--minimize", "off", "--quiet", "--json", "--out", out];
    words.extend(shard.iter().flat_map(|shard| ["--shard", shard]));
    words.extend(more);
    words.extend(["--", program]);
    place.waylay(&words)
}

/// Merges what is below a folder; the answer and the exit code.
fn merged(place: &Workplace, folders: &[&str], night: &str) -> (Value, Option<i32>) {
    let ran = place.waylay(&[&["merge", "--json", "-o", night], folders].concat());
    assert!(ran.code().is_some_and(|code| code < 3), "{}", ran.stderr);
    (ran.json(), ran.code())
}

fn test_of(night: &Value) -> &Value {
    &night["campaign"]["scenarios"][0]["tests"][0]
}

#[test]
fn shards_make_the_schedules_of_one_process_each_once() {
    let place = Workplace::new();
    let program = build(&place, &counter("return n == 2 ? 0 : 3;"), &[]);
    // A portfolio and a strategy that learns; at the level at which accesses are learned, too.
    let idiom = ["--runs", "300", "--strategy", "idiom"];
    for (name, more) in
        [("p", &["--runs", "500"][..]), ("d", &["--runs", "400", "--depth", "2"]), ("i", &idiom[..])]
    {
        let plain = explore(&place, &format!("{name}-plain"), None, more, &program).json();
        let mut nights = Vec::new();
        for of in [1, 2, 5] {
            let out = format!("{name}-{of}");
            for number in 1..=of {
                let ran = explore(
                    &place,
                    &format!("{out}/{number}"),
                    Some(&format!("{number}/{of}")),
                    more,
                    &program,
                );
                assert!(matches!(ran.code(), Some(0 | 1)), "{}", ran.stderr);
                let runs = ran.json()["runs"].as_u64().unwrap();
                assert!(runs.abs_diff(plain["runs"].as_u64().unwrap() / of) <= 1, "{number}/{of}: {runs}");
            }
            let (night, code) = merged(&place, &[&out], &format!("{out}-night"));
            assert_eq!((code, &night["missing"]), (Some(1), &serde_json::json!([])), "{night:#}");
            assert_eq!(test_of(&night)["iterations"], plain["runs"]);
            assert_eq!(night["campaign"]["failures"], plain["failures"], "as without shards");
            nights.push((night["outcomes"].clone(), test_of(&night)["strict"]["guarantees"].clone()));
        }
        assert!(nights.windows(2).all(|pair| pair[0] == pair[1]), "{nights:#?}");
        assert_eq!(nights[0].1, plain["guarantees"], "the guarantee speaks of the whole night");
    }
}

#[test]
fn a_merged_night_is_a_campaign_like_any_other() {
    let place = Workplace::new();
    let program = build(&place, LOCKS, &[]);
    for number in 1..=2 {
        explore(&place, &format!("s/{number}"), Some(&format!("{number}/2")), &["--runs", "200"], &program);
    }
    let (night, code) = merged(&place, &["s"], "out/night");
    assert_eq!((code, &night["campaign"]["signatures"]), (Some(1), &Value::from(1)), "{night:#}");
    for words in [&["report", "out/night"][..], &["failures", "--out", "out"], &["show", "1", "--out", "out"]]
    {
        let ran = place.waylay(words);
        assert!(matches!(ran.code(), Some(0 | 1)), "{words:?}: {}", ran.stderr);
    }
    let replayed = place.waylay(&["replay", "1", "--out", "out", "--json"]);
    assert_eq!(replayed.code(), Some(1), "it fails again: {}", replayed.stderr);
}

#[test]
fn a_search_is_divided_and_exhausted_only_when_every_part_is() {
    let place = Workplace::new();
    let program = build(&place, &counter("return 0;"), &[]);
    let more = ["--strategy", "dfs", "--level", "sync", "--no-calls", "--runs", "100000"];
    let plain = explore(&place, "plain", None, &more, &program).json();
    assert_eq!(plain["exhausted"], true, "{plain:#}");
    let mut made = 0;
    for number in 1..=3 {
        let part =
            explore(&place, &format!("s/{number}"), Some(&format!("{number}/3")), &more, &program).json();
        assert_eq!(part["exhausted"], true);
        made += part["runs"].as_u64().unwrap();
    }
    assert_eq!(made, plain["runs"].as_u64().unwrap(), "every schedule once");
    let (night, code) = merged(&place, &["s"], "night");
    assert_eq!((code, &test_of(&night)["strict"]["exhausted"]), (Some(0), &Value::from(true)), "{night:#}");
    let (night, code) = merged(&place, &["s/1", "s/3"], "part");
    assert_eq!((code, &test_of(&night)["strict"]["exhausted"]), (Some(2), &Value::from(false)), "{night:#}");
    assert!(night["missing"][0].as_str().unwrap().starts_with("shard 2/3 is missing"), "{night:#}");
}

/// Whenever the first process is ended, what follows goes on from there and counts nothing twice.
#[test]
fn a_shard_that_was_ended_goes_on_and_counts_nothing_twice() {
    let place = Workplace::new();
    let program = build(&place, &counter("return n == 2 ? 0 : 3;"), &[]);
    let more = ["--runs", "6000", "--resume"];
    explore(&place, "whole/1", Some("1/1"), &more, &program);
    let (whole, _) = merged(&place, &["whole"], "whole-night");
    let words = ["explore", "--seed", "7", "--minimize", "off", "--quiet", "--out", "s/1", "--shard", "1/2"];
    let words = [&words[..], &more, &["--", &program]].concat();
    for signal in ["TERM", "KILL"] {
        let running = place.start(&words);
        running.until("it has begun", |running| {
            !place.campaigns("s/1").is_empty() || !Path::new(&format!("/proc/{}", running.pid())).exists()
        });
        let _ = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &running.pid().to_string()])
            .status();
        running.finish();
    }
    for shard in ["1/2", "2/2"] {
        let ran = explore(&place, &format!("s/{}", &shard[..1]), Some(shard), &more, &program);
        assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    }
    let again = place.waylay(&words);
    assert!(again.stderr.contains("done already"), "{}", again.stderr);
    let (night, _) = merged(&place, &["s"], "night");
    assert_eq!(night["missing"], serde_json::json!([]), "{night:#}");
    assert_eq!(
        (&night["outcomes"], &night["campaign"]["failures"], &test_of(&night)["iterations"]),
        (&whole["outcomes"], &whole["campaign"]["failures"], &test_of(&whole)["iterations"])
    );
}

const MIX: &str = "seed = 7\n[defaults]\nhang-timeout = '20s'\nmax-failures = 1000\n[[scenario]]\nname = 's'\nmode = 'strict'\n\
    minimize = 'off'\nruns = 70\n[[scenario.test]]\nplugin = 'waylay_schedules_c'\nname = 'lost-update'\n";

/// What failed below a folder: test, seed and number of the schedule.
fn failed(folder: &Path, found: &mut BTreeSet<(String, String, u64)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            failed(&path, found);
        } else if path.file_name().is_some_and(|name| name == "failure.json") {
            let failure: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            for one in failure["occurrences"].as_array().unwrap() {
                let word = |value: &Value| value.to_string();
                found.insert((
                    word(&failure["test"]),
                    word(&one["seed"]),
                    one["iteration"].as_u64().unwrap(),
                ));
            }
        }
    }
}

#[test]
fn the_lots_of_a_mix_are_the_same_for_any_number_of_shards() {
    let place = Workplace::with(MIX);
    let mut nights = Vec::new();
    for of in [1, 3] {
        for number in 1..=of {
            let (out, shard) = (format!("m{of}/{number}"), format!("{number}/{of}"));
            let ran =
                place.waylay(&["run", "waylay.toml", "--quiet", "--json", "--out", &out, "--shard", &shard]);
            assert!(matches!(ran.code(), Some(0 | 1)), "{}", ran.stderr);
        }
        let (night, code) = merged(&place, &[&format!("m{of}")], &format!("n{of}"));
        assert_eq!((code, &night["missing"]), (Some(1), &serde_json::json!([])), "{night:#}");
        assert_eq!(test_of(&night)["strict"]["runs"], 70);
        let mut found = BTreeSet::new();
        failed(&place.path().join(format!("m{of}")), &mut found);
        assert!(!found.is_empty());
        nights.push((night["outcomes"].clone(), night["campaign"]["failures"].clone(), found));
    }
    assert_eq!(nights[0], nights[1]);
}

#[test]
fn a_fleet_on_this_machine_is_one_night() {
    let place = Workplace::with(MIX);
    let ran = place.waylay(&[
        "fleet",
        "run",
        "waylay.toml",
        "--shards",
        "2",
        "--out",
        "fleet",
        "--json",
        "--quiet",
    ]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    assert_eq!(test_of(&ran.json())["strict"]["runs"], 70);
    let status = place.waylay(&["fleet", "status", "fleet", "--json"]);
    assert_eq!(status.json()["standing"]["done"], 2, "{}", status.stderr);
    let twice = place.waylay(&["fleet", "run", "waylay.toml", "--shards", "2", "--out", "fleet"]);
    assert!(twice.code() == Some(2) && twice.stderr.contains("has a night already"), "{}", twice.stderr);
    let collected = place.waylay(&["fleet", "collect", "fleet", "--json"]);
    assert_eq!(collected.json()["outcomes"], ran.json()["outcomes"]);
}

#[test]
fn engines_are_told_what_would_be_handed_over() {
    let place = Workplace::with(MIX);
    let dry = |on: &str| {
        let ran = place.waylay(&[
            "fleet",
            "run",
            "waylay.toml",
            "--on",
            on,
            "--shards",
            "16",
            "--at-most",
            "4",
            "--dry-run",
        ]);
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        ran.stdout
    };
    assert!(dry("slurm").contains("#SBATCH --array=1-16%4"));
    assert_eq!(dry("local").lines().count(), 16);
    let list: Value = serde_json::from_str(&dry("kubernetes")).unwrap();
    assert_eq!(list["items"][0]["spec"]["completions"], 16);
    assert!(!place.path().join("waylay-fleet").exists(), "nothing was made");
}

#[test]
fn a_pack_is_the_same_bytes_and_runs() {
    let place = Workplace::with(MIX);
    for name in ["a.waylay", "b.waylay"] {
        let ran = place.waylay(&["pack", "waylay.toml", "-o", name]);
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    }
    let bytes = |name: &str| fs::read(place.path().join(name)).unwrap();
    assert!(bytes("a.waylay") == bytes("b.waylay"), "equal inputs give equal bytes");
    // Its cache is its own, so that nothing of another run helps.
    let with_cache = |words: &[&str]| {
        let mut command = place.command(words);
        command.env("XDG_CACHE_HOME", place.path().join("cache"));
        place.start_command(command).finish()
    };
    let checked = with_cache(&["check", "a.waylay"]);
    assert!(
        checked.code() == Some(0) && checked.stdout.contains("lib/waylay/libwaylay_control.so"),
        "{checked:#?}"
    );
    let ran = with_cache(&["run", "a.waylay", "--quiet", "--json", "--shard", "1/2"]);
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let half: Vec<u8> = bytes("a.waylay").into_iter().take(1000).collect();
    fs::write(place.path().join("cut.waylay"), half).unwrap();
    for words in [["run", "cut.waylay"], ["check", "cut.waylay"]] {
        let refused = with_cache(&words);
        assert_eq!((refused.code(), refused.stderr.lines().count()), (Some(2), 1), "{}", refused.stderr);
    }
}

#[test]
fn what_is_no_part_of_a_night_is_said_in_a_sentence() {
    let place = Workplace::with(MIX);
    let program = build(&place, LOCKS, &[]);
    for shard in ["0/4", "5/4", "x", "1/0"] {
        for words in
            [&["run", "waylay.toml", "--shard", shard][..], &["explore", "--shard", shard, "--", "./x"]]
        {
            let ran = place.waylay(words);
            assert_eq!(ran.code(), Some(2), "{words:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("is no part: say 2/5"), "{}", ran.stderr);
        }
    }
    explore(&place, "one/1", Some("1/2"), &["--runs", "20"], &program);
    explore(&place, "two/1", Some("2/2"), &["--runs", "30"], &program);
    let ran = place.waylay(&["merge", "one", "two", "-o", "night"]);
    assert!(ran.code() == Some(2) && ran.stderr.contains("two nights"), "{}", ran.stderr);
    explore(&place, "plain", None, &["--runs", "20"], &program);
    let ran = place.waylay(&["merge", "plain", "-o", "night"]);
    assert!(ran.code() == Some(2) && ran.stderr.contains("without --shard"), "{}", ran.stderr);
    assert!(!place.path().join("night").exists());
    let mut command = place.command(&["fleet", "run", "waylay.toml", "--on", "slurm", "--shards", "2"]);
    command.env("PATH", "");
    let ran = place.start_command(command).finish();
    assert!(ran.code() == Some(2) && ran.stderr.contains("Slurm is not installed"), "{}", ran.stderr);
}

#[test]
fn an_engine_s_variables_say_which_part_it_is() {
    let place = Workplace::new();
    let program = build(&place, LOCKS, &[]);
    let words = ["explore", "--runs", "20", "--seed", "7", "--minimize", "off", "--json", "--", &program];
    let mut command = place.command(&words);
    command
        .env("SLURM_ARRAY_TASK_ID", "3")
        .env("SLURM_ARRAY_TASK_COUNT", "4")
        .env("SLURM_ARRAY_TASK_MIN", "0");
    let ran = place.start_command(command).finish();
    assert!(ran.stderr.contains("shard 4/4, from SLURM_ARRAY_TASK_ID"), "{}", ran.stderr);
    assert_eq!(ran.json()["runs"], 5);
    let folders: Vec<PathBuf> = place.campaigns("waylay-out");
    let record: Value = serde_json::from_slice(&fs::read(folders[0].join("campaign.json")).unwrap()).unwrap();
    assert_eq!((&record["shard"]["number"], &record["shard"]["of"]), (&Value::from(4), &Value::from(4)));
}

/// Ctrl-C ends the shards in order and merges what they have; the night is not whole, and says so.
#[test]
fn a_fleet_that_is_stopped_merges_what_there_is() {
    let place = Workplace::new();
    let program = build(&place, LOCKS, &[]);
    let words = [
        "fleet",
        "run",
        "--shards",
        "2",
        "--at-most",
        "2",
        "--out",
        "fleet",
        "--json",
        "--",
        "explore",
        "--for",
        "280s",
    ];
    let more = ["--seed", "7", "--minimize", "off", "--", &program];
    let running = place.start(&[&words[..], &more].concat());
    running.until("both shards are at work", |_| {
        ["fleet/shards/1", "fleet/shards/2"].iter().all(|out| !place.campaigns(out).is_empty())
    });
    let _ = std::process::Command::new("kill").args(["-INT", &running.pid().to_string()]).status();
    let ran = running.finish();
    assert!(matches!(ran.code(), Some(1 | 2)), "{}", ran.stderr);
    let night = ran.json();
    assert_eq!(
        (night["parts"].as_u64(), night["missing"].as_array().map(Vec::len)),
        (Some(2), Some(2)),
        "{night:#}"
    );
    assert!(night["missing"][0].as_str().unwrap().starts_with("shard 1/2 was cut off"), "{night:#}");
}

/// The cases of a suite, in two parts and in one.
#[test]
fn shards_of_a_suite_are_merged_too() {
    let place = Workplace::new();
    // A binary that lists and runs its cases as libtest does.
    place.write(
        "suite.rs",
        "use std::sync::atomic::*; static N: AtomicU32 = AtomicU32::new(0);\n\
         fn lose() { let v = N.load(Ordering::SeqCst); N.store(v + 1, Ordering::SeqCst); }\n\
         fn both() { let t = std::thread::spawn(lose); lose(); t.join().unwrap(); }\n\
         #[test] fn one() { both(); assert_eq!(N.load(Ordering::SeqCst), 2); }\n\
         #[test] fn two() { both(); }\n",
    );
    let built = std::process::Command::new("rustc")
        .args(["--test", "-g", "-o", "suite", "suite.rs"])
        .current_dir(place.path())
        .status();
    assert!(built.is_ok_and(|status| status.success()));
    for (out, shard) in [("s/1", "1/2"), ("s/2", "2/2"), ("w/1", "1/1")] {
        let words = [
            "suite",
            "--runs",
            "50",
            "--seed",
            "7",
            "--minimize",
            "off",
            "--quiet",
            "--out",
            out,
            "--shard",
            shard,
        ];
        let ran = place.waylay(&[&words[..], &["--", "./suite"]].concat());
        assert!(matches!(ran.code(), Some(0 | 1)), "{}", ran.stderr);
    }
    let (parts, code) = merged(&place, &["s"], "parts");
    let (whole, _) = merged(&place, &["w"], "whole");
    assert_eq!((code, &parts["missing"]), (Some(1), &serde_json::json!([])), "{parts:#}");
    assert_eq!(parts["outcomes"], whole["outcomes"]);
    let (half, code) = merged(&place, &["s/2"], "half");
    assert!(
        code == Some(2) && half["missing"][0].as_str().unwrap().starts_with("shard 1/2 is missing"),
        "{half:#}"
    );
}

/// Where packages were taken apart, it is said what is missing.
#[test]
fn a_bucket_needs_the_command_beside_this_one() {
    let place = Workplace::new();
    let alone = place.path().join("waylay");
    let own = env!("CARGO_BIN_EXE_waylay");
    fs::hard_link(own, &alone).or_else(|_| fs::copy(own, &alone).map(drop)).unwrap();
    let ran = std::process::Command::new(&alone)
        .args(["explore", "--out", "s3://nights/one", "--", "/bin/true"])
        .current_dir(place.path())
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!((ran.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(
        said.contains("waylay-bucket is not there")
            && said.contains("cargo build --release -p waylay-bucket"),
        "{said}"
    );
}
