//! Strict scenarios of plugin tests, through the real command: what must be found is found, confirmed and can be run
//! again exactly; what is correct stays silent; hosts that are killed, hang or leave threads behind are replaced.

#![cfg(target_os = "linux")]

#[path = "strict/libraries.rs"]
mod libraries;
#[path = "strict/limits.rs"]
mod limits;
#[path = "strict/modes.rs"]
mod modes;
mod support;

use std::time::Duration;

use serde_json::Value;
use support::fields::{RECORD, STRICT, expect_fields};
use support::{Ran, Workplace, list, number, text};

/// Tests of a plugin as they stand in a scenario.
fn tests(plugin: &str, names: &[&str]) -> String {
    let entry = |name: &&str| format!("[[scenario.test]]\nplugin = \"waylay_{plugin}\"\nname = \"{name}\"\n");
    names.iter().map(entry).collect()
}

fn strict(keys: &str, tests: &str) -> Workplace {
    Workplace::with(&format!(
        "seed = '0x5eed'\n[defaults]\nmax-failures = 1\nhang-timeout = '20s'\n[[scenario]]\nname = 's'\n\
         mode = 'strict'\nminimize = 'off'\n{keys}\n{tests}"
    ))
}

fn numbers(ran: &Ran, plugin: &str, test: &str) -> Value {
    ran.test(&format!("waylay_{plugin}"), test)["strict"].clone()
}

/// With depth 2, n = 3 (5 for turnstile) threads and k of at most 50 steps, PCT promises 1/(5·50) per schedule: 5,000
/// schedules miss one of these with probability e⁻²⁰. The bugs of depth 1 are found by the same runs with 1/5 each.
#[test]
fn what_must_be_found_is_found_confirmed_and_runs_again_exactly() {
    let c = ["deadlock", "late-deadlock", "lost-update", "null", "overdrawn", "missed-signal", "endless"];
    let all = tests("schedules_c", &c)
        + &tests("schedules_cpp", &["stock", "turnstile"])
        + &tests("schedules", &["ticket", "hurried", "exchange", "answer"]);
    let place = strict("runs = 5000\ndepth = 2\nmax-steps = 5000\nlimit-is-failure = true", &all);
    let ran = place.run(1, &[]);
    let expected = [
        ("schedules_c", "deadlock", "deadlock", "deadlock: 3 threads, none can run"),
        ("schedules_c", "late-deadlock", "deadlock", "deadlock: 3 threads, none can run"),
        ("schedules_c", "lost-update", "assert", "an update was lost"),
        ("schedules_c", "null", "crash", "SIGSEGV at address 0x0"),
        ("schedules_c", "overdrawn", "assert", "the balance covers every payment"),
        ("schedules_c", "missed-signal", "deadlock", "none can run"),
        ("schedules_c", "endless", "livelock", "no end after 5,000 steps: limit reached"),
        ("schedules_cpp", "stock", "exception", "the last piece was sold twice"),
        ("schedules_cpp", "turnstile", "deadlock", "none can run"),
        ("schedules", "ticket", "assert", "was drawn twice"),
        ("schedules", "hurried", "assert", "was drawn twice"),
        ("schedules", "exchange", "assert", "an addition was lost"),
        ("schedules", "answer", "assert", "the question was asked"),
    ];
    for (plugin, test, kind, what) in expected {
        let failure = ran.failure(&format!("waylay_{plugin}"), test);
        assert_eq!(failure.kind(), kind, "{test}: {}", failure.what());
        assert!(failure.what().contains(what), "{test}: {}", failure.what());
        let record: Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
        expect_fields(&record, RECORD);
        assert_eq!(record["confirmed"], true, "{test}: {:#}", failure.json);
        assert_eq!(record["partly_controlled"], false, "{test}");
        assert!(failure.folder.join("schedule.bin").exists() && failure.folder.join("dump.dmp").exists());
        assert_eq!(list(&failure.json["gaps"]), &[] as &[Value], "{test}");
        let again = place.waylay(&["replay", failure.folder.to_str().unwrap(), "--times", "20", "--json"]);
        assert_eq!(again.code(), Some(1), "{test}: {}", again.stderr);
        let replayed = again.json();
        assert_eq!((number(&replayed["reproduced"]), number(&replayed["diverged"])), (20, 0), "{test}");
    }
    let deadlock = ran.failure("waylay_schedules_c", "deadlock");
    let reason = text(&deadlock.json["reason"]);
    assert!(reason.contains("held by thread 1") && reason.contains("held by thread 2"), "{reason}");
    // Locks and threads are called as in the timeline, everywhere.
    let timeline: Value = serde_json::from_str(&deadlock.file("timeline.json")).unwrap();
    let locks: Vec<&str> = list(&timeline["locks"]).iter().map(text).collect();
    for line in reason.lines().filter(|line| line.contains("mutex-lock")) {
        let lock = line
            .split_once("mutex-lock ")
            .and_then(|(_, rest)| rest.split_once(" since step "))
            .expect(line)
            .0;
        assert!(locks.contains(&format!("lock {lock}").as_str()), "{line}: {locks:?}");
    }
    let names: Vec<&str> = list(&deadlock.json["stacks"]).iter().map(|stack| text(&stack["name"])).collect();
    assert_eq!(names.iter().filter(|name| ["thread 1", "thread 2"].contains(name)).count(), 2, "{names:?}");
    assert!(ran.stderr.contains("where   thread 1 waits in mutex-lock "), "{}", ran.stderr);
    let shown = place.waylay(&["show", &deadlock.signature()[..13]]).stdout;
    assert!(shown.contains("\n   thread 1 waits in mutex-lock "), "{shown}");
    let page = place.path().join("page.html");
    place.waylay(&["report", "--html", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<b>thread 1</b><span class=\"dim\">waits in mutex-lock "), "{page}");
    assert!(deadlock.file("stacks.txt").matches("take_both").count() >= 2, "{}", deadlock.file("stacks.txt"));
    assert!(deadlock.first_stack().iter().any(|function| function == "take_both"));

    let folder = deadlock.folder.to_str().unwrap();
    let again = place.waylay(&["replay", deadlock.signature(), "--times", "2", "--json"]);
    assert_eq!(number(&again.json()["reproduced"]), 2, "a signature names it too: {}", again.stderr);
    let minimized = place.waylay(&["minimize", folder, "--budget", "30s", "--json"]);
    assert_eq!(minimized.code(), Some(0), "{}", minimized.stderr);
    let minimized = minimized.json();
    assert_eq!(number(&minimized["after"]), 1, "{minimized:#}");
    assert!(text(&minimized["switches"][0]["from_stack"]).contains("take_both"), "{minimized:#}");
}

#[test]
fn what_is_correct_stays_silent_and_is_guaranteed() {
    let c = ["deadlock-fixed", "lost-update-fixed", "missed-signal-fixed", "detached", "pair"];
    let all = tests("schedules_c", &c)
        + &tests("schedules_cpp", &["stock-fixed", "turnstile-fixed"])
        + &tests("schedules", &["ticket-fixed", "exchange-fixed", "answer-fixed", "meeting"]);
    let place = strict("runs = 3000", &all);
    let ran = place.run(0, &[]);
    let json = ran.json();
    let tests = list(&json["campaign"]["scenarios"][0]["tests"]);
    assert_eq!(tests.len(), 11);
    assert_eq!(json["campaign"]["scenarios"][0]["mode"], "strict");
    for test in tests {
        let strict = &test["strict"];
        expect_fields(strict, STRICT);
        assert_eq!((number(&test["iterations"]), number(&strict["runs"])), (3000, 3000), "{test:#}");
        assert!(number(&strict["threads"]) >= 3 && number(&strict["steps"]) > 0, "{test:#}");
        assert_eq!(
            (number(&strict["left_behind"]), number(&strict["partly_controlled"])),
            (0, 0),
            "{test:#}"
        );
        let guarantee = &strict["guarantee"];
        assert!(guarantee["after_runs"].as_f64().unwrap() > 0.95, "{test:#}");
        assert!(number(&strict["depth"]) >= 1 && !list(&strict["guarantees"]).is_empty(), "{test:#}");
    }
    assert!(ran.stderr.contains("guarantee: a bug of depth"), "{}", ran.stderr);
}

/// When threads run freely, the two threads of `late-deadlock` want the locks twenty milliseconds apart.
#[test]
fn what_practically_never_happens_freely_is_found_at_once() {
    let entry = tests("schedules_c", &["late-deadlock"]);
    let free = Workplace::with(&format!("[[scenario]]\nname = 's'\n{entry}iterations = 40\n"));
    let ran = free.run(0, &[]);
    assert_eq!(number(&ran.test("waylay_schedules_c", "late-deadlock")["iterations"]), 40);
    // d = 2, n = 3, k ≤ 20: 1/60 per schedule, so 2,000 schedules miss it with probability e⁻³³.
    let place = strict("runs = 2000\ndepth = 2", &entry);
    let ran = place.run(1, &[]);
    let first = ran.failure("waylay_schedules_c", "late-deadlock");
    assert_eq!(first.kind(), "deadlock");
}

#[test]
fn equal_seeds_give_equal_schedules() {
    let all = tests("schedules_c", &["lost-update", "deadlock"]) + &tests("schedules", &["ticket"]);
    for strategy in ["pct:depth=2", "surw", "idiom"] {
        let once = || {
            let place = strict(&format!("runs = 2000\nstrategy = '{strategy}'"), &all);
            let ran = place.run(1, &[]);
            let mut found = Vec::new();
            for failure in ran.failures() {
                let run = failure.json["occurrences"][0]["iteration"].clone();
                let schedule = std::fs::read(failure.folder.join("schedule.bin")).unwrap();
                found.push((failure.signature().to_owned(), run, schedule));
            }
            assert_eq!(found.len(), 3, "{strategy}: {}", ran.stderr);
            found
        };
        assert_eq!(once(), once(), "{strategy}");
    }
}

/// In hosts, too, it is counted in how many orders conflicting events came, in the first schedules and some of the later.
#[test]
fn orders_are_counted_in_hosts() {
    for strategy in ["portfolio", "idiom"] {
        let place = strict(
            &format!("runs = 400\nstrategy = '{strategy}'"),
            &tests("schedules_c", &["lost-update-fixed"]),
        );
        let ran = place.run(0, &[]);
        let orders = numbers(&ran, "schedules_c", "lost-update-fixed")["orders"].clone();
        let [seen, predicted, runs] = ["seen", "predicted", "runs"].map(|name| number(&orders[name]));
        assert!(0 < seen && seen <= predicted && runs >= 64, "{strategy}: {orders:#}");
        assert!(ran.stderr.contains(" orders of conflicting places were seen in "), "{}", ran.stderr);
    }
}

/// Of a test whose orders are all seen soon, no more schedules are made than were asked for behind the last new one.
#[test]
fn a_test_ends_when_nothing_new_comes() {
    let keys = "runs = 5000\nstop-after-quiet = 150";
    let place = strict(keys, &tests("schedules_c", &["lost-update-fixed"]));
    let ran = place.run(0, &[]);
    let strict = numbers(&ran, "schedules_c", "lost-update-fixed");
    assert_eq!((&strict["quiet"], &strict["exhausted"]), (&true.into(), &false.into()), "{strict:#}");
    assert_eq!(number(&strict["runs"]), number(&strict["orders"]["last_new"]) + 150, "{strict:#}");
    assert!(ran.stderr.contains("no schedule showed a new order"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("every schedule within the bound"), "{}", ran.stderr);
}

#[test]
fn threads_that_are_left_behind_cost_a_host_and_are_no_failure() {
    let place = strict("runs = 15", &tests("schedules_c", &["pool"]));
    let ran = place.run(0, &[]);
    let strict = numbers(&ran, "schedules_c", "pool");
    assert_eq!((number(&strict["runs"]), number(&strict["left_behind"])), (15, 15), "{strict:#}");
    assert_eq!(number(&ran.json()["campaign"]["hosts"]), 15);
    assert!(ran.stderr.contains("15 schedules left threads behind"), "{}", ran.stderr);
}

/// Fails because of what earlier schedules left behind. The first one is made twice, so the fifty-first call of a counting
/// test is that of the schedule with number 49.
#[test]
fn a_failure_that_needs_earlier_schedules_is_confirmed_with_them() {
    let place = strict("runs = 200", &tests("schedules_c", &["remembers"]));
    let ran = place.run(1, &[]);
    let failure = ran.failure("waylay_schedules_c", "remembers");
    assert_eq!(failure.json["occurrences"][0]["iteration"], 49, "{:#}", failure.json);
    let record: Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
    assert_eq!(record["confirmed"], true, "{record:#}");
    let before = &record["conditions"]["before"];
    assert_eq!(
        (number(&before["first"]), number(&before["repeats"]), number(&before["through"])),
        (0, 1, 49)
    );
    let again = place.waylay(&["replay", failure.folder.to_str().unwrap(), "--times", "3", "--json"]).json();
    assert_eq!((number(&again["reproduced"]), number(&again["diverged"])), (3, 0), "{again:#}");
}

/// Fails where a file is missing, and makes it.
#[test]
fn a_failure_that_does_not_come_back_is_reported_as_not_confirmed() {
    let place = Workplace::new();
    let file = place.path().join("was-here");
    place.compile(
        "probing",
        &format!(
            "#include <fcntl.h>\n#include <unistd.h>\n\
             static int32_t iterate(probe *self, waylay_context *worker) {{ (void)self; (void)worker;\n\
               if (access(\"{0}\", F_OK) == 0) return 0;\n\
               close(open(\"{0}\", O_CREAT | O_WRONLY, 0600)); return WAYLAY_FAILED; }}",
            file.display()
        ),
    );
    place.write(
        "waylay.toml",
        "[[scenario]]\nname = 's'\nmode = 'strict'\nminimize = 'off'\nruns = 200\n[[scenario.test]]\nplugin = 'probing'\nworkers = 1\n",
    );
    let ran = place.run(1, &[]);
    let failure = ran.failure("probing", "probe");
    let gaps = failure.json["gaps"].to_string();
    assert!(gaps.contains("not confirmed"), "{gaps}");
    let record: Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
    assert_eq!(record["confirmed"], false);
    assert_eq!(number(&ran.test("probing", "probe")["strict"]["unconfirmed"]), 1);
}

/// What fails only in the first schedule of a process fails in the first attempt at it, which counts then; and it runs again
/// in a process in which nothing came before.
#[test]
fn a_failure_of_the_very_first_schedule_is_kept() {
    let source = "static int made;\n\
        static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker;\n\
          return made++ ? 0 : WAYLAY_FAILED; }";
    let place = probe(source, "runs = 20", "workers = 1");
    let ran = place.run(1, &[]);
    let failure = ran.failure("probing", "probe");
    assert_eq!(failure.json["occurrences"][0]["iteration"], 0);
    let record: Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
    assert_eq!((&record["confirmed"], &record["conditions"]["before"]), (&Value::Bool(true), &Value::Null));
}

/// A search takes every schedule for a change of an earlier one. If the first one had steps that no later one has, it would
/// look for changes that are not there, and miss others.
#[test]
fn what_is_made_on_first_use_is_no_part_of_a_search() {
    let schedules = |made: u32, level: &str| {
        let source = format!(
            "static int made = {made}; static long filler, sum;\n\
             static int32_t iterate(probe *self, waylay_context *worker) {{ (void)self; (void)worker;\n\
               if (!made) {{ made = 1; for (int i = 0; i < 4; i++) __atomic_fetch_add(&filler, 1, __ATOMIC_SEQ_CST); }}\n\
               __atomic_fetch_add(&sum, 1, __ATOMIC_SEQ_CST); __atomic_fetch_add(&sum, 1, __ATOMIC_SEQ_CST); return 0; }}"
        );
        let place = probe(&source, &format!("strategy = 'dfs'\nlevel = '{level}'"), "workers = 2");
        let strict = place.run(0, &[]).test("probing", "probe")["strict"].clone();
        assert_eq!(strict["exhausted"], true, "{strict:#}");
        (number(&strict["runs"]), number(&strict["steps"]))
    };
    // A variable that threads write and read without a lock in the first schedule is a conflict for good.
    assert!(schedules(0, "auto") > schedules(1, "auto"));
    let (first_use, none) = (schedules(0, "atomics"), schedules(1, "atomics"));
    assert_eq!(first_use, none);
    assert!(none.0 >= 6, "two threads with two steps each have six orders: {none:?}");
}

/// A plugin in Rust that was compiled like any other: what it does by atomic instructions alone is found because those are
/// steps, and by no schedule where they are not. n = 3, k of at most 50, depth 2: 1/150 per schedule, so that 5,000 of
/// them miss it with probability e⁻³³.
#[test]
fn atomic_instructions_of_a_plugin_are_steps_without_any_flags() {
    for test in ["hurried", "exchange"] {
        let all = tests("schedules", &[test]);
        let steps = |ran: &Ran| number(&numbers(ran, "schedules", test)["steps"]);
        let place = strict("runs = 5000\ndepth = 2", &all);
        let found = place.run(1, &[]);
        assert_eq!(found.failure("waylay_schedules", test).kind(), "assert");
        for without in ["level = 'sync'", "patch = 'none'"] {
            let place = strict(&format!("runs = 5000\ndepth = 2\n{without}"), &all);
            let silent = place.run(0, &[]);
            assert!(steps(&found) > steps(&silent), "{test}: {} and {}", steps(&found), steps(&silent));
        }
    }
}

/// Plugins in three languages, compiled like any others, that share nothing but plain loads and stores: in a scenario that
/// says nothing about it their conflicts are learned, found, confirmed, run again exactly and are made smaller. d = 2, n = 3, and k of
/// at most 80 steps: 1/240 per schedule, so that 5,000 of them miss one with probability e⁻²⁰.
#[test]
fn plain_accesses_of_plugins_are_steps_where_nothing_is_said() {
    let cases = [
        ("schedules_c", "balance", "a payment was lost"),
        ("schedules_cpp", "seats", "a seat was taken twice"),
        ("schedules", "ring", "an item was taken twice"),
    ];
    let all: String = cases.iter().map(|(plugin, test, _)| tests(plugin, &[test])).collect();
    let place = strict("runs = 5000\ndepth = 2", &all);
    let ran = place.run(1, &[]);
    for (plugin, test, what) in cases {
        let failure = ran.failure(&format!("waylay_{plugin}"), test);
        assert_eq!(failure.kind(), "assert", "{test}: {}", failure.what());
        assert!(failure.what().contains(what), "{test}: {}", failure.what());
        let record: Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
        assert_eq!(record["confirmed"], true, "{test}: {:#}", failure.json);
        let steps = &record["conditions"]["steps"];
        assert_eq!(record["conditions"]["level"], "auto", "{record:#}");
        assert!(!list(&steps["sites"]).is_empty(), "{test}: {steps:#}");
        assert_eq!(list(&failure.json["gaps"]), &[] as &[Value], "{test}");
        let folder = failure.folder.to_str().unwrap();
        let again = place.waylay(&["replay", folder, "--times", "20", "--json"]).json();
        assert_eq!((number(&again["reproduced"]), number(&again["diverged"])), (20, 0), "{test}");
        let minimized = place.waylay(&["minimize", folder, "--budget", "30s", "--json"]);
        assert_eq!(minimized.code(), Some(0), "{}", minimized.stderr);
        assert_eq!(number(&minimized.json()["after"]), 1, "{test}");
        let numbers = numbers(&ran, plugin, test);
        assert!(number(&numbers["sites"]) > 0 && number(&numbers["looked_at"]) > 0, "{numbers:#}");
        assert!(number(&numbers["accesses"]) > number(&numbers["sites"]), "{numbers:#}");
    }
    assert!(ran.stderr.contains(" in the code conflict and are steps: k = "), "{}", ran.stderr);
    let silent = strict("runs = 500\ndepth = 2\nlevel = 'atomics'", &tests("schedules_c", &["balance"]));
    let silent = silent.run(0, &[]);
    let note = "plain accesses to memory were no steps at level atomics";
    assert!(silent.stderr.contains(note), "{}", silent.stderr);
    let memory = strict("runs = 2000\ndepth = 2\nlevel = 'memory'", &tests("schedules_c", &["balance"]));
    assert_eq!(memory.run(1, &[]).failure("waylay_schedules_c", "balance").kind(), "assert");
}

/// Code that is reached after two thousand schedules is looked at and learned then, and the failure there is confirmed by a process
/// that makes those schedules first, with the steps that each of them had. d = 2, n = 3, k of at most 20: 1/60 per schedule, so
/// that 2,000 of them miss it with probability e⁻³³.
#[test]
fn code_that_is_reached_late_is_learned_late() {
    let source = "#include <stdlib.h>\nstatic long calls, sum, done;\n\
         static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker;\n\
           if (__atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST) < 4000) return 0;\n\
           long before = sum; sum = before + 1;\n\
           long all = __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);\n\
           if (all % 2 == 0 && sum != all) abort();\n\
           return 0; }";
    let place = probe(source, "depth = 2\nruns = 4000", "workers = 2");
    let failure = place.run(1, &[]).failure("probing", "probe");
    assert_eq!(failure.kind(), "crash", "{:#}", failure.json);
    let record: Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
    assert!(number(&record["run"]) >= 2000, "{record:#}");
    assert_eq!((&record["confirmed"], &record["conditions"]["before"]["sites"]), (&true.into(), &0.into()));
    let again = place.waylay(&["replay", failure.folder.to_str().unwrap(), "--times", "3", "--json"]).json();
    assert_eq!((number(&again["reproduced"]), number(&again["diverged"])), (3, 0), "{again:#}");
}

/// The two workers of a schedule are told apart by a ticket; `round` is the number of the schedule, from 1.
fn writer_and_reader(data: &str, write: &str, read: &str) -> String {
    format!(
        "#include <sched.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nstatic long tickets;\n{data}\n\
         static int32_t iterate(probe *self, waylay_context *worker) {{ (void)self; (void)worker;\n\
           long ticket = __atomic_fetch_add(&tickets, 1, __ATOMIC_SEQ_CST); int round = (int)(ticket / 2) + 1; (void)round;\n\
           if (ticket % 2 == 0) {{ {write} }} else {{ {read} }}\n\
           return 0; }}"
    )
}

/// Copies of the C library's are accesses of the plugin that calls them. d = 2, n = 3, k of at most 40: 1/240 in half of the
/// schedules, so that 4,000 of them miss it with probability e⁻⁸ at most; the seed is fixed.
#[test]
fn copies_of_a_plugin_are_steps_where_they_conflict() {
    let source = writer_and_reader(
        "static char record[64]; static volatile size_t length = 64;",
        "char next[64]; memset(next, 'a' + round % 20, length); memcpy(record, next, length / 2);\n\
         memcpy(record + length / 2, next, length / 2);",
        "char seen[64]; memcpy(seen, record, length); if (seen[0] != seen[length - 1]) abort();",
    );
    let place = probe(&source, "depth = 2\nruns = 4000", "workers = 2");
    let ran = place.run(1, &["--seed", "0x5eed"]);
    let failure = ran.failure("probing", "probe");
    assert_eq!(failure.kind(), "crash", "{:#}", failure.json);
    let record: Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
    assert_eq!(record["confirmed"], true, "{record:#}");
    let folder = failure.folder.to_str().unwrap();
    let again = place.waylay(&["replay", folder, "--times", "5", "--json"]).json();
    assert_eq!((number(&again["reproduced"]), number(&again["diverged"])), (5, 0), "{again:#}");
    let minimized = place.waylay(&["minimize", folder, "--budget", "30s", "--json"]);
    assert_eq!(number(&minimized.json()["after"]), 1, "{}", minimized.stdout);
}

/// A worker that waits for a plain flag takes over what is behind it: k does not depend on how much that is.
#[test]
fn a_plugin_that_waits_for_a_plain_flag_takes_over_what_is_behind_it() {
    for wait in ["sched_yield()", "usleep(10)"] {
        let [little, much] = [10, 1000].map(|count| {
            let source = writer_and_reader(
                &format!("static int numbers[{count}]; static volatile int flag;"),
                &format!("for (int i = 0; i < {count}; i++) numbers[i] = round; flag = round;"),
                &format!(
                    "while (flag != round) {wait}; for (int i = 0; i < {count}; i++) if (numbers[i] != round) abort();"
                ),
            );
            let place = probe(&source, "depth = 2\nruns = 400", "workers = 2");
            let ran = place.run(0, &["--seed", "0x5eed"]);
            let strict = &ran.test("probing", "probe")["strict"];
            assert_eq!(list(&strict["guarantee"]["leaves_out"]), &[] as &[Value], "{strict:#}");
            number(&strict["steps"])
        });
        assert_eq!(little, much, "{wait}: k depends on how much is handed over");
    }
}

/// Every failure costs a host, and the next goes on with what was learned: each of them fails again in a fresh process.
#[test]
fn failures_of_later_hosts_have_the_steps_that_were_learned_before() {
    let place = Workplace::with(&format!(
        "seed = '0x5eed'\n[defaults]\nmax-failures = 3\n[[scenario]]\nname = 's'\nmode = 'strict'\nminimize = 'off'\nruns = 5000\n\
         depth = 2\n{}",
        tests("schedules_c", &["balance"])
    ));
    let ran = place.run(1, &[]);
    assert_eq!(number(&ran.test("waylay_schedules_c", "balance")["failures"]), 3);
    let (strict, failure) =
        (numbers(&ran, "schedules_c", "balance"), ran.failure("waylay_schedules_c", "balance"));
    assert_eq!(number(&strict["unconfirmed"]), 0, "{strict:#}");
    let again = place.waylay(&["replay", failure.folder.to_str().unwrap(), "--times", "5", "--json"]).json();
    assert_eq!((number(&again["reproduced"]), number(&again["diverged"])), (5, 0), "{again:#}");
}

/// A search that learns of a step begins again, looks at every schedule, and ends only when none showed anything new.
#[test]
fn a_search_over_plain_accesses_ends_and_finds() {
    let source = "static long sum, arrived;\n\
         static int32_t iterate(probe *self, waylay_context *worker) {\n\
           if (__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST) % 2 == 0) sum = 0;\n\
           long before = sum; sum = before + 1; (void)self; (void)worker; return 0; }";
    let place = probe(source, "strategy = 'dfs'", "workers = 2");
    let strict = place.run(0, &[]).test("probing", "probe")["strict"].clone();
    assert_eq!(strict["exhausted"], true, "{strict:#}");
    assert!(number(&strict["sites"]) >= 3, "{strict:#}");
    assert!(number(&strict["looked_at"]) >= number(&strict["runs"]), "{strict:#}");
    let source = "static long sum; static int32_t iterate(probe *self, waylay_context *worker) {\n\
           long before = sum; sum = before + 1; (void)self; (void)worker; return 0; }";
    let orders = |level: &str| {
        let place = probe(source, &format!("strategy = 'dfs'\nlevel = '{level}'"), "workers = 2");
        let strict = place.run(0, &[]).test("probing", "probe")["strict"].clone();
        assert_eq!(strict["exhausted"], true, "{strict:#}");
        number(&strict["runs"])
    };
    assert!(
        orders("auto") >= orders("atomics") * 2,
        "two threads with a load and a store each have six orders"
    );
}

/// A search goes on in the next host where the failure was, and comes to an end.
#[test]
fn a_search_ends_although_hosts_are_thrown_away() {
    let place = Workplace::with(&format!(
        "[defaults]\nmax-failures = 0\n[[scenario]]\nname = 's'\nmode = 'strict'\nminimize = 'off'\nstrategy = 'pb:bound=1'\n{}",
        tests("schedules_cpp", &["stock", "stock-fixed"])
            + &tests("schedules", &["exchange", "exchange-fixed"])
    ));
    let ran = place.run(1, &[]);
    for (plugin, name, least) in [("schedules_cpp", "stock", 2), ("schedules", "exchange", 1)] {
        let (bad, good) = (numbers(&ran, plugin, name), numbers(&ran, plugin, &format!("{name}-fixed")));
        let all = Value::Bool(true);
        assert_eq!((&bad["exhausted"], &good["exhausted"]), (&all, &all), "{bad:#}");
        let failures = number(&ran.test(&format!("waylay_{plugin}"), name)["failures"]);
        assert!(failures >= least && number(&bad["runs"]) > failures, "{failures} {bad:#}");
        assert_eq!(number(&bad["unconfirmed"]), 0, "{bad:#}");
    }
    assert!(ran.stderr.contains("every schedule within the bound was run"), "{}", ran.stderr);
}

/// Processes of a probe with this iteration, on two workers, in strict mode.
fn probe(source: &str, keys: &str, test_keys: &str) -> Workplace {
    let place = Workplace::new();
    place.compile("probing", source);
    place.write(
        "waylay.toml",
        &format!(
            "[[scenario]]\nname = 's'\nmode = 'strict'\nminimize = 'off'\n{keys}\n[[scenario.test]]\nplugin = 'probing'\n\
             max-failures = 1\n{test_keys}\n"
        ),
    );
    place
}

#[test]
fn what_ends_the_process_is_seen_whatever_it_is() {
    for (body, kind, what) in [
        ("if (getpid() > 1) exit(0);", "exit", "the test called exit()"),
        ("abort();", "crash", "abort"),
        ("fputs(\"CHECK(n == 2) failed, probe.c:7\\n\", stderr); abort();", "assert", "CHECK(n == 2) failed"),
        (
            "static int deep(int n) { volatile char room[4096]; room[0] = n; return n < 1000000000 ? deep(n + 1) + room[0] : 0; }",
            "",
            "",
        ),
    ] {
        let source = if kind.is_empty() {
            format!(
                "{body}\nstatic int32_t iterate(probe *self, waylay_context *worker) {{ (void)self; (void)worker; return deep(1); }}"
            )
        } else {
            format!(
                "static int32_t iterate(probe *self, waylay_context *worker) {{ (void)self; (void)worker; {body} return 0; }}"
            )
        };
        let (kind, what) = if kind.is_empty() { ("crash", "stack overflow") } else { (kind, what) };
        let place = probe(&source, "runs = 100", "");
        let ran = place.run(1, &[]);
        let failure = ran.failure("probing", "probe");
        assert_eq!(failure.kind(), kind, "{}", failure.what());
        assert!(failure.what().contains(what), "{}", failure.what());
        assert!(failure.folder.join("schedule.bin").exists(), "{what}");
    }
}

/// A loop without a step, alone: nothing can be switched to, so only the clock tells.
#[test]
fn a_loop_without_steps_is_late() {
    let source = "static volatile int go = 1;\n\
        static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker; while (go); return 0; }";
    let place = probe(source, "runs = 100", "workers = 1\nhang-timeout = '1s'");
    let ran = place.run(1, &[]);
    let failure = ran.failure("probing", "probe");
    assert_eq!(failure.kind(), "livelock", "{}", failure.what());
}

/// A thread that libc makes by itself runs beside the schedule: a wait for it is no deadlock, and the schedules say so.
#[test]
fn a_thread_outside_the_schedule_makes_no_false_deadlock() {
    // Threads that libc makes for itself come by none of the calls that are controlled.
    let source = "#include <aio.h>\n#include <errno.h>\n#include <fcntl.h>\n#include <semaphore.h>\n#include <unistd.h>\n\
        static sem_t done; static char byte; static struct aiocb request;\n\
        static void posts(union sigval unused) { (void)unused; sem_post(&done); }\n\
        static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker;\n\
          struct aiocb first_byte = {.aio_fildes = open(\"/proc/self/exe\", O_RDONLY), .aio_buf = &byte, .aio_nbytes = 1};\n\
          first_byte.aio_sigevent.sigev_notify = SIGEV_THREAD;\n\
          first_byte.aio_sigevent.sigev_notify_function = posts;\n\
          request = first_byte;\n\
          sem_init(&done, 0, 0);\n\
          if (aio_read(&request) != 0) return WAYLAY_FAILED;\n\
          sem_wait(&done);\n\
          while (aio_error(&request) == EINPROGRESS) usleep(1);\n\
          close(request.aio_fildes); return 0; }";
    let place = probe(source, "runs = 10", "workers = 1");
    let ran = place.run(0, &[]);
    let strict = ran.test("probing", "probe")["strict"].clone();
    assert_eq!((number(&strict["runs"]), number(&strict["partly_controlled"])), (10, 10), "{strict:#}");
    assert!(ran.stderr.contains("10 schedules only partly controlled"), "{}", ran.stderr);
}

#[test]
fn the_thread_of_a_timer_is_part_of_the_schedule() {
    let source = "#include <semaphore.h>\n#include <time.h>\nstatic sem_t done;\n\
        static void posts(union sigval unused) { (void)unused; sem_post(&done); }\n\
        static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker;\n\
          struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = posts};\n\
          struct itimerspec soon = {.it_value = {0, 5000000}};\n\
          timer_t timer;\n\
          sem_init(&done, 0, 0);\n\
          if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return WAYLAY_FAILED;\n\
          if (timer_settime(timer, 0, &soon, 0) != 0) return WAYLAY_FAILED;\n\
          sem_wait(&done); timer_delete(timer); return 0; }";
    let place = probe(source, "runs = 10", "workers = 1");
    let ran = place.run(0, &[]);
    let strict = ran.test("probing", "probe")["strict"].clone();
    assert_eq!((number(&strict["runs"]), number(&strict["partly_controlled"])), (10, 0), "{strict:#}");
}

#[test]
fn a_test_that_cannot_start_is_refused() {
    let place = strict("runs = 50", &tests("faults_c", &["start-fails", "create-null"]));
    let ran = place.run(2, &[]);
    let problems = ran.json()["campaign"]["problems"].to_string();
    assert!(problems.contains("the device under test is not there"), "{problems}");
    assert!(problems.contains("CreateInstance failed"), "{problems}");
}

#[test]
fn hosts_that_are_killed_are_replaced_and_the_end_comes_in_order() {
    let place = strict("", &tests("schedules_c", &["pair"]));
    let running = place.start(&["run", "waylay.toml", "--json"]);
    // The first processes only say what is inside a plugin.
    running.until("a campaign", |_| !place.campaigns("waylay-out").is_empty());
    for kill in 0..12 {
        running.until("a host", |running| !running.hosts().is_empty());
        std::thread::sleep(Duration::from_millis(10 * kill));
        for host in running.hosts() {
            support::kill(host);
            running.until("the next host", |running| !running.hosts().contains(&host));
        }
    }
    let campaign = place.campaigns("waylay-out").remove(0).join("campaign.json");
    let schedules = || {
        let text = std::fs::read_to_string(&campaign).unwrap_or_default();
        let json: Value = serde_json::from_str(&text).unwrap_or_default();
        json["scenarios"][0]["tests"][0]["strict"]["runs"].as_u64().unwrap_or(0)
    };
    running.until("schedules of a host that is not killed", |_| schedules() > 5000);
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(json["campaign"]["state"], "stopped");
    assert!(number(&json["campaign"]["hosts"]) >= 12);
    let strict = numbers(&ran, "schedules_c", "pair");
    assert!(number(&strict["runs"]) > 5000, "{json:#}");
    // Killed while it ran schedules, or before that.
    assert!(
        list(&json["failures"]).iter().all(|failure| text(&failure["what"]).contains("SIGKILL")),
        "{json:#}"
    );
}

/// A plugin that was compiled for it has steps at its accesses if the scenario says so, and the failure runs again with
/// the same ones.
#[test]
fn the_level_says_what_is_a_step_in_a_plugin() {
    let source = "\
#include \"waylay.hpp\"
#include <thread>
static int counter;
class Lost : public waylay::TestBase {
 public:
  void TestMain(waylay::Worker& worker) override {
    counter = 0;
    auto add = [] { counter = counter + 1; };
    std::thread one(add), other(add);
    one.join();
    other.join();
    worker.check(counter == 2, \"an update was lost\");
  }
};
WAYLAY_PLUGIN(\"levels\", waylay::test<Lost>(\"lost\", \"two threads, one counter\"))
";
    let config = |level: &str| {
        format!(
            "seed = '0x5eed'\n[defaults]\nmax-failures = 1\n[[scenario]]\nname = 's'\nmode = 'strict'\nminimize = 'off'\nruns = 300\n\
             {level}\n[[scenario.test]]\nplugin = './liblevels.so'\nname = 'lost'\nworkers = 1\n"
        )
    };
    let place = Workplace::with(&config("level = 'memory'"));
    let file = place.write("levels.cpp", source);
    let flags = place.waylay(&["cflags"]);
    let include = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../framework/abi/include");
    let mut compile = std::process::Command::new("g++");
    compile.args(["-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-pthread", "-I"]).arg(include);
    // The flags are for compiling: linked with them, the plugin would want the compiler's own runtime.
    let object = place.path().join("levels.o");
    let built =
        compile.args(flags.stdout.split_whitespace()).arg("-c").arg(&file).arg("-o").arg(&object).status();
    assert!(built.unwrap().success());
    let mut link = std::process::Command::new("g++");
    link.args(["-shared", "-pthread", "-o"]).arg(place.path().join("liblevels.so")).arg(object);
    assert!(link.status().unwrap().success());

    let ran = place.run(1, &[]);
    let failure = ran.failure("levels", "lost");
    assert_eq!((failure.kind(), failure.what()), ("assert", "an update was lost"), "{:#}", failure.json);
    let folder = failure.folder.to_str().unwrap();
    let again = place.waylay(&["replay", folder, "--times", "5", "--json"]).json();
    assert_eq!((number(&again["reproduced"]), number(&again["diverged"])), (5, 0), "{again:#}");
    for level in ["level = 'atomics'", "level = 'sync'"] {
        let clean = Workplace::with(&config(level));
        std::fs::copy(place.path().join("liblevels.so"), clean.path().join("liblevels.so")).unwrap();
        clean.run(0, &[]);
    }
}
