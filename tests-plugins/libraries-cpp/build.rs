//! Compiles the C++ side. A cdylib exports only what Rust marks as exported: rustc hands the linker a version script in
//! which every other symbol is local, and a second script cannot be combined with it. So the C++ entry points are
//! compiled under other names, and `src/lib.rs` exports functions of the right names that call them.

#[path = "../mingw.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod mingw;

fn main() {
    println!("cargo::rerun-if-changed=src/libraries.cpp");
    println!("cargo::rerun-if-changed=../../framework/abi/include");
    let mut build = cc::Build::new();
    if mingw::is_target() {
        // rustc links gcc's own library in. One C++ library in another file would then have thread-local variables of its own,
        // those by which `std::call_once` hands over what to call among them.
        build.cpp_link_stdlib(None);
    }
    build
        .file("src/libraries.cpp")
        .include("../../framework/abi/include")
        .define("WaylayPlugin", "libraries_cpp_plugin")
        .define("CreateInstance", "libraries_cpp_create")
        .define("DestroyInstance", "libraries_cpp_destroy")
        .cpp(true)
        .std("c++17")
        // Stacks are to be readable.
        .flag("-g")
        .flag("-fno-omit-frame-pointer")
        .warnings_into_errors(true)
        .extra_warnings(true)
        .compile("libraries_cpp");
    // After what needs it.
    if mingw::is_target() {
        mingw::link_cpp_in();
    }
}
