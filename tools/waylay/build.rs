//! For Windows with GNU tools: compiles what `waylay ldflags` hands out there. Otherwise there is nothing to do, and the file
//! is empty.

use std::path::PathBuf;

fn main() {
    const SOURCE: &str = "../../framework/abi/include/waylay_steps.c";
    println!("cargo::rerun-if-changed={SOURCE}");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if variable("CARGO_CFG_TARGET_OS") != "windows" {
        return;
    }
    if variable("CARGO_CFG_TARGET_ENV") == "gnu" {
        // Not linked into the command itself, and fast whatever the command is built for.
        let mut build = cc::Build::new();
        build.file(SOURCE).opt_level(2).debug(false).warnings_into_errors(true).extra_warnings(true);
        build.cargo_metadata(false).compile("waylay_steps");
    } else {
        let file = PathBuf::from(variable("OUT_DIR")).join("libwaylay_steps.a");
        std::fs::write(&file, "").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}
