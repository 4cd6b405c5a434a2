//! `waylay doctor`: what this machine allows, and why a plugin does not load.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Serialize;
use waylay_driver::catalog::Installation;
use waylay_randomizer::{ProcessId, Target};

use crate::args::DoctorOptions;
use crate::output::{BAD_USAGE, CLEAN, Failed, print_json};
use crate::run::installation;
#[cfg(target_os = "linux")]
use crate::sites;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Health {
    Good,
    /// Something works less well than it could.
    Limited,
    Bad,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    health: Health,
    text: String,
}

pub(crate) fn doctor(arguments: &DoctorOptions, json: bool) -> Result<u8, Failed> {
    let installation = installation()?;
    #[cfg(target_os = "linux")]
    {
        if let Some(program) = arguments.subject.as_deref().filter(|subject| sites::is_program(subject)) {
            return sites::report(program, arguments.level, json);
        }
    }
    let checks = match (&arguments.subject, arguments.pid) {
        (Some(plugin), _) => vec![plugin_check(&installation, plugin)],
        (None, Some(pid)) => vec![process_check(pid), tracing_scope()],
        (None, None) => machine_checks(&installation),
    };
    if json {
        print_json(&serde_json::json!({ "checks": checks }))?;
    } else {
        for check in &checks {
            let mark = match check.health {
                Health::Good => "ok  ",
                Health::Limited => "note",
                Health::Bad => "BAD ",
            };
            println!("{mark} {:<18} {}", check.name, check.text);
        }
    }
    Ok(if checks.iter().any(|check| check.health == Health::Bad) { BAD_USAGE } else { CLEAN })
}

fn plugin_check(installation: &Installation, plugin: &Path) -> Check {
    let found = installation.find_plugin(&plugin.display().to_string(), Path::new("."), &[]);
    let described = found
        .map_err(|error| error.to_string())
        .and_then(|path| installation.describe(&path).map(|description| (path, description)));
    match described {
        Ok((path, description)) => Check {
            name: "plugin",
            health: Health::Good,
            text: format!(
                "{} loads: plugin {} with {} tests and {} shared kinds",
                path.display(),
                description.name,
                description.tests.len(),
                description.kinds.len()
            ),
        },
        Err(reason) => Check { name: "plugin", health: Health::Bad, text: reason },
    }
}

/// Attaches to the process without stopping it, as the randomizer does before it begins.
fn process_check(pid: u32) -> Check {
    const NAME: &str = "process";
    match Target::process(ProcessId(pid)) {
        Ok(_) => check(NAME, Health::Good, format!("{pid} can be traced: threads suspended, stacks taken")),
        Err(error) => check(NAME, Health::Bad, error.to_string()),
    }
}

fn machine_checks(installation: &Installation) -> Vec<Check> {
    vec![
        processors(),
        control(installation),
        tracing(),
        tracing_scope(),
        fs_base(),
        clock(),
        core_pattern(),
        debugger(),
        compiler(),
    ]
}

fn check(name: &'static str, health: Health, text: impl Into<String>) -> Check {
    Check { name, health, text: text.into() }
}

fn processors() -> Check {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match cores {
        1 => check(
            "processors",
            Health::Limited,
            "1: threads never run at the same time, races are found by preemption only",
        ),
        cores => check("processors", Health::Good, format!("{cores}")),
    }
}

fn control(installation: &Installation) -> Check {
    match installation.control_library() {
        Some(path) => check("control library", Health::Good, path.display().to_string()),
        None => check(
            "control library",
            Health::Limited,
            "libwaylay_control.so is not beside the command: memory leaks cannot be seen",
        ),
    }
}

/// Tries it: a child that sleeps is stopped and let go.
fn tracing() -> Check {
    const NAME: &str = "ptrace";
    let child = Command::new("sleep").arg("10").stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let Ok(mut child) = child else {
        return check(NAME, Health::Limited, "could not be tried: `sleep` does not start");
    };
    let result = waylay_driver::can_be_traced(child.id());
    let _ = child.kill();
    let _ = child.wait();
    match result {
        Ok(()) => check(NAME, Health::Good, "stacks of other processes can be taken"),
        Err(reason) => {
            check(NAME, Health::Bad, format!("no stacks and dumps of hung or crashed hosts: {reason}"))
        }
    }
}

fn tracing_scope() -> Check {
    const NAME: &str = "ptrace scope";
    match fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok().as_deref().map(str::trim) {
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

fn tool(name: &'static str, program: &str, missing: &str) -> Check {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            check(name, Health::Good, text.lines().next().unwrap_or(program).to_owned())
        }
        _ => check(name, Health::Limited, missing),
    }
}

fn debugger() -> Check {
    tool("debugger", "gdb", "gdb is not installed: --keep-hung prints a command that needs it")
}

fn compiler() -> Check {
    tool("C compiler", "cc", "cc is not installed: plugins in C and C++ cannot be built here")
}
