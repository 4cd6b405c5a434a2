//! The command: flags in, exit code out.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use waylay_dist::Seed;
use waylay_page::Page;

use crate::flags::Flags;
use crate::identity::ProcessId;
use crate::log::Log;
use crate::quiesce::{OpenWindow, Words};
use crate::recording::{Recording, RecordingError};
use crate::report::{CommandEnd, Report};
use crate::session::{Observer, Options, RunError, run};
use crate::settings::{RawSettings, Settings, SettingsError};
use crate::statistics::Progress;
use crate::sys;
use crate::target::{Target, TargetError};

/// The command that was run under the randomizer failed.
pub const COMMAND_FAILED: u8 = 1;
/// The flags, the settings or the target make no sense.
pub const BAD_USAGE: u8 = 2;
/// The system refused what is needed.
pub const REFUSED: u8 = 3;
/// No thread was suspended.
pub const NOTHING_DONE: u8 = 4;

/// Distance of live lines on a terminal, and elsewhere.
const LIVE: Duration = Duration::from_secs(1);
const LIVE_IN_FILE: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("{path}: {source}")]
    Config { path: String, source: SettingsError },
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("cannot write the log {path}: {source}")]
    Log { path: String, source: io::Error },
    #[error("--{flag} {fd}: {reason}")]
    Inherited { flag: &'static str, fd: i32, reason: String },
    #[error("it was asked to end before it had begun")]
    AskedToEnd,
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Failed {
    fn exit_code(&self) -> u8 {
        match self {
            Failed::Target(
                TargetError::Traced { .. } | TargetError::Denied { .. } | TargetError::System { .. },
            )
            | Failed::Run(_) => REFUSED,
            Failed::AskedToEnd => NOTHING_DONE,
            _ => BAD_USAGE,
        }
    }
}

/// Runs the command with these arguments, the first of which is its name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(code) = sys::stand_watch(&arguments) {
        return code;
    }
    let flags = match Flags::try_parse_from(arguments) {
        Ok(flags) => flags,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(BAD_USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let json = flags.json;
    // The driver reads numbers, and its log is no place for a report per host.
    let driven = flags.stats.is_some();
    match execute(flags) {
        Ok(report) => {
            if !driven {
                say(&report.to_string());
            }
            if json {
                print_json(&report);
            }
            ExitCode::from(exit_code(&report))
        }
        Err(failed) => {
            say(&format!("waylay-randomizer: {failed}\n"));
            if json {
                print_json(&serde_json::json!({ "error": failed.to_string() }));
            }
            ExitCode::from(failed.exit_code())
        }
    }
}

/// Writes to people in one piece: standard error has no buffer of its own. Whoever reads it may have left; there is
/// nobody to tell.
fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn print_json(value: &impl serde::Serialize) {
    let text = serde_json::to_string(value).expect("plain data can be written");
    // Whoever reads our output may have left; there is nobody to tell.
    let _ = writeln!(io::stdout(), "{text}");
}

fn exit_code(report: &Report) -> u8 {
    match report.command {
        Some(CommandEnd::Signal(_)) => COMMAND_FAILED,
        Some(CommandEnd::Code(code)) if code != 0 => COMMAND_FAILED,
        _ if !report.did_anything() => NOTHING_DONE,
        _ => 0,
    }
}

fn execute(flags: Flags) -> Result<Report, Failed> {
    let settings = read_settings(&flags)?;
    let replay = flags.replay.as_deref().map(Recording::read).transpose()?;
    let seed = flags.seed.unwrap_or_else(Seed::fresh);
    let (page, stats) = inherit(&flags)?;
    let stop = sys::install_signals();
    let target = match (flags.pid, flags.command.split_first()) {
        (Some(pid), _) => {
            // Finding out whether a process can be traced is tracing it.
            let _window =
                page.as_ref().map(|page| enter(Words::of(&page.layout().header), stop)).transpose()?;
            Target::process(ProcessId(pid))?
        }
        (None, Some((program, arguments))) => Target::command(program, arguments)?,
        (None, None) => unreachable!("the flags demand a target"),
    };
    let log = match &flags.log {
        Some(path) => Some(
            Log::create(path, seed, target.pid(), &settings, flags.log_limit << 20)
                .map_err(|source| Failed::Log { path: path.display().to_string(), source })?,
        ),
        None => None,
    };
    match &replay {
        Some(recording) => say(&format!(
            "waylay-randomizer: replaying {} windows of seed {} on process {}; replay is statistical\n",
            recording.windows.len(),
            recording.seed,
            target.pid()
        )),
        None if flags.stats.is_some() => {}
        None => say(&format!("waylay-randomizer: process {}, seed {seed}\n", target.pid())),
    }
    let mut screen = Screen::new(flags.quiet || flags.stats.is_some(), stats);
    let options = Options { seed, duration: flags.duration, log, replay, observer: &mut screen };
    let report = run(&settings, target, page.as_ref(), stop, options)?;
    screen.finish(&report);
    Ok(report)
}

/// Waits until nobody looks at the target.
fn enter<'a>(words: Words<'a>, stop: &AtomicBool) -> Result<OpenWindow<'a>, Failed> {
    loop {
        if stop.load(Ordering::Relaxed) || words.is_to_end() {
            return Err(Failed::AskedToEnd);
        }
        match words.enter() {
            Some(window) => return Ok(window),
            None => words.pause(Duration::from_millis(10)),
        }
    }
}

fn read_settings(flags: &Flags) -> Result<Settings, Failed> {
    let file = flags.config.as_deref().map(read_config).transpose()?.unwrap_or_default();
    let settings = flags.settings().or(file).check();
    Ok(settings.map_err(SettingsError::Problems)?)
}

fn read_config(path: &Path) -> Result<RawSettings, Failed> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|source| Failed::Config { path: name.clone(), source: SettingsError::Read(source) })?;
    RawSettings::from_toml(&text).map_err(|error| Failed::Config { path: name, source: error.into() })
}

fn inherit(flags: &Flags) -> Result<(Option<Page>, Option<File>), Failed> {
    let refuse = |flag, fd, reason| Failed::Inherited { flag, fd, reason };
    for (flag, fd) in [("page", flags.page), ("stats", flags.stats)] {
        if let Some(fd) = fd
            && (fd <= 2 || flags.page == flags.stats)
        {
            return Err(refuse(flag, fd, "must be a descriptor of its own, above 2".into()));
        }
    }
    // SAFETY: both are above the standard descriptors and differ, and this process has opened nothing of its own that it
    // would be handed on its command line; whoever started us left them open for us.
    let page =
        flags.page.map(|fd| unsafe { sys::attach_page(fd) }.map_err(|reason| refuse("page", fd, reason)));
    // SAFETY: as above.
    let stats = flags
        .stats
        .map(|fd| unsafe { sys::inherit_stats(fd) }.map_err(|error| refuse("stats", fd, error.to_string())));
    Ok((page.transpose()?, stats.transpose()?))
}

/// The live line and the pipe to the driver.
struct Screen {
    quiet: bool,
    terminal: bool,
    shown: Instant,
    stats: Option<File>,
}

impl Screen {
    fn new(quiet: bool, stats: Option<File>) -> Screen {
        Screen { quiet, terminal: io::stderr().is_terminal(), shown: Instant::now(), stats }
    }

    /// A line that does not fit the pipe is left out: the next one has newer numbers. Lines below 4 KiB are written
    /// whole or not at all.
    fn tell(&mut self, value: &impl serde::Serialize) {
        if let Some(stats) = &mut self.stats {
            let mut line = serde_json::to_vec(value).expect("plain data can be written");
            line.push(b'\n');
            let _ = stats.write(&line);
        }
    }

    fn finish(mut self, report: &Report) {
        if self.terminal && !self.quiet {
            say("\r\x1b[K");
        }
        self.tell(&report.progress);
    }
}

impl Observer for Screen {
    fn between_windows(&mut self) {
        sys::stop_here_if_asked();
    }

    fn progress(&mut self, progress: &Progress) {
        self.tell(progress);
        let every = if self.terminal { LIVE } else { LIVE_IN_FILE };
        if self.quiet || self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        if self.terminal {
            say(&format!("\r\x1b[K{progress}"));
        } else {
            say(&format!("{progress}\n"));
        }
    }
}
