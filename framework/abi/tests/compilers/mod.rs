//! The C and C++ compilers of this machine.

#![allow(dead_code, reason = "each test file uses another part")]

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Cpp,
}

impl Language {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "cpp",
        }
    }

    fn standard(self) -> &'static str {
        match self {
            Self::C => "-std=c11",
            Self::Cpp => "-std=c++17",
        }
    }
}

pub(crate) struct Compiler(&'static str);

impl fmt::Display for Compiler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl Compiler {
    /// Compiles without a single warning.
    pub(crate) fn compile(&self, language: Language, source: &Path, to: &Path, more: &[&str]) {
        let output = Command::new(self.0)
            .args([language.standard(), "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
            .arg(include_folder())
            .arg(source)
            .args(more)
            .arg("-o")
            .arg(to)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self} does not compile {}:\n{errors}", source.display());
    }
}

pub(crate) fn include_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

pub(crate) fn is_installed(command: &str) -> bool {
    let found = Command::new(command).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        // Past the test harness, which swallows what a passing test prints: an unchecked compiler is to be seen.
        let _ =
            writeln!(std::io::stderr(), "note: {command} is not installed, so nothing was checked with it");
    }
    found
}

/// The GNU compiler, which must be there, and Clang if it is.
pub(crate) fn installed(language: Language) -> Vec<Compiler> {
    let [gnu, clang] = match language {
        Language::C => ["gcc", "clang"],
        Language::Cpp => ["g++", "clang++"],
    };
    assert!(is_installed(gnu), "{gnu} is needed for C and C++ plugins; install it");
    let mut compilers = vec![Compiler(gnu)];
    compilers.extend(is_installed(clang).then_some(Compiler(clang)));
    compilers
}
