//! Compiles the C++ side. A cdylib exports only what Rust marks as exported: rustc hands the linker a version script in
//! which every other symbol is local, and a second script cannot be combined with it. So the C++ entry points are
//! compiled under other names, and `src/lib.rs` exports functions of the right names that call them.

fn main() {
    println!("cargo::rerun-if-changed=src/libraries.cpp");
    println!("cargo::rerun-if-changed=../../framework/abi/include");
    let mut build = cc::Build::new();
    let target = |name: &str| std::env::var(name).unwrap_or_default();
    let mingw = target("CARGO_CFG_TARGET_OS") == "windows" && target("CARGO_CFG_TARGET_ENV") == "gnu";
    if mingw {
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
    if mingw {
        println!("cargo::rustc-link-lib=static:-bundle=stdc++");
        if let Some(folder) = library_folder("libstdc++.a") {
            println!("cargo::rustc-link-search=native={folder}");
        }
    }
}

/// Where the compiler has a library.
fn library_folder(name: &str) -> Option<String> {
    let compiler = cc::Build::new().cpp(true).get_compiler();
    let said = compiler.to_command().arg(format!("-print-file-name={name}")).output().ok()?;
    let path = String::from_utf8(said.stdout).ok()?;
    let folder = std::path::Path::new(path.trim()).parent()?;
    folder.is_absolute().then(|| folder.display().to_string())
}
