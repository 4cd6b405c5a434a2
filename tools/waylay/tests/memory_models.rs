//! `--memory tso`: what x86's store buffers do to programs, and that they do no more.
//!
//! Litmus tests of two threads with up to three stores are searched exhaustively: the final states have to be those of x86-TSO, no more and no fewer
//! (the counts are those that an enumeration of its four rules gives). Others are run in so many random
//! schedules that the rarest final state, which 1 run in 1,000 shows, is missed with a probability below 1e-6. Programs
//! with a forgotten fence have to be found, their twins and everything under `--memory sc` to be clean. Runs are a pure
//! function of the seed, which is fixed.
#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::Workplace;

fn build(place: &Workplace, file: &str, name: &str, more: &[&str]) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memory").join(file);
    let program = place.path().join(name);
    let (compiler, options): (_, &[&str]) = match file.rsplit_once('.') {
        Some((_, "rs")) => ("rustc", &["--edition=2024", "-O", "-g", "-Aunexpected_cfgs"]),
        Some((_, "cpp")) => ("g++", &["-std=c++20", "-O1", "-g", "-pthread"]),
        _ => ("gcc", &["-std=gnu17", "-O1", "-g", "-pthread"]),
    };
    let built = Command::new(compiler).args(options).args(more).arg("-o").arg(&program).arg(source).output();
    let built = built.expect("a compiler is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

fn explore(place: &Workplace, memory: &str, more: &[&str], program: &[&str]) -> (Option<i32>, Value) {
    let options = ["explore", "--json", "--quiet", "--seed", "1", "--memory", memory];
    let ran = place.waylay(&[&options[..], more, &["--"], program].concat());
    let summary = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
    (ran.status.code(), summary)
}

/// All final states of a litmus test.
fn states(place: &Workplace, program: &str, memory: &str, strategy: &str, runs: &str) -> BTreeSet<String> {
    let file = place.path().join(format!("states-{memory}"));
    let variable = format!("LITMUS={}", file.display());
    let options =
        ["--strategy", strategy, "--runs", runs, "--minimize", "off", "--no-calls", "--env", &variable];
    let (status, summary) = explore(place, memory, &options, &[program]);
    assert_eq!(status, Some(0), "{summary:#}");
    assert_eq!(summary["exhausted"], strategy == "dfs", "{program}: {summary:#}");
    let text = std::fs::read_to_string(&file).expect("runs wrote their states");
    std::fs::remove_file(&file).expect("it is there");
    text.lines().map(str::to_owned).collect()
}

/// A litmus test, how it accesses memory, the number of its states under sequential consistency, and what TSO adds.
type Litmus<'a> = (&'a str, &'a str, usize, &'a [&'a str]);

fn litmus(tests: &[Litmus<'_>], strategy: &str, runs: &str) {
    let place = Workplace::new();
    for &(name, way, count, more) in tests {
        let program = build(&place, "litmus.c", name, &[&format!("-D{name}"), &format!("-D{way}")]);
        let consistent = states(&place, &program, "sc", strategy, runs);
        assert_eq!(consistent.len(), count, "{name}, {way}: {consistent:#?}");
        let buffered = states(&place, &program, "tso", strategy, runs);
        assert!(buffered.is_superset(&consistent), "{name}, {way}: {buffered:#?}");
        let added: Vec<&String> = buffered.difference(&consistent).collect();
        assert_eq!(added, more, "{name}, {way}");
    }
}

#[test]
fn store_buffering_with_fences_at_every_place() {
    let both_old = ["a=0 b=0 c=0 d=0 x=1 y=1 z=0"];
    litmus(
        &[
            ("SB", "VOLATILE", 3, &both_old),
            ("SB", "PLAIN", 3, &both_old),
            ("SB", "ATOMIC", 3, &both_old),
            ("SB_mfences", "VOLATILE", 3, &[]),
            ("SB_locked", "ATOMIC", 3, &[]),
            ("SB_one_mfence", "PLAIN", 3, &both_old),
            ("SB_xchgs", "ATOMIC", 3, &[]),
            ("SB_rfi", "VOLATILE", 3, &["a=1 b=0 c=1 d=0 x=1 y=1 z=0"]),
        ],
        "dfs",
        "100000",
    );
}

#[test]
fn messages_and_orders_of_stores_hold() {
    litmus(
        &[
            ("MP", "PLAIN", 3, &[]),
            ("LB", "VOLATILE", 3, &[]),
            ("S", "ATOMIC", 3, &[]),
            ("CoRR", "PLAIN", 3, &[]),
            ("CoWW", "VOLATILE", 6, &[]),
            ("n5", "ATOMIC", 4, &[]),
        ],
        "dfs",
        "100000",
    );
}

#[test]
fn a_store_may_be_seen_after_a_later_load() {
    litmus(
        &[("R", "VOLATILE", 3, &["a=0 b=0 c=0 d=0 x=1 y=2 z=0"]), ("R_mfence", "ATOMIC", 3, &[])],
        "dfs",
        "100000",
    );
}

#[test]
fn more_stores_and_more_threads_see_one_order_of_memory() {
    litmus(
        &[
            ("W22", "ATOMIC", 3, &[]),
            ("n6", "VOLATILE", 4, &["a=1 b=0 c=0 d=0 x=1 y=2 z=0"]),
            ("n6_mfence", "VOLATILE", 4, &[]),
            ("WRC", "PLAIN", 7, &[]),
            ("RWC", "VOLATILE", 7, &["a=1 b=0 c=0 d=0 x=1 y=1 z=0"]),
            ("ISA2", "ATOMIC", 7, &[]),
            ("IRIW", "PLAIN", 15, &[]),
        ],
        "random",
        "14000",
    );
}

/// The same for code whose compiler reports its accesses, with the orders that the program names.
#[test]
fn what_compilers_report_waits_as_well() {
    let place = Workplace::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memory/litmus.c");
    let flags =
        |which: &str| place.waylay(&[which]).stdout.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let tests: [(&str, usize, &[&str]); 4] = [
        ("SB", 3, &["a=0 b=0 c=0 d=0 x=1 y=1 z=0"]),
        ("SB_mfences", 3, &[]),
        ("SB_xchgs", 3, &[]),
        ("MP", 3, &[]),
    ];
    for (name, count, more) in tests {
        let (program, object) = (place.path().join(name), place.path().join(format!("{name}.o")));
        let mut compile = Command::new("gcc");
        compile.args(["-std=gnu17", "-O1", "-g", "-pthread", "-DATOMIC", "-c"]).arg(format!("-D{name}"));
        let compiled = compile.args(flags("cflags")).arg(&source).arg("-o").arg(&object).status();
        let mut link = Command::new("gcc");
        let linked = link.arg(&object).args(flags("ldflags")).args(["-pthread", "-o"]).arg(&program).status();
        assert!(compiled.expect("gcc is installed").success() && linked.expect("it still is").success());
        let program = program.to_str().expect("a plain path");
        let consistent = states(&place, program, "sc", "random", "1000");
        let buffered = states(&place, program, "tso", "random", "1000");
        assert_eq!(consistent.len(), count, "{name}: {consistent:#?}");
        assert_eq!(buffered.difference(&consistent).collect::<Vec<_>>(), more, "{name}");
    }
}

/// Finds the forgotten fence of a program within 10,000 schedules, and nothing in its twin, nor without store buffers.
fn told_apart(file: &str) {
    let place = Workplace::new();
    let twin = if file.ends_with(".rs") { "--cfg=fixed" } else { "-DFIXED" };
    let bug = build(&place, file, "bug", &[]);
    let fixed = build(&place, file, "fixed", &[twin]);
    for (program, memory, runs) in [(&bug, "sc", "2000"), (&fixed, "tso", "2000")] {
        let (status, summary) = explore(&place, memory, &["--runs", runs, "--minimize", "off"], &[program]);
        assert_eq!(status, Some(0), "{file}, {program}, {memory}: {summary:#}");
        assert_eq!(summary["unconfirmed_delays"], 0, "{file}, {program}: {summary:#}");
    }
    let (status, summary) = explore(&place, "tso", &["--runs", "10000", "--stop-on-first"], &[&bug]);
    assert_eq!(status, Some(1), "{file}: {summary:#}");
    let found = &summary["found"][0];
    assert_eq!((&found["kind"], &found["confirmed"]), (&"assert".into(), &true.into()), "{summary:#}");
    assert!(summary["store_buffers"].as_u64() > Some(0), "{summary:#}");
    // The store that came too late is named, with its line and that of the read.
    let delayed = found["delayed"].as_array().expect("stores waited");
    let place_of = |text: &Value| text.as_str().is_some_and(|text| text.contains(&format!("({file}:")));
    assert!(delayed.iter().any(|one| place_of(&one["store"]) && place_of(&one["read"])), "{summary:#}");
    // It comes back every time, also minimised.
    let folder = found["failure_dir"].as_str().expect("it is kept");
    for more in [&["--times", "10"][..], &["--times", "10", "--minimized"]] {
        let ran = place.waylay(&[&["replay", folder], more].concat());
        assert_eq!(ran.status.code(), Some(1), "{ran:#?}");
        assert!(ran.stderr.contains("10 of 10"), "{ran:#?}");
    }
    let record = std::fs::read_to_string(Path::new(folder).join("strict.json")).expect("it is kept");
    assert!(record.contains("\"memory\": \"tso\""), "{record}");
}

#[test]
fn locks_of_loads_and_stores_need_a_fence() {
    told_apart("dekker.c");
    told_apart("peterson.c");
    told_apart("asymmetric.c");
}

#[test]
fn a_task_is_taken_twice_without_a_fence() {
    told_apart("chase_lev.c");
}

#[test]
fn announcements_that_are_seen_too_late() {
    told_apart("hazard.cpp");
    told_apart("epoch.rs");
}

#[test]
fn whoever_sees_the_flag_sees_the_data_however_they_were_written() {
    let place = Workplace::new();
    let program = build(&place, "messages.c", "messages", &[]);
    let ways = [
        "byte",
        "split",
        "overlap",
        "vector",
        "streaming",
        "words",
        "string",
        "memcpy",
        "memset",
        "print",
        "sort",
        "signal",
        "free",
        "unmap",
        "kernel",
        "stack",
        "update",
        "mutex",
    ];
    for way in ways {
        for strategy in ["random", "pct:depth=3"] {
            let options = ["--strategy", strategy, "--runs", "300", "--minimize", "off"];
            let (status, summary) = explore(&place, "tso", &options, &[&program, way]);
            assert_eq!(status, Some(0), "{way}, {strategy}: {summary:#}");
            assert_eq!(summary["unconfirmed_delays"], 0, "{way}, {strategy}: {summary:#}");
            assert!(summary["store_buffers"].as_u64() > Some(0), "{way}, {strategy}: {summary:#}");
        }
    }
}

#[test]
fn what_cannot_be_patched_makes_no_false_alarm() {
    let place = Workplace::new();
    let program = build(&place, "messages.c", "messages", &["-DTIGHT"]);
    let (status, summary) =
        explore(&place, "tso", &["--runs", "400", "--minimize", "off"], &[&program, "tight"]);
    assert_eq!(summary["refused"], 1, "{summary:#}");
    assert_eq!(status, Some(0), "{summary:#}");
    assert!(summary["unconfirmed_delays"].as_u64() > Some(0), "{summary:#}");
}

#[test]
fn kernel_threads_make_the_same_runs_as_fibers() {
    let place = Workplace::new();
    let program = build(&place, "dekker.c", "bug", &[]);
    let ways: [&[&str]; 3] = [&["--restart", "fork"], &["--restart", "snapshot"], &["--baton"]];
    let counts = ways.map(|way| {
        let options = [&["--strategy", "random", "--runs", "300", "--minimize", "off"], way].concat();
        let (_, summary) = explore(&place, "tso", &options, &[&program]);
        assert!(summary["failures"].as_u64() > Some(0), "{way:?}: {summary:#}");
        summary["failures"].clone()
    });
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

#[test]
fn stores_that_are_not_seen_are_refused() {
    let place = Workplace::new();
    for (more, why) in [(["--level", "atomics"], "--level auto"), (["--patch", "none"], "patching")] {
        let ran = place.waylay(&[&["explore", "--memory", "tso"], &more[..], &["--", "/bin/true"]].concat());
        assert_eq!(ran.status.code(), Some(2), "{ran:#?}");
        assert!(ran.stderr.contains(why), "{ran:#?}");
    }
    let ran = place.waylay(&["explore", "--memory", "pso", "--", "/bin/true"]);
    assert!(ran.status.code() == Some(2) && ran.stderr.contains("sc or tso"), "{ran:#?}");
}

/// Dekker's first attempt again, as a plugin test: in the host, schedule after schedule in one process.
#[test]
fn plugin_tests_find_forgotten_fences() {
    let source = "\
#include \"waylay.hpp\"
#include <atomic>
#include <thread>
static std::atomic<int> wants[2];
static bool entered[2];
class Dekker : public waylay::TestBase {
 public:
  void TestMain(waylay::Worker& worker) override {
    entered[0] = entered[1] = false;
    wants[0] = wants[1] = 0;
    auto visit = [](int me) {
      wants[me].store(1, std::memory_order_release);
#ifdef FIXED
      std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
      // Nobody leaves, so that only one can enter.
      entered[me] = !wants[!me].load(std::memory_order_acquire);
    };
    std::thread one(visit, 0), other(visit, 1);
    one.join();
    other.join();
    worker.check(!entered[0] || !entered[1], \"both were inside\");
  }
};
WAYLAY_PLUGIN(\"fences\", waylay::test<Dekker>(\"dekker\", \"two threads, one room\"))
";
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../framework/abi/include");
    for (memory, twin, status) in [("tso", "-DBUG", 1), ("tso", "-DFIXED", 0), ("sc", "-DBUG", 0)] {
        let place = Workplace::with(&format!(
            "seed = '0x5eed'\n[defaults]\nmax-failures = 1\n[[scenario]]\nname = 's'\nmode = 'strict'\nminimize = 'off'\nruns = 2000\n\
             strategy = 'random'\nmemory = '{memory}'\n[[scenario.test]]\nplugin = './libfences.so'\nname = 'dekker'\n\
             workers = 1\n"
        ));
        let file = place.write("fences.cpp", source);
        let mut compile = Command::new("g++");
        compile.args(["-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-pthread", twin, "-I"]).arg(&include);
        let built = compile.arg(&file).arg("-o").arg(place.path().join("libfences.so")).status();
        assert!(built.expect("g++ is installed").success());
        let ran = place.run(status, &[]);
        if status == 1 {
            let failure = ran.failure("fences", "dekker");
            assert_eq!(
                (failure.kind(), failure.what()),
                ("assert", "both were inside"),
                "{:#}",
                failure.json
            );
            let folder = failure.folder.to_str().expect("a plain path");
            let again = place.waylay(&["replay", folder, "--times", "5", "--json"]).json();
            assert_eq!((&again["reproduced"], &again["diverged"]), (&5.into(), &0.into()), "{again:#}");
            let stacks = std::fs::read_to_string(failure.folder.join("stacks.txt")).expect("they are kept");
            assert!(stacks.contains("was still in its store buffer when thread"), "{stacks}");
        }
    }
}
