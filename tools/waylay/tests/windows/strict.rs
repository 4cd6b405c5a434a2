//! Strict mode through the command: programs and plugin tests are explored, their failures replayed and made small, and what
//! is printed for machines has the fields of Linux.
//!
//! Under Wine there is no compiler, so the program is this one, told in its environment to be nothing but one test.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::zeroed;
use std::os::windows::process::CommandExt;
use std::path::Path;
use std::process::Output;
use std::ptr::{null, null_mut};

use serde_json::Value;
use windows_sys::Win32::System::Threading::{
    CRITICAL_SECTION, CreateThread, EnterCriticalSection, INFINITE, InitializeCriticalSection,
    LeaveCriticalSection, WaitForMultipleObjects,
};

use crate::fields::{CAUSE, EXPLORED, FOUND, MINIMIZED, RECORD, REPLAYED, STRICT, SWITCH, expect_fields};
use crate::place::Place;

/// Its presence makes this the program that is explored.
const ROLE: &str = "WAYLAY_EXPLORED";

struct Account {
    guard: UnsafeCell<CRITICAL_SECTION>,
    balance: UnsafeCell<u32>,
}

// SAFETY: a critical section is made for threads, and the balance is accessed with it held.
unsafe impl Sync for Account {}

/// Adds in two pieces, each under the lock.
unsafe extern "system" fn deposit(account: *mut c_void) -> u32 {
    // SAFETY: `explored` passes an account that lives until this thread has ended.
    unsafe {
        let account = &*account.cast::<Account>();
        EnterCriticalSection(account.guard.get());
        let seen = *account.balance.get();
        LeaveCriticalSection(account.guard.get());
        EnterCriticalSection(account.guard.get());
        *account.balance.get() = seen + 1;
        LeaveCriticalSection(account.guard.get());
    }
    0
}

#[test]
fn explored() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    // SAFETY: the section is initialised first, and the threads have ended when the account does.
    let good = unsafe {
        let account = Account { guard: UnsafeCell::new(zeroed()), balance: UnsafeCell::new(0) };
        InitializeCriticalSection(account.guard.get());
        let argument = (&raw const account).cast::<c_void>();
        let threads = [(); 2].map(|()| CreateThread(null(), 0, Some(deposit), argument, 0, null_mut()));
        WaitForMultipleObjects(2, threads.as_ptr(), 1, INFINITE);
        *account.balance.get() == 2
    };
    std::process::exit(if good { 0 } else { 3 });
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn object(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// Follows the failure twice as it was found, reduces it to one forced switch in `function`, and follows that.
fn replayed_and_minimized(place: &Place, folder: &str, function: &str) {
    let replayed = place.waylay(&["replay", folder, "--json", "--times", "2"]);
    assert_eq!(replayed.status.code(), Some(1), "{}", said(&replayed));
    let replayed = object(&replayed);
    expect_fields(&replayed, REPLAYED);
    assert_eq!((&replayed["reproduced"], &replayed["diverged"]), (&2.into(), &0.into()), "{replayed:#}");

    let minimized = place.waylay(&["minimize", folder, "--budget", "60s", "--json"]);
    assert_eq!(minimized.status.code(), Some(0), "{}", said(&minimized));
    let minimized = object(&minimized);
    expect_fields(&minimized, MINIMIZED);
    assert_eq!((&minimized["after"], &minimized["minimal"]), (&1.into(), &true.into()), "{minimized:#}");
    let switch = &minimized["switches"][0];
    expect_fields(switch, SWITCH);
    assert!(switch["from_stack"].as_str().is_some_and(|text| text.contains(function)), "{minimized:#}");
    let again = object(&place.waylay(&["replay", folder, "--json", "--minimized", "--times", "2"]));
    assert_eq!((&again["reproduced"], &again["diverged"]), (&2.into(), &0.into()), "{again:#}");
    println!("{} runs to minimize", minimized["runs"]);
}

/// Beside the two threads there are the main thread and that of the test harness.
///
/// Two threads lose an update in about half of all orders: 30 schedules of a random walk miss it with a probability below
/// 1e-9, and the seed is fixed.
#[test]
fn a_program_is_explored_its_failure_replayed_and_minimized() {
    let _turn = crate::in_turn();
    let place = Place::with("");
    let program = std::env::current_exe().expect("a path").display().to_string();
    let role = format!("{ROLE}=1");
    let mut line = vec!["explore", "--json", "--strategy", "random", "--seed", "7", "--runs", "30"];
    line.extend(["--stop-on-first", "--timeout", "60s", "--level", "sync", "--env", &role, "--", &program]);
    line.extend(["strict::explored", "--exact", "--test-threads=1"]);
    let explored = place.waylay(&line);
    let mut found = object(&explored);
    assert_eq!(explored.status.code(), Some(1), "{found:#}");
    expect_fields(&found, EXPLORED);
    // A run is a process here, and whether enough of them fit into the time for finding the cause depends on the machine.
    let first = found["found"][0].as_object_mut().expect("a failure");
    match (first.contains_key("cause"), first.remove("no_cause")) {
        (true, None) => expect_fields(&first["cause"], CAUSE),
        (false, Some(why)) => drop(first.insert("cause".to_owned(), why)),
        _ => panic!("either the cause or why there is none: {found:#}"),
    }
    expect_fields(&found["found"][0], FOUND);
    assert_eq!((&found["kind"], &found["partly_controlled"]), (&"exit".into(), &0.into()), "{found:#}");
    assert_eq!((&found["threads"], &found["found"][0]["confirmed"]), (&4.into(), &true.into()), "{found:#}");
    replayed_and_minimized(&place, found["failure_dir"].as_str().expect("a folder"), "deposit");
}

/// With depth 2, n = 3 and k of at most 30, PCT promises 1/90 per schedule; the seed is fixed, so that chance plays no part.
#[test]
fn a_strict_scenario_prints_the_line_that_replays_it() {
    let _turn = crate::in_turn();
    let place = Place::with(
        "seed = '0x5eed'\n[defaults]\nmax-failures = 1\nhang-timeout = '60s'\n[[scenario]]\nname = 's'\nmode = 'strict'\nminimize = 'off'\n\
         runs = 1000\ndepth = 2\n[[scenario.test]]\nplugin = 'waylay_schedules_c'\nname = 'deadlock'\n\
         [[scenario.test]]\nplugin = 'waylay_schedules_c'\nname = 'deadlock-fixed'\n\
         [[scenario.test]]\nplugin = 'waylay_schedules_cpp'\nname = 'stock'\n\
         [[scenario.test]]\nplugin = 'waylay_schedules_cpp'\nname = 'stock-fixed'\n",
    );
    let ran = place.waylay(&["run", "waylay.toml", "--json"]);
    assert_eq!(ran.status.code(), Some(1), "{}", said(&ran));
    let json = object(&ran);
    let tests = json["campaign"]["scenarios"][0]["tests"].as_array().expect("a list");
    let failures = |name: &str| {
        let test = tests.iter().find(|test| test["name"] == name).expect(name);
        expect_fields(&test["strict"], STRICT);
        let strict = &test["strict"];
        assert_eq!(
            (&strict["partly_controlled"], &strict["unconfirmed"]),
            (&0.into(), &0.into()),
            "{test:#}"
        );
        test["failures"].as_u64()
    };
    for (name, fixed) in [("deadlock", "deadlock-fixed"), ("stock", "stock-fixed")] {
        assert_eq!((failures(name), failures(fixed)), (Some(1), Some(0)), "{json:#}");
    }

    // The folder has a blank and other letters in its name: what is printed has to be good for the command line as it is.
    let text = said(&ran);
    let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix("replay  waylay replay "));
    let line = lines.find(|line| line.contains("deadlock-")).expect(&text);
    let mut again = place.command(&["replay"]);
    let again = again.raw_arg(line).args(["--times", "2", "--json"]).output().expect("the command runs");
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    assert_eq!(object(&again)["reproduced"], 2, "{}", said(&again));

    let folder = line.trim_matches('"');
    let record = std::fs::read(Path::new(folder).join("strict.json")).expect("a record");
    let record: Value = serde_json::from_slice(&record).expect("readable");
    expect_fields(&record, RECORD);
    assert_eq!((&record["kind"], &record["confirmed"]), (&"deadlock".into(), &true.into()), "{record:#}");
    replayed_and_minimized(&place, folder, "take_both");
}

/// Made by a compiler, which is not there under Wine: `tools/windows/test.sh` says where the program is. Between reading and
/// writing there is no step below the level `memory`, so no schedule whatever loses an update there; with steps, a random walk
/// does so in about half of the runs, and the seed is fixed.
#[test]
fn plain_accesses_that_the_compiler_reports_are_steps_of_a_program() {
    let Ok(program) = std::env::var("WAYLAY_REPORTING_PROGRAM") else {
        eprintln!("WAYLAY_REPORTING_PROGRAM names no program: nothing was tested");
        return;
    };
    let _turn = crate::in_turn();
    let place = Place::with("");
    let explored = |level: &str| {
        let mut line = vec!["explore", "--json", "--strategy", "random", "--seed", "7", "--runs", "8"];
        line.extend(["--timeout", "60s", "--level", level, "--patch", "none", "--", &program]);
        let explored = object(&place.waylay(&line));
        assert_eq!(
            (&explored["runs"], &explored["partly_controlled"]),
            (&8.into(), &0.into()),
            "{explored:#}"
        );
        explored["failures"].as_u64().expect("a number")
    };
    let lost = explored("memory");
    assert!((1..8).contains(&lost), "{lost} of 8");
    assert_eq!(explored("atomics"), 0);
}

/// There is no compiler here: one that says what mingw's says stands in for it.
#[test]
fn flags_are_those_of_the_compiler_and_the_linker_finds_what_they_name() {
    let place = Place::with("");
    std::fs::write(
        place.path.join("gcc.bat"),
        "@echo x86_64-w64-mingw32-gcc (GCC) 12-posix\r\n@echo Copyright (C) 2022 Free Software Foundation, Inc.\r\n",
    )
    .expect("writable");
    let compiler = place.path.join("gcc.bat").display().to_string();
    let flags = |line: &[&str]| -> Vec<String> {
        let flags = &place.json(line)["flags"];
        let words = flags.as_array().expect("a list").iter();
        words.map(|flag| flag.as_str().expect("text").to_owned()).collect()
    };
    let compile = flags(&["cflags", "--json", "--compiler", &compiler]);
    assert!(compile.iter().any(|flag| flag == "-fsanitize=thread"), "{compile:?}");
    let link = flags(&["ldflags", "--json"]);
    let [folder, library] = &link[..] else { panic!("{link:?}") };
    assert_eq!(library, "-lwaylay_steps");
    let folder = folder.strip_prefix("-L").expect("a folder");
    let archive = std::fs::read(Path::new(folder).join("libwaylay_steps.a")).expect("an archive");
    let has = |name: &str| archive.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    assert!(archive.starts_with(b"!<arch>\n") && has("__tsan_atomic32_fetch_add") && has("waylay_steps"));
}
