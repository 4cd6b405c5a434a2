//! What steps inside the program's own code cost: `cargo bench -p waylay-control --bench instrument`.
//!
//! Every number is the best of several in processor time, and every ratio is between two loops of one run. Ends with a status
//! other than 0 when one of the limits that were promised is exceeded in every attempt by more than the machine's own noise.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use waylay_control_protocol::{
    ClockSource, Instrumentation, Level, REGION_VARIABLE, RegionMap, Settings, Switching,
};
use waylay_patch::{Plan, Wanted};

/// What ratios of two loops differ by on a busy machine when nothing was changed: another program that has the same core's
/// caches, or a clock that changes between the two.
const NOISE: f64 = 1.25;
/// A limit counts as exceeded when so many attempts in a row exceed it.
const ATTEMPTS: u32 = 3;

/// What was promised, and how far it is from that.
#[derive(Default)]
struct Limits {
    broken: Vec<String>,
}

impl Limits {
    /// Measures until the limit is kept, and prints the least that was measured.
    fn hold(&mut self, what: &str, unit: &str, most: f64, mut measure: impl FnMut() -> (f64, String)) {
        let (mut least, mut how) = measure();
        for _ in 1..ATTEMPTS {
            if least <= most {
                break;
            }
            let (again, text) = measure();
            if again < least {
                (least, how) = (again, text);
            }
        }
        let verdict = if least <= most {
            "kept"
        } else if least <= most * NOISE {
            "within noise"
        } else {
            self.broken.push(format!("{what}: {least:.2} {unit}, promised at most {most} {unit}"));
            "BROKEN"
        };
        println!("{what:<44} {how:<24} {least:7.2} {unit:<5} at most {most:6} {unit}: {verdict}");
    }
}

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

fn main() -> std::process::ExitCode {
    let mut limits = Limits::default();
    let plain = build("gcc", &[]).expect("gcc is installed");
    let patched = Some(Instrumentation::new(Level::Atomics, true));
    limits.hold("LOCK XADD, patched, free-running", "times", 2.5, || {
        let before = time(&plain, "lock", 1_000_000, Switching::Free, None);
        let after = time(&plain, "lock", 1_000_000, Switching::Free, patched);
        (after / before, format!("{before:.2} -> {after:.2} ns"))
    });
    limits.hold("the same as a step, without a switch", "ns", 40.0, || {
        (time(&plain, "lock", 200_000, Switching::Carrier, patched), String::new())
    });
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
        for (mode, level, most) in
            [("sort", Level::Sync, 1.5), ("hash", Level::Sync, 1.5), ("lock", Level::Atomics, 2.0)]
        {
            let measure = |keep_reports| {
                let mut wanted = Instrumentation::new(level, false);
                wanted.keep_reports = keep_reports;
                let before = time(&none, mode, 1_000_000, Switching::Free, None);
                let after = time(&reported, mode, 1_000_000, Switching::Free, Some(wanted));
                (after / before, format!("{before:.2} -> {after:.2} ns"))
            };
            limits.hold(&format!("{compiler} {mode}, level {level}, free-running"), "times", most, || {
                measure(0)
            });
            let (ratio, how) = measure(1);
            println!("{:<44} {how:<24} {ratio:7.2} times", "    with a branch in each call");
        }
    }
    for (path, most) in [
        ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 150.0),
        ("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", f64::INFINITY),
    ] {
        let Ok(bytes) = std::fs::read(path) else { continue };
        limits.hold(&format!("analysis of {}", path.rsplit('/').next().unwrap_or(path)), "ms", most, || {
            let begun = processor_time();
            let plan = Plan::of(&bytes, Wanted::Atomics).expect("a library");
            let analysed = processor_time() - begun;
            let text = plan.to_bytes();
            let begun = Instant::now();
            assert_eq!(Plan::from_bytes(&text).as_ref(), Some(&plan));
            (analysed, format!("from the cache {:?}", begun.elapsed()))
        });
    }
    for broken in &limits.broken {
        println!("{broken}");
    }
    std::process::ExitCode::from(u8::from(!limits.broken.is_empty()))
}

/// Milliseconds of processor time of this thread: what others do meanwhile does not count.
fn processor_time() -> f64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}
