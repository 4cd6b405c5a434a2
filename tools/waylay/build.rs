//! Says which build this is, for `waylay --version`. For Windows with GNU tools: compiles what `waylay ldflags` hands out there;
//! otherwise that file is empty.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    say_which_build();
    make_what_ldflags_hands_out();
}

/// The commit is that of the sources, or what WAYLAY_COMMIT says where these are no checkout. Builds for development do not ask:
/// every commit would build the command again.
fn say_which_build() {
    println!("cargo::rerun-if-env-changed=WAYLAY_COMMIT");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let profile = variable("PROFILE");
    let commit = match variable("WAYLAY_COMMIT") {
        given if !given.is_empty() => given,
        _ if profile == "release" => commit_of_sources().unwrap_or_else(|| "unknown".to_owned()),
        _ => "not recorded in builds for development".to_owned(),
    };
    println!("cargo::rustc-env=WAYLAY_COMMIT={commit}");
    println!("cargo::rustc-env=WAYLAY_BUILD={profile}, {}", variable("TARGET"));
}

fn commit_of_sources() -> Option<String> {
    let git = |words: &[&str]| {
        let answer =
            Command::new("git").args(words).output().ok().filter(|answer| answer.status.success())?;
        Some(String::from_utf8(answer.stdout).ok()?.trim().to_owned())
    };
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn make_what_ldflags_hands_out() {
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
