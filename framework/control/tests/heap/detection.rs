//! From the allocation to the finding: a program that leaks slowly is watched from outside.

use crate::program::{Program, functions_at, library};
use std::collections::BTreeMap;
use std::process::Child;
use std::time::Duration;
use waylay_leaks::region::{Sampling, SharedRegion, Tag, weight};
use waylay_leaks::{HeapWatch, LeakPolicy};

/// Ends the watched program whatever happens to the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program leaks until it is found, and nothing but the leak is found. A short warm-up makes windows of
/// less than a second; how long it takes on a busy machine does not matter, because positions in a window
/// are counted in what the program has done. False findings are bounded by 1e-6 per hour.
#[test]
fn a_leak_is_found_and_named() {
    let program = Program::c("heap.c");
    let region = SharedRegion::create().expect("region");
    let mut command = program.command(&["drip"]);
    region.attach(&mut command, &library(), Sampling { period: 8192, seed: Some(1) });
    let mut running = Running(command.spawn().expect("run"));
    let policy = LeakPolicy { warm_up: Duration::from_millis(200), ..LeakPolicy::default() };
    let mut watch = HeapWatch::new(policy);
    let findings = loop {
        std::thread::sleep(Duration::from_millis(20));
        assert!(running.0.try_wait().expect("child").is_none(), "the program has ended");
        let snapshot = region.snapshot();
        assert!(snapshot.samples < 200_000, "4000 leaked samples and no finding");
        let iterations = BTreeMap::from([(Tag::NONE, snapshot.samples)]);
        let findings = watch.observe(&snapshot, &iterations);
        if !findings.is_empty() {
            break findings;
        }
    };
    assert_eq!(findings.len(), 1, "{findings:?}");
    let stack = region.region().stack(findings[0].site).expect("stack");
    let functions = functions_at(&program.path(), &stack.frames);
    assert_eq!(functions[..2], ["leak_here", "drip_once"], "{functions:?}");
    // Of every 50,900 bytes 1000 stay. An iteration is a sample here, so it stands for a sample's weight.
    let share = findings[0].bytes_per_iteration / weight(1000, 8192) as f64;
    let error = findings[0].relative_error;
    assert!((share * 50.9 - 1.0).abs() < 6.0 * error + 0.05, "{share} with {error}");
}
