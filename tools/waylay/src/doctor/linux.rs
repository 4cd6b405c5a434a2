//! `waylay doctor` on Linux: the control library, ptrace, the processor, tools.

use std::fs;
use std::process::{Command, Stdio};

use waylay_driver::catalog::Installation;
use waylay_driver::machine;

use super::{Check, Health, check, tool, tracing};

/// What this machine allows.
pub(super) fn machine_checks(installation: &Installation) -> Vec<Check> {
    vec![
        load(),
        control(installation),
        tracing("ptrace", Command::new("sleep").arg("10").stdin(Stdio::null())),
        tracing_scope(),
        fs_base(),
        clock(),
        core_pattern(),
        debugger(),
        compiler(),
    ]
}

/// A busy machine is no reason to complain: Waylay is one of those who keep it busy.
fn load() -> Check {
    let words = machine::load().map_or_else(
        || "unknown".to_owned(),
        |load| format!("{load:.2} threads wanted to run, on average over the last minute"),
    );
    check("load", Health::Good, words)
}

fn control(installation: &Installation) -> Check {
    match installation.control_library() {
        Some(path) => check("control library", Health::Good, path.display().to_string()),
        None => {
            let missing = installation.missing_control_library().unwrap_or_default();
            let words = format!("{missing}: no strict mode, and memory leaks cannot be seen");
            check("control library", Health::Limited, words)
        }
    }
}

/// What keeps processes from being traced.
pub(super) fn tracing_limits() -> Vec<Check> {
    vec![tracing_scope()]
}

fn tracing_scope() -> Check {
    judge_scope(fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok().as_deref().map(str::trim))
}

/// What `kernel.yama.ptrace_scope` means for us; none on kernels without it.
fn judge_scope(scope: Option<&str>) -> Check {
    const NAME: &str = "ptrace scope";
    match scope {
        None => check(NAME, Health::Good, "this kernel does not restrict ptrace"),
        Some("0") => check(NAME, Health::Good, "0: any process of the same user"),
        Some("1") => check(
            NAME,
            Health::Good,
            "kernel.yama.ptrace_scope is 1: own children only, which is what the driver needs; `waylay-randomizer \
             --pid` of others needs root, `waylay-randomizer -- COMMAND` does not",
        ),
        Some(other) => check(
            NAME,
            Health::Bad,
            format!(
                "kernel.yama.ptrace_scope is {other}: no stacks, dumps and suspensions without CAP_SYS_PTRACE; set it \
                 to 1 with sysctl"
            ),
        ),
    }
}

fn cpu_flag(flag: &str) -> bool {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_ascii_whitespace().any(|word| word == flag))
}

fn fs_base() -> Check {
    if cpu_flag("fsgsbase") {
        check("fsgsbase", Health::Good, "threads can be switched in user space")
    } else {
        check(
            "fsgsbase",
            Health::Limited,
            "absent: strict mode will switch kernel threads instead, more slowly",
        )
    }
}

fn clock() -> Check {
    if cpu_flag("constant_tsc") && cpu_flag("nonstop_tsc") {
        check("clock", Health::Good, "invariant time stamp counter")
    } else {
        check(
            "clock",
            Health::Limited,
            "no invariant time stamp counter: iterations are timed with the system clock",
        )
    }
}

fn core_pattern() -> Check {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    check(
        "core pattern",
        Health::Good,
        format!("`{}` (not used: dumps are taken from outside)", pattern.trim()),
    )
}

fn debugger() -> Check {
    tool("debugger", "gdb", "gdb is not installed: --keep-hung prints a command that needs it")
}

fn compiler() -> Check {
    tool("C compiler", "cc", "cc is not installed: plugins in C and C++ cannot be built here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_of_tracing_is_judged() {
        for (scope, health, words) in [
            (None, Health::Good, "does not restrict"),
            (Some("0"), Health::Good, "same user"),
            (Some("1"), Health::Good, "ptrace_scope is 1: own children only"),
            (Some("2"), Health::Bad, "ptrace_scope is 2"),
            (Some("3"), Health::Bad, "ptrace_scope is 3"),
        ] {
            let judged = judge_scope(scope);
            assert!(judged.health == health && judged.text.contains(words), "{scope:?}: {}", judged.text);
        }
    }
}
