//! Libraries of the system and one of Rust's: how much of them can be patched, and that they compute what they did, used by
//! two threads at once.
//!
//! A library that is not installed is said to be left out, unless this machine has to have them all.

mod harness;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;

use harness::{BOTH, Program, parameters};
use waylay_control_protocol::{Ending, Instrumentation, Level, Settings};
use waylay_patch::plan::{Count, KINDS};
use waylay_patch::{Kind, Plan, Wanted};

/// What there is at least of each: sites that synchronise (Debian 12 has 640, 155, 130 and 1; a Rust library of this size
/// some hundreds).
const LIBRARIES: [(&str, &str, u32); 5] = [
    ("stdc++", "libstdc++.so.6", 500),
    ("glib", "libglib-2.0.so.0", 100),
    ("crypto", "libcrypto.so.3", 80),
    ("sqlite3", "libsqlite3.so.0", 1),
    ("rust", "", 100),
];

fn folders() -> impl Iterator<Item = PathBuf> {
    ["/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"]
        .into_iter()
        .map(PathBuf::from)
}

fn rust_library() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/queue.rs");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libqueue.so");
    let mut command = Command::new("rustc");
    command.args(["--edition=2024", "-O", "--crate-type=cdylib", "-o"]).arg(&library).arg(source);
    assert!(command.status().expect("rustc is installed").success());
    library
}

fn find(file: &str) -> Option<PathBuf> {
    if file.is_empty() {
        return Some(rust_library());
    }
    let found = folders().map(|folder| folder.join(file)).find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(), "{file} is not installed");
        eprintln!("{file} is not installed: left out");
    }
    found
}

fn counted(plan: &Plan, is_one: impl Fn(Kind) -> bool) -> Count {
    let kinds = KINDS.iter().zip(&plan.counts).filter(|((kind, _), _)| is_one(*kind));
    kinds.fold(Count::default(), |sum, (_, count)| Count {
        found: sum.found + count.found,
        jumps: sum.jumps + count.jumps,
        traps: sum.traps + count.traps,
    })
}

fn share(count: Count) -> f64 {
    100.0 * f64::from(count.jumps) / f64::from(count.found.max(1))
}

#[test]
fn nearly_all_of_a_library_can_be_patched_and_it_computes_what_it_did() {
    let program = Program::build_with("g++", &["-std=c++17"], "libraries.cpp");
    println!("library   sites  jumps  breakpoints  share   accesses  share");
    for (name, file, least) in LIBRARIES {
        let Some(path) = find(file) else { continue };
        let bytes = std::fs::read(&path).expect("it can be read");
        let plan = |wanted| Plan::of(&bytes, wanted).expect("an ELF file");
        let synchronises = |kind| matches!(kind, Kind::Lock | Kind::Exchange | Kind::Fence);
        let sync = counted(&plan(Wanted::Atomics), synchronises);
        let accesses = counted(&plan(Wanted::Memory), |kind| kind == Kind::Access);
        println!(
            "{name:<8} {:>6} {:>6} {:>12} {:>5.1} % {:>9} {:>5.1} %",
            sync.found,
            sync.jumps,
            sync.traps,
            share(sync),
            accesses.found,
            share(accesses)
        );
        assert!(sync.found >= least, "{name}: {sync:?}");
        assert_eq!(sync.refused(), 0, "{name}: nothing that synchronises is left: {sync:?}");
        assert!(share(sync) >= 99.0, "{name}: {sync:?}");
        assert!(share(accesses) >= 93.0, "{name}: {accesses:?}");

        let program = program.with(&[name, path.to_str().expect("a plain path")]);
        for level in [Level::Atomics, Level::Memory] {
            let mut wanted = Instrumentation::new(level, true);
            wanted.set_cache(Path::new(env!("CARGO_TARGET_TMPDIR")));
            let file = path.file_name().and_then(|name| name.to_str()).expect("a plain name").to_owned();
            wanted.set_memory_modules(&[file]);
            let mut server = program.serve_with(wanted);
            for switching in BOTH {
                let mut settings = Settings::new(switching, 3, 1);
                if level == Level::Memory {
                    // All accesses are patched and looked at; which of them would be steps does not matter here.
                    settings.profile = 1;
                    server.region.choose(&mut settings, &[]);
                }
                let outcome = server.run(settings, &parameters("random", 3, 500, 2));
                assert_eq!(
                    (outcome.code, outcome.ending),
                    (Some(0), Ending::Exited),
                    "{name} {level} {switching:?}: {outcome:#?}"
                );
                let report = server.region.report();
                assert!(report.patched.load(Ordering::Relaxed) >= sync.found, "{name} {level}: {report:#?}");
                if level == Level::Memory {
                    assert!(report.accesses.load(Ordering::Relaxed) > 100, "{name}: {report:#?}");
                }
            }
        }
    }
}
