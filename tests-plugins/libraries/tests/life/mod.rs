//! A whole life of a healthy test under a fake host. The including file has the module `fake_host`.

use std::sync::atomic::Ordering;

use waylay_abi as abi;

use crate::fake_host::Host;

/// Workers at once.
const WORKERS: usize = 4;

/// Creates, starts, runs on several workers, cancels and ends a test; nothing may be reported.
pub(crate) fn live(test: &str, iterations: usize, values: &[(&'static str, &[i64])]) {
    let host = Host::with(values);
    let live = host.create(test).unwrap_or_else(|| panic!("{:?}", host.failures()));
    assert_eq!(live.start(), abi::STATUS_OK);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
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
