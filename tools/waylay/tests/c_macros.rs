//! Tests in C without tables: what `WAYLAY_TEST` and `WAYLAY_TESTS` of waylay.h make, by every compiler that is here, is what
//! a host reads and calls; and the project that `waylay new --lang c` makes with them runs under the real one.

#![cfg(target_os = "linux")]

#[path = "../../../framework/plugin/tests/fake_host/mod.rs"]
mod fake_host;
mod support;

use fake_host::{Host, SERVICES};
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Workplace, number};
use waylay_abi as abi;

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

fn is_installed(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output().is_ok();
    if !found {
        use std::io::Write as _;
        let _ =
            writeln!(std::io::stderr(), "note: {compiler} is not installed, so nothing was checked with it");
    }
    found
}

/// Compiles and links the files of `tests/c_macros` without a single warning.
fn build(compiler: &str, standard: &str, sources: &[&str], into: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let plugin = into.join(format!("libmacros-{compiler}.so"));
    let output = Command::new(compiler)
        .args([standard, "-g", "-O1", "-fPIC", "-shared"])
        .args(WARNINGS)
        .arg("-I")
        .arg(here.join("../../framework/abi/include"))
        .args(sources.iter().map(|source| here.join("tests/c_macros").join(source)))
        .arg("-o")
        .arg(&plugin)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {sources:?}:\n{errors}");
    plugin
}

/// The commit that a build says is read back from the file, stripped or not, from C and from C++, without a warning.
#[test]
fn a_plugin_says_from_which_commit_it_is_built() {
    let place = Workplace::new();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../framework/abi/include");
    let source = "#include \"waylay.h\"\nWAYLAY_COMMIT(COMMIT);\nint answer(void) { return 42; }\n";
    for (compiler, standard, name) in [("gcc", "-std=c11", "of.c"), ("g++", "-std=c++17", "of.cpp")] {
        place.write(name, &source.replace("(void)", if name == "of.c" { "(void)" } else { "()" }));
        for more in ["-O2", "-s"] {
            let library = place.path().join("libof.so");
            let built = Command::new(compiler)
                .args([standard, "-fPIC", "-shared", "-DCOMMIT=\"3f2a9c1\"", more])
                .args(WARNINGS)
                .arg("-I")
                .arg(&include)
                .arg(place.path().join(name))
                .arg("-o")
                .arg(&library)
                .output()
                .unwrap();
            assert!(built.status.success(), "{compiler}: {}", String::from_utf8_lossy(&built.stderr));
            let build = waylay_evidence::Build::of_file(&library).unwrap();
            assert_eq!(build.commit.as_deref(), Some("3f2a9c1"), "{compiler} {more}");
        }
    }
}

/// The three functions of a plugin.
struct Loaded {
    library: libloading::Library,
}

impl Loaded {
    fn new(file: &Path) -> Loaded {
        // SAFETY: the plugins of this file run nothing when they are loaded.
        Loaded { library: unsafe { libloading::Library::new(file) }.unwrap() }
    }

    fn info(&self) -> &abi::PluginInfo {
        // SAFETY: the symbol has that type by contract, and the table lives as long as the library.
        unsafe { &*self.library.get::<abi::PluginEntry>(abi::PLUGIN_SYMBOL).unwrap()() }
    }

    fn create<'h>(&self, host: &'h Host, test: &str) -> Option<fake_host::Live<'h>> {
        // SAFETY: as above; every test of this file drops the instance before the library.
        unsafe {
            let create = self.library.get::<abi::CreateEntry>(abi::CREATE_SYMBOL).unwrap();
            let destroy = self.library.get::<abi::DestroyEntry>(abi::DESTROY_SYMBOL).unwrap();
            host.create_from(*create, *destroy, test, &SERVICES)
        }
    }
}

fn text<'a>(from: *const std::ffi::c_char) -> &'a str {
    // SAFETY: the tables hold texts that end with zero and live as long as the plugin.
    unsafe { CStr::from_ptr(from) }.to_str().unwrap()
}

fn entries<'a, T>(first: *const *const T, count: u32) -> Vec<&'a T> {
    // SAFETY: the tables say how many they have.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
        .iter()
        .map(|entry| {
            // SAFETY: each of them points to a table of the plugin.
            unsafe { &**entry }
        })
        .collect()
}

fn the_tables_say_what_was_written(plugin: &Loaded) {
    let info = plugin.info();
    assert_eq!((text(info.name), info.abi_version), ("several", abi::ABI_VERSION));
    assert_eq!(info.size as usize, size_of::<abi::PluginInfo>());
    let tests = entries(info.tests, info.test_count);
    let described: Vec<_> =
        tests.iter().map(|test| (text(test.name), test.flags, test.param_count, test.take_count)).collect();
    let expected = [
        ("plain", 0, 0, 0),
        ("hot-lines", 0, 2, 2),
        ("many", abi::TEST_COMBINES, 31, 0),
        ("elsewhere", 0, 1, 0),
    ];
    assert_eq!(described, expected);
    assert_eq!(text(tests[1].about), "a line that moves");
    let params: Vec<_> = entries(tests[1].params, 2)
        .iter()
        .map(|param| (text(param.name), text(param.default_value), text(param.about)))
        .collect();
    let think = "{ exponential = { min = \"0s\", max = \"1ms\" } }";
    let lines = "{ uniform = { min = 1, max = 3 } }";
    assert_eq!(params, [("lines", lines, "how many"), ("think-time", think, "between")]);
    assert!(tests.iter().all(|test| test.size as usize == size_of::<abi::TestInfo>()));
    // SAFETY: the table says that it has two.
    let takes = unsafe { std::slice::from_raw_parts(tests[1].takes, 2) };
    assert_eq!(takes.iter().map(|kind| text(*kind)).collect::<Vec<_>>(), ["counter", "queue"]);
    let kinds = entries(info.kinds, info.kind_count);
    assert_eq!(kinds.iter().map(|kind| text(kind.name)).collect::<Vec<_>>(), ["counter"]);
}

fn every_call_arrives(plugin: &Loaded) {
    let host = Host::with(&[("lines", &[3]), ("think-time", &[9]), ("status", &[2])]);
    let mut counter = 0_i32;
    host.objects.lock().unwrap().insert("counter".into(), &raw mut counter as usize);
    // Two at the same time, which must not share anything.
    let (first, second) =
        (plugin.create(&host, "hot-lines").unwrap(), plugin.create(&host, "hot-lines").unwrap());
    assert_eq!((first.start(), second.start()), (abi::STATUS_OK, abi::STATUS_OK));
    assert_eq!((first.main(), first.main()), (abi::STATUS_OK, abi::STATUS_OK));
    first.cancel();
    first.end();
    second.end();
    drop((first, second));
    let said: Vec<String> = host.failures().into_iter().map(|failure| failure.message).collect();
    assert_eq!(said, ["drew 3, thought 9, started 1, told 1", "drew 0, thought 0, started 1, told 0"]);
    assert_eq!(counter, 2);

    let plain = plugin.create(&host, "plain").unwrap();
    assert_eq!((plain.start(), plain.main()), (abi::STATUS_OK, abi::STATUS_DONE));
    host.seed.store(7, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(plain.main(), abi::STATUS_FAILED);
    assert_eq!(host.failures()[0].message, "seed 7 of plain");
    assert_eq!(plugin.create(&host, "elsewhere").unwrap().main(), abi::STATUS_DONE);
    assert!(plugin.create(&host, "no-such-test").is_none());
    // The host does not know its parameters.
    assert!(plugin.create(&host, "many").is_none());
}

#[test]
fn a_plugin_of_several_tests_in_c_is_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    for compiler in ["gcc", "clang"].into_iter().filter(|compiler| is_installed(compiler)) {
        let plugin = Loaded::new(&build(compiler, "-std=c11", &["several.c", "elsewhere.c"], folder.path()));
        the_tables_say_what_was_written(&plugin);
        every_call_arrives(&plugin);
    }
}

#[test]
fn in_cpp_fields_are_constructed_and_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    for compiler in ["g++", "clang++"].into_iter().filter(|compiler| is_installed(compiler)) {
        let plugin = Loaded::new(&build(compiler, "-std=c++17", &["mixed.cpp"], folder.path()));
        let host = Host::with(&[("count", &[40])]);
        let live = plugin.create(&host, "mixed").unwrap();
        assert_eq!((live.start(), live.main()), (abi::STATUS_OK, abi::STATUS_OK));
        live.end();
        drop(live);
        assert_eq!(host.failures()[0].message, "saw 40");
    }
}

#[test]
fn for_windows_there_is_no_warning_either() {
    let folder = tempfile::tempdir().unwrap();
    if is_installed("x86_64-w64-mingw32-gcc-posix") {
        build("x86_64-w64-mingw32-gcc-posix", "-std=c11", &["several.c", "elsewhere.c"], folder.path());
    }
    if is_installed("x86_64-w64-mingw32-g++-posix") {
        build("x86_64-w64-mingw32-g++-posix", "-std=c++17", &["mixed.cpp"], folder.path());
    }
}

/// The tables that the host needs are no longer the reader's: the test in C is as short as the one in Rust.
#[test]
fn the_project_in_c_is_as_short_as_the_one_in_rust_and_the_real_host_runs_it() {
    let place = Workplace::new();
    for lang in ["c", "rust"] {
        let ran = place.waylay(&["new", &format!("bank-{lang}"), "--lang", lang]);
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    }
    let lines = |file: &str| std::fs::read_to_string(place.path().join(file)).unwrap().lines().count();
    assert!(lines("bank-c/transfers.c") <= lines("bank-rust/src/lib.rs"));

    let folder = place.path().join("bank-c");
    let made =
        Command::new("make").env("CFLAGS", "-g -O1 -Wall -Wextra -Werror").current_dir(&folder).output();
    assert!(made.as_ref().is_ok_and(|made| made.status.success()), "{made:?}");
    let set = "scenario.bank-c.test.transfers.iterations=2000";
    let ran = place.waylay(&["run", "bank-c/waylay.toml", "--set", set, "--quiet", "--json"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let test = &ran.json()["campaign"]["scenarios"][0]["tests"][0];
    assert!(number(&test["iterations"]) >= 2000, "{test:#}");
}
