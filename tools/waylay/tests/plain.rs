//! Programs with a bug between plain accesses, and their correct twins, as they come from the compiler and with nothing
//! but default options: the bug has to be found within a stated number of schedules, the twin to be clean for as many.
//!
//! The bugs have depth 2 or 3, in programs of 2 to 6 threads and some tens of steps once it is known which accesses
//! conflict. Runs are a pure function of the seed, which is fixed, so nothing here fails by chance.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::Workplace;

/// How a program is built, beside what its language needs.
#[derive(Clone, Copy, Debug)]
struct Build {
    options: &'static [&'static str],
}

const PLAIN: Build = Build { options: &["-O0"] };
const FAST: Build = Build { options: &["-O2"] };
const FIXED_PLACE: Build = Build { options: &["-O1", "-no-pie", "-fno-pic"] };

fn build(place: &Workplace, file: &str, build: Build, fixed: bool) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plain").join(file);
    let program = place.path().join(format!("{file}.{}", if fixed { "fixed" } else { "bug" }));
    let (compiler, options, twin): (_, &[&str], &[&str]) = match file.rsplit_once('.') {
        Some((_, "rs")) => ("rustc", &["--edition=2024", "-Aunexpected_cfgs"], &["--cfg=fixed"]),
        Some((_, "cpp")) => ("g++", &["-std=c++20", "-pthread"], &["-DFIXED"]),
        _ => ("gcc", &["-std=gnu17", "-pthread"], &["-DFIXED"]),
    };
    let mut command = Command::new(compiler);
    command.args(options).args(if compiler == "rustc" { &["-O"] } else { build.options });
    command.args(if fixed { twin } else { &[] }).arg("-o").arg(&program).arg(source);
    let built = command.output().expect("a compiler is installed");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program.to_str().expect("a plain path").to_owned()
}

fn explore(place: &Workplace, options: &[&str], program: &str) -> (Option<i32>, Value) {
    let ran = place.waylay(
        &[&["explore", "--json", "--quiet", "--seed", "1", "--minimize", "off"], options, &["--", program]]
            .concat(),
    );
    let summary = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
    (ran.status.code(), summary)
}

/// Finds the bug of a program within so many schedules, the same again from what was stored, and nothing in its twin.
fn told_apart(file: &str, how: Build, runs: u64) {
    let place = Workplace::new();
    let runs = runs.to_string();
    let program = build(&place, file, how, false);
    let (code, found) = explore(&place, &["--stop-on-first", "--runs", &runs], &program);
    assert_eq!(code, Some(1), "{file} {how:?}: {found:#}");
    assert_eq!(found["found"][0]["confirmed"], true, "{file} {how:?}: {found:#}");
    assert!(found["sites"].as_u64() > Some(0), "{file} {how:?}: {found:#}");
    let folder = found["failure_dir"].as_str().expect("a folder").to_owned();
    let again = place.waylay(&["replay", "--json", &folder, "--times", "3"]);
    let again: Value =
        serde_json::from_str(&again.stdout).unwrap_or_else(|error| panic!("{error}: {again:#?}"));
    assert_eq!(
        (&again["reproduced"], &again["diverged"]),
        (&3.into(), &0.into()),
        "{file} {how:?}: {again:#}"
    );
    let twin = build(&place, file, how, true);
    let (code, clean) = explore(&place, &["--runs", &runs], &twin);
    assert_eq!(code, Some(0), "{file} {how:?}: {clean:#}");
    assert_eq!(clean["partly_controlled"], 0, "{file} {how:?}: {clean:#}");
}

#[test]
fn variables_that_belong_together() {
    told_apart("reorder.c", FAST, 300);
    told_apart("reorder.c", FIXED_PLACE, 300);
    told_apart("vector.cpp", FAST, 100);
}

#[test]
fn the_wrong_lock_or_one_too_few() {
    told_apart("wronglock.c", PLAIN, 100);
    told_apart("twostage.c", FAST, 100);
    told_apart("account.cpp", FAST, 100);
}

#[test]
fn asked_before_it_is_locked() {
    told_apart("lazy.cpp", PLAIN, 100);
    told_apart("queue.c", FAST, 100);
}

#[test]
fn records_and_bits() {
    told_apart("stack.c", FAST, 100);
    told_apart("stack.c", PLAIN, 100);
    told_apart("flags.c", FIXED_PLACE, 100);
}

#[test]
fn published_too_early() {
    told_apart("published.c", FAST, 100);
    told_apart("local.c", PLAIN, 400);
}

#[test]
fn what_is_counted_in_a_frame() {
    told_apart("framed.cpp", FAST, 300);
}

/// The handler is not told of reads that are made in the program's place, and finds the program in its own code.
#[test]
fn a_handler_that_is_left_by_a_jump() {
    let place = Workplace::new();
    let program = build(&place, "probes.c", PLAIN, false);
    let (code, clean) = explore(&place, &["--runs", "200"], &program);
    assert_eq!(code, Some(0), "{clean:#}");
    assert_eq!(clean["partly_controlled"], 0, "{clean:#}");
}

#[test]
fn a_cell_that_is_thought_to_be_one_threads_own() {
    told_apart("shared.rs", FAST, 1500);
}

/// The program's way depends on RDTSC, which shows virtual time: what it fails by repeats. Doctor counts its sites.
#[test]
fn what_is_decided_by_the_processors_counter() {
    told_apart("ticks.c", PLAIN, 200);
    told_apart("ticks.c", FAST, 200);
    let place = Workplace::new();
    let program = build(&place, "ticks.c", FAST, false);
    let seen = place.waylay(&["doctor", "--json", &program]);
    let seen: Value = serde_json::from_str(&seen.stdout).unwrap_or_else(|error| panic!("{error}: {seen:#?}"));
    let sites = &seen["modules"][0]["sites"]["rdtsc"];
    assert_eq!((&sites["found"], &sites["refused"]), (&1.into(), &0.into()), "{seen:#}");
}

/// A signal comes between any two steps of the thread that it interrupts, and what its handler touches makes steps there.
#[test]
fn a_handler_that_sees_what_its_thread_is_changing() {
    told_apart("handler.c", PLAIN, 60);
    told_apart("handler.c", FAST, 60);
    told_apart("handler.c", Build { options: &["-O2", "-DPROCESS"] }, 60);
    told_apart("handler.c", Build { options: &["-O2", "-DTIMER"] }, 60);
}

/// Only a free, a reallocation or an unmapping conflicts with the reads: those are writes to the whole block.
#[test]
fn what_is_freed_while_it_is_read() {
    told_apart("freed.c", FAST, 60);
    told_apart("freed.c", Build { options: &["-O2", "-DMOVES"] }, 60);
    told_apart("freed.cpp", FAST, 60);
    told_apart("freed.rs", FAST, 100);
    told_apart("unmapped.c", FAST, 60);
    // Where frees are no steps by themselves, those that conflict are; so it is at every level that sees accesses.
    let place = Workplace::new();
    let program = build(&place, "freed.c", PLAIN, false);
    for options in [["--no-calls", "--no-guard"], ["--level", "memory"]] {
        let (code, found) = explore(&place, &[&options[..], &["--races", "--runs", "40"]].concat(), &program);
        assert_eq!((code, &found["kind"]), (Some(1), &"race".into()), "{options:?}: {found:#}");
        assert!(found["sites"].as_u64() > Some(0), "{options:?}: {found:#}");
    }
}

/// What is always under one lock, or handed over when threads begin and end, is no step.
#[test]
fn steps_are_few() {
    let place = Workplace::new();
    let program = build(&place, "stack.c", FAST, true);
    let (_, auto) = explore(&place, &["--runs", "50"], &program);
    let (_, atomics) = explore(&place, &["--runs", "50", "--level", "atomics"], &program);
    let (_, memory) = explore(&place, &["--runs", "50", "--level", "memory"], &program);
    assert_eq!((&auto["sites"], &auto["steps"]), (&0.into(), &atomics["steps"]), "{auto:#}");
    assert!(memory["steps"].as_u64() > auto["steps"].as_u64(), "{memory:#}");
    assert!(auto["accesses"].as_u64() > Some(100), "{auto:#}");
    assert_eq!(atomics["guarantee"]["leaves_out"][0]["reason"], "level", "{atomics:#}");
    assert_eq!(auto["guarantee"]["leaves_out"], Value::Array(Vec::new()), "nothing is left out: {auto:#}");
    let note = atomics["notes"].to_string();
    assert!(note.contains("plain accesses") && !auto["notes"].to_string().contains("at level"), "{note}");
}

#[test]
fn what_a_flag_hands_over_makes_no_steps_however_much_it_is() {
    told_apart("handed.c", FAST, 300);
    let place = Workplace::new();
    let program = build(&place, "handed.c", FAST, true);
    let [little, much] = ["10", "1000"].map(|count| steps_of(&place, &[&program, count]));
    assert_eq!(little, much, "k depends on how much is handed over");
}

fn steps_of(place: &Workplace, program: &[&str]) -> u64 {
    let ran = place
        .waylay(&[&["explore", "--json", "--quiet", "--seed", "1", "--runs", "200", "--"], program].concat());
    let clean: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
    assert_eq!(ran.status.code(), Some(0), "{clean:#}");
    clean["steps"].as_u64().unwrap_or_else(|| panic!("{clean:#}"))
}

/// A loop that waits by yielding, sleeping or spinning hands over what is behind the flag, although only plain moves touch that.
#[test]
fn who_waits_for_a_plain_flag_takes_over_what_is_behind_it() {
    let place = Workplace::new();
    for how in [FAST, PLAIN] {
        let program = build(&place, "waits.c", how, false);
        for way in ["yield", "usleep", "nanosleep", "spin"] {
            // How long somebody waits differs from schedule to schedule, so k does a little; were the thousand words steps,
            // it would be beyond a thousand.
            let [little, much] = ["10", "1000"].map(|count| steps_of(&place, &[&program, way, count]));
            assert!(
                little.max(much) < 100,
                "{way} {how:?}: k is {little} with 10 words and {much} with 1000"
            );
        }
    }
}

/// Copies of the C library's are accesses of the code that calls them, and may be seen half made.
#[test]
fn what_copies_of_the_c_library_conflict_with() {
    told_apart("copies.c", FAST, 60);
    told_apart("copies.c", PLAIN, 60);
    told_apart("torn.cpp", FAST, 60);
    told_apart("copies.rs", FAST, 60);
    let place = Workplace::new();
    let program = build(&place, "copies.c", Build { options: &["-O2", "-g"] }, false);
    let (code, race) = explore(&place, &["--races", "--runs", "20"], &program);
    assert_eq!((code, &race["kind"]), (Some(1), &"race".into()), "{race:#}");
    let twin = build(&place, "copies.c", Build { options: &["-O2", "-g"] }, true);
    let (code, clean) = explore(&place, &["--races", "--runs", "60"], &twin);
    assert_eq!(code, Some(0), "{clean:#}");
    // A program that only copies what is protected leaves nothing out.
    let program = build(&place, "copies.rs", FAST, true);
    let (_, clean) = explore(&place, &["--runs", "100"], &program);
    assert_eq!(clean["guarantee"]["leaves_out"], Value::Array(Vec::new()), "{clean:#}");
}

/// What a call reads and writes for the program are accesses as well, and so is what it uses that the C library has only once.
#[test]
fn what_calls_read_and_write_for_the_program() {
    const WAYS: [Build; 13] = [
        Build { options: &["-O1", "-DREAD"] },
        Build { options: &["-O1", "-DSYSCALL"] },
        Build { options: &["-O1", "-DREADV"] },
        Build { options: &["-O1", "-DPREAD"] },
        Build { options: &["-O1", "-DFREAD"] },
        Build { options: &["-O1", "-DFGETS"] },
        Build { options: &["-O1", "-DSPRINTF"] },
        Build { options: &["-O1", "-DWRITE"] },
        Build { options: &["-O1", "-DFWRITE"] },
        Build { options: &["-O2", "-DPRINTF"] },
        Build { options: &["-O1", "-DLOCALTIME"] },
        Build { options: &["-O1", "-DSTRTOK"] },
        Build { options: &["-O1", "-DSETENV"] },
    ];
    WAYS.into_iter().for_each(|how| told_apart("calls.c", how, 200));
}

/// A byte of a file that is mapped twice has two addresses, and is one byte.
#[test]
fn memory_with_two_addresses() {
    told_apart("mapped.c", Build { options: &["-O1"] }, 200);
}

/// What was not looked at, or could not be a step, is said with its place, in the sentence that promises.
#[test]
fn places_beyond_a_limit_are_named() {
    let place = Workplace::new();
    let program = build(&place, "hot.c", Build { options: &["-O1", "-g"] }, false);
    let (_, hot) = explore(&place, &["--runs", "60", "--strategy", "pct:depth=2"], &program);
    assert!(hot["sites"].as_u64() > Some(0), "both threads come by the place: {hot:#}");
    for places in ["limited_places", "overlooked_places"] {
        let named = hot[places].to_string();
        assert!(named.contains("count_up (hot.c:9)"), "{places}: {hot:#}");
    }
    let reasons: Vec<&Value> = hot["guarantees"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|promise| promise["leaves_out"].as_array().into_iter().flatten())
        .map(|left_out| &left_out["reason"])
        .collect();
    assert!(!reasons.is_empty() || hot["guarantee"].is_null(), "a promise without its limits: {hot:#}");
}

/// The signal of breakpoints reaches a program that blocks all signals, also where its failure is confirmed.
#[test]
fn breakpoints_work_where_every_signal_is_blocked() {
    let place = Workplace::new();
    let program = build(&place, "blocked.c", FAST, false);
    let doctor = place.waylay(&["doctor", "--json", &program]);
    let traps: u64 = doctor
        .stdout
        .split("\"traps\":")
        .skip(1)
        .filter_map(|rest| rest.split([',', '}']).next()?.trim().parse::<u64>().ok())
        .sum();
    assert!(traps > 0, "no breakpoint is needed: {doctor:#?}");
    let (code, found) = explore(&place, &["--stop-on-first", "--runs", "100"], &program);
    assert_eq!(code, Some(1), "{found:#}");
    assert_eq!(found["found"][0]["confirmed"], true, "{found:#}");
    assert!(!found["found"][0]["what"].to_string().contains("SIGTRAP"), "{found:#}");
}

/// A thread that waits for Rust's lock looks a hundred times before it sleeps: that is a step or two, not two hundred.
#[test]
fn a_lock_of_rusts_has_about_the_steps_of_the_c_librarys() {
    let place = Workplace::new();
    let [own, libc] = [false, true].map(|libc| {
        let program = build(&place, "mutex.rs", FAST, libc);
        ["portfolio", "random", "pct:depth=2", "pct:depth=3"].map(|strategy| {
            let (code, clean) = explore(&place, &["--runs", "150", "--strategy", strategy], &program);
            assert_eq!(code, Some(0), "{clean:#}");
            clean["steps"].as_u64().expect("a number")
        })
    });
    for (own, libc) in own.into_iter().zip(libc) {
        assert!(own * 2 <= libc * 3, "{own} steps instead of {libc}");
    }
}

/// One function is used on one object that threads share, and 50 times by each on one of its own: accesses to those, made by
/// the same instructions, are no steps, of which there would be 300 and more.
#[test]
fn steps_are_those_to_what_is_shared() {
    told_apart("container.c", FAST, 100);
    told_apart("container.c", PLAIN, 100);
    let place = Workplace::new();
    for how in [FAST, PLAIN] {
        let program = build(&place, "container.c", how, false);
        let (_, found) = explore(&place, &["--runs", "60", "--strategy", "random"], &program);
        assert!(found["sites"].as_u64() > Some(0), "{found:#}");
        assert!(found["steps"].as_u64() < Some(80), "{how:?}: {found:#}");
        assert!(found["accesses"].as_u64() > Some(300), "{how:?}: {found:#}");
        // With n = 4 and k of about 120, depth 2 is promised in one of 480 runs. That a thread writes the same value again and
        // again does not mean that it waits.
        let (code, found) =
            explore(&place, &["--runs", "2000", "--stop-on-first", "--strategy", "pct:depth=2"], &program);
        assert_eq!(code, Some(1), "{how:?}: {found:#}");
    }
}

/// A search that goes from one schedule to the next begins again when it learns of another step, so that what it says of
/// all schedules is about all steps.
#[test]
fn a_search_is_complete_with_what_it_learned() {
    let place = Workplace::new();
    let program = build(&place, "flags.c", FAST, false);
    let (code, found) = explore(&place, &["--strategy", "pb:bound=1", "--runs", "5000"], &program);
    assert_eq!((code, &found["exhausted"]), (Some(1), &true.into()), "{found:#}");
    let twin = build(&place, "flags.c", FAST, true);
    let (code, clean) = explore(&place, &["--strategy", "pb:bound=1", "--runs", "5000"], &twin);
    assert_eq!((code, &clean["exhausted"]), (Some(0), &true.into()), "{clean:#}");
}
