//! Projects that `waylay new` makes build with nothing but a compiler, offline, and their test runs healthy on several
//! threads.

#![cfg(target_os = "linux")]

#[path = "../../../framework/plugin/tests/fake_host/mod.rs"]
mod fake_host;
#[path = "../src/new/project.rs"]
mod project;

use fake_host::{Host, SERVICES};
use project::{Lang, NewError, generate};
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use waylay_abi as abi;

const STRICT: &str = "-O1 -g -Wall -Wextra -Wpedantic -Werror";

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{text}");
}

/// Loads the plugin and runs its test with four workers.
fn run_plugin(file: &Path, name: &str) {
    let host = Host::with(&[
        ("accounts", &[5]),
        ("account", &[0, 1, 4, 2, 3, 9]),
        ("action", &[0, 0, 0, 1, 0]),
        ("amount", &[3, 7, 40]),
    ]);
    // SAFETY: the plugin runs nothing of its own when loaded, and stays loaded until the end of this function.
    unsafe {
        let library = libloading::Library::new(file).unwrap();
        let describe = library.get::<abi::PluginEntry>(abi::PLUGIN_SYMBOL).unwrap();
        let create = library.get::<abi::CreateEntry>(abi::CREATE_SYMBOL).unwrap();
        let destroy = library.get::<abi::DestroyEntry>(abi::DESTROY_SYMBOL).unwrap();
        assert_eq!(CStr::from_ptr((*describe()).name).to_str(), Ok(name));
        let live = host.create_from(*create, *destroy, "transfers", &SERVICES).unwrap();
        assert_eq!(live.start(), abi::STATUS_OK);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5000).for_each(|_| assert_eq!(live.main(), abi::STATUS_OK)));
            }
        });
        live.cancel();
        live.end();
        drop(live);
    }
    assert!(host.failures().is_empty());
}

fn project_of(lang: Lang) -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("money-moves");
    let made = generate("money-moves", lang, &folder).unwrap();
    assert!(made.files.iter().all(|file| folder.join(file).is_file()));
    let left = made.files.iter().find(|file| fs::read_to_string(folder.join(file)).unwrap().contains("{{"));
    assert_eq!(left, None, "a mark that nothing took the place of");
    (parent, folder)
}

#[test]
fn rust_builds_offline_and_runs() {
    let (_parent, folder) = project_of(Lang::Rust);
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    run(Command::new(cargo)
        .args(["build", "--release", "--offline"])
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("RUSTFLAGS", "-D warnings")
        .current_dir(&folder));
    run_plugin(&folder.join("target/release/libmoney_moves.so"), "money-moves");
}

#[test]
fn c_and_cpp_build_with_make_and_run() {
    for lang in [Lang::C, Lang::Cpp] {
        let (_parent, folder) = project_of(lang);
        run(Command::new("make").env("CFLAGS", STRICT).env("CXXFLAGS", STRICT).current_dir(&folder));
        run_plugin(&folder.join("build/libmoney_moves.so"), "money-moves");
    }
}

#[test]
fn c_and_cpp_build_with_cmake_and_run() {
    if Command::new("cmake").arg("--version").output().is_err() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "note: cmake is not installed, so nothing was checked with it");
        return;
    }
    for lang in [Lang::C, Lang::Cpp] {
        let (_parent, folder) = project_of(lang);
        run(Command::new("cmake")
            .args(["-B", "build"])
            .env("CFLAGS", STRICT)
            .env("CXXFLAGS", STRICT)
            .current_dir(&folder));
        run(Command::new("cmake").args(["--build", "build"]).current_dir(&folder));
        run_plugin(&folder.join("build/libmoney_moves.so"), "money-moves");
    }
}

/// For Windows the plugin has the name under which it is looked for there. What the flags of `waylay cflags` make code call is
/// linked in, and exports where it wants to be told who listens; without the flags there is nothing of it.
#[test]
fn c_and_cpp_build_for_windows() {
    let tools = ["cmake", "x86_64-w64-mingw32-gcc-posix", "x86_64-w64-mingw32-g++-posix"];
    if tools.iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "note: no mingw is installed, so nothing was built for Windows");
        return;
    }
    for (lang, source) in [(Lang::C, "transfers.c"), (Lang::Cpp, "transfers.cpp")] {
        let (_parent, folder) = project_of(lang);
        let file = folder.join("CMakeLists.txt");
        let flagged = format!(
            "waylay_add_plugin(flagged {source})\ntarget_compile_options(flagged PRIVATE -fsanitize=thread)\n"
        );
        fs::write(&file, fs::read_to_string(&file).unwrap() + &flagged).unwrap();
        run(Command::new("cmake")
            .args(["-B", "build", "-DCMAKE_SYSTEM_NAME=Windows"])
            .args([format!("-DCMAKE_C_COMPILER={}", tools[1]), format!("-DCMAKE_CXX_COMPILER={}", tools[2])])
            .current_dir(&folder));
        run(Command::new("cmake").args(["--build", "build"]).current_dir(&folder));
        for (plugin, flags) in [("money_moves.dll", false), ("flagged.dll", true)] {
            let plugin = fs::read(folder.join("build").join(plugin)).unwrap();
            let name = b"\0waylay_steps\0";
            assert_eq!(plugin.windows(name.len()).any(|bytes| bytes == name), flags, "{lang:?}");
        }
    }
}

/// A file that is added to the SDK must come along.
#[test]
fn the_whole_sdk_is_embedded() {
    let (_parent, folder) = project_of(Lang::Rust);
    let framework = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../framework");
    for part in ["abi", "plugin"] {
        let original = files_under(&framework.join(part).join("src"));
        let copied = files_under(&folder.join("waylay-sdk").join(part).join("src"));
        assert_eq!(copied, original);
    }
}

fn files_under(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn bad_names_and_full_folders_are_refused_before_anything_is_written() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("new");
    for name in ["", "7up", "Bank", "a b", "a/b", "../a", "straße", &"a".repeat(65)] {
        assert!(matches!(generate(name, Lang::C, &folder), Err(NewError::BadName(_))), "{name:?}");
    }
    for name in ["test", "waylay-plugin", "struct"] {
        assert!(matches!(generate(name, Lang::Rust, &folder), Err(NewError::TakenName(_))), "{name:?}");
    }
    assert!(!folder.exists());
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("mine"), "").unwrap();
    assert!(matches!(generate("bank", Lang::C, &folder), Err(NewError::NotEmpty(_))));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(generate("bank", Lang::C, &file), Err(NewError::Write { .. })));
}

#[test]
fn the_next_steps_name_the_build() {
    let parent = tempfile::tempdir().unwrap();
    let made = generate("bank", Lang::Rust, &parent.path().join("bank")).unwrap();
    assert_eq!(made.steps, ["cargo build --release", "waylay run waylay.toml"]);
    assert_eq!(made.folder, parent.path().join("bank"));
}
