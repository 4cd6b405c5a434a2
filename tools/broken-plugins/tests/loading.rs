//! Each broken file is broken in the way that its name says, and only the good one is good.

#![cfg(target_os = "linux")]

use std::collections::HashSet;
use std::ffi::CStr;
use std::path::Path;
use std::process::Command;
use waylay_abi as abi;
use waylay_broken_plugins::{Broken, make, make_good};

/// Why the system's loader refuses the file.
fn refusal(file: &Path) -> Option<String> {
    // SAFETY: only called with files that run nothing of their own when loaded.
    unsafe { libloading::os::unix::Library::open(Some(file), libloading::os::unix::RTLD_NOW) }
        .err()
        .map(|error| std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
}

#[test]
fn the_loader_refuses_broken_files() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(refusal(&make_good(folder.path())), None);
    for (broken, words) in [
        (Broken::Missing, "No such file"),
        (Broken::Empty, "file too short"),
        (Broken::NotElf, "invalid ELF header"),
        (Broken::Folder, "director"),
        (Broken::WrongClass, "wrong ELF class"),
        (Broken::UnresolvedLibrary, "libwaylay_ghost.so"),
        (Broken::UnresolvedSymbol, "nobody_has_this"),
    ] {
        let reason = refusal(&make(broken, folder.path())).unwrap_or_else(|| panic!("{broken:?} loads"));
        assert!(reason.contains(words), "{broken:?}: {reason}");
    }
    assert!(refusal(&make(Broken::WrongMachine, folder.path())).is_some());
}

#[test]
fn symbols_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    for (broken, has) in [(Broken::NoSymbols, [false, false]), (Broken::NoCreate, [true, false])] {
        let file = make(broken, folder.path());
        // SAFETY: the library runs nothing of its own when loaded, and the symbols are not called.
        let found = unsafe {
            let library = libloading::Library::new(&file).unwrap();
            [
                library.get::<abi::PluginEntry>(abi::PLUGIN_SYMBOL).is_ok(),
                library.get::<abi::CreateEntry>(abi::CREATE_SYMBOL).is_ok(),
            ]
        };
        assert_eq!(found, has, "{broken:?}");
    }
}

/// Reads the description of a loaded plugin.
fn described<R>(broken: Broken, read: impl FnOnce(*const abi::PluginInfo) -> R) -> R {
    let folder = tempfile::tempdir().unwrap();
    let file = make(broken, folder.path());
    // SAFETY: the library runs nothing of its own when loaded, and is not unloaded before `read` returned.
    unsafe {
        let library = libloading::Library::new(&file).unwrap();
        let describe = library.get::<abi::PluginEntry>(abi::PLUGIN_SYMBOL).unwrap();
        read(describe())
    }
}

#[test]
fn descriptions_are_wrong() {
    assert!(described(Broken::NullInfo, <*const abi::PluginInfo>::is_null));
    // SAFETY: all of these return a whole description, whatever it says of its own size.
    unsafe {
        assert_eq!(described(Broken::FutureAbi, |info| (*info).abi_version), 99);
        assert_eq!(described(Broken::ShortInfo, |info| (*info).size), 8);
        assert_eq!(described(Broken::NoTests, |info| (*info).test_count), 0);
        assert!(described(Broken::NullName, |info| (**(*info).tests).name.is_null()));
        let names = described(Broken::TwiceTheName, |info| {
            [0, 1].map(|at| CStr::from_ptr((**(*info).tests.add(at)).name).to_owned())
        });
        assert_eq!(names[0], names[1]);
        let default = described(Broken::BadDefault, |info| {
            CStr::from_ptr((**(**(*info).tests).params).default_value).to_owned()
        });
        assert_eq!(default.to_str(), Ok("{ uniform = "));
    }
}

#[test]
fn constructors_crash_and_exit() {
    use std::os::unix::process::ExitStatusExt;
    let folder = tempfile::tempdir().unwrap();
    // Preloading runs the constructor in a process that has nothing else to do.
    let loaded = |broken| {
        let file = make(broken, folder.path());
        Command::new("sh").args(["-c", "exit 7"]).env("LD_PRELOAD", file).status().unwrap()
    };
    assert_eq!(loaded(Broken::CrashingConstructor).signal(), Some(11));
    assert_eq!(loaded(Broken::ExitingConstructor).code(), Some(0));
    assert_eq!(loaded(Broken::NoTestMain).code(), Some(7), "a library without a constructor changes nothing");
}

#[test]
fn half_a_library_is_refused_or_crashes_the_loader() {
    use std::os::unix::process::ExitStatusExt;
    let folder = tempfile::tempdir().unwrap();
    let file = make(Broken::Truncated, folder.path());
    let output = Command::new("sh").args(["-c", "exit 7"]).env("LD_PRELOAD", file).output().unwrap();
    let refused = String::from_utf8_lossy(&output.stderr).contains("cannot be preloaded");
    assert!(refused || output.status.signal().is_some(), "{output:?}");
}

#[test]
fn every_one_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let files: HashSet<_> = Broken::ALL.iter().map(|broken| make(*broken, folder.path())).collect();
    assert_eq!(files.len(), Broken::ALL.len());
    let absent: Vec<_> = files.iter().filter(|file| !file.exists()).collect();
    assert_eq!(absent, [&folder.path().join("libmissing.so")]);
}
