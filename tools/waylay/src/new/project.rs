//! Writes a plugin project that builds and runs as it is. The files are embedded in the command, names are checked
//! before anything is touched, and nothing that exists is overwritten.
//!
//! Waylay is on no package registry, so a project carries what it needs: the SDK's two crates as path dependencies, or
//! the headers and the CMake package.

// By path, so that tests can include this file alone.
#[path = "embedded.rs"]
mod embedded;

use embedded::{Embedded, Treatment};
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The language of a new plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lang {
    /// Rust, with the SDK.
    Rust,
    /// C11, with `waylay.h`.
    C,
    /// C++17, with `waylay.hpp`.
    Cpp,
}

/// Why no project was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NewError {
    /// The name cannot be that of a crate, a file and a plugin at the same time.
    #[error(
        "`{0}` cannot be a plugin's name: begin with a letter a-z, go on with a-z, 0-9, `-` or `_`, at most 64 in all"
    )]
    BadName(String),
    /// The name means something else to Cargo or to the compilers.
    #[error("`{0}` means something else to Cargo or a compiler; choose another name, for example `{0}-test`")]
    TakenName(String),
    /// The folder has something in it.
    #[error("{} is not empty; choose another folder or name", .0.display())]
    NotEmpty(PathBuf),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A project that was made.
#[derive(Debug)]
pub(crate) struct Project {
    /// Where.
    pub(crate) folder: PathBuf,
    /// The files, relative to the folder, in the order of writing.
    pub(crate) files: Vec<PathBuf>,
    /// What to type next, inside of the folder.
    pub(crate) steps: Vec<&'static str>,
}

/// Makes a project of that name in the folder, which must be missing or empty.
pub(crate) fn generate(name: &str, lang: Lang, folder: &Path) -> Result<Project, NewError> {
    check_name(name)?;
    check_folder(folder)?;
    let words = Words::new(name);
    let mut files = Vec::new();
    for file in embedded::files(lang) {
        let path = PathBuf::from(file.path);
        write(&folder.join(&path), &words.fill_in(file))?;
        files.push(path);
    }
    Ok(Project { folder: folder.to_owned(), files, steps: steps(lang) })
}

fn steps(lang: Lang) -> Vec<&'static str> {
    let build = match lang {
        Lang::Rust => "cargo build --release",
        Lang::C | Lang::Cpp => "make",
    };
    vec![build, "waylay run waylay.toml"]
}

/// Names that are a package of the project itself, a Rust keyword or a folder that Cargo makes.
const TAKEN: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "waylay-abi",
    "waylay-plugin",
    "waylay_abi",
    "waylay_plugin",
    "where",
    "while",
    "yield",
    "alloc",
];

fn check_name(name: &str) -> Result<(), NewError> {
    let fits = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '-' | '_');
    if name.len() > 64
        || !name.starts_with(|first: char| first.is_ascii_lowercase())
        || !name.chars().all(fits)
    {
        return Err(NewError::BadName(name.to_owned()));
    }
    if TAKEN.contains(&name) {
        return Err(NewError::TakenName(name.to_owned()));
    }
    Ok(())
}

fn check_folder(folder: &Path) -> Result<(), NewError> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(NewError::NotEmpty(folder.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(NewError::Write { path: folder.to_owned(), source }),
    }
}

fn write(path: &Path, text: &str) -> Result<(), NewError> {
    let failed = |source| NewError::Write { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)
}

/// What takes the place of the marks in a template.
struct Words {
    name: String,
    lib: String,
}

impl Words {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), lib: name.replace('-', "_") }
    }

    fn fill_in(&self, file: &Embedded) -> String {
        match file.treatment {
            Treatment::Template => file
                .text
                .replace("{{name}}", &self.name)
                .replace("{{lib}}", &self.lib)
                .replace("{{file}}", &format!("{}{}{}", DLL_PREFIX, self.lib, DLL_SUFFIX))
                .replace("{{version}}", env!("CARGO_PKG_VERSION")),
            Treatment::Copy => file.text.to_owned(),
        }
    }
}
