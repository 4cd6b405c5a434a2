//! Crashed processes: the faulting thread as its signal handler saw it, and the dump of it.

mod target;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use minidump::{Minidump, MinidumpException, MinidumpThreadList, MinidumpThreadNames};
use target::{Program, Target, Watchdog};
use waylay_evidence::signature::Signature;
use waylay_evidence::{
    CaptureOptions, CrashContext, DumpError, DumpLimits, Symbolizer, ThreadId, ThreadStack, Trust, capture,
    minidump,
};

/// What the handler of `crash.c` tells.
struct Told {
    thread: ThreadId,
    signal: i32,
    address: u64,
    context: CrashContext,
}

fn crash(program: &Program, kind: &str) -> (Target, Told) {
    let mut target = program.start(&[kind]);
    let line = target.line();
    let fields: Vec<_> = line.split(' ').collect();
    let hexadecimal = |index: usize| u64::from_str_radix(fields[index], 16).expect("hexadecimal");
    let thread = ThreadId(fields[0].parse().expect("a thread number"));
    let context = CrashContext::read(target.pid(), thread, hexadecimal(3), hexadecimal(4)).expect("readable");
    let told =
        Told { thread, signal: fields[1].parse().expect("a signal"), address: hexadecimal(2), context };
    (target, told)
}

fn stacks(target: &Target, told: &Told) -> Vec<ThreadStack> {
    let options = CaptureOptions { crashed: vec![told.context.clone()], ..CaptureOptions::default() };
    let snapshot = capture(target.pid(), &options).expect("capture");
    Symbolizer::default().stacks(&snapshot)
}

fn names(stack: &ThreadStack) -> Vec<&str> {
    stack.frames.iter().map(|frame| frame.function.as_deref().unwrap_or("?")).collect()
}

fn program() -> Program {
    Program::c("crash.c", &["-O1", "-g"])
}

#[test]
fn the_faulting_thread_comes_first_and_without_its_handler() {
    let program = program();
    let (target, told) = crash(&program, "segv");
    assert_eq!((told.signal, told.address, told.context.fault_address), (11, 8, Some(8)));
    let stacks = stacks(&target, &told);
    assert_eq!(stacks.len(), 5);
    assert_eq!((stacks[0].id, stacks[0].crashed), (told.thread, true));
    assert_eq!(names(&stacks[0])[..3], ["write_badly", "fail_now", "thread_main"]);
    assert_eq!(stacks[0].frames[0].trust, Trust::Signal);
    let line = stacks[0].frames[0].line.expect("a line") as usize;
    let source = fs::read_to_string(target::source("crash.c")).expect("the source");
    assert!(
        source.lines().nth(line - 1).is_some_and(|text| text.contains("*bad_pointer = 1")),
        "line {line}"
    );
}

#[test]
fn a_call_to_nowhere_leads_back_to_its_caller() {
    let program = program();
    let (target, told) = crash(&program, "call");
    let stacks = stacks(&target, &told);
    let names = names(&stacks[0]);
    assert_eq!(names[0], "?");
    assert_eq!(names[1..4], ["call_nothing", "fail_now", "thread_main"]);
}

#[test]
fn an_overflown_stack_shows_both_ends() {
    let program = program();
    let (target, told) = crash(&program, "overflow");
    let stacks = stacks(&target, &told);
    let (names, gap) = (names(&stacks[0]), stacks[0].omitted.expect("far too deep"));
    assert!(names[..gap.before].iter().all(|name| *name == "recurse"), "{names:?}");
    assert!(
        names[gap.before..].ends_with(&["recurse", "fail_now", "thread_main", "start_thread", "clone3"]),
        "{names:?}"
    );
    assert!(gap.frames > 10_000, "{}", gap.frames);
    let signature = Signature::of_stack("crash stack overflow", "t", None, &stacks[0].frames);
    assert!(signature.text.contains("recursion of"), "{signature}");
}

#[test]
fn an_abort_shows_who_called_it() {
    let program = program();
    let (target, told) = crash(&program, "abort");
    let stacks = stacks(&target, &told);
    let names = names(&stacks[0]);
    assert!(names.contains(&"give_up") && names.contains(&"fail_now"), "{names:?}");
    let signature = Signature::of_stack("crash SIGABRT", "t", None, &stacks[0].frames);
    assert_eq!(signature.text, "crash SIGABRT in t at give_up < fail_now < thread_main");
}

#[test]
fn an_uncaught_exception_shows_who_threw_it() {
    let program = Program::build("c++", "terminate.cpp", &["-std=c++17", "-O1", "-g"], "program");
    let (target, told) = crash(&program, "");
    assert_eq!(told.context.signal_name(), "SIGABRT");
    let stacks = stacks(&target, &told);
    assert!(
        names(&stacks[0]).contains(&"shop::(anonymous namespace)::Book<int>::take"),
        "{:?}",
        names(&stacks[0])
    );
    let signature = Signature::of_stack("exception", "t", Some("no order 7"), &stacks[0].frames);
    assert_eq!(
        signature.text,
        "exception in t: no order # at terminate.cpp:take < terminate.cpp:serve < terminate.cpp:main"
    );
}

fn dump_path(directory: &Path) -> std::path::PathBuf {
    directory.join("dump.dmp")
}

#[test]
fn the_dump_has_every_thread_and_the_true_fault_address() {
    let program = program();
    for (kind, signal) in [("segv", 11), ("overflow", 11), ("abort", 6)] {
        let (target, told) = crash(&program, kind);
        let path = dump_path(program.directory());
        let info = minidump(target.pid(), &path, Some(&told.context), &DumpLimits::default()).expect(kind);
        let address = match kind {
            "abort" => told.context.registers().instruction().expect("known"),
            _ => told.address,
        };
        assert_eq!((info.threads, info.crash), (5, Some((told.thread, address))));
        assert_eq!(info.bytes, fs::metadata(&path).expect("written").len());

        let dump = Minidump::read_path(&path).expect("readable");
        let threads = dump.get_stream::<MinidumpThreadList<'_>>().expect("threads");
        assert_eq!(threads.threads.len(), 5);
        dump.get_stream::<MinidumpThreadNames>().expect("names");
        let exception = dump.get_stream::<MinidumpException<'_>>().expect("exception");
        assert_eq!(exception.get_crashing_thread_id(), told.thread.0);
        let record = &exception.raw.exception_record;
        assert_eq!((record.exception_code, record.exception_address), (signal, address), "{kind}");
        let system = dump.get_stream().expect("system");
        let misc = dump.get_stream().ok();
        let context = exception.context(&system, misc.as_ref()).expect("registers");
        assert_eq!(Some(context.get_instruction_pointer()), told.context.registers().instruction());
        // The target goes on: its handler still waits, and another dump is possible.
        minidump(target.pid(), &path, None, &DumpLimits::default()).expect("again");
    }
}

#[test]
fn a_dump_under_another_tracer_is_refused_and_names_it() {
    let program = Program::c("places.c", &["-O1"]);
    let tracer = Program::build("cc", "tracer.c", &[], "first-tracer");
    let target = program.start(&["plain"]);
    let first = tracer.start(&[&target.pid().to_string()]);
    let path = dump_path(program.directory());
    let error = minidump(target.pid(), &path, None, &DumpLimits::default()).expect_err("traced");
    let DumpError::Incomplete { found: 0, missing: 1, tracer: Some(tracer), .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(tracer.pid, first.pid());
    assert!(!path.exists(), "a dump without threads must not look like one");
}

#[test]
fn a_dump_that_cannot_be_written_names_the_file() {
    let program = Program::c("places.c", &["-O1"]);
    let target = program.start(&["plain"]);
    let nowhere = program.directory().join("no such directory/dump.dmp");
    let error = minidump(target.pid(), &nowhere, None, &DumpLimits::default()).expect_err("no directory");
    assert!(error.to_string().contains("no such directory"), "{error}");
    let error =
        minidump(target.pid(), Path::new("/dev/full/x"), None, &DumpLimits::default()).expect_err("no file");
    assert!(error.to_string().contains("/dev/full/x"), "{error}");
}

#[test]
fn a_kill_during_the_dump_is_an_error_and_not_a_hang() {
    let _watchdog = Watchdog::new(Duration::from_secs(100));
    let program = Program::c("sixteen.c", &["-O1"]);
    let directory = tempfile::tempdir().expect("a directory");
    // Short, because some of these kills leave the writer waiting for ever, which is the point.
    let limits = DumpLimits { timeout: Duration::from_millis(700), size: None };
    for round in 0..12_u64 {
        let mut target = program.start(&[]);
        let pid = target.pid();
        let path = dump_path(directory.path());
        let dumping = thread::spawn(move || {
            loop {
                match minidump(pid, &path, None, &limits) {
                    Ok(info) => assert_eq!(info.threads, 17),
                    Err(error) => return error,
                }
            }
        });
        thread::sleep(Duration::from_micros(round * 900));
        target.kill();
        let error = dumping.join().expect("no panic");
        let expected = matches!(
            error,
            DumpError::Gone { .. }
                | DumpError::Write { .. }
                | DumpError::Timeout { .. }
                | DumpError::Incomplete { .. }
        );
        assert!(expected, "{error}");
        let status = target.wait();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        assert_eq!(
            fs::read_dir(directory.path())
                .expect("readable")
                .filter(|entry| {
                    entry.as_ref().is_ok_and(|entry| {
                        entry.path().extension().is_some_and(|extension| extension == "partial")
                    })
                })
                .count(),
            0,
            "no half dump is left behind"
        );
    }
}
