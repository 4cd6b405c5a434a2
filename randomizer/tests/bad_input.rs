//! What cannot work is refused in words that say what to do.

#![cfg(target_os = "linux")]

mod target;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use target::{Target, Watchdog, eventually, randomizer, scratch};
use waylay_randomizer::{BAD_USAGE, REFUSED};

/// Runs the command; returns its exit code and what it said.
fn told(command: &mut Command) -> (u8, String) {
    let Output { status, stderr, .. } = command.output().expect("starts");
    let code = u8::try_from(status.code().expect("not killed")).expect("small");
    (code, String::from_utf8(stderr).expect("text"))
}

fn refusal(arguments: &[&str]) -> String {
    let (code, text) = told(randomizer().args(arguments));
    assert_eq!(code, BAD_USAGE, "{arguments:?}: {text}");
    text
}

#[test]
fn processes_that_are_not_there_or_are_ours() {
    assert!(refusal(&["--pid", "1073741822"]).contains("there is no process 1073741822"));
    let own = std::process::id().to_string();
    let text = refusal(&["--pid", &own]);
    assert!(text.contains("is an ancestor of the randomizer"), "{text}");
    assert!(refusal(&["--pid", "1"]).contains("is an ancestor of the randomizer"));
    assert!(refusal(&["--pid", "2000000000000"]).contains("invalid value"));
    assert!(refusal(&["--", "/no/such/program"]).contains("cannot start /no/such/program"));
}

#[test]
fn a_thread_instead_of_its_process() {
    let target = Target::start(&["nap:n1"]);
    let text = refusal(&["--pid", &target.thread("n1").to_string()]);
    assert!(text.contains(&format!("is a thread of process {0}: use --pid {0}", target.pid())), "{text}");
}

#[test]
fn a_process_that_ended_already() {
    let mut target = Target::start(&["nap:n1"]);
    target.kill();
    target.expect_states("Z");
    assert!(refusal(&["--pid", &target.pid().to_string()]).contains("has ended already"));
}

#[test]
fn settings_that_make_no_sense() {
    for (arguments, expected) in [
        (["--count", "0"], "count: can be 0: each window suspends at least 1 thread"),
        (["--count", "0..3"], "count, min: can be 0"),
        (["--count", "{ gaussian = { mean = 3, sigma = 1 } }"], "count: can be 0 or negative"),
        (["--period", "-5..5"], "period, min: can be -5, but time is never negative"),
        (["--suspend", "5"], "suspend: a number without a unit"),
        (["--suspend", "2ms..1ms"], "suspend, min: min \"2ms\" is greater than max \"1ms\""),
        (["--exclude", "a-name-that-is-too-long"], "exclude: `a-name-that-is-too-long` can match no thread"),
        (["--config", "/no/such/file"], "/no/such/file: cannot be read"),
        (["--replay", "/no/such/log"], "cannot read the log /no/such/log"),
        (["--log", "/no/such/folder/log"], "cannot write the log /no/such/folder/log"),
        (["--page", "77"], "--page 77: Bad file descriptor"),
        (["--stats", "1"], "--stats 1: must be a descriptor of its own, above 2"),
    ] {
        let target = Target::start(&["block:b1"]);
        let text = refusal(&[&arguments[..], &["--pid", &target.pid().to_string()]].concat());
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
}

#[test]
fn a_config_file_is_read_and_its_mistakes_are_placed() {
    let (_directory, path) = scratch();
    std::fs::write(&path, "[randomizer]\ncount = 1\nperiod = { uniform = { min = '1ms' } }\n")
        .expect("writable");
    let text = refusal(&["--config", path.to_str().expect("a name"), "--pid", "1"]);
    assert!(text.contains("line 3") && text.contains("max"), "{text}");
}

#[test]
fn a_process_that_somebody_traces() {
    let _watchdog = Watchdog::new();
    let target = Target::start(&["nap:n1"]);
    // SAFETY: the request takes no memory.
    let result = unsafe { libc::ptrace(libc::PTRACE_SEIZE, target.pid(), 0_usize, 0_usize) };
    assert_eq!(result, 0);
    let (code, text) = told(randomizer().args(["--pid", &target.pid().to_string()]));
    assert_eq!(code, REFUSED, "{text}");
    assert!(
        text.contains("is traced by") && text.contains(&format!("(process {})", std::process::id())),
        "{text}"
    );
}

#[test]
fn a_process_that_we_may_not_trace() {
    let _watchdog = Watchdog::new();
    let mut target = Target::start(&["nap:n1"]);
    target.say("hide");
    assert_eq!(target.line(), "hidden");
    // A copy, because the folder of the original may be closed to others; made by another process, because a file that
    // a child of a parallel test still has open for writing cannot be started.
    let (directory, copy) = scratch();
    let original = env!("CARGO_BIN_EXE_waylay-randomizer");
    assert!(Command::new("cp").arg(original).arg(&copy).status().expect("cp starts").success());
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).expect("ours");
    let mut command = Command::new(&copy);
    command.args(["--pid", &target.pid().to_string()]);
    // SAFETY: returns a number.
    if unsafe { libc::geteuid() } == 0 {
        const NOBODY: u32 = 65534;
        command.uid(NOBODY).gid(NOBODY);
    }
    let (code, text) = told(&mut command);
    assert_eq!(code, REFUSED, "{text}");
    assert!(text.contains("not permitted to trace process"), "{text}");
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let hint = if scope.trim() == "1" { "ptrace_scope is 1" } else { "root" };
    assert!(text.contains(hint), "{text}");
}

/// A program of 32 bits that waits: pause() for ever.
fn program_of_32_bits() -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    // mov eax, 29 (pause); int 0x80; jmp to the mov
    const CODE: [u8; 9] = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
    let size = (52 + 32 + CODE.len()) as u32;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, values: &[u16]| values.iter().for_each(|v| file.extend(v.to_le_bytes()));
    let word = |file: &mut Vec<u8>, values: &[u32]| values.iter().for_each(|v| file.extend(v.to_le_bytes()));
    // Executable, 386, version 1; entry, program headers at 52, no sections, no flags.
    half(&mut file, &[2, 3]);
    word(&mut file, &[1, BASE + 84, 52, 0, 0]);
    half(&mut file, &[52, 32, 1, 0, 0, 0]);
    // One segment: load all, readable and executable.
    word(&mut file, &[1, 0, BASE, BASE, size, size, 5, 0x1000]);
    file.extend(CODE);
    file
}

#[test]
fn a_program_of_32_bits() {
    let _watchdog = Watchdog::new();
    let (_directory, path) = scratch();
    let mut file = std::fs::File::create(&path).expect("writable");
    file.write_all(&program_of_32_bits()).expect("writable");
    drop(file);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("ours");
    // Another test of this process may hold the file open for writing in a child it just forked.
    let started = eventually("start", || match Command::new(&path).stdin(Stdio::null()).spawn() {
        Err(error) if error.raw_os_error() == Some(libc::ETXTBSY) => Err(error.to_string()),
        other => Ok(other),
    });
    let Ok(mut child) = started else {
        // This kernel runs no such programs, so there is nothing to refuse.
        assert_eq!(started.expect_err("not started").raw_os_error(), Some(libc::ENOEXEC));
        return;
    };
    let text = refusal(&["--pid", &child.id().to_string()]);
    child.kill().expect("ours");
    child.wait().expect("ours");
    assert!(text.contains("runs a 32-bit program"), "{text}");
}
