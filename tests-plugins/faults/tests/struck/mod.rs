//! Runs one test of the linked plugin in a child process, a few iterations with two workers, and says what became of
//! the child. The hangs are recognised by what the child's threads do, so nothing here depends on how fast it is.

#![allow(dead_code, reason = "each plugin's tests use another part")]

use crate::fake_host::Host;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;
use waylay_abi as abi;

/// What became of the process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Struck {
    /// Killed by a signal.
    Signal(i32),
    /// Ended without the child's own word.
    Exit(i32),
    /// All its threads wait for something that never comes.
    AllAsleep,
    /// It uses the processor and does not end.
    Busy,
    /// It ended well and the test had reported these.
    Reported(Vec<String>),
    /// It ended well with open files or threads more than before.
    Left { files: usize, threads: usize },
    /// One worker stayed in its iteration until cancelled while the other went on.
    Starved,
    /// It ended well and nothing was amiss.
    Nothing,
}

const TEST: &str = "WAYLAY_FAULT";
/// The worker threads of this file.
static OURS: Mutex<Vec<i32>> = Mutex::new(Vec::new());
/// A healthy iteration of these plugins sleeps a few times at most.
const PATIENCE: u64 = 50;

/// The body of the child; does nothing unless this process is one.
pub(crate) fn child(host: fn() -> Host) {
    let Ok(test) = std::env::var(TEST) else { return };
    let (files, others) = (open_files(), threads());
    let host = host();
    let mut starved = false;
    if let Some(live) = host.create(&test)
        && live.start() == abi::STATUS_OK
    {
        starved = run(&host, &live);
        if !starved {
            live.cancel();
        }
        live.end();
    }
    for failure in host.failures() {
        println!("reported {}", failure.message.replace('\n', " "));
    }
    if starved {
        println!("starved");
    }
    println!("left {} {}", open_files() - files, threads() - others);
    println!("came back");
}

/// Two workers, ten iterations each or until one is starved: it went to sleep [`PATIENCE`] times in one iteration while
/// the other went on. True if so.
fn run(host: &Host, live: &crate::fake_host::Live<'_>) -> bool {
    let counts = [AtomicU64::new(0), AtomicU64::new(0)];
    let starved = AtomicBool::new(false);
    let first = AtomicI32::new(0);
    let begin = Barrier::new(2);
    thread::scope(|scope| {
        let first_worker = || {
            first.store(enlist(), Ordering::SeqCst);
            live.main();
            counts[0].store(1, Ordering::SeqCst);
            begin.wait();
            while counts[0].load(Ordering::SeqCst) < 10 {
                live.main();
                counts[0].fetch_add(1, Ordering::SeqCst);
            }
        };
        let second_worker = || {
            enlist();
            begin.wait();
            let mut seen = (0, 0);
            loop {
                live.main();
                let mine = counts[1].fetch_add(1, Ordering::SeqCst) + 1;
                let other = counts[0].load(Ordering::SeqCst);
                if other >= 10 && mine >= 10 {
                    break;
                }
                let slept = sleeps(first.load(Ordering::SeqCst));
                if other != seen.0 {
                    seen = (other, slept);
                } else if slept >= seen.1 + PATIENCE {
                    starved.store(true, Ordering::SeqCst);
                    host.cancelled.store(true, Ordering::SeqCst);
                    live.cancel();
                    break;
                }
            }
        };
        scope.spawn(first_worker);
        scope.spawn(second_worker);
    });
    starved.into_inner()
}

/// How often that thread gave the processor up by itself.
fn sleeps(thread: i32) -> u64 {
    voluntary_switches(&fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap_or_default())
}

fn voluntary_switches(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// The calling thread is one of this file's; its number.
fn enlist() -> i32 {
    // SAFETY: the call has no conditions.
    let number = unsafe { libc::gettid() };
    OURS.lock().unwrap().push(number);
    number
}

/// Threads that neither this file nor the SDK started: a thread stays listed for a moment after it was joined. One whose
/// name cannot be read any more is gone. A new thread has its parent's name until it gives itself one, so those of this
/// file are known by their numbers.
fn threads() -> usize {
    let ours = OURS.lock().unwrap();
    let number = |task: &fs::DirEntry| task.file_name().to_str().and_then(|name| name.parse().ok());
    fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|task| number(task).is_none_or(|number: i32| !ours.contains(&number)))
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| !name.starts_with("iteration-"))
        .count()
}

/// Strikes the test in a child and says what became of it. The calling file has a test `child` that calls [`child`].
pub(crate) fn strike(test: &str) -> Struck {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(TEST, test)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut last = None;
    let mut looks = 0;
    loop {
        if child.try_wait().unwrap().is_some() {
            return ended(child);
        }
        let (asleep, ticks) = activity(child.id());
        // A second of processor time is livelock: the faults that end need milliseconds.
        if ticks > 100 {
            return hung(child, Struck::Busy);
        }
        looks = if asleep.is_some() && asleep == last { looks + 1 } else { 0 };
        last = asleep;
        // No thread of these plugins sleeps that long, except one that is never woken.
        if looks == 50 {
            return hung(child, Struck::AllAsleep);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn hung(mut child: Child, how: Struck) -> Struck {
    child.kill().unwrap();
    child.wait().unwrap();
    how
}

/// How often the threads went to sleep, if all of them do now; and the processor time of all, in ticks of 10 ms.
fn activity(pid: u32) -> (Option<u64>, u64) {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return (None, 0) };
    let asleep = tasks.flatten().map(|task| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        status.contains("\nState:\tS").then(|| voluntary_switches(&status))
    });
    let asleep = asleep.sum::<Option<u64>>();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in brackets, may hold anything; the fields after it are plain.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let tick = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    (asleep, tick(11) + tick(12))
}

fn ended(child: Child) -> Struck {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(signal) = output.status.signal() {
        return Struck::Signal(signal);
    }
    if !text.lines().any(|line| line.ends_with("came back")) {
        return Struck::Exit(output.status.code().unwrap());
    }
    // libtest writes the name of the test without a line end before the first line.
    let after = |mark: &str| {
        text.lines()
            .filter_map(|line| line.split_once(mark))
            .map(|(_, rest)| rest.to_owned())
            .collect::<Vec<_>>()
    };
    let reported = after("reported ");
    if !reported.is_empty() {
        return Struck::Reported(reported);
    }
    if text.contains("starved\n") {
        return Struck::Starved;
    }
    let left = after("left ").pop().unwrap();
    let numbers: Vec<usize> = left.split(' ').map(|number| number.parse().unwrap()).collect();
    match numbers[..] {
        [0, 0] => Struck::Nothing,
        [files, threads] => Struck::Left { files, threads },
        _ => panic!("the child said {left:?}"),
    }
}
