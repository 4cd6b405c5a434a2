//! Compiles `src/steps.rs` with the pass that reports atomic accesses (see `waylay rustflags`), so that each is a step of
//! strict mode; on Windows its twin in C. Cargo cannot give one crate of a workspace flags of its own; a user would compile everything with them.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/steps.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("Cargo sets {name}"));
    println!("cargo::rustc-check-cfg=cfg(reported)");
    match (variable("CARGO_CFG_TARGET_OS").as_str(), variable("CARGO_CFG_TARGET_ENV").as_str()) {
        ("linux", _) => {}
        ("windows", "gnu") => return compile_twin(),
        _ => return,
    }
    println!("cargo::rustc-cfg=reported");
    let object = PathBuf::from(variable("OUT_DIR")).join("steps.o");
    let status = Command::new(variable("RUSTC"))
        .args([
            "--edition=2024",
            "--crate-type=lib",
            "--emit=obj",
            "-Copt-level=1",
            "-Ccodegen-units=1",
            "-g",
        ])
        .args([
            "-Cpasses=function(tsan,atomic-expand,tsan)",
            "-Cllvm-args=-tsan-instrument-func-entry-exit=0",
        ])
        .args(["--target", &variable("TARGET"), "src/steps.rs", "-o"])
        .arg(&object)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "rustc cannot compile src/steps.rs");
    cc::Build::new().object(object).compile("zoo_steps");
}

/// The same in C, with what finds the control library in the host.
fn compile_twin() {
    println!("cargo::rerun-if-changed=src/steps.c");
    println!("cargo::rustc-cfg=reported");
    cc::Build::new()
        .file("src/steps.c")
        .opt_level(1)
        .flag("-fsanitize=thread")
        .flag("--param=tsan-instrument-func-entry-exit=0")
        .compile("zoo_steps");
    cc::Build::new().file("../../framework/abi/include/waylay_steps.c").compile("zoo_report");
}
