//! What steps inside the program's own code cost: `cargo bench -p waylay-control --bench instrument`.
//!
//! Every number is the best of several in processor time, and every ratio is between two loops of one run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use waylay_control_protocol::{
    ClockSource, Instrumentation, Level, REGION_VARIABLE, RegionMap, Settings, Switching,
};
use waylay_patch::{Plan, Wanted};

fn library() -> PathBuf {
    let own = std::env::current_exe().expect("a benchmark knows its own path");
    own.with_file_name("libwaylay_control.so")
}

fn build(compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/loops.c");
    let name = format!("loops.{compiler}.{}", flags.len());
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.o"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut compile = Command::new(compiler);
    compile.args(["-O2", "-g", "-c"]).args(flags).arg(source).arg("-o").arg(&object).stderr(Stdio::null());
    if !compile.status().ok()?.success() {
        return None;
    }
    let folder = library().parent()?.display().to_string();
    let mut link = Command::new(compiler);
    link.arg(&object).arg("-o").arg(&program);
    if !flags.is_empty() {
        link.args([&format!("-L{folder}"), &format!("-Wl,-rpath,{folder}"), "-lwaylay_control"]);
    }
    link.status().ok()?.success().then_some(program)
}

/// Nanoseconds per round.
fn time(
    program: &Path,
    mode: &str,
    rounds: u64,
    switching: Switching,
    wanted: Option<Instrumentation>,
) -> f64 {
    let mut command = Command::new(program);
    command.args([mode, &rounds.to_string()]);
    let mut region = RegionMap::create().expect("a region");
    if let Some(wanted) = wanted {
        region.set_instrumentation(wanted);
        let mut settings = Settings::new(switching, 1, 0);
        settings.clock = ClockSource::Real as u32;
        settings.max_steps = 0;
        region.prepare(settings, "").expect("it fits");
        command.env("LD_PRELOAD", library());
        command.env(REGION_VARIABLE, region.descriptor().expect("our own region").to_string());
    }
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

fn main() {
    let plain = build("gcc", &[]).expect("gcc is installed");
    let unpatched = time(&plain, "lock", 1_000_000, Switching::Free, None);
    let patched = Some(Instrumentation::new(Level::Atomics, true));
    let free = time(&plain, "lock", 1_000_000, Switching::Free, patched);
    let strict = time(&plain, "lock", 200_000, Switching::Carrier, patched);
    println!("LOCK XADD, unpatched              {unpatched:8.2} ns");
    println!("LOCK XADD, patched, free          {free:8.2} ns   {:.2} times", free / unpatched);
    println!("LOCK XADD, patched, strict        {strict:8.2} ns   a step without a switch");
    let gcc = &[
        "-fsanitize=thread",
        "--param=tsan-instrument-func-entry-exit=0",
        "--param=tsan-distinguish-volatile=1",
    ][..];
    let clang = &[
        "-fsanitize=thread",
        "-mllvm",
        "-tsan-instrument-func-entry-exit=0",
        "-mllvm",
        "-tsan-distinguish-volatile=1",
    ][..];
    for (compiler, flags) in [("gcc", gcc), ("clang", clang)] {
        let (Some(none), Some(reported)) = (build(compiler, &[]), build(compiler, flags)) else { continue };
        for mode in ["sort", "hash", "lock"] {
            let before = time(&none, mode, 1_000_000, Switching::Free, None);
            let level = if mode == "lock" { Level::Atomics } else { Level::Sync };
            for (keep_reports, how) in [(0, "taken out"), (1, "a branch")] {
                let mut wanted = Instrumentation::new(level, false);
                wanted.keep_reports = keep_reports;
                let after = time(&reported, mode, 1_000_000, Switching::Free, Some(wanted));
                println!(
                    "{compiler:<6} {mode:<6} {before:7.2} -> {after:7.2} ns  {:.2} times  at level {level}, free, calls: {how}",
                    after / before
                );
            }
        }
    }
    for path in ["/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3"] {
        let Ok(bytes) = std::fs::read(path) else { continue };
        let begun = Instant::now();
        let plan = Plan::of(&bytes, Wanted::Atomics).expect("a library");
        let analysed = begun.elapsed();
        let text = plan.to_bytes();
        let begun = Instant::now();
        assert_eq!(Plan::from_bytes(&text).as_ref(), Some(&plan));
        println!("{path}: analysed in {analysed:?}, read from the cache in {:?}", begun.elapsed());
    }
}
