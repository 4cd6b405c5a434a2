//! What the host does for each iteration: no system call of its own.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::time::{Duration, Instant};

use support::{Workplace, number};

/// The thread of a process with that name.
fn thread_named(pid: i32, name: &str) -> Option<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    threads.filter_map(Result::ok).find_map(|thread| {
        let own = fs::read_to_string(thread.path().join("comm")).ok()?;
        (own.trim() == name).then(|| thread.file_name().to_str()?.parse().ok())?
    })
}

/// Processor time that a thread has had.
fn processor_time(pid: i32, tid: i32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0))
}

/// Counts the system calls of a thread while it has `time` of the processor.
fn system_calls(pid: i32, tid: i32, time: Duration) -> u32 {
    let nothing = std::ptr::null_mut::<libc::c_void>();
    let request = |what: libc::c_uint, data: usize| {
        // SAFETY: no request that is made here reads or writes memory of this process.
        let done = unsafe { libc::ptrace(what, tid, nothing, data) };
        assert_eq!(done, 0, "ptrace request {what}: {}", std::io::Error::last_os_error());
    };
    let stopped = |options: i32| {
        let mut status = 0;
        // SAFETY: a place for the answer.
        let answer = unsafe { libc::waitpid(tid, &mut status, options | libc::__WALL) };
        (answer == tid).then_some(status)
    };
    request(libc::PTRACE_SEIZE, libc::PTRACE_O_TRACESYSGOOD as usize);
    request(libc::PTRACE_INTERRUPT, 0);
    stopped(0).expect("it stops");
    let until = processor_time(pid, tid) + time;
    let began = Instant::now();
    let mut calls = 0;
    request(libc::PTRACE_SYSCALL, 0);
    while processor_time(pid, tid) < until {
        assert!(began.elapsed() < support::PATIENCE, "the thread gets no processor");
        if let Some(status) = stopped(libc::WNOHANG) {
            calls += u32::from(libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80);
            request(libc::PTRACE_SYSCALL, 0);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    request(libc::PTRACE_INTERRUPT, 0);
    stopped(0).expect("it stops");
    request(libc::PTRACE_DETACH, 0);
    calls
}

#[test]
fn an_iteration_makes_no_system_call_of_the_hosts_own() {
    let place = Workplace::with(
        "[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"nothing\"\nworkers = 1\n",
    );
    let running = place.start(&["run", "waylay.toml", "--json"]);
    let mut worker = None;
    running.until("a worker at work", |running| {
        worker = running
            .hosts()
            .first()
            .and_then(|host| Some((*host, thread_named(*host, "nothing#0")?)))
            .filter(|(host, tid)| processor_time(*host, *tid) > Duration::from_millis(50));
        worker.is_some()
    });
    let (host, tid) = worker.expect("waited for");
    assert_eq!(system_calls(host, tid, Duration::from_millis(100)), 0);
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    // 150 ms of processor time are that many iterations even at a microsecond each.
    assert!(number(&ran.test("waylay_faults", "nothing")["iterations"]) > 150_000, "{}", ran.stderr);
}
