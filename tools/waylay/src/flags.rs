//! `waylay cflags`, `ldflags` and `rustflags`: what to build with so that the compiler reports atomics and accesses.
//!
//! What a compiler needs depends on which one it is and on its version: it is asked. Choosing the flags is pure.

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
    Clang(u32),
}

pub(crate) fn compile(options: &FlagOptions, json: bool) -> Result<u8, Failed> {
    let compiler = options.compiler.clone().unwrap_or_else(|| PathBuf::from("cc"));
    let found = compiler_in(&said_by(&compiler, "--version")?)
        .ok_or_else(|| Failed::Usage(format!("{} is neither gcc nor clang", compiler.display())))?;
    print(&c_flags(found, options.level).map_err(Failed::Usage)?, json)
}

pub(crate) fn link(_: &FlagOptions, json: bool) -> Result<u8, Failed> {
    print(&link_flags(folder_of(&library()?)), json)
}

pub(crate) fn rust(options: &FlagOptions, json: bool) -> Result<u8, Failed> {
    let compiler = options.compiler.clone().unwrap_or_else(|| PathBuf::from("rustc"));
    let said = said_by(&compiler, "-vV")?;
    let llvm = number_after(&said, "LLVM version: ")
        .ok_or_else(|| Failed::Usage(format!("{} does not say its LLVM version", compiler.display())))?;
    let library = library()?;
    let mut flags = rust_flags(llvm, options.level);
    flags.extend(link_flags(folder_of(&library)).into_iter().map(|flag| format!("-Clink-arg={flag}")));
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

fn folder_of(library: &Path) -> &Path {
    library.parent().unwrap_or(Path::new("."))
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
        return Some(Compiler::Clang(version));
    }
    let first = said.lines().next()?;
    let is_gcc = ["gcc", "g++", "cc ", "c++ ", "GCC"].iter().any(|name| first.contains(name))
        && said.contains("Free Software Foundation");
    let version = first.rsplit(") ").next()?.split('.').next()?.parse().ok()?;
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
        (Compiler::Clang(version), _) if version < 14 => {
            return Err(format!("clang {version} was not tried: 14 or later is needed"));
        }
        (Compiler::Clang(_), Level::Memory | Level::Auto) => &[
            "-g",
            "-fsanitize=thread",
            "-mllvm",
            "-tsan-instrument-func-entry-exit=0",
            "-mllvm",
            "-tsan-distinguish-volatile=1",
        ],
        (Compiler::Clang(_), Level::Atomics) => &[
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
    Ok(flags.iter().map(|&flag| flag.to_owned()).collect())
}

fn link_flags(folder: &Path) -> Vec<String> {
    let folder = folder.display();
    vec![format!("-L{folder}"), format!("-Wl,-rpath,{folder}"), "-lwaylay_control".to_owned()]
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
        assert_eq!(compiler_in("Debian clang version 14.0.6\n"), Some(Compiler::Clang(14)));
        assert_eq!(compiler_in("tcc version 0.9.27\n"), None);
    }

    #[test]
    fn what_is_too_old_is_said() {
        assert!(c_flags(Compiler::Gcc(9), Level::Memory).is_err());
        assert!(c_flags(Compiler::Clang(11), Level::Memory).is_err());
        assert_eq!(c_flags(Compiler::Gcc(12), Level::Sync), Ok(Vec::new()));
    }

    #[test]
    fn rust_flags_depend_on_llvm() {
        assert_eq!(rust_flags(19, Level::Atomics)[0], "-Cpasses=tsan");
        assert!(rust_flags(21, Level::Atomics)[0].contains("atomic-expand"));
        assert!(rust_flags(21, Level::Memory).iter().any(|flag| flag.contains("sanitize_thread")));
    }
}
