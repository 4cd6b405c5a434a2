//! How quickly threads are suspended, beside the least C program that does the same.
//!
//! `cargo bench -p waylay-randomizer` prints tables. Both sides run in turn on the same target, many short rounds, and
//! the ratio is the median over the rounds: what other work the machine does meets both of a round alike. Where the target
//! and its tracer run makes a difference of ten to one, so that is fixed: on two processors, or both on one. Budgets: at
//! least 80 % of the C loop's rate on two processors, at most 1 % of the target's throughput lost to a randomizer that
//! rests, at most 1 s to stop 1,000 threads. The rates on one processor have no budget: threads that spin leave their
//! tracer 2 % of it, in slices that the kernel's scheduler gives to either side as it likes, and a tracer that also chooses
//! threads, looks for new ones and notes down what it did needs a part of those.

#[path = "../tests/target/mod.rs"]
mod target;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use target::{Randomizer, Target};
use waylay_randomizer::{NOTHING_DONE, Report};

const ROUNDS: usize = 15;
/// Seconds of a round. Sixteen spinning threads stop a few times a second, so a round of theirs has to be longer.
const ROUND: f64 = 0.2;
const LONG_ROUND: f64 = 1.0;
const IDLE_TURNS: usize = 101;
const LEAST_RATIO: f64 = 0.8;
const MOST_LOSS: f64 = 0.01;
const MOST_ATTACHING_S: f64 = 1.0;

fn main() {
    let bare = compile_bare();
    let rates = rates(&bare);
    let _ = std::fs::remove_file(bare);
    let idle = idle();
    let crowd = crowd();
    println!("\nbudgets: rate {}, idle {}, crowd {}", verdict(rates), verdict(idle), verdict(crowd));
    if !(rates && idle && crowd) {
        std::process::exit(1);
    }
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

fn compile_bare() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bare-{}", std::process::id()));
    let status = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&path)
        .arg(folder.join("bare.c"))
        .status()
        .expect("cc starts");
    assert!(status.success());
    path
}

fn workers(kind: &str, count: usize) -> Target {
    let threads: Vec<_> = (0..count).map(|i| format!("{kind}:w{i}")).collect();
    Target::start(&threads.iter().map(String::as_str).collect::<Vec<_>>())
}

fn ours(target: &Target, count: &str, duration: &str) -> Report {
    let (code, report) = Randomizer::start(
        target.pid(),
        &["--period", "0s", "--suspend", "0s", "--count", count, "--include", "w*", "--duration", duration],
    )
    .finish();
    // On a busy machine a round may end before the first of many spinning threads was seen to stand still.
    assert!(code == 0 || code == i32::from(NOTHING_DONE), "{report}");
    report
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Lets this thread, and what it starts from now on, run on these processors only.
fn pin(processors: &[usize]) {
    // SAFETY: a zeroed set is empty; the macros and the call only touch it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        processors.iter().for_each(|processor| libc::CPU_SET(*processor, &mut set));
        assert_eq!(
            libc::sched_setaffinity(0, size_of_val(&set), &set),
            0,
            "{}",
            std::io::Error::last_os_error()
        );
    }
}

/// The processors that we may use.
fn processors() -> Vec<usize> {
    // SAFETY: the kernel fills the set, whose size it is told.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0);
        set
    };
    // SAFETY: only reads the set.
    (0..libc::CPU_SETSIZE as usize).filter(|processor| unsafe { libc::CPU_ISSET(*processor, &set) }).collect()
}

fn rates(bare: &Path) -> bool {
    let all = processors();
    let (first, last) = (all[0], all[all.len() - 1]);
    let mut worst = f64::INFINITY;
    for (place, target_on, tracer_on) in
        [("on two processors", last, first), ("on one processor", first, first)]
    {
        println!(
            "{:<34} {:>12} {:>12} {:>6} {:>8} {:>8} {:>8}",
            format!("suspensions/s, {place}"),
            "waylay",
            "bare C",
            "ratio",
            "p50 us",
            "p99 us",
            "max us"
        );
        for (kind, threads) in [("spin", 1), ("spin", 4), ("spin", 16), ("block", 16)] {
            pin(&[target_on]);
            let target = workers(kind, threads);
            pin(&[tracer_on]);
            let ratio = rate(&target, kind, threads, bare);
            if target_on != tracer_on {
                worst = worst.min(ratio);
            }
            pin(&all);
        }
    }
    println!("p50, p99, max: from the decision until a thread was seen to stand still");
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown");
    println!(
        "worst ratio on two processors {worst:.2}, budget {LEAST_RATIO:.2}; load average {load} on {} processors",
        all.len()
    );
    worst >= LEAST_RATIO
}

fn rate(target: &Target, kind: &str, threads: usize, bare: &Path) -> f64 {
    let (mut waylay, mut c, mut stops) = (Vec::new(), Vec::new(), Vec::new());
    let seconds = if kind == "spin" && threads > 4 { LONG_ROUND } else { ROUND };
    let mut bare_rate = || {
        let output = Command::new(bare)
            .args([&target.pid().to_string(), &seconds.to_string(), "all"])
            .output()
            .expect("the C loop starts");
        c.push(String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().expect("a number"));
    };
    for round in 0..ROUNDS {
        // Who goes first changes, so that a load that grows or shrinks helps neither.
        if round % 2 == 0 {
            bare_rate();
        }
        let report = ours(target, &threads.to_string(), &format!("{}ms", seconds * 1e3));
        waylay.push(report.progress.suspensions_per_s);
        stops.push(report.progress.stop);
        if round % 2 == 1 {
            bare_rate();
        }
    }
    let pairs = waylay.iter().zip(&c).filter(|(ours, theirs)| **ours > 0.0 && **theirs > 0.0);
    let ratio = median(pairs.map(|(ours, theirs)| ours / theirs).collect());
    let stop = |of: fn(&waylay_randomizer::Percentiles) -> f64| median(stops.iter().map(of).collect());
    println!(
        "{:<34} {:>12.0} {:>12.0} {ratio:>6.2} {:>8.0} {:>8.0} {:>8.0}",
        format!("{threads} {}", if kind == "spin" { "spinning" } else { "blocked" }),
        median(waylay),
        median(c),
        stop(|stop| stop.p50_us),
        stop(|stop| stop.p99_us),
        stop(|stop| stop.max_us),
    );
    ratio
}

/// Nanoseconds a process was on a processor, all threads.
fn cpu_ns(pid: u32) -> f64 {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .expect("alive")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Work of a target per second on a processor, so that other work of the machine does not count.
fn throughput(target: &Target, time: Duration) -> f64 {
    let (work, cpu) = (target.counters().iter().sum::<u64>(), cpu_ns(target.pid()));
    std::thread::sleep(time);
    (target.counters().iter().sum::<u64>() - work) as f64 / (cpu_ns(target.pid()) - cpu) * 1e9
}

/// Compares the target beside a randomizer that rests with the same target beside one that is stopped, in many short
/// turns: the speed of a processor varies by more than what is looked for, but slowly.
fn idle() -> bool {
    let target = workers("spin", 1);
    let randomizer = Randomizer::start(target.pid(), &["--period", "1h"]);
    std::thread::sleep(Duration::from_millis(200));
    let turn = Duration::from_millis(50);
    let (mut lost, mut used) = (Vec::new(), Vec::new());
    for _ in 0..IDLE_TURNS {
        let cpu = cpu_ns(randomizer.pid());
        let beside = throughput(&target, turn);
        used.push((cpu_ns(randomizer.pid()) - cpu) / turn.as_nanos() as f64);
        randomizer.signal(libc::SIGSTOP);
        let alone = throughput(&target, turn);
        randomizer.signal(libc::SIGCONT);
        lost.push(1.0 - beside / alone);
    }
    let (lost, used) = (median(lost), median(used));
    println!(
        "\na randomizer that rests: the target loses {:.2} % of its throughput, the randomizer uses {:.2} % of a \
         processor; budget {:.0} % each",
        lost * 100.0,
        used * 100.0,
        MOST_LOSS * 100.0
    );
    lost <= MOST_LOSS && used <= MOST_LOSS
}

fn crowd() -> bool {
    let target = workers("block", 1000);
    let report = ours(&target, "1000", "2s");
    let all = report.progress.never_suspended == 0;
    let slowest = report.progress.stop.max_us / 1e6;
    println!(
        "1000 blocked threads: {} windows of all of them in 2 s, {:.0} suspensions/s, the slowest stop after {slowest:.3} s, \
         budget {MOST_ATTACHING_S} s",
        report.progress.counts.windows, report.progress.suspensions_per_s
    );
    all && slowest <= MOST_ATTACHING_S
}
