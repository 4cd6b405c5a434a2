//! Compiles the C++ side. A cdylib exports only what Rust marks as exported: rustc hands the linker a version script in
//! which every other symbol is local, and a second script cannot be combined with it. So the C++ entry points are
//! compiled under other names, and `src/lib.rs` exports functions of the right names that call them.
//!
//! The compiler reports atomic accesses, as `waylay cflags` says, so that each is a step of strict mode.
//! The calls find the control library in the host; on Windows by way of a file that is linked in.

#[path = "../mingw.rs"]
#[allow(dead_code, reason = "shared with other plugins")]
mod mingw;

fn main() {
    mingw::or_refuse();
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../../framework/abi/include");
    let mut build = cc::Build::new();
    build
        .files(["src/zoo.cpp", "src/creation.cpp", "src/containers.cpp", "src/sharing.cpp"])
        .include("../../framework/abi/include")
        .define("WaylayPlugin", "zoo_cpp_plugin")
        .define("CreateInstance", "zoo_cpp_create")
        .define("DestroyInstance", "zoo_cpp_destroy")
        .cpp(true)
        .std("c++17")
        .opt_level(1)
        .flag("-g")
        .flag("-fno-omit-frame-pointer")
        .warnings_into_errors(true)
        .extra_warnings(true);
    if mingw::is_target() || std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        build.flag("-fsanitize=thread");
        // `--all-targets` also links an executable, which has no host that the calls could find.
        println!("cargo::rustc-link-arg=-Wl,--unresolved-symbols=ignore-all");
        let flags: &[&str] = match build.get_compiler().is_like_clang() {
            true => {
                &["-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-distinguish-volatile=1"]
            }
            false => &[
                "--param=tsan-instrument-func-entry-exit=0",
                "--param=tsan-distinguish-volatile=1",
                "-Wno-tsan",
            ],
        };
        flags.iter().for_each(|flag| {
            build.flag(flag);
        });
    }
    build.compile("zoo_cpp");
    if mingw::is_target() {
        // Behind what calls it.
        cc::Build::new()
            .file("../../framework/abi/include/waylay_steps.c")
            .warnings_into_errors(true)
            .extra_warnings(true)
            .compile("zoo_cpp_steps");
        mingw::link_threads();
    }
}
