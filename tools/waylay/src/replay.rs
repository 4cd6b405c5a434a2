//! `waylay replay`: runs the iteration that failed again and again, with its random numbers, and counts.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use waylay_driver::archive::{self, Tally};
use waylay_driver::campaign::{self, MixPart, Options, Scenario, Selection};
use waylay_driver::config::{self, Overrides, Pattern};
use waylay_driver::failure::{Change, FailureEntry, changes};
use waylay_driver::report::{Detail, count, plural, summary_text};
use waylay_driver::store::load_failure;
use waylay_report::model::Reproduction;

use crate::args::ReplayOptions;
use crate::installation::installation;
use crate::output::{CLEAN, FAILURES, Failed, print_json};
use crate::report::failure_folder;
use crate::run::{colour, live, options};

/// What a replay prints with `--json`.
#[derive(Serialize)]
struct Outcome {
    signature: String,
    reproduced: u64,
    iterations: u64,
    seconds: f64,
    other_failures: u64,
    /// The seed that the randomizer was started with again.
    #[serde(skip_serializing_if = "Option::is_none")]
    randomizer_seed: Option<waylay_dist::Seed>,
    /// Whether chance decides how often it comes back.
    statistical: bool,
    /// What is not the build that failed: the program, or modules of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_builds: Vec<String>,
    folder: std::path::PathBuf,
}

pub(crate) fn replay(arguments: &ReplayOptions, json: bool) -> Result<u8, Failed> {
    let arguments =
        &ReplayOptions { failure: failure_folder(&arguments.out, &arguments.failure)?, ..arguments.clone() };
    if waylay_explore::recording::is_strict(&arguments.failure) {
        return crate::replay_strict::replay(arguments, json);
    }
    if arguments.debugger.is_some() || arguments.minimized {
        let only = "only a failure of strict mode has a schedule that --debugger or --minimized could follow";
        return Err(Failed::Usage(only.to_owned()));
    }
    let entry = load_failure(&arguments.failure).map_err(|error| Failed::Usage(error.to_string()))?;
    let Some(occurrence) = entry.occurrences.first() else {
        return Err(Failed::Usage("the failure's record lists no occurrence to replay".to_owned()));
    };
    // failures/<signature>/ is two folders below the campaign, which keeps the configuration that it ran with.
    let folder =
        if arguments.failure.is_dir() { arguments.failure.clone() } else { parent(&arguments.failure) };
    let found = std::path::absolute(&folder).unwrap_or(folder);
    let config_path = parent(&parent(&found)).join("config.toml");
    let overrides = Overrides {
        seed: Some(entry.campaign_seed),
        duration: Some(arguments.duration),
        // Below the others: what was replayed last is not the latest campaign.
        out: Some(arguments.out.join("replay")),
        keep_hung: arguments.keep_hung.then_some(true),
        ..Overrides::default()
    };
    let loaded = config::load(&config_path, &overrides).map_err(|error| match error {
        config::LoadError::Invalid(diagnostics) => Failed::Config(diagnostics.render(colour())),
        other => Failed::Usage(other.to_string()),
    })?;
    let installation = installation()?;
    // A test that failed in a pot runs in the pot again, with what ran beside it.
    let pot = occurrence.pot.as_ref();
    let test = pot.map(|pot| pot.test.clone()).or(entry.test.clone());
    let selection = Selection {
        scenario: Some(Pattern::new(occurrence.scenario.clone())),
        test: test.map(Pattern::new),
        plugin: pot.map(|pot| pot.plugin.clone()).or(entry.plugin.clone()),
    };
    let mix = campaign::mix(&loaded, &installation, &selection)
        .map_err(|diagnostics| Failed::Config(diagnostics.render(colour())))?;
    let scenarios = mix.scenarios.into_iter().map(|scenario| repeat(scenario, &entry)).collect::<Vec<_>>();
    if scenarios.is_empty() {
        return Err(Failed::Usage(format!("the scenario {} is not there any more", occurrence.scenario)));
    }
    let options = Options { stop_after_failures: Some(arguments.times.unwrap_or(1)), ..options(&loaded) };
    let changed = changes(&entry.builds);
    tell_changes(&changed);
    let how = match occurrence.randomizer {
        Some(trace) => format!(
            "the randomizer makes the choices of seed {} again, at about the same times: statistical",
            trace.seed
        ),
        None => "threads run freely, so this is a matter of chance".to_owned(),
    };
    eprintln!(
        "waylay: replaying {} (iteration {}, seed {}); {how}",
        entry.signature.id,
        count(occurrence.iteration),
        occurrence.seed
    );
    let mut live = live("running it again", Some(arguments.duration), false, Detail::All);
    let summary = campaign::run(scenarios, mix.problems, &installation, &options, live.as_mut(), None)
        .map_err(|error| Failed::Own(error.to_string()))?;
    drop(live);
    eprint!("\n{}", summary_text(&summary, Detail::All));
    let same = summary.failures.iter().filter(|failure| failure.signature.id == entry.signature.id);
    let reproduced: u64 = same.map(|failure| failure.count).sum();
    let tests = summary.campaign.scenarios.iter().flat_map(|scenario| &scenario.tests);
    let outcome = Outcome {
        signature: entry.signature.id.clone(),
        reproduced,
        iterations: tests.map(|test| test.iterations).sum(),
        seconds: summary.campaign.scenarios.iter().map(|scenario| scenario.seconds).sum(),
        other_failures: summary.campaign.failures - reproduced,
        randomizer_seed: occurrence.randomizer.map(|trace| trace.seed),
        statistical: true,
        other_builds: changed.iter().map(ToString::to_string).collect(),
        folder: summary.folder.clone(),
    };
    eprintln!(
        "reproduced {} in {}, {:.1} s{}",
        plural(outcome.reproduced, "time"),
        plural(outcome.iterations, "iteration"),
        outcome.seconds,
        if outcome.other_failures > 0 {
            format!("; {}", plural(outcome.other_failures, "other failure"))
        } else {
            String::new()
        }
    );
    // An iteration that ended its process did not finish.
    let runs = outcome.iterations.max(reproduced);
    keep_count(&found, tally(&changed), Reproduction { reproduced, runs, seconds: outcome.seconds });
    if json {
        print_json(&outcome)?;
    }
    Ok(if reproduced > 0 { FAILURES } else { CLEAN })
}

/// Says what is not the build that failed, before anything is run: what comes of it is to be read with that in mind.
pub(crate) fn tell_changes(changed: &[Change]) {
    for change in changed {
        eprintln!("waylay: not the build that failed: {change}");
    }
}

/// Where a replay counts.
pub(crate) fn tally(changed: &[Change]) -> Tally {
    if changed.is_empty() { Tally::SameBuild } else { Tally::OtherBuild }
}

/// Keeps how often it came back with the failure: the next who reads of it wants to know.
pub(crate) fn keep_count(folder: &Path, tally: Tally, more: Reproduction) {
    match archive::add_reproduction(folder, tally, more) {
        Ok(sum) if sum.runs > more.runs => {
            let (reproduced, runs) = (plural(sum.reproduced, "time"), plural(sum.runs, "run"));
            let of = if tally == Tally::OtherBuild { " of other builds" } else { "" };
            eprintln!("in all replays{of} it came back {reproduced} in {runs}");
        }
        Ok(_) => {}
        Err(error) => eprintln!("waylay: how often it came back is not kept: {error}"),
    }
}

/// Every worker runs the iteration that it was in when the failure was seen; the workers of a pot, that of the contained
/// test that each was running.
fn repeat(mut scenario: Scenario, entry: &FailureEntry) -> Scenario {
    let occurrence = entry.occurrences.first();
    let pot = occurrence.and_then(|occurrence| occurrence.pot.as_ref());
    let mix: Vec<MixPart> = occurrence
        .into_iter()
        .flat_map(|occurrence| &occurrence.workers)
        .filter(|view| pot.is_some_and(|pot| pot.test == view.test))
        .map(|view| MixPart {
            test: view.running.as_ref().map(|running| (running.plugin.clone(), running.test.clone())),
            iteration: view.running.as_ref().map_or(0, |running| running.iteration),
        })
        .collect();
    let mut iterations: BTreeMap<&str, BTreeMap<u32, u64>> = BTreeMap::new();
    for view in entry.occurrences.iter().take(1).flat_map(|occurrence| &occurrence.workers) {
        iterations.entry(&view.test).or_default().insert(view.worker, view.iteration);
    }
    for test in &mut scenario.tests {
        test.iterations = None;
        test.max_failures = 0;
        test.repeat = iterations.get(test.name.as_str()).map(|workers| workers.values().copied().collect());
        if let Some(combination) = &mut test.combination {
            combination.mix = mix.clone();
            test.repeat = None;
        }
    }
    let trace = entry.occurrences.first().and_then(|occurrence| occurrence.randomizer);
    if let (Some(randomizer), Some(trace)) = (&mut scenario.randomizer, trace) {
        randomizer.seed = Some(trace.seed);
    }
    scenario.duration = None;
    scenario
}

fn parent(path: &std::path::Path) -> std::path::PathBuf {
    path.parent().map(std::path::Path::to_owned).unwrap_or_default()
}
