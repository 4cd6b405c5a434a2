//! `waylay doctor`: what this machine allows, and why a plugin does not load.

#[cfg(target_os = "linux")]
#[path = "doctor/linux.rs"]
mod sys;
#[cfg(windows)]
#[path = "doctor/windows.rs"]
mod sys;

use std::iter;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;
use waylay_driver::catalog::Installation;
use waylay_driver::machine::Machine;
use waylay_randomizer::{ProcessId, Target};

use crate::args::DoctorOptions;
use crate::installation::installation;
use crate::output::{BAD_USAGE, CLEAN, Failed, print_json};
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
    if let Some(program) = arguments.subject.as_deref().filter(|subject| sites::is_program(subject)) {
        return sites::report(program, arguments.level, json);
    }
    let checks = match (&arguments.subject, arguments.pid) {
        (Some(plugin), _) => vec![plugin_check(&installation, plugin)],
        (None, Some(pid)) => iter::once(process_check(pid)).chain(sys::tracing_limits()).collect(),
        (None, None) => machine().into_iter().chain(sys::machine_checks(&installation)).collect(),
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

fn check(name: &'static str, health: Health, text: impl Into<String>) -> Check {
    Check { name, health, text: text.into() }
}

/// What this machine is, and what it has.
fn machine() -> [Check; 3] {
    let machine = Machine::look();
    let memory = format!("{} MiB, of which {} can be had now", machine.memory_mib, machine.available_mib);
    [
        check("system", Health::Good, machine.system),
        processors(&machine.processor, machine.cores),
        check("memory", Health::Good, memory),
    ]
}

fn processors(model: &str, cores: usize) -> Check {
    match cores {
        1 => check(
            "processors",
            Health::Limited,
            "1: threads never run at the same time, races are found by preemption only",
        ),
        cores => check("processors", Health::Good, format!("{cores} ({model})")),
    }
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

/// How long a process may take from its start until it can be looked at.
const STARTING: Duration = Duration::from_secs(3);

/// Tries it: a child is stopped and let go.
fn tracing(name: &'static str, child: &mut Command) -> Check {
    let child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else {
        return check(name, Health::Limited, "could not be tried: a process to look at does not start");
    };
    // On a busy machine a process that was just started has nothing yet that could be looked at.
    let until = Instant::now() + STARTING;
    let result = loop {
        match waylay_driver::can_be_traced(child.id()) {
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            result => break result,
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    match result {
        Ok(()) => check(name, Health::Good, "stacks of other processes can be taken"),
        Err(reason) => {
            check(name, Health::Bad, format!("no stacks and dumps of hung or crashed hosts: {reason}"))
        }
    }
}
