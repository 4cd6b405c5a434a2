//! Compiles the C++ side. A cdylib exports only what Rust marks as exported: rustc hands the linker a version script in
//! which every other symbol is local, and a second script cannot be combined with it. So the C++ entry points are
//! compiled under other names, and `src/lib.rs` exports functions of the right names that call them.

#[path = "../mingw.rs"]
#[allow(dead_code, reason = "shared with other plugins")]
mod mingw;

fn main() {
    mingw::or_refuse();
    println!("cargo::rerun-if-changed=src/schedules.cpp");
    println!("cargo::rerun-if-changed=../../framework/abi/include");
    cc::Build::new()
        .file("src/schedules.cpp")
        .include("../../framework/abi/include")
        .define("WaylayPlugin", "schedules_cpp_plugin")
        .define("CreateInstance", "schedules_cpp_create")
        .define("DestroyInstance", "schedules_cpp_destroy")
        .cpp(true)
        .std("c++17")
        // Without, a store of any order is an exchange, and a step more where code is patched.
        .opt_level(1)
        // What fails here must fail: assert is not to be compiled out, and stacks are to be readable.
        .flag("-UNDEBUG")
        .flag("-g")
        .flag("-fno-omit-frame-pointer")
        .warnings_into_errors(true)
        .extra_warnings(true)
        .compile("schedules_cpp");
    if mingw::is_target() {
        mingw::link_threads();
    }
}
