//! Estimates against the truth, and stacks against names.

use crate::program::{EVERYTHING, Ended, Program};
use waylay_leaks::region::{Sampling, weight};

const SAMPLED: Sampling = Sampling { period: 4096, seed: Some(11) };

/// `count` blocks of one size are leaked in one place: the estimate of what is alive there must be within
/// 5.5 standard deviations, weight * sqrt(count * p * (1 - p)), of the truth.
fn assert_leak(ended: &Ended, function: &str, count: u64, size: u64) {
    let sites = ended.sites_of(function);
    let live: u64 = sites.values().map(|site| site.live_bytes()).sum();
    let hit = 1.0 - (-(size as f64) / SAMPLED.period as f64).exp();
    let deviation = weight(size, SAMPLED.period) as f64 * (count as f64 * hit * (1.0 - hit)).sqrt();
    let truth = (count * size) as f64;
    assert!((live as f64 - truth).abs() < 5.5 * deviation, "{live} for {truth}, deviation {deviation}");
    assert!(5.5 * deviation < truth / 4.0, "the bound says nothing: {deviation} of {truth}");
}

#[test]
fn c_leaks_are_estimated_and_named() {
    let ended = Program::c("heap.c").run(&["leak", "20000", "200"], SAMPLED);
    assert_leak(&ended, "leak_here", 20_000, 200);
    assert_eq!(ended.live_sizes_of("use_and_free"), []);
    for (_, site) in ended.sites_of("leak_here").into_keys() {
        let functions = ended.functions(site);
        assert_eq!(functions[0], "leak_here", "no frame of ours: {functions:?}");
        assert_eq!(functions[1], "leak", "{functions:?}");
    }
}

#[test]
fn cpp_leaks_are_estimated_and_named() {
    let program = Program::build("c++", "classes.cpp", &["-O2", "-g", "-no-pie", "-std=c++17"]);
    let ended = program.run(&[], SAMPLED);
    assert_leak(&ended, "Widget::forget", 20_000, 200);
    assert_eq!(ended.live_sizes_of("make_unique"), []);
}

#[test]
fn rust_leaks_are_estimated_and_named() {
    let program =
        Program::build("rustc", "boxes.rs", &["-O", "-g", "-Crelocation-model=static", "--edition=2024"]);
    let ended = program.run(&[], SAMPLED);
    assert_leak(&ended, "forget_box", 20_000, 200);
}

/// Small, medium and sampled-for-certain, at the default period.
#[test]
fn large_blocks_count_as_themselves() {
    let ended = Program::c("heap.c")
        .run(&["leak", "20", "20000000"], Sampling { seed: Some(3), ..Sampling::default() });
    assert_eq!(ended.live_sizes_of("leak_here"), [20_000_000; 20]);
    let live: u64 = ended.sites_of("leak_here").values().map(|site| site.live_bytes()).sum();
    assert_eq!(live, 400_000_000, "a block of 38 periods is hit for certain");
}

#[test]
fn a_seed_repeats_the_choice() {
    let program = Program::c("heap.c");
    let sizes = |seed| {
        let ended = program.run(&["leak", "5000", "300"], Sampling { period: 8192, seed: Some(seed) });
        (ended.snapshot.samples, ended.snapshot.deaths, ended.live_sizes_of("leak_here").len())
    };
    assert_eq!(sizes(1), sizes(1));
    assert_ne!(sizes(1), sizes(2));
}

#[test]
fn tags_follow_threads() {
    let ended = Program::c("heap.c").run(&["tags"], EVERYTHING);
    let mut by_tag: Vec<(u32, u64)> = Vec::new();
    for ((tag, _), site) in ended.sites_of("leak_here") {
        by_tag.extend(site.live.iter().map(|sample| (tag.0, sample.size)));
    }
    by_tag.sort_unstable();
    assert_eq!(by_tag, [(0, 16_000), (0, 32_000), (7, 1_000), (7, 2_000), (8, 4_000), (8, 8_000)]);
}
