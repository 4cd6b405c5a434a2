//! Files that look like plugins and are not, made on demand for the tests of whoever loads plugins. A dev-dependency:
//! nothing that ships links it.
//!
//! ```no_run
//! use waylay_broken_plugins::{Broken, make};
//! let file = make(Broken::FutureAbi, std::path::Path::new("target/broken"));
//! // … a host that loads `file` must name it, say what is wrong, and go on with the other plugins.
//! ```
//!
//! The sources are C and are compiled with `cc`; a broken ELF file is a good one with a few bytes changed. What cannot be
//! made is a panic with the compiler's words: a test that needs the file cannot go on.

mod elf;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

/// What is wrong with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// There is no file of that name.
    Missing,
    /// A file without a byte in it.
    Empty,
    /// Text instead of a dynamic library.
    NotElf,
    /// The first half of a good plugin. The system's loader crashes on it (SIGBUS) rather than refuse it.
    Truncated,
    /// A folder.
    Folder,
    /// A 32-bit library.
    WrongClass,
    /// A 64-bit library for another processor.
    WrongMachine,
    /// Needs a library that is not there.
    UnresolvedLibrary,
    /// Needs a function that nobody has.
    UnresolvedSymbol,
    /// A good library that exports none of the three functions.
    NoSymbols,
    /// Exports `WaylayPlugin` alone.
    NoCreate,
    /// Says ABI version 99.
    FutureAbi,
    /// Its description says that it is smaller than version 1 ever was.
    ShortInfo,
    /// `WaylayPlugin` returns null.
    NullInfo,
    /// Has no tests and no kinds.
    NoTests,
    /// Two of its tests have one name.
    TwiceTheName,
    /// A test without a name.
    NullName,
    /// A parameter whose default is no TOML.
    BadDefault,
    /// Its constructor writes through a null pointer while it is loaded.
    CrashingConstructor,
    /// Its constructor calls `exit(0)` while it is loaded.
    ExitingConstructor,
    /// Its constructor never returns.
    HangingConstructor,
    /// Its instances have no `TestMain`.
    NoTestMain,
}

impl Broken {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Missing,
        Self::Empty,
        Self::NotElf,
        Self::Truncated,
        Self::Folder,
        Self::WrongClass,
        Self::WrongMachine,
        Self::UnresolvedLibrary,
        Self::UnresolvedSymbol,
        Self::NoSymbols,
        Self::NoCreate,
        Self::FutureAbi,
        Self::ShortInfo,
        Self::NullInfo,
        Self::NoTests,
        Self::TwiceTheName,
        Self::NullName,
        Self::BadDefault,
        Self::CrashingConstructor,
        Self::ExitingConstructor,
        Self::HangingConstructor,
        Self::NoTestMain,
    ];

    fn stem(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Empty => "empty",
            Self::NotElf => "not_elf",
            Self::Truncated => "truncated",
            Self::Folder => "folder",
            Self::WrongClass => "wrong_class",
            Self::WrongMachine => "wrong_machine",
            Self::UnresolvedLibrary => "unresolved_library",
            Self::UnresolvedSymbol => "unresolved_symbol",
            Self::NoSymbols => "no_symbols",
            Self::NoCreate => "no_create",
            Self::FutureAbi => "future_abi",
            Self::ShortInfo => "short_info",
            Self::NullInfo => "null_info",
            Self::NoTests => "no_tests",
            Self::TwiceTheName => "twice_the_name",
            Self::NullName => "null_name",
            Self::BadDefault => "bad_default",
            Self::CrashingConstructor => "crashing_constructor",
            Self::ExitingConstructor => "exiting_constructor",
            Self::HangingConstructor => "hanging_constructor",
            Self::NoTestMain => "no_test_main",
        }
    }
}

/// Makes the file in the folder, which is made if need be, and returns its path: `lib<what is wrong>.so`.
pub fn make(broken: Broken, folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
    let file = folder.join(format!("lib{}.so", broken.stem()));
    match broken {
        Broken::Missing => {}
        Broken::Empty => write(&file, b""),
        // Longer than an ELF header, so that the words are read at all.
        Broken::NotElf => write(&file, &b"this was meant to be a plugin\n".repeat(100)),
        Broken::Folder => {
            fs::create_dir_all(&file)
                .unwrap_or_else(|error| panic!("cannot make {}: {error}", file.display()));
        }
        Broken::Truncated => {
            source::compile(source::GOOD, &file, &[]);
            elf::halve(&file);
        }
        Broken::WrongClass => {
            source::compile(source::GOOD, &file, &[]);
            elf::make_32_bit(&file);
        }
        Broken::WrongMachine => {
            source::compile(source::GOOD, &file, &[]);
            elf::change_machine(&file);
        }
        Broken::UnresolvedLibrary => source::compile_against_a_ghost(&file),
        _ => source::compile(source::of(broken), &file, &[]),
    }
    file
}

/// A good plugin of one test, `idle`, for comparison and as a neighbour that must go on.
pub fn make_good(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
    let file = folder.join("libgood.so");
    source::compile(source::GOOD, &file, &[]);
    file
}

fn write(file: &Path, bytes: &[u8]) {
    fs::write(file, bytes).unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}
