//! `cargo waylay test`: Cargo starts this with its own arguments behind the word `waylay`; they are those of `waylay cargo`.

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("waylay")));
    let program = beside.filter(|file| file.with_extension(std::env::consts::EXE_EXTENSION).exists());
    let program = program.unwrap_or_else(|| "waylay".into());
    let mut given = std::env::args_os().skip(1).peekable();
    given.next_if(|first| first == "waylay");
    match Command::new(&program).arg("cargo").args(given).status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(3)),
        Err(error) => {
            eprintln!("cargo-waylay: cannot start {}: {error}", program.display());
            ExitCode::from(3)
        }
    }
}
