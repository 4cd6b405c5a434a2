//! Where the systems differ is said in one place per crate: in twin files (`linux.rs`, `windows.rs`, `…_windows.rs`) that
//! export the same things, and at the seam that chooses between them. Everything else is the same code everywhere, so a
//! condition on the system anywhere else fails here.

use std::fs;
use std::path::{Path, PathBuf};

/// What may not be otherwise, with the reason.
const EXCEPTIONS: [(&str, &str); 1] =
    [("framework/control/src/lib.rs", "the library of strict mode on Linux: empty elsewhere")];

/// Plugins are tests, not the product; what they test may exist on one system only.
const NOT_OURS: [&str; 1] = ["tests-plugins/"];

/// A condition on the system, and not on the processor or on tests alone.
fn asks_for_the_system(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let asks = ["cfg(", "cfg!(", "cfg_attr("].iter().any(|way| code.contains(way));
    asks && ["windows", "unix", "target_os", "target_family", "target_env"]
        .iter()
        .any(|word| code.contains(word))
}

/// Whether the file, or a folder that it lies in, has a system in its name.
fn is_twin(path: &str) -> bool {
    path.split('/').map(|part| part.trim_end_matches(".rs")).any(|part| {
        let is = |system: &str| {
            part == system || part.starts_with(&format!("{system}_")) || part.ends_with(&format!("_{system}"))
        };
        is("linux") || is("windows") || is("unix")
    })
}

/// A seam chooses a module, or which module's names are used.
fn is_seam(after: &[&str]) -> bool {
    let item = after
        .iter()
        .map(|line| line.trim())
        .find(|line| !line.is_empty() && !line.starts_with("#[") && !line.starts_with("//"));
    let Some(item) = item else { return false };
    let item = ["pub(crate) ", "pub(super) ", "pub "]
        .iter()
        .find_map(|visible| item.strip_prefix(visible))
        .unwrap_or(item);
    item.starts_with("mod ") && item.ends_with(';') || item.starts_with("use ")
}

/// The lines of a file that ask for the system where they should not.
fn offences(path: &str, text: &str) -> Vec<usize> {
    if is_twin(path) {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    // Tests come last in a file, and may be about one system.
    let tests = lines.iter().enumerate().position(|(at, line)| {
        line.starts_with("#[cfg(")
            && line.contains("test")
            && lines[at + 1..]
                .first()
                .is_some_and(|next| next.starts_with("mod tests") || next.starts_with("#[path"))
    });
    let product = &lines[..tests.unwrap_or(lines.len())];
    let asking = product.iter().enumerate().filter(|(_, line)| asks_for_the_system(line));
    asking.filter(|(at, _)| !is_seam(&lines[at + 1..])).map(|(at, _)| at + 1).collect()
}

/// All Rust files of the product: those below the `src` of a crate.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable")) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().expect("a type").is_dir() {
            if !["target", "tests", "benches", "examples", ".git"].contains(&name.as_str()) {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && path.components().any(|part| part.as_os_str() == "src") {
            found.push(path);
        }
    }
}

#[test]
fn only_twins_and_seams_know_the_system() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let mut wrong = Vec::new();
    let mut used = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).expect("below").to_string_lossy().replace('\\', "/");
        if NOT_OURS.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let found = offences(&path, &fs::read_to_string(&file).expect("readable"));
        if EXCEPTIONS.iter().any(|(exception, _)| *exception == path) {
            used.extend((!found.is_empty()).then_some(path));
        } else {
            wrong.extend(found.into_iter().map(|line| format!("{path}:{line}")));
        }
    }
    assert!(
        wrong.is_empty(),
        "these lines ask which system it is; put what differs into twins behind a `sys` module:\n{}",
        wrong.join("\n")
    );
    for (exception, reason) in EXCEPTIONS {
        assert!(used.iter().any(|path| path == exception), "not needed any more: {exception} ({reason})");
    }
}

#[test]
fn seams_and_tests_are_told_from_policy() {
    let seam = "#[cfg(windows)]\n#[path = \"x/windows.rs\"]\nmod sys;\n#[cfg_attr(windows, path = \"held_windows.rs\")]\npub mod held;\n";
    assert!(offences("framework/a/src/lib.rs", seam).is_empty());
    let policy = "fn f() {\n    if cfg!(windows) { g() }\n}\n#[cfg(target_os = \"linux\")]\nfn g() {}\n";
    assert_eq!(offences("framework/a/src/lib.rs", policy), [2, 4]);
    assert!(offences("framework/a/src/sys/windows_calls.rs", policy).is_empty());
    assert!(offences("framework/a/src/linux/mod.rs", policy).is_empty());
    let tested = "fn f() {}\n#[cfg(test)]\nmod tests {\n    #[cfg(unix)]\n    #[test]\n    fn g() {}\n}\n";
    assert!(offences("framework/a/src/lib.rs", tested).is_empty());
    let arch = "#[cfg(target_arch = \"x86_64\")]\nfn f() {} // not a matter of cfg(windows)\n";
    assert!(offences("framework/a/src/lib.rs", arch).is_empty());
}
