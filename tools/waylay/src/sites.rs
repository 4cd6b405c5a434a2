//! `waylay doctor PROGRAM`: which instructions of an unmodified program and its libraries can be steps.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use waylay_explore::Level;
use waylay_patch::plan::KINDS;
use waylay_patch::{Plan, Wanted, image, scope};

use crate::output::{CLEAN, Failed, print_json};

/// Where Windows is, unless it says otherwise.
const WINDOWS: &str = "C:\\Windows";

/// Whether a file is a program for this purpose: an ELF or PE file that can be executed and is no library.
pub(crate) fn is_program(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let library = name.contains(".so") || name.ends_with(".dll");
    !library
        && file.is_file()
        && std::fs::read(file).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF") || is_pe(&bytes))
}

fn is_pe(bytes: &[u8]) -> bool {
    bytes.starts_with(b"MZ")
}

/// What of a module would be patched.
fn wanted(module: &Path, program: &Path, level: Level) -> Option<Wanted> {
    let path = module.to_string_lossy();
    let closely = match level {
        Level::Sync | Level::Atomics => false,
        Level::Memory => module == program,
        Level::Auto => {
            let at = std::path::absolute(program).unwrap_or(program.to_owned());
            module == program || scope::is_own(&path, &at.to_string_lossy())
        }
    };
    scope::wanted(&path, closely, level == Level::Auto)
}

/// The same of a module for Windows, where plain accesses are not patched at any level.
fn wanted_on_windows(module: &Path) -> Option<Wanted> {
    let windows = std::env::var("SystemRoot").unwrap_or(WINDOWS.to_owned());
    let path = std::path::absolute(module).unwrap_or(module.to_owned());
    (!scope::is_left_alone_on_windows(&path.to_string_lossy(), &windows)).then_some(Wanted::Atomics)
}

pub(crate) fn report(program: &Path, level: Level, json: bool) -> Result<u8, Failed> {
    let mut rows = Vec::new();
    let read = |module: &Path| {
        std::fs::read(module).map_err(|error| Failed::Usage(format!("{}: {error}", module.display())))
    };
    let pe = is_pe(&read(program)?);
    for module in if pe { modules_on_windows(program) } else { modules(program) } {
        let name = module.file_name().unwrap_or(module.as_os_str()).to_string_lossy().into_owned();
        let wanted = if pe { wanted_on_windows(&module) } else { wanted(&module, program, level) };
        let Some(wanted) = wanted else { continue };
        let plan = Plan::of(&read(&module)?, wanted)
            .map_err(|error| Failed::Usage(format!("{}: {error}", module.display())))?;
        rows.push((name, plan));
    }
    if json {
        print_json(&serde_json::json!({ "modules": rows.iter().map(row).collect::<Vec<_>>() }))?;
        return Ok(CLEAN);
    }
    println!(
        "{:<32} {:>10} {:>7} {:>7} {:>7} {:>7} {:>8}",
        "module", "sites", "found", "jump", "int3", "refused", "code"
    );
    for (name, plan) in &rows {
        let share = 100.0 * plan.code.1 as f64 / plan.code.0.max(1) as f64;
        for ((_, kind), count) in KINDS.iter().zip(&plan.counts).filter(|(_, count)| count.found > 0) {
            println!(
                "{name:<32} {kind:>10} {:>7} {:>7} {:>7} {:>7} {share:>7.1}%",
                count.found,
                count.jumps,
                count.traps,
                count.refused()
            );
        }
        if plan.counts.iter().all(|count| count.found == 0) {
            println!("{name:<32} {:>10} {:>7} {:>7} {:>7} {:>7} {share:>7.1}%", "-", 0, 0, 0, 0);
        }
    }
    println!("code: the share that belongs to functions which are known; the rest is left alone");
    Ok(CLEAN)
}

fn row((name, plan): &(String, Plan)) -> serde_json::Value {
    let kinds = KINDS.iter().zip(&plan.counts).map(|((_, kind), count)| {
        let numbers = serde_json::json!({
            "found": count.found, "jumps": count.jumps, "traps": count.traps, "refused": count.refused(),
        });
        ((*kind).to_lowercase(), numbers)
    });
    serde_json::json!({
        "module": name,
        "sites": kinds.collect::<serde_json::Map<_, _>>(),
        "code_bytes": plan.code.0,
        "known_bytes": plan.code.1,
    })
}

/// The program and the libraries that the loader would load for it.
fn modules(program: &Path) -> Vec<PathBuf> {
    let mut all = vec![program.to_owned()];
    let output = Command::new("ldd").arg(program).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let paths: BTreeSet<PathBuf> = text
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect();
    all.extend(paths);
    all
}

/// The program and those of the libraries it is linked with that lie beside it: others are the system's.
fn modules_on_windows(program: &Path) -> Vec<PathBuf> {
    let folder = program.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let mut all = vec![program.to_owned()];
    let mut next = 0;
    while let Some(module) = all.get(next) {
        let names = std::fs::read(module).ok().and_then(|bytes| image::libraries(&bytes).ok());
        for name in names.unwrap_or_default() {
            let is_it =
                |path: &&PathBuf| path.file_name().is_some_and(|file| file.eq_ignore_ascii_case(&name));
            if let Some(path) = beside.iter().find(is_it).filter(|path| !all.contains(path)) {
                all.push(path.clone());
            }
        }
        next += 1;
    }
    all
}
