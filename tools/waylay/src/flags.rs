//! `waylay cflags`, `ldflags` and `rustflags`: what to build with so that the compiler reports atomics and accesses.
//!
//! What a compiler needs depends on which one it is, on its version and on the system that it compiles for: it is asked.
//! Choosing the flags is pure. What to link with is the system's: `linux` or `windows`.

#[cfg_attr(windows, path = "flags/windows.rs")]
#[cfg_attr(not(windows), path = "flags/linux.rs")]
mod sys;

use std::path::{Path, PathBuf};
use std::process::Command;

use waylay_explore::Level;

use crate::args::FlagOptions;
use crate::explore::library;
use crate::output::{CLEAN, Failed, print_json};

/// A compiler for C and C++, as far as the flags differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compiler {
    Gcc(u32),
    Clang { version: u32, for_windows: bool },
}

pub(crate) fn compile(options: &FlagOptions, json: bool) -> Result<u8, Failed> {
    let compiler = options.compiler.clone().unwrap_or_else(|| PathBuf::from(sys::COMPILER));
    let found = compiler_in(&said_by(&compiler, "--version")?)
        .ok_or_else(|| Failed::Usage(format!("{} is neither gcc nor clang", compiler.display())))?;
    print(&c_flags(found, options.level).map_err(Failed::Usage)?, json)
}

pub(crate) fn link(_: &FlagOptions, json: bool) -> Result<u8, Failed> {
    print(&sys::link_flags(&library()?)?, json)
}

pub(crate) fn rust(options: &FlagOptions, json: bool) -> Result<u8, Failed> {
    let compiler = options.compiler.clone().unwrap_or_else(|| PathBuf::from("rustc"));
    let said = said_by(&compiler, "-vV")?;
    let llvm = number_after(&said, "LLVM version: ")
        .ok_or_else(|| Failed::Usage(format!("{} does not say its LLVM version", compiler.display())))?;
    let mut flags = rust_flags(llvm, options.level);
    flags.extend(sys::link_flags(&library()?)?.into_iter().map(|flag| format!("-Clink-arg={flag}")));
    print(&flags, json)
}

fn print(flags: &[String], json: bool) -> Result<u8, Failed> {
    if json {
        print_json(&serde_json::json!({ "flags": flags }))?;
    } else {
        println!("{}", flags.join(" "));
    }
    Ok(CLEAN)
}

fn said_by(compiler: &Path, question: &str) -> Result<String, Failed> {
    let output = Command::new(compiler)
        .arg(question)
        .output()
        .map_err(|error| Failed::Usage(format!("{}: {error}", compiler.display())))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads `--version`.
fn compiler_in(said: &str) -> Option<Compiler> {
    if let Some(version) = number_after(said, "clang version ") {
        let target = said.lines().find_map(|line| line.strip_prefix("Target: ")).unwrap_or_default();
        return Some(Compiler::Clang { version, for_windows: target.contains("-windows") });
    }
    let first = said.lines().next()?;
    let is_gcc = ["gcc", "g++", "cc ", "c++ ", "GCC"].iter().any(|name| first.contains(name))
        && said.contains("Free Software Foundation");
    let version = number_after(first, ") ")?;
    is_gcc.then_some(Compiler::Gcc(version))
}

fn number_after(text: &str, mark: &str) -> Option<u32> {
    let (_, rest) = text.split_once(mark)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Calls at the entry and exit of functions tell us nothing and cost time; volatile is how old code writes an atomic.
fn c_flags(compiler: Compiler, level: Level) -> Result<Vec<String>, String> {
    let flags: &[&str] = match (compiler, level) {
        (_, Level::Sync) => &[],
        (Compiler::Gcc(version), _) if version < 11 => {
            return Err(format!("gcc {version} cannot tell volatile accesses apart: 11 or later is needed"));
        }
        // gcc reports accesses whenever it reports atomics; the level of a run decides what becomes of them.
        (Compiler::Gcc(_), _) => &[
            "-g",
            "-fsanitize=thread",
            "--param=tsan-instrument-func-entry-exit=0",
            "--param=tsan-distinguish-volatile=1",
            "-Wno-tsan",
        ],
        (Compiler::Clang { version, .. }, _) if version < 14 => {
            return Err(format!("clang {version} was not tried: 14 or later is needed"));
        }
        (Compiler::Clang { .. }, Level::Memory | Level::Auto) => &[
            "-g",
            "-fsanitize=thread",
            "-mllvm",
            "-tsan-instrument-func-entry-exit=0",
            "-mllvm",
            "-tsan-distinguish-volatile=1",
        ],
        (Compiler::Clang { .. }, Level::Atomics) => &[
            "-g",
            "-fsanitize=thread",
            "-mllvm",
            "-tsan-instrument-func-entry-exit=0",
            "-mllvm",
            "-tsan-instrument-memory-accesses=0",
            "-mllvm",
            "-tsan-instrument-memintrinsics=0",
        ],
    };
    // For Windows clang brings no runtime that would serve the calls, so it refuses; the compiler proper has no such scruples.
    let unsupported = matches!(compiler, Compiler::Clang { for_windows: true, .. });
    let passed_on = |flag: &&str| (unsupported && *flag == "-fsanitize=thread").then_some("-Xclang");
    Ok(flags.iter().flat_map(|flag| passed_on(flag).into_iter().chain([*flag])).map(str::to_owned).collect())
}

/// The pass that stable rustc has built in, at the end of its pipeline. From LLVM 21 on the pass leaves operations that
/// the processor has no instruction for, such as `fetch_max`, to a later one: it runs before and after that. Before, that
/// would report loads twice, and such operations stay unreported; patching finds them.
fn rust_flags(llvm: u32, level: Level) -> Vec<String> {
    let flags: &[&str] = match level {
        Level::Sync => &[],
        Level::Atomics if llvm >= 21 => &["-Cpasses=function(tsan,atomic-expand,tsan)"],
        Level::Atomics => &["-Cpasses=tsan"],
        Level::Memory | Level::Auto => &[
            "-Cpasses=forceattrs,tsan",
            "-Cllvm-args=-force-attribute=sanitize_thread",
            "-Cllvm-args=-tsan-distinguish-volatile=1",
        ],
    };
    let mut flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
    if level != Level::Sync {
        flags.push("-Cllvm-args=-tsan-instrument-func-entry-exit=0".to_owned());
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_told_apart() {
        let gcc =
            "gcc (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n";
        assert_eq!(compiler_in(gcc), Some(Compiler::Gcc(12)));
        let cc = "cc (Ubuntu 13.2.0-23ubuntu4) 13.2.0\nCopyright (C) 2023 Free Software Foundation, Inc.\n";
        assert_eq!(compiler_in(cc), Some(Compiler::Gcc(13)));
        let mingw = "x86_64-w64-mingw32-gcc-posix (GCC) 12-posix\nCopyright (C) 2022 Free Software Foundation, Inc.\n";
        assert_eq!(compiler_in(mingw), Some(Compiler::Gcc(12)));
        let clang = |target: &str| compiler_in(&format!("Debian clang version 14.0.6\nTarget: {target}\n"));
        let expected = |for_windows: bool| Some(Compiler::Clang { version: 14, for_windows });
        assert_eq!(clang("x86_64-pc-linux-gnu"), expected(false));
        assert_eq!(clang("x86_64-w64-windows-gnu"), expected(true));
        assert_eq!(compiler_in("tcc version 0.9.27\n"), None);
    }

    #[test]
    fn what_is_too_old_is_said() {
        assert!(c_flags(Compiler::Gcc(9), Level::Memory).is_err());
        let old = Compiler::Clang { version: 11, for_windows: false };
        assert!(c_flags(old, Level::Memory).is_err());
        assert_eq!(c_flags(Compiler::Gcc(12), Level::Sync), Ok(Vec::new()));
    }

    #[test]
    fn clang_for_windows_is_asked_behind_the_back_of_its_driver() {
        let flags = |for_windows: bool| {
            c_flags(Compiler::Clang { version: 14, for_windows }, Level::Memory).expect("new enough")
        };
        assert_eq!(flags(true)[1..3], ["-Xclang", "-fsanitize=thread"]);
        assert_eq!(flags(false)[1], "-fsanitize=thread");
        assert_eq!(flags(true).len(), flags(false).len() + 1);
    }

    #[test]
    fn rust_flags_depend_on_llvm() {
        assert_eq!(rust_flags(19, Level::Atomics)[0], "-Cpasses=tsan");
        assert!(rust_flags(21, Level::Atomics)[0].contains("atomic-expand"));
        assert!(rust_flags(21, Level::Memory).iter().any(|flag| flag.contains("sanitize_thread")));
    }
}
