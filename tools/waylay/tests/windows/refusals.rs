//! What cannot be used is refused, with the reason.

use std::fs;
use std::path::{Path, PathBuf};

use crate::place::{Place, config};

#[test]
fn files_that_are_no_plugins_are_refused_with_the_reason() {
    let place = Place::with("");
    let plugin = place.path.join("schlüssel.dll");
    let program = fs::read(env!("CARGO_BIN_EXE_waylay")).expect("readable");
    let header = u32::from_le_bytes(program[0x3c..0x40].try_into().expect("four bytes")) as usize;
    let mut narrow = program.clone();
    narrow[header + 4..header + 6].copy_from_slice(&0x14c_u16.to_le_bytes());
    for (bytes, words) in
        [(&b"text"[..], "not a Windows library"), (&program, "is a program"), (&narrow, "32-bit")]
    {
        fs::write(&plugin, bytes).expect("writable");
        let output = place.waylay(&["list", "schlüssel.dll"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words) && said.contains("schlüssel.dll"), "{said}");
    }
}

#[test]
fn an_output_folder_that_cannot_be_made_is_named() {
    let place = Place::with(&config("waylay_faults", "panic", ""));
    fs::write(place.path.join("file"), "").expect("writable");
    let output = place.waylay(&["run", "waylay.toml", "--out", "file/out"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code >= 2), "{said}");
    assert!(said.contains("file"), "{said}");
}

/// Names that are devices in every folder.
#[test]
fn an_output_folder_that_is_a_device_is_named() {
    let place = Place::with(&config("waylay_faults", "panic", ""));
    for device in ["NUL", "CON", "nul/below"] {
        let output = place.waylay(&["run", "waylay.toml", "--out", device]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(&format!("cannot write {device}")) && !said.contains("panicked"), "{said}");
    }
}

/// Everything at once that is unusual about a path and usual in a file of Windows: the prefix that turns off all rules, more
/// than 260 letters, slashes in the configuration, long line ends and a mark at its beginning.
#[test]
fn long_paths_prefixes_and_files_of_windows_are_understood() {
    let place = Place::with("");
    let beside = Path::new(env!("CARGO_BIN_EXE_waylay")).parent().expect("a folder").join("deps");
    let text = "\u{feff}[defaults]\r\nmax-failures = 1\r\n[[scenario]]\r\nname = \"s\"\r\nduration = \"60s\"\r\n\
                [[scenario.test]]\r\nplugin = \"sub/deeper/mine.dll\"\r\nname = \"failed\"\r\n";
    fs::create_dir_all(place.path.join("sub/deeper")).expect("a folder");
    fs::copy(beside.join("waylay_faults_c.dll"), place.path.join("sub/deeper/mine.dll")).expect("a copy");
    fs::write(place.path.join("windows.toml"), text).expect("writable");
    let long = (0..4).fold(place.path.clone(), |path, _| path.join("a-name-of-a-folder-".repeat(4)));
    assert!(long.as_os_str().len() > 260);
    for (toml, out) in [
        ("windows.toml".to_owned(), long.display().to_string()),
        (format!(r"\\?\{}\windows.toml", place.path.display()), format!(r"\\?\{}\out", place.path.display())),
    ] {
        let output = place.waylay(&["run", &toml, "--out", &out, "--quiet", "--json"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
        let folder = Path::new(summary["failures"][0]["folder"].as_str().expect("a folder"));
        let entry = fs::read(folder.join("failure.json")).expect("the failure is kept");
        let entry: serde_json::Value = serde_json::from_slice(&entry).expect("an object");
        // On a busy machine a host may be gone before it is dumped.
        let is_told = entry["gaps"].as_array().is_some_and(|gaps| !gaps.is_empty());
        assert!(folder.join("dump.dmp").is_file() || is_told, "{entry:#}\n{said}");
    }
}

/// A file that needs another library in place of one.
fn needy(bytes: Vec<u8>, place: &Place, file: &str, before: &str, library: &str) -> PathBuf {
    let before = format!("{before}\0").into_bytes();
    let mut bytes = bytes;
    let mut name = library.as_bytes().to_vec();
    name.resize(before.len(), 0);
    let places: Vec<_> = bytes
        .windows(before.len())
        .enumerate()
        .filter(|(_, part)| *part == before)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "{file} needs it");
    for at in places {
        bytes[at..at + name.len()].copy_from_slice(&name);
    }
    let path = place.path.join(file);
    fs::write(&path, bytes).expect("writable");
    path
}

/// A real plugin that needs another library in place of mingw's threads.
fn plugin_that_needs(place: &Place, file: &str, library: &str) -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_waylay")).parent().expect("a folder").join("deps");
    let bytes = fs::read(beside.join("waylay_faults_c.dll")).expect("the plugin is built");
    needy(bytes, place, file, "libwinpthread-1.dll", library)
}

#[test]
fn a_missing_library_is_named() {
    let place = Place::with("");
    plugin_that_needs(&place, "needy.dll", "absent-one.dll");
    let output = place.waylay(&["list", "needy.dll"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("needy.dll") && said.contains("needs absent-one.dll"), "{said}");
    // In a campaign the others still run.
    let plugin =
        |name: &str, test: &str| format!("[[scenario.test]]\nplugin = \"{name}\"\nname = \"{test}\"\n");
    let both = plugin("needy.dll", "crash") + &plugin("waylay_faults", "nothing");
    fs::write(place.path.join("both.toml"), format!("[[scenario]]\nname = \"s\"\nduration = \"1s\"\n{both}"))
        .expect("writable");
    let output = place.waylay(&["run", "both.toml", "--quiet"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() != Some(0) && said.contains("absent-one.dll"), "{said}");
    assert!(
        fs::read_to_string(place.campaigns()[0].join("campaign.json")).expect("a record").contains("nothing")
    );
}

#[test]
fn a_library_that_another_library_lacks_is_named_with_it() {
    let place = Place::with("");
    plugin_that_needs(&place, "inner.dll", "absent-one.dll");
    plugin_that_needs(&place, "outer.dll", "inner.dll");
    let output = place.waylay(&["list", "outer.dll"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("outer.dll: needs absent-one.dll (for inner.dll)"), "{said}");
}

#[test]
fn a_library_that_an_explored_program_lacks_is_named() {
    let place = Place::with("");
    let program = fs::read(env!("CARGO_BIN_EXE_waylay")).expect("readable");
    needy(program, &place, "needy.exe", "msvcrt.dll", "absent.dll");
    let output = place.waylay(&["explore", "--", "./needy.exe"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("did not reach main: it needs absent.dll"), "{said}");
}

#[test]
fn the_debug_runtime_is_called_by_its_name() {
    for runtime in ["ucrtbased.dll", "MSVCP140D.dll", "VCRUNTIME140D.dll"] {
        let place = Place::with("");
        plugin_that_needs(&place, "needy.dll", runtime);
        let output = place.waylay(&["list", "needy.dll"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(runtime) && said.contains("debug C runtime") && said.contains("/MD"), "{said}");
    }
}

/// Made by a compiler for 32 bits, which is not there under Wine: `tools/windows/test.sh` says where the file is.
#[test]
fn a_real_library_of_32_bits_is_refused() {
    let Ok(library) = std::env::var("WAYLAY_NARROW_LIBRARY") else {
        eprintln!("WAYLAY_NARROW_LIBRARY names no 32-bit library: nothing was tested");
        return;
    };
    let place = Place::with("");
    fs::copy(&library, place.path.join("narrow.dll")).expect("the library is there");
    let output = place.waylay(&["list", "narrow.dll"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("narrow.dll") && said.contains("32-bit"), "{said}");
}

#[test]
fn plugins_are_loaded_from_folders_with_blanks_and_other_letters() {
    let place = Place::with(&config("sub folder/плагин ü.dll", "crash", ""));
    let beside = Path::new(env!("CARGO_BIN_EXE_waylay")).parent().expect("a folder").join("deps");
    fs::create_dir(place.path.join("sub folder")).expect("a folder");
    fs::copy(beside.join("waylay_faults_c.dll"), place.path.join("sub folder").join("плагин ü.dll"))
        .expect("a copy");
    let failures = place.failures();
    assert!(
        failures.iter().any(|failure| failure.text("what").contains("ACCESS_VIOLATION")),
        "{}",
        place.host_log()
    );
    assert!(failures[0].stacks().contains("плагин ü.dll") || failures[0].stacks().contains("faults.c"));
}

/// A mark of read-only means nothing for a folder on Windows; this one belongs to the system, under Wine to the kernel.
#[test]
fn a_folder_that_nobody_may_write_to_is_named() {
    let wine = Path::new("Z:\\proc\\self").exists();
    let folder = if wine { "Z:\\proc\\sys" } else { "C:\\System Volume Information" };
    let place = Place::with(&config("waylay_faults", "panic", ""));
    let output = place.waylay(&["run", "waylay.toml", "--out", &format!("{folder}\\waylay-out")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code >= 2), "{said}");
    assert!(said.contains(&format!("cannot write {folder}")), "{said}");
}
