//! Compiles the C++ side. A cdylib exports only what Rust marks as exported: rustc hands the linker a version script in
//! which every other symbol is local, and a second script cannot be combined with it. So the C++ entry points are
//! compiled under other names, and `src/lib.rs` exports functions of the right names that call them.

fn main() {
    println!("cargo::rerun-if-changed=src/libraries.cpp");
    println!("cargo::rerun-if-changed=../../framework/abi/include");
    cc::Build::new()
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
}
