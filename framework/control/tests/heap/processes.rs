//! Children, other programs, and sudden death.

use crate::program::{EVERYTHING, Program, library, text};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;
use waylay_leaks::region::{Sampling, SharedRegion};

#[test]
fn children_do_not_touch_their_parents_region() {
    let ended = Program::c("heap.c").run(&["forks"], EVERYTHING);
    assert_eq!(ended.live_sizes_of("child_work"), []);
    let mut blocks = ended.live_sizes_of("forks");
    blocks.retain(|size| *size == 1000);
    assert_eq!(blocks.iter().sum::<u64>(), ended.printed("live"));
    assert!(ended.snapshot.samples < 2000, "children allocated thousands: {}", ended.snapshot.samples);
}

#[test]
fn without_settings_the_library_is_inert() {
    let program = Program::c("heap.c");
    for settings in [None, Some(""), Some("fd=0,sample=1"), Some("fd=99,sample=1"), Some("nonsense")] {
        let mut command = program.command(&["stress", "2", "20000"]);
        command.env("LD_PRELOAD", library()).stdin(Stdio::null());
        if let Some(settings) = settings {
            command.env("WAYLAY_HEAP", settings);
        }
        let output = command.output().expect("run");
        assert!(output.status.success(), "{settings:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn a_region_has_one_writer() {
    let program = Program::c("heap.c");
    let region = SharedRegion::create().expect("region");
    assert!(region.region().claim(1, 1, 1));
    let mut command = program.command(&["leak", "100", "1000"]);
    region.attach(&mut command, &library(), EVERYTHING);
    assert!(command.status().expect("run").success());
    assert_eq!((region.snapshot().owner, region.snapshot().samples), (1, 0));
}

#[test]
fn the_descriptor_is_not_left_to_the_program() {
    let program = Program::c("heap.c");
    let region = SharedRegion::create().expect("region");
    let mut command = program.command(&["idle"]);
    region.attach(&mut command, &library(), EVERYTHING);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("run");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("ready");
    let usage = waylay_leaks::ProcessUsage::read(child.id()).expect("usage");
    child.kill().expect("kill");
    child.wait().expect("reap");
    assert!(!usage.descriptors.values().any(|target| target.contains("waylay")), "{:?}", usage.descriptors);
}

/// Killed in the middle of everything, at moments spread over the start and the work of the program. The
/// region must be readable, and whatever has a site must have its stack.
#[test]
fn killed_at_any_moment_the_region_is_readable() {
    let program = Program::c("heap.c");
    let mut with_samples = 0;
    for round in 0..40u64 {
        let region = SharedRegion::create().expect("region");
        let mut command = program.command(&["stress", "3", "100000000"]);
        region.attach(&mut command, &library(), Sampling { period: 64, seed: None });
        let mut child = command.spawn().expect("run");
        // Lets the program come to different points; nothing below depends on which.
        std::thread::sleep(Duration::from_micros(300 * round));
        child.kill().expect("kill");
        child.wait().expect("reap");
        let snapshot = region.snapshot();
        for ((_, id), site) in &snapshot.sites {
            let stack = region.region().stack(*id).expect("a sample is entered after its stack");
            assert!(!stack.frames.is_empty());
            assert!(site.live.iter().all(|sample| sample.weight >= sample.size));
        }
        let live: usize = snapshot.sites.values().map(|site| site.live.len()).sum();
        assert!(live as u64 <= snapshot.samples);
        with_samples += usize::from(live > 0);
        if round == 39 && with_samples == 0 {
            // A machine so slow that no round got to work: wait for one that does.
            let mut child = command.spawn().expect("run");
            while region.snapshot().samples == 0 {
                std::thread::yield_now();
            }
            child.kill().expect("kill");
            child.wait().expect("reap");
        }
    }
}
