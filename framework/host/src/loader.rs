//! A file becomes a plugin, or an error that names the file and says what to do.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use libloading::Library;
use waylay_abi::{
    ABI_VERSION, CREATE_SYMBOL, CreateEntry, DESTROY_SYMBOL, DestroyEntry, PLUGIN_INFO_LEAST, PLUGIN_SYMBOL,
    PluginEntry, PluginInfo, TestInfo,
};

use crate::description::{list, text};

/// A loaded plugin. Never unloaded: threads that a test left behind may still run its code.
#[derive(Clone, Copy)]
pub struct Plugin {
    info: &'static PluginInfo,
    pub(crate) create: CreateEntry,
    pub(crate) destroy: DestroyEntry,
}

/// Why a file is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No such file.
    #[error("{}: no such file; build the plugin first or correct its `plugin` entry", .0.display())]
    Missing(PathBuf),
    /// Not something that this system loads.
    #[error("{}: {what}", .path.display())]
    WrongFile {
        /// The file.
        path: PathBuf,
        /// What it is instead, and what to do.
        what: String,
    },
    /// The dynamic linker refused.
    #[error("{}: the dynamic linker refused it: {reason}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The linker's words, with a hint where we have one.
        reason: String,
    },
    /// It lacks one of the three functions.
    #[error(
        "{}: exports no `{symbol}`, so it is not a Waylay plugin; \
         export it with waylay_plugin::export! (Rust), WAYLAY_PLUGIN (C++) or by hand (C)", .path.display()
    )]
    NoSymbol {
        /// The file.
        path: PathBuf,
        /// Which one.
        symbol: &'static str,
    },
    /// It speaks another version of the contract.
    #[error(
        "{}: was built for version {found} of the plugin contract and this Waylay speaks version {ABI_VERSION}; {}",
        .path.display(),
        if *found > ABI_VERSION { "use a newer Waylay or rebuild the plugin with this one's headers" }
        else { "rebuild the plugin with this Waylay's headers" }
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// Its description breaks the contract.
    #[error("{}: {what}", .path.display())]
    BadInfo {
        /// The file.
        path: PathBuf,
        /// How.
        what: String,
    },
}

/// Why the system could not load a file or start a program, where it lacks libraries and the system does not name them:
/// `needs some.dll, which …`.
pub fn missing_libraries(path: &Path) -> Option<String> {
    crate::sys::missing_libraries(path)
}

impl Plugin {
    /// Loads a plugin and checks its handshake. Runs the plugin's constructors.
    pub fn open(path: &Path) -> Result<Plugin, LoadError> {
        if !path.exists() {
            return Err(LoadError::Missing(path.to_owned()));
        }
        if let Some(what) = crate::sys::why_not_loadable(path) {
            return Err(LoadError::WrongFile { path: path.to_owned(), what });
        }
        // SAFETY: running the constructors of a plugin is what the user asked for, in a process made for that.
        let library =
            unsafe { crate::sys::open_library(path) }.map_err(|error| match missing_libraries(path) {
                Some(what) => LoadError::WrongFile { path: path.to_owned(), what },
                None => LoadError::Refused { path: path.to_owned(), reason: explain_refusal(&error) },
            })?;
        // SAFETY: for all three, the contract gives the type that belongs to each name.
        let entry = unsafe { symbol::<PluginEntry>(&library, path, PLUGIN_SYMBOL)? };
        // SAFETY: as above.
        let create = unsafe { symbol::<CreateEntry>(&library, path, CREATE_SYMBOL)? };
        // SAFETY: as above.
        let destroy = unsafe { symbol::<DestroyEntry>(&library, path, DESTROY_SYMBOL)? };
        std::mem::forget(library);
        // SAFETY: the contract says that the entry may be called at any time and returns a static or null.
        let info = unsafe { entry().as_ref() }.ok_or_else(|| LoadError::BadInfo {
            path: path.to_owned(),
            what: format!("`{PLUGIN_SYMBOL}` returned null"),
        })?;
        check(info, path)?;
        Ok(Plugin { info, create, destroy })
    }

    /// The plugin's description, checked.
    pub fn info(&self) -> &'static PluginInfo {
        self.info
    }

    /// The test of that name.
    pub(crate) fn test(&self, name: &str) -> Option<&'static TestInfo> {
        list(self.info.tests, self.info.test_count).find(|test| text(test.name) == name)
    }
}

/// # Safety
///
/// `T` must be the type of the symbol `name`.
unsafe fn symbol<T: Copy>(library: &Library, path: &Path, name: &'static str) -> Result<T, LoadError> {
    // SAFETY: passed on to our caller; the copied function pointer outlives the symbol because the library is kept.
    unsafe { library.get::<T>(name) }
        .map(|symbol| *symbol)
        .map_err(|_| LoadError::NoSymbol { path: path.to_owned(), symbol: name })
}

fn check(info: &PluginInfo, path: &Path) -> Result<(), LoadError> {
    let bad = |what: String| Err(LoadError::BadInfo { path: path.to_owned(), what });
    if info.abi_version != ABI_VERSION {
        return Err(LoadError::Version { path: path.to_owned(), found: info.abi_version });
    }
    if (info.size as usize) < PLUGIN_INFO_LEAST {
        return bad(format!(
            "its description says it has {} bytes, version {ABI_VERSION} needs {}; set `size` to sizeof(waylay_plugin_info)",
            info.size, PLUGIN_INFO_LEAST
        ));
    }
    let mut names = BTreeSet::new();
    for test in list(info.tests, info.test_count) {
        let name = text(test.name);
        if (test.size as usize) < size_of::<TestInfo>() {
            return bad(format!(
                "the description of test `{name}` says it has {} bytes, version {ABI_VERSION} needs {}",
                test.size,
                size_of::<TestInfo>()
            ));
        }
        if name.is_empty() {
            return bad("has a test without a name".to_owned());
        }
        if !names.insert(name.clone()) {
            return bad(format!("has two tests named `{name}`; rename one"));
        }
    }
    if names.is_empty() && info.kind_count == 0 && crate::description::hooks(info).next().is_none() {
        return bad("has no tests, no shared kinds and no hooks".to_owned());
    }
    Ok(())
}

fn explain_refusal(error: &libloading::Error) -> String {
    let mut reason = String::new();
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        // The outer error only names the call; the words of the linker are in its source.
        reason = error.to_string();
        cause = error.source();
    }
    if reason.contains("cannot open shared object file") {
        let _ = write!(
            reason,
            " (a library that it needs is not installed or not on the library path: see `ldd`)"
        );
    } else if reason.contains("undefined symbol") {
        let _ = write!(reason, " (it was linked without a library that it needs)");
    }
    reason
}
