//! `waylay open`: a debugger on what was kept of a failure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use waylay_driver::archive;
use waylay_driver::failure::{Build, FailureEntry, changes};
use waylay_driver::store::{CORE_FILE, load_failure};
use waylay_report::shell;

use crate::args::{DumpReader, OpenOptions};
use crate::output::{CLEAN, Failed, print_json};
use crate::report::usage;

/// The minidump of a failure.
const MINIDUMP: &str = "dump.dmp";

pub(crate) fn open(options: &OpenOptions, json: bool) -> Result<u8, Failed> {
    let found = archive::find_failure(&options.out, &options.failure).map_err(usage)?;
    let entry =
        load_failure(&found.folder.join("failure.json")).map_err(|error| usage_text(error.to_string()))?;
    let debugger = options.with.unwrap_or(DumpReader::Gdb);
    let words = command_line(debugger, &entry, &found.folder)?;
    if options.print {
        let shown: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        if json {
            print_json(&json!({ "command": shown }))?;
        } else {
            println!("{}", words.iter().map(shell::word).collect::<Vec<_>>().join(" "));
        }
        return Ok(CLEAN);
    }
    let name = debugger.name();
    let mut command = Command::new(&words[0]);
    // Ctrl-C is the debugger's while it runs.
    match command.args(&words[1..]).status() {
        Ok(status) => Ok(if status.success() { CLEAN } else { crate::output::WAYLAY_FAILED }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(usage_text(format!("{name} is not installed: install it, or choose another one with --with")))
        }
        Err(error) => Err(usage_text(format!("{name} cannot be started: {error}"))),
    }
}

fn usage_text(text: String) -> Failed {
    Failed::Usage(text)
}

/// The debugger with its arguments.
fn command_line(debugger: DumpReader, entry: &FailureEntry, folder: &Path) -> Result<Vec<OsString>, Failed> {
    let (core, minidump) = (folder.join(CORE_FILE), folder.join(MINIDUMP));
    let id = &entry.signature.id;
    let dump = match debugger {
        _ if core.is_file() => core,
        DumpReader::Lldb if minidump.is_file() => minidump,
        DumpReader::Lldb => return Err(no_dump(id, "neither a core nor a minidump")),
        DumpReader::Gdb => return Err(no_dump(id, "no core")),
    };
    if let Some(change) = changes(&entry.builds).into_iter().next() {
        let what = if change.now.is_some() { "changed since" } else { "gone" };
        return Err(usage_text(format!(
            "{id}: {} is {what}, so the dump would be shown with wrong names: build it as it was, or run `waylay replay`",
            change.then.file
        )));
    }
    let mut words: Vec<OsString> = vec![debugger.name().into()];
    // Plugins run in a host, which is this very command.
    let host = entry.plugin.is_some().then(std::env::current_exe).and_then(Result::ok);
    let program = host.or_else(|| program(&entry.builds));
    let libraries = libraries(&entry.builds);
    match debugger {
        DumpReader::Gdb => {
            if !libraries.is_empty() {
                let paths: Vec<String> = libraries.iter().map(|path| path.display().to_string()).collect();
                words.extend(["-iex".into(), format!("set solib-search-path {}", paths.join(":")).into()]);
            }
            words.extend(program.map(Into::into));
            words.extend(["--core".into(), dump.into()]);
        }
        DumpReader::Lldb => {
            for path in &libraries {
                let setting = format!("settings append target.exec-search-paths {}", shell::word(path));
                words.extend(["-O".into(), setting.into()]);
            }
            words.extend(program.map(Into::into));
            words.extend(["--core".into(), dump.into()]);
        }
    }
    Ok(words)
}

fn no_dump(id: &str, what: &str) -> Failed {
    usage_text(format!(
        "{id} has {what}: put dump-format = [\"minidump\", \"core\"] under [evidence] (and no dump = \"none\"), then run again"
    ))
}

/// The executable: files of code are listed in the order of their addresses or names, and libraries say what they are.
fn program(builds: &[Build]) -> Option<PathBuf> {
    let is_library = |path: &Path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.ends_with(".so") || name.contains(".so.") || name.ends_with(".dll")
    };
    builds.iter().map(|build| PathBuf::from(&build.file)).find(|path| path.is_absolute() && !is_library(path))
}

/// Folders of files that the debugger may have to look for.
fn libraries(builds: &[Build]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for folder in builds.iter().filter_map(|build| Path::new(&build.file).parent()) {
        if folder.is_absolute() && !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }
    folders
}
