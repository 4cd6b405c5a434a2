//! The healthy C++ tests stay healthy under a fake host, on several workers.

#[path = "../../faults/tests/defaults/mod.rs"]
mod defaults;
#[path = "../../../framework/plugin/tests/fake_host/mod.rs"]
mod fake_host;
#[path = "../../libraries/tests/life/mod.rs"]
mod life;

use life::live;
use waylay_libraries_cpp as _;

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
