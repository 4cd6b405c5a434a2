//! The healthy tests stay healthy under a fake host: every action comes, on several workers, and nothing is reported.

#[path = "../../faults/tests/defaults/mod.rs"]
mod defaults;
#[path = "../../../framework/plugin/tests/fake_host/mod.rs"]
mod fake_host;

use fake_host::Host;
use std::sync::atomic::Ordering;
use waylay_abi as abi;
use waylay_libraries as _;

/// Runs a whole life with four workers.
fn live(test: &str, iterations: usize, values: &[(&'static str, &[i64])]) {
    let host = Host::with(values);
    let live = host.create(test).unwrap_or_else(|| panic!("{:?}", host.failures()));
    assert_eq!(live.start(), abi::STATUS_OK);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..iterations {
                    host.seed.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(live.main(), abi::STATUS_OK, "{:?}", host.failures());
                }
            });
        }
    });
    live.cancel();
    live.end();
    drop(live);
    assert!(host.failures().is_empty());
}

#[test]
fn channel() {
    live(
        "channel",
        20,
        &[
            ("producers", &[1, 2, 3]),
            ("consumers", &[1, 3]),
            ("messages", &[0, 1, 50, 200]),
            ("capacity", &[0, 1, 7, 40]),
        ],
    );
}

#[test]
fn map() {
    live(
        "map",
        20_000,
        &[
            ("action", &[0, 1, 0, 3, 0, 0, 1, 2, 0, 3, 4]),
            ("key", &[1, 2, 3, 5, 8, 13, 21]),
            ("amount", &[1, 2, 3, 9]),
        ],
    );
}

#[test]
fn compression() {
    live(
        "compression",
        3,
        &[
            ("size", &[0, 1, 4096, 1_500_000]),
            ("variety", &[1, 200]),
            ("level", &[1, 3]),
            ("threads", &[1, 2, 3]),
            ("chunk", &[70_000, 1_000_000]),
        ],
    );
}

#[test]
fn every_default_is_a_distribution() {
    assert_eq!(defaults::check(), 12);
}
