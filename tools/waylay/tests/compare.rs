//! `waylay compare` through the real command: the same trials whatever the number of jobs, whatever kills it on its way.

#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Workplace, list, number, text};

const COMPARISON: &str = "title = 'small'\nworkers = 1\ntrials = 4\nruns = 300\nstrategies = ['pct:depth=2', 'portfolio', 'dfs']\n\
    [[test]]\nplugin = 'waylay_zoo_c'\nname = 'deadlock*'\ndepth = 2\n\
    [[test]]\nplugin = 'waylay_zoo_c'\nname = 'order'\ndepth = 1\n\
    [[test]]\nplugin = 'waylay_zoo'\nname = 'lost-update'\ndepth = 2\nparams = { times = 4 }\n";
const TRIALS: usize = 4 * 3 * 4;

fn place(comparison: &str) -> Workplace {
    let place = Workplace::with("");
    std::fs::write(place.path().join("c.toml"), comparison).unwrap();
    place
}

/// What each trial gave, without the time that it took.
fn trials(out: &Path) -> BTreeMap<String, (u64, u64, Value)> {
    let text = std::fs::read_to_string(out.join("trials.jsonl")).unwrap();
    let line = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        (
            record["key"].as_str().unwrap().to_owned(),
            (number(&record["runs"]), number(&record["failures"]), record["first_run"].clone()),
        )
    };
    text.lines().map(line).collect()
}

#[test]
fn equal_seeds_give_equal_trials_for_any_number_of_jobs_and_after_any_death() {
    let place = place(COMPARISON);
    let one = place.waylay(&["compare", "c.toml", "--out", "one", "--jobs", "1", "--json"]);
    assert_eq!(one.code(), Some(0), "{}", one.stderr);
    let expected = trials(&place.path().join("one"));
    assert_eq!(expected.len(), TRIALS);

    // Killed again and again, each time a little later, until it has nothing left to do.
    let out = place.path().join("many");
    let began = Instant::now();
    for round in 0u64.. {
        let mut child = Command::new(env!("CARGO_BIN_EXE_waylay"))
            .args(["compare", "c.toml", "--out", "many", "--jobs", "3", "--quiet"])
            .current_dir(place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let known =
            || std::fs::read_to_string(out.join("trials.jsonl")).map_or(0, |text| text.lines().count());
        let before = known();
        while child.try_wait().unwrap().is_none() && known() < before + 5 {
            std::thread::sleep(Duration::from_millis(1 + round % 3));
        }
        let _ = child.kill();
        if child.wait().unwrap().success() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(300), "it does not get to its end");
    }
    assert_eq!(trials(&out), expected);

    let json = one.json();
    let results = &json["comparisons"][0];
    assert_eq!(list(&results["tests"]).len(), 4);
    let fixed =
        list(&results["cells"]).iter().flat_map(list).filter(|cell| text(&cell["test"]).ends_with("-fixed"));
    assert!(fixed.clone().count() == 3 && fixed.into_iter().all(|cell| number(&cell["failures"]) == 0));
}

/// With n = 4 and k of at most 30, PCT at depth 2 promises 1/120 for a schedule: 3,000 schedules miss it with e⁻²⁵. A rate
/// of one half is far beyond: at most a tenth of the schedules shows it.
#[test]
fn what_does_not_hold_is_said_and_is_the_exit_code() {
    let gate = |keys: &str| {
        format!(
            "workers = 1\ntrials = 1\nruns = 3000\ncount = true\nstrategies = ['pct:depth=2']\n\
             [[test]]\nplugin = 'waylay_zoo_c'\nname = 'order-branch'\n{keys}\n"
        )
    };
    for (keys, code) in
        [("within = 3000\nrate = { min = 0.002, max = 0.5 }", 0), ("rate = { min = 0.5, max = 1 }", 1)]
    {
        let place = place(&gate(keys));
        let ran =
            place.waylay(&["compare", "c.toml", "--out", "out", "--check", "--markdown", "out/page.md"]);
        assert_eq!(ran.code(), Some(code), "{}", ran.stderr);
        let said = if code == 0 { "all holds" } else { "does not hold: order-branch with pct:depth=2" };
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
        let read = |name: &str| std::fs::read_to_string(place.path().join("out").join(name)).unwrap();
        assert!(read("page.md").contains("| order-branch |"));
        assert!(read("c.html").contains("<svg"));
    }
    let place = place("strategies = ['pct']\n[[test]]\nplugin = 'waylay_zoo_c'\nname = 'ordre'\n");
    let ran = place.waylay(&["compare", "c.toml"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("has no test `ordre`"), "{}", ran.stderr);
}

/// Threads that run freely, with and without a randomizer: the test is repeated, and what hangs is a failure.
#[test]
fn tests_are_repeated_freely_too() {
    let compared = |hang: &str, test: &str| {
        let place = place(&format!(
            "workers = 1\ntrials = 1\nruns = 200\nlimit = '300s'\nhang = '{hang}'\nstrategies = ['stress', 'randomizer']\n\
             [[test]]\n{test}\n"
        ));
        let ran = place.waylay(&["compare", "c.toml", "--json"]);
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        list(&ran.json()["comparisons"][0]["cells"][0]).clone()
    };
    for cell in compared("120s", "plugin = 'waylay_zoo_c'\nname = 'fft-fixed'") {
        assert_eq!((number(&cell["runs"]), number(&cell["failures"])), (200, 0), "{cell:#}");
    }
    // The first node of the ring is told as soon as its thread was started, and then waits to be told.
    for cell in compared("1s", "plugin = 'waylay_zoo'\nname = 'token-ring'") {
        assert_eq!(text(&cell["kind"]), "hang", "{cell:#}");
    }
}

/// The bug needs two threads in the test's main, and that the second comes in before the first is out again: more than a tenth
/// of the schedules of a random walk, so 1000 miss it with a probability below 1e-45.
#[test]
fn tests_have_as_many_workers_as_in_a_campaign() {
    let place = place(
        "trials = 1\nruns = 1000\nstrategies = ['random']\n[[test]]\nplugin = './libtwo.so'\nname = 'probe'\n",
    );
    place.compile(
        "two",
        "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static int inside;\n\
         static int32_t iterate(probe *self, waylay_context *worker) {\n\
           pthread_mutex_lock(&m); int met = inside++; pthread_mutex_unlock(&m);\n\
           pthread_mutex_lock(&m); inside--; pthread_mutex_unlock(&m);\n\
           (void)self; (void)worker;\n\
           return met ? WAYLAY_FAILED : WAYLAY_OK; }",
    );
    let ran = place.waylay(&["compare", "c.toml", "--json"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let answer = ran.json();
    let cell = &list(&answer["comparisons"][0]["cells"][0])[0];
    assert!(number(&cell["failures"]) > 0, "{cell:#}");
}

/// Schedules of a test that is correct and long: none is a failure, none was clean, and how many there were is told.
#[test]
fn schedules_that_reach_the_limit_are_neither_failures_nor_clean() {
    let cells = |more: &str| {
        let place = place(&format!(
            "title = 'long'\nworkers = 1\ntrials = 1\nruns = 6\ncount = true\nmax-steps = 5\n{more}strategies = ['random']\n\
             [[test]]\nplugin = 'waylay_zoo'\nname = 'lost-update'\nexpect = 'clean'\nparams = {{ times = 4 }}\n"
        ));
        let ran = place.waylay(&["compare", "c.toml", "--out", "out", "--json"]);
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        let cell = &ran.json()["comparisons"][0]["cells"][0][0];
        let number = |name: &str| number(&cell[name]);
        (number("runs"), number("failures"), number("unjudged"), number("found"))
    };
    assert_eq!(cells(""), (0, 0, 6, 0));
    assert_eq!(cells("limit-is-failure = true\n"), (6, 6, 0, 1));
}
