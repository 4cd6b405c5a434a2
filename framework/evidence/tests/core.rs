//! Cores of living processes, as gdb sees them.
#![cfg(target_os = "linux")]

mod target;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use waylay_evidence::{
    CaptureOptions, CoreOptions, DumpLimits, DumpSize, Standstill, Symbolizer, SymbolizerLimits, ThreadStack,
    capture_and_hold, minidump, write_core,
};

use target::{Program, Target, Watchdog, eventually};

const LIMIT: Duration = Duration::from_secs(300);
const SECRET: &str = "planted-in-the-environment-of-a-test";

/// Whether gdb is here; where it has to be, its absence fails the test.
fn has_gdb() -> bool {
    let found = Command::new("gdb").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(), "gdb is not installed");
    if !found {
        eprintln!("gdb is not installed: nothing was tested");
    }
    found
}

/// What gdb says of a core.
fn gdb(program: &Path, core: &Path, commands: &[&str]) -> String {
    let mut command = Command::new("gdb");
    command.args(["-batch", "-nx", "-iex", "set debuginfod enabled off"]).env("DEBUGINFOD_URLS", "");
    for text in commands {
        command.args(["-ex", text]);
    }
    let output = command.arg(program).arg(core).output().expect("gdb runs");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A program whose threads all wait, and its stacks.
fn waiting(program: &Program) -> (Target, Vec<ThreadStack>, Standstill) {
    let mut target = Target::start(Command::new(&program.path).env("PLANTED", SECRET));
    target.expect_line("ready");
    let mut names = Symbolizer::new(SymbolizerLimits::default());
    let (stacks, still) = eventually("all threads wait", || {
        let (snapshot, still) =
            capture_and_hold(target.pid(), &CaptureOptions::default()).map_err(|error| error.to_string())?;
        let stacks = names.stacks(&snapshot);
        let waits = |stack: &ThreadStack| {
            stack.frames.iter().any(|frame| {
                let function = frame.function.as_deref();
                function.is_some_and(|name| name.ends_with("_waits") || name.contains("join"))
            })
        };
        match stacks.len() == 3 && stacks.iter().all(waits) {
            true => Ok((stacks, still)),
            false => Err(format!("{stacks:#?}")),
        }
    });
    (target, stacks, still)
}

#[test]
fn gdb_sees_the_threads_functions_and_variables_of_every_size() {
    let _watchdog = Watchdog::new(LIMIT);
    if !has_gdb() {
        return;
    }
    let program = Program::c("waiting.c", &["-g", "-O1", "-fno-optimize-sibling-calls"]);
    let (target, stacks, still) = waiting(&program);
    let mut sizes = Vec::new();
    for size in [DumpSize::Mini, DumpSize::Heap, DumpSize::Full] {
        let path = program.directory().join(size.name());
        let first = stacks.last().map(|stack| stack.id);
        let options = CoreOptions { size, first, ..CoreOptions::default() };
        let info = write_core(target.pid(), &path, &options).expect("a core");
        assert_eq!((info.threads, info.left_out), (3, 0));
        assert_eq!(path.metadata().expect("there").len(), info.bytes);
        sizes.push(info.bytes);
        let said = gdb(&program.path, &path, &["thread apply all bt", "print answer", "info threads"]);
        assert!(said.contains("$1 = 4242"), "{said}");
        for stack in &stacks {
            let from = said.find(&format!("(LWP {})):\n", stack.id)).unwrap_or_else(|| panic!("{said}"));
            let part = said[from..].split("\nThread ").next().unwrap_or_default();
            for frame in stack.frames.iter().filter(|frame| frame.file.is_some()) {
                let function = frame.function.as_deref().unwrap_or_default();
                assert!(part.contains(function), "{function} is not in {part}\n{said}");
            }
        }
        let current = format!("* 1    Thread {}", said.split("* 1    Thread ").nth(1).unwrap_or_default());
        let last = stacks.last().expect("three").id;
        assert!(current.lines().next().unwrap_or_default().contains(&format!("LWP {last}")), "{said}");
    }
    assert!(sizes.is_sorted() && sizes[0] < sizes[2], "{sizes:?}");
    // The same stop still holds for the other dump.
    let dump = minidump(target.pid(), &program.directory().join("dump.dmp"), None, &DumpLimits::default());
    assert_eq!(dump.expect("a dump").threads, 3);
    drop(still);
}

#[test]
fn a_secret_is_in_no_core_not_even_half_of_one() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("waiting.c", &["-g", "-O1"]);
    let (target, _, _still) = waiting(&program);
    let find = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).position(|window| window == part);
    let scrub = |bytes: &mut [u8]| {
        while let Some(at) = find(bytes, SECRET.as_bytes()) {
            bytes[at..at + SECRET.len()].fill(b'*');
        }
    };
    for size in [DumpSize::Mini, DumpSize::Heap, DumpSize::Full] {
        let path = program.directory().join(size.name());
        let options =
            CoreOptions { size, scrub: &scrub, secret_bytes: SECRET.len(), ..CoreOptions::default() };
        write_core(target.pid(), &path, &options).expect("a core");
        let core = std::fs::read(&path).expect("readable");
        for part in [&SECRET[8..], SECRET] {
            assert!(find(&core, part.as_bytes()).is_none(), "{part} is in a core of size {}", size.name());
        }
        // The linker saves vector registers, which hold parts of what was compared last; only the border is ours.
        let half = core.chunks(4096).any(|page| page.ends_with(&SECRET.as_bytes()[..8]));
        assert!(!half, "half of it is in a core of size {}", size.name());
    }
}

#[test]
fn a_limit_keeps_the_threads_and_tells_what_is_missing() {
    let _watchdog = Watchdog::new(LIMIT);
    let program = Program::c("waiting.c", &["-g", "-O1"]);
    let (target, _, _still) = waiting(&program);
    let path = program.directory().join("core");
    let options = CoreOptions { size: DumpSize::Full, limit: 512 << 10, ..CoreOptions::default() };
    let info = write_core(target.pid(), &path, &options).expect("a core");
    assert_eq!(info.threads, 3);
    assert!(info.left_out > 0 && info.bytes < 2 << 20, "{info:?}");
    let nowhere = program.directory().join("no such directory/core");
    assert!(write_core(target.pid(), &nowhere, &CoreOptions::default()).is_err());
}
