//! The zoo, through the real command: every bug is found and confirmed, no twin ever fails.

#![cfg(target_os = "linux")]

mod support;

use support::{Workplace, list, number};

/// Every program with a bug; its twin has `-fixed` behind its name.
const ZOO: [(&str, &[&str]); 3] = [
    (
        "waylay_zoo_c",
        &[
            "order",
            "order-event",
            "order-branch",
            "left-first",
            "right-first",
            "atomicity",
            "deadlock",
            "decompress",
            "ends-meet",
            "fft",
            "lu",
            "barnes",
            "philosophers",
            "wrong-lock",
            "two-phases",
            "circle",
        ],
    ),
    (
        "waylay_zoo_cpp",
        &[
            "reorder",
            "twostage",
            "work-stealing",
            "stack",
            "queue",
            "bounded-buffer",
            "channel",
            "account",
            "lazy-init",
        ],
    ),
    (
        "waylay_zoo",
        &["token-ring", "relay", "lost-update", "overdrawn", "torn-pair", "owner-count", "door", "shutdown"],
    ),
];

/// The programs, under the names that `of` gives them, in strict mode.
fn zoo(keys: &str, of: impl Fn(&str) -> String) -> Workplace {
    let mut tests = String::new();
    for (plugin, names) in ZOO {
        for name in names {
            let name = of(name);
            tests += &format!("[[scenario.test]]\nplugin = \"{plugin}\"\nname = \"{name}\"\n");
        }
    }
    Workplace::with(&format!(
        "seed = '0x5eed'\n[defaults]\nworkers = 1\nmax-failures = 1\nhang-timeout = '60s'\n[[scenario]]\n\
         name = 'zoo'\nmode = 'strict'\n{keys}\n{tests}"
    ))
}

/// The seed is fixed and so are the schedules: this passes or fails for good.
#[test]
fn every_bug_is_found_and_confirmed() {
    let place = zoo("runs = 10000\nmax-steps = 20000", str::to_owned);
    let ran = place.run(1, &[]);
    for (plugin, names) in ZOO {
        for name in names {
            let failure = ran.failure(plugin, name);
            let record: serde_json::Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
            assert_eq!(record["confirmed"], true, "{:#}", failure.json);
            assert_eq!(record["partly_controlled"], false, "{:#}", failure.json);
        }
    }
}

/// Twins are correct: no schedule of any may fail.
#[test]
fn no_twin_ever_fails() {
    let place = zoo("runs = 600\nstrategy = 'portfolio'", |name| format!("{name}-fixed"));
    let ran = place.run(0, &[]);
    let json = ran.json();
    let tests = list(&json["campaign"]["scenarios"][0]["tests"]);
    assert_eq!(tests.len(), ZOO.iter().map(|(_, names)| names.len()).sum::<usize>());
    for test in tests {
        assert_eq!((number(&test["iterations"]), number(&test["failures"])), (600, 0), "{test:#}");
        assert_eq!(number(&test["strict"]["partly_controlled"]), 0, "{test:#}");
    }
}
