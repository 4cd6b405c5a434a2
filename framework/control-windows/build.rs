//! Compiles the C and C++ side of the tests, for mingw: nothing of it is in the library.

#[path = "../../tests-plugins/mingw.rs"]
#[allow(dead_code, reason = "shared with the plugins")]
mod mingw;

fn main() {
    println!("cargo::rerun-if-changed=tests/in_process");
    println!("cargo::rerun-if-changed=../abi/include/waylay_steps.c");
    println!("cargo::rustc-check-cfg=cfg(mingw)");
    if !mingw::is_target() {
        return;
    }
    println!("cargo::rustc-cfg=mingw");
    // Only what the tests name themselves is linked; here the libraries are made.
    let build = |files: &[&str]| {
        let mut build = cc::Build::new();
        build.files(files).opt_level(1).warnings_into_errors(true).extra_warnings(true).cargo_metadata(false);
        build
    };
    build(&["tests/in_process/posix.c"])
        .flag("-fsanitize=thread")
        .flag("--param=tsan-instrument-func-entry-exit=0")
        .flag("--param=tsan-distinguish-volatile=1")
        .flag("-Wno-tsan")
        .compile("posix_bodies");
    build(&["tests/in_process/posix.cpp"]).cpp(true).std("c++17").compile("cpp_bodies");
    build(&["../abi/include/waylay_steps.c"]).compile("steps_for_bodies");
    library("atomics", &["tests/in_process/atomics.c"], &[]);
    library("wide", &["tests/in_process/atomics.c"], &["-DWIDE"]);
    library("thrown", &["tests/in_process/thrown.cpp"], &[]);
    println!("cargo::rustc-env=WAYLAY_TEST_LIBRARIES={}", std::env::var("OUT_DIR").unwrap_or_default());
    println!("cargo::rustc-link-search=native={}", std::env::var("OUT_DIR").unwrap_or_default());
    mingw::name_what_is_taken(&["tests", "benches"]);
}

/// A dynamic library that knows nothing of Waylay.
fn library(name: &str, files: &[&str], flags: &[&str]) {
    let cpp = files.iter().any(|file| file.ends_with(".cpp"));
    let file =
        std::path::Path::new(&std::env::var_os("OUT_DIR").unwrap_or_default()).join(format!("{name}.dll"));
    let mut command = cc::Build::new().cpp(cpp).opt_level(2).debug(false).get_compiler().to_command();
    let ended = command
        .args(["-shared", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(file)
        .args(flags)
        .args(files)
        .status();
    assert!(ended.is_ok_and(|status| status.success()), "{name} cannot be built");
}
