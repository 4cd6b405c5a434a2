//! Exit codes, and errors on their way to the user.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use waylay_driver::store::owed;
use waylay_report::escape::Plain;

use crate::stream::write;

/// Tells people something: what a plugin or a program under test has in its texts is shown, and no terminal obeys it.
pub(crate) fn tell(text: std::fmt::Arguments<'_>) {
    let text = Plain(&text.to_string()).to_string();
    crate::progress::above(|| write(&mut std::io::stderr().lock(), format_args!("{text}")));
}

macro_rules! print {
    ($($text:tt)*) => { $crate::stream::write(&mut std::io::stdout().lock(), format_args!($($text)*)) };
}
macro_rules! println {
    ($($text:tt)*) => { print!("{}\n", format_args!($($text)*)) };
}
macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::tell(format_args!($($text)*)) };
}
macro_rules! eprintln {
    ($($text:tt)*) => { eprint!("{}\n", format_args!($($text)*)) };
}

/// Nothing was wrong.
pub(crate) const CLEAN: u8 = 0;
/// Failures were found.
pub(crate) const FAILURES: u8 = 1;
/// Bad usage or configuration, or nothing ran.
pub(crate) const BAD_USAGE: u8 = 2;
/// Waylay itself failed.
pub(crate) const WAYLAY_FAILED: u8 = 3;

/// The exit code of a campaign that would have ended with `code`, in view of what of it could not be written; that is told.
pub(crate) fn kept(folder: &Path, code: u8) -> u8 {
    let missing = owed::missing(folder);
    if let Some(sentence) = missing.sentence() {
        eprintln!("waylay: {sentence}");
    }
    missing.exit_code(code)
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The arguments make no sense together.
    Usage(String),
    /// The configuration is wrong; the text is complete, with lines and carets.
    Config(String),
    /// Something that should work did not.
    Own(String),
}

impl Failed {
    /// Tells the user and gives the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        let code = u8::from(self);
        let text = match self {
            Failed::Usage(text) | Failed::Own(text) => format!("waylay: {text}"),
            Failed::Config(text) => text.clone(),
        };
        match self {
            // Its colours are our own; what it quotes is the user's own file.
            Failed::Config(text) => {
                write(&mut std::io::stderr().lock(), format_args!("{}\n", text.trim_end()))
            }
            _ => eprintln!("{}", text.trim_end()),
        }
        if json {
            println!("{}", json!({ "error": text, "exit_code": code }));
        }
        ExitCode::from(code)
    }
}

/// Arguments that were not understood, or a question about them: prints what there is to say.
pub(crate) fn refuse(answer: &clap::Error) -> ExitCode {
    let _ = answer.print();
    if !answer.use_stderr() {
        return ExitCode::from(CLEAN);
    }
    // The arguments could not be parsed, so this one has to be looked for by hand; behind `--` it is the program's.
    if std::env::args_os()
        .skip(1)
        .take_while(|argument| argument != "--")
        .any(|argument| argument == "--json")
    {
        println!("{}", json!({ "error": answer.to_string().trim_end(), "exit_code": BAD_USAGE }));
    }
    ExitCode::from(BAD_USAGE)
}

/// Prints one machine-readable object on standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failed> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failed::Own(error.to_string()))?;
    println!("{text}");
    Ok(())
}

/// Writes a file in one step: whoever looks sees the old one or the new, never a part.
pub(crate) fn write_file(path: &std::path::Path, content: &[u8]) -> Result<(), Failed> {
    let own = |error: std::io::Error| Failed::Own(format!("cannot write {}: {error}", path.display()));
    // What is no plain file, such as /dev/stdout, cannot be replaced.
    if std::fs::metadata(path).is_ok_and(|file| !file.is_file()) {
        return std::fs::write(path, content).map_err(own);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    std::fs::write(&part, content).map_err(own)?;
    std::fs::rename(&part, path).map_err(|error| {
        let _ = std::fs::remove_file(&part);
        own(error)
    })
}
