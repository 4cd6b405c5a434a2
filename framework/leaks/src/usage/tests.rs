use super::*;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::mpsc;

#[test]
fn an_open_file_is_named() {
    let file = File::open("/proc/self/status").expect("proc");
    let usage = ProcessUsage::read(std::process::id()).expect("own process");
    let number = Descriptor(file.as_raw_fd() as u32);
    assert!(usage.descriptors[&number].ends_with("/status"), "{:?}", usage.descriptors);
    assert_eq!(usage.descriptor_count, usage.descriptors.len() as u64);
    assert!(!usage.descriptors.values().any(|target| target.ends_with("/fd")), "counts itself");
}

#[test]
fn a_thread_is_named() {
    let (stop, stopped) = mpsc::channel::<()>();
    let (started, running) = mpsc::channel();
    let thread = std::thread::Builder::new().name("left-behind".into()).spawn(move || {
        started.send(()).expect("parent waits");
        let _ = stopped.recv();
    });
    let thread = thread.expect("thread");
    running.recv().expect("started");
    let usage = ProcessUsage::read(std::process::id()).expect("own process");
    assert!(usage.threads.values().any(|name| name == "left-behind"), "{:?}", usage.threads);
    drop(stop);
    thread.join().expect("thread");
}

#[test]
fn resident_memory_is_counted_in_bytes() {
    let before = UsageCounts::read(std::process::id()).expect("own process").resident;
    let block = vec![1u8; 64 << 20];
    let after = UsageCounts::read(std::process::id()).expect("own process").resident;
    assert!(block.iter().step_by(4096).all(|byte| *byte == 1));
    assert!(after >= before + (48 << 20), "{before} then {after}");
}

#[test]
fn counts_agree_with_names_for_a_quiet_process() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat");
    let mut echo = [0];
    child.stdin.as_mut().expect("piped").write_all(b"x").expect("cat reads");
    child.stdout.as_mut().expect("piped").read_exact(&mut echo).expect("cat has started and answers");
    let usage = ProcessUsage::read(child.id()).expect("child");
    let counts = UsageCounts::read(child.id()).expect("child");
    assert_eq!(counts.threads, 1);
    assert_eq!(counts.descriptors, usage.descriptors.len() as u64);
    assert_eq!(UsageCounts::from(&usage).threads, 1);
    child.kill().expect("kill");
    child.wait().expect("reap");
    assert!(matches!(ProcessUsage::read(child.id()), Err(UsageError::Gone { .. })));
}
