//! The healthy C++ tests stay healthy under a fake host, on several workers.

#[path = "../../faults/tests/defaults/mod.rs"]
mod defaults;
#[path = "../../../framework/plugin/tests/fake_host/mod.rs"]
mod fake_host;

use fake_host::Host;
use std::sync::atomic::Ordering;
use waylay_abi as abi;
use waylay_libraries_cpp as _;

fn live(test: &str, iterations: usize, values: &[(&'static str, &[i64])]) {
    let host = Host::with(values);
    let live = host.create(test).unwrap_or_else(|| panic!("{:?}", host.failures()));
    assert_eq!(live.start(), abi::STATUS_OK);
    std::thread::scope(|scope| {
        for _ in 0..3 {
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
fn futures() {
    let values: &[(&str, &[i64])] =
        &[("calls", &[1, 6]), ("sort", &[0, 1, 2]), ("throws", &[0, 1]), ("waiters", &[1, 3])];
    live("futures", 20, values);
}

#[test]
fn shared_mutex() {
    let values: &[(&str, &[i64])] =
        &[("readers", &[1, 3]), ("writers", &[1, 3]), ("rounds", &[1, 30]), ("patience", &[1_000, 300_000])];
    live("shared-mutex", 20, values);
}

#[test]
fn every_default_is_a_distribution() {
    assert_eq!(defaults::check(), 8);
}
