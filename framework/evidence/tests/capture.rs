//! Stopping processes that do not hold still.

mod target;

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::Duration;

use target::{Program, Watchdog, eventually};
use waylay_evidence::{
    CaptureError, CaptureOptions, DumpLimits, ProcessId, SchedulerState, Symbolizer, ThreadContext, capture,
    capture_and_hold, minidump,
};

/// A hang anywhere in a loop of captures ends the test process.
const LIMIT: Duration = Duration::from_secs(60);

fn status_field(pid: ProcessId, thread: &str, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).expect("the thread lives");
    let line = status.lines().find(|line| line.starts_with(field)).expect("the field exists");
    line[field.len() + 1..].trim().to_owned()
}

#[test]
fn nothing_stays_stopped_or_traced() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("sixteen.c", &["-O1", "-g"]);
    let target = program.start(&[]);
    for _ in 0..20 {
        let snapshot = capture(target.pid(), &CaptureOptions::default()).expect("capture");
        assert_eq!(snapshot.threads.len(), 17);
        for thread in &snapshot.threads {
            let id = thread.id.to_string();
            assert_eq!(status_field(target.pid(), &id, "TracerPid:"), "0");
            assert!(!status_field(target.pid(), &id, "State:").starts_with(['t', 'T']), "{id} is stopped");
        }
    }
}

#[test]
fn threads_that_come_and_go_do_not_disturb() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("churn.c", &["-O1"]);
    let target = program.start(&[]);
    let mut symbolizer = Symbolizer::default();
    let mut seen = HashSet::new();
    for _ in 0..200 {
        let snapshot = capture(target.pid(), &CaptureOptions::default()).expect("the process lives");
        let ids: HashSet<_> = snapshot.threads.iter().map(|thread| thread.id).collect();
        assert_eq!(ids.len(), snapshot.threads.len(), "each thread once");
        assert!(ids.len() >= 4, "main and three creators: {}", ids.len());
        seen.extend(ids);
        symbolizer.stacks(&snapshot);
    }
    assert!(seen.len() > 4, "some of the threads that come and go were caught");
}

/// The threads of a dump.
fn threads_in(dump: &std::path::Path) -> HashSet<u32> {
    let dump = ::minidump::Minidump::read_path(dump).expect("a dump");
    let list = dump.get_stream::<::minidump::MinidumpThreadList<'_>>().expect("a list");
    list.threads.iter().map(|thread| thread.raw.thread_id).collect()
}

#[test]
fn snapshot_and_dump_of_one_standstill_have_the_same_threads() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("churn.c", &["-O1"]);
    let target = program.start(&[]);
    let path = program.directory().join("dump.dmp");
    let mut seen = HashSet::new();
    for _ in 0..100 {
        let (snapshot, still) =
            capture_and_hold(target.pid(), &CaptureOptions::default()).expect("the process lives");
        let ids: HashSet<_> = snapshot.threads.iter().map(|thread| thread.id.0).collect();
        minidump(target.pid(), &path, None, &DumpLimits::default()).expect("a dump");
        assert_eq!(threads_in(&path), ids);
        drop(still);
        seen.extend(ids);
    }
    assert!(seen.len() > 50, "threads came and went between the stops: {}", seen.len());
}

#[test]
fn a_standstill_without_a_dump_ends_with_its_guard() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("sixteen.c", &["-O1", "-g"]);
    let target = program.start(&[]);
    let (snapshot, still) = capture_and_hold(target.pid(), &CaptureOptions::default()).expect("capture");
    assert_eq!(snapshot.threads.len(), 17);
    assert!(
        snapshot.threads.iter().all(|thread| thread.state != SchedulerState::Stopped),
        "as they were before"
    );
    // The kernel wakes each thread when we let go of it, and stops it again before it returns to its own code.
    for thread in &snapshot.threads {
        let id = thread.id.to_string();
        eventually("it stands still", || match status_field(target.pid(), &id, "State:") {
            state if state.starts_with('T') => Ok(()),
            state => Err(state),
        });
    }
    drop(still);
    for thread in &snapshot.threads {
        let id = thread.id.to_string();
        eventually("it goes on", || match status_field(target.pid(), &id, "State:") {
            state if state.starts_with('T') => Err(state),
            _ => Ok(()),
        });
    }
}

#[test]
fn a_kill_in_the_middle_is_an_error_and_not_a_hang() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("sixteen.c", &["-O1"]);
    for round in 0..40_u64 {
        let mut target = program.start(&[]);
        let pid = target.pid();
        let capturing = thread::spawn(move || {
            loop {
                match capture(pid, &CaptureOptions::default()) {
                    Ok(snapshot) => assert!(!snapshot.threads.is_empty()),
                    Err(error) => return error,
                }
            }
        });
        // Spread over the length of a few captures, so that the kill hits every phase.
        thread::sleep(Duration::from_micros(round * 500));
        target.kill();
        let error = capturing.join().expect("no panic");
        assert!(matches!(error, CaptureError::Gone { .. }), "{error}");
        // Nothing of ours holds the remains: its parent can reap it, and the exit is the kill.
        let status = target.wait();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }
}

/// A killed process has given up its memory map some time before it counts as ended. The kill has to come
/// between the stop and the copy, so it is tried at a hundred moments.
#[test]
fn a_process_on_its_way_out_is_gone() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("heavy.c", &["-O1"]);
    for round in 0..100 {
        let mut target = program.start(&[]);
        let pid = target.pid();
        let capturing = thread::spawn(move || {
            loop {
                match capture(pid, &CaptureOptions::default()) {
                    Ok(snapshot) => assert_eq!(snapshot.threads.len(), 1),
                    Err(error) => return error,
                }
            }
        });
        thread::sleep(Duration::from_micros(1000 + round * 17));
        target.kill();
        let error = capturing.join().expect("no panic");
        assert!(matches!(error, CaptureError::Gone { .. }), "round {round}: {error}");
        target.wait();
    }
}

#[test]
fn a_second_tracer_is_told_who_the_first_is() {
    let program = Program::c("places.c", &["-O1"]);
    let tracer = Program::build("cc", "tracer.c", &[], "first-tracer");
    let target = program.start(&["plain"]);
    let first = tracer.start(&[&target.pid().to_string()]);
    let error = capture(target.pid(), &CaptureOptions::default()).expect_err("already traced");
    let CaptureError::Traced { tracer, .. } = &error else { panic!("{error}") };
    assert_eq!((tracer.pid, tracer.name.as_str()), (first.pid(), "first-tracer"));
    assert!(error.to_string().contains(&format!("first-tracer (pid {})", first.pid())), "{error}");
    drop(first);
    eventually("free again", || {
        capture(target.pid(), &CaptureOptions::default()).map_err(|error| error.to_string())
    });
}

#[test]
fn no_signal_is_lost_or_doubled() {
    const SIGNALS: usize = 2000;
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("signals.c", &["-O1"]);
    let mut target = program.start(&[]);
    let pid = target.pid();
    let sender = thread::spawn(move || {
        for sent in 0..SIGNALS {
            // SAFETY: sends a signal to a process that this test owns and has not reaped.
            while unsafe {
                libc::sigqueue(
                    pid.0 as i32,
                    libc::SIGRTMIN() + 3,
                    libc::sigval { sival_ptr: std::ptr::null_mut() },
                )
            } != 0
            {
                thread::yield_now();
            }
            if sent % 50 == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    while !sender.is_finished() {
        capture(pid, &CaptureOptions::default()).expect("capture");
    }
    sender.join().expect("all sent");
    target.close_input();
    target.expect_line(&SIGNALS.to_string());
}

#[test]
fn a_thread_that_cannot_be_stopped_is_reported_as_far_as_it_can_be_seen() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("places.c", &["-O1", "-g"]);
    let target = program.start(&["vfork"]);
    let options = CaptureOptions { stop_timeout: Duration::from_millis(50), ..CaptureOptions::default() };
    let snapshot = eventually("the parent waits for its child", || {
        let snapshot = capture(target.pid(), &options).map_err(|error| error.to_string())?;
        // The state is read first, so the thread may have reached its wait only after that.
        match (snapshot.threads[0].context, snapshot.threads[0].state) {
            (ThreadContext::Unstopped(_), SchedulerState::Uninterruptible) => Ok(snapshot),
            other => Err(format!("{other:?}")),
        }
    });
    let stacks = Symbolizer::default().stacks(&snapshot);
    let names: Vec<_> = stacks[0].frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
    assert_eq!(names.first(), Some(&"vfork"), "{names:?}");
    assert_eq!(status_field(target.pid(), &target.pid().to_string(), "TracerPid:"), "0");
}

#[test]
fn a_process_outlives_its_first_thread() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("places.c", &["-O1", "-g"]);
    let target = program.start(&["leaderless"]);
    let mut symbolizer = Symbolizer::default();
    eventually("only the second thread is left", || {
        let snapshot =
            capture(target.pid(), &CaptureOptions::default()).map_err(|error| error.to_string())?;
        let stacks = symbolizer.stacks(&snapshot);
        let names: Vec<_> = stacks[0].frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
        let alone = stacks.len() == 1 && names.contains(&"outlive") && names.contains(&"start_thread");
        if alone { Ok(()) } else { Err(format!("{} threads, {names:?}", stacks.len())) }
    });
    let path = program.directory().join("dump.dmp");
    let info = minidump(target.pid(), &path, None, &DumpLimits::default()).expect("a dump");
    assert_eq!(info.threads, 1);
}
