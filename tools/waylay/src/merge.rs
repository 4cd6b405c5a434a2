//! `waylay merge`: the results of all shards become one campaign.

use std::path::{Path, PathBuf};

use serde_json::json;
use waylay_driver::archive;
use waylay_driver::report::{count, plural};
use waylay_driver::store::load_failure;
use waylay_fleet::merge::{MergeError, Night, Stage, merge_watched as merged, trials};
use waylay_report::shell;

use crate::args::MergeOptions;
use crate::bucket;
use crate::output::{BAD_USAGE, CLEAN, FAILURES, Failed, print_json};
use crate::progress::Bar;

pub(crate) fn merge(options: &MergeOptions, json: bool) -> Result<u8, Failed> {
    if bucket::is_address(&options.out) {
        let words = "a merged night is a folder of this machine: name one with -o (`fleet collect` puts it back into the bucket)";
        return Err(Failed::Usage(words.to_owned()));
    }
    let (folders, _scratch) = bucket::local(&options.folders)?;
    if trials::are_comparisons(&folders) {
        let trials = trials::merge(&folders, &options.out).map_err(failed)?;
        let folder = shell::word(&options.out);
        eprintln!(
            "waylay: {}; `waylay compare --report-only --out {folder} CONFIG` shows them",
            plural(trials as u64, "trial")
        );
        if json {
            print_json(&json!({ "folder": options.out, "trials": trials, "exit_code": CLEAN }))?;
        }
        return Ok(CLEAN);
    }
    let (night, code) = merge_night(&folders, &options.out)?;
    if !options.quiet {
        tell(&night);
    }
    night.missing.iter().for_each(|sentence| eprintln!("waylay: {sentence}"));
    if json {
        print(&night, code)?;
    }
    Ok(code)
}

/// One object for machines.
pub(crate) fn print(night: &Night, code: u8) -> Result<(), Failed> {
    print_json(&json!({
        "folder": night.folder,
        "parts": night.parts,
        "machines": night.machines,
        "missing": night.missing,
        "outcomes": night.outcomes,
        "campaign": night.record,
        "exit_code": code,
    }))
}

/// Merges, and says how the night ended.
pub(crate) fn merge_night(folders: &[PathBuf], out: &Path) -> Result<(Night, u8), Failed> {
    let bar = Bar::of("merging", false);
    let night = merged(folders, out, &mut |stage| match stage {
        Stage::Reading => bar.say("reading the parts"),
        Stage::Failures { done, all } => {
            bar.reach(done, Some(all));
            bar.say("failures");
        }
    });
    drop(bar);
    let night = night.map_err(failed)?;
    let record = &night.record;
    let tests = || record.scenarios.iter().flat_map(|scenario| &scenario.tests);
    let ran = tests().any(|test| test.iterations > 0);
    // A night of which a part is missing is never clean, nor is one in which something could not run.
    let code = match (record.failures, ran && record.problems.is_empty()) {
        (1.., _) => FAILURES,
        (0, true) => CLEAN,
        (0, false) => BAD_USAGE,
    };
    Ok((night, code))
}

fn failed(error: MergeError) -> Failed {
    match error {
        MergeError::Input(text) => Failed::Usage(text),
        MergeError::File { .. } => Failed::Own(format!("cannot merge: {error}")),
    }
}

/// A few lines for people.
pub(crate) fn tell(night: &Night) {
    let record = &night.record;
    let parts = plural(night.parts as u64, "part");
    eprintln!(
        "waylay: {parts} on {} in {}",
        plural(night.machines.len() as u64, "machine"),
        night.folder.display()
    );
    for scenario in &record.scenarios {
        for test in scenario.tests.iter().filter(|test| test.iterations > 0) {
            let what = if test.strict.is_some() { "schedule" } else { "iteration" };
            eprintln!(
                "   {} / {}: {}, {}",
                scenario.name,
                test.name,
                plural(test.iterations, what),
                plural(test.failures, "failure")
            );
            let strict = test.strict.as_ref();
            if strict.is_some_and(|strict| strict.exhausted) {
                eprintln!("      every schedule within the bound was tried");
            }
            if let Some(promise) = strict.and_then(|strict| strict.guarantee.as_ref()) {
                eprintln!("      {promise}");
            }
        }
    }
    for found in archive::numbered(&night.folder) {
        let Ok(entry) = load_failure(&found.folder) else { continue };
        let on: Vec<String> =
            entry.machines.iter().map(|(name, times)| format!("{name} {}", count(*times))).collect();
        eprintln!(
            "   {} {}: {} times ({}): {}",
            entry.kind,
            found.id,
            count(entry.count),
            on.join(", "),
            entry.what
        );
        eprintln!("      {}", entry.replay);
    }
}
