//! Compiles the programs that the tests for Windows explore, with mingw: under Wine there is no compiler.

fn main() {
    println!("cargo::rerun-if-changed=tests/windows_memory/plain.c");
    let target = |name: &str| std::env::var(name).unwrap_or_default();
    let folder = std::path::PathBuf::from(target("OUT_DIR"));
    println!("cargo::rustc-env=WAYLAY_TEST_PROGRAMS={}", folder.display());
    if target("CARGO_CFG_TARGET_OS") != "windows" || target("CARGO_CFG_TARGET_ENV") != "gnu" {
        return;
    }
    let mut command = cc::Build::new().opt_level(1).debug(true).get_compiler().to_command();
    let ended = command
        .args([
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-D_WIN32_WINNT=0x0a00",
            "tests/windows_memory/plain.c",
            "-o",
        ])
        .arg(folder.join("plain.exe"))
        .arg("-lsynchronization")
        .status();
    assert!(ended.is_ok_and(|status| status.success()), "plain.c cannot be built");
}
