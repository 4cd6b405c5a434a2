//! `waylay hunt`: a schedule for a failure that was only seen freely, or under the randomizer.

use waylay_dist::Seed;
use waylay_driver::archive;
use waylay_driver::campaign::{self, ScenarioTest, Selection};
use waylay_driver::config::{self, Overrides, Pattern};
use waylay_driver::report::plural;
use waylay_driver::store::load_failure;
use waylay_explore::explorer::Plan;
use waylay_explore::hunt::{attach, conditions, hunt as search, schedule_plan};
use waylay_explore::oracle::Expected;
use waylay_explore::plugin_test::program;
use waylay_explore::recording::is_strict;
use waylay_explore::restart::Restart;
use waylay_schedule::Spec;

use crate::args::HuntOptions;
use crate::explore::{Lines, library, refused};
use crate::installation::installation;
use crate::output::{CLEAN, FAILURES, Failed, print_json};
use crate::report::usage;
use crate::run::colour;

pub(crate) fn hunt(options: &HuntOptions, json: bool) -> Result<u8, Failed> {
    let found = archive::find_failure(&options.out, &options.failure).map_err(usage)?;
    if is_strict(&found.folder) {
        return Err(Failed::Usage(format!(
            "{} has a schedule already: waylay replay {}",
            found.id, found.id
        )));
    }
    let entry = load_failure(&found.folder).map_err(|error| Failed::Usage(error.to_string()))?;
    let (Some(occurrence), Some(test)) = (entry.occurrences.first(), entry.test.clone()) else {
        return Err(Failed::Usage("no test is to blame, so there is nothing to run alone".to_owned()));
    };
    if occurrence.pot.is_some() {
        let why = "it was seen in a melting pot, where others took part: run that in strict mode instead";
        return Err(Failed::Usage(format!("{}: {why}", found.id)));
    }
    let loaded = config::load(&found.campaign.join("config.toml"), &Overrides::default()).map_err(
        |error| match error {
            config::LoadError::Invalid(diagnostics) => Failed::Config(diagnostics.render(colour())),
            other => Failed::Usage(other.to_string()),
        },
    )?;
    let selection = Selection {
        scenario: Some(Pattern::new(occurrence.scenario.clone())),
        test: Some(Pattern::new(test.clone())),
        plugin: entry.plugin.clone(),
    };
    let mix = campaign::mix(&loaded, &installation()?, &selection)
        .map_err(|diagnostics| Failed::Config(diagnostics.render(colour())))?;
    let mut tests = mix.scenarios.into_iter().flat_map(|scenario| scenario.tests);
    let Some(ScenarioTest { plugin, workers, params, hang_timeout, .. }) =
        tests.find(|known| known.name == test)
    else {
        return Err(Failed::Usage(format!(
            "the test {test} of scenario {} is not there any more",
            occurrence.scenario
        )));
    };
    let executable = std::env::current_exe().map_err(|error| Failed::Own(error.to_string()))?;
    let strategy = Spec::parse(waylay_schedule::spec::DEFAULT, options.runs)
        .map_err(|error| Failed::Own(error.to_string()))?;
    let plan = Plan {
        share: None,
        program: program(&executable, &schedule_plan(&entry, &plugin, workers, params)),
        strategy,
        seed: options.seed.unwrap_or_else(Seed::fresh).get(),
        runs: Some(options.runs),
        duration: options.duration,
        stop_on_first: false,
        stop_after_quiet: None,
        own_threads: 0,
        jobs: 1,
        restart: Restart::Fork,
        conditions: conditions(hang_timeout),
        expected: Expected::default(),
        out: options.out.join("hunt"),
        library: library()?,
        minimize: Some(waylay_explore::explain::DEFAULT_BUDGET),
    };
    eprintln!("waylay: looking for {} in strict mode, seed {}", found.id, Seed::new(plan.seed));
    let mut lines = Lines::untold("hunting");
    let hunted = search(&plan, &entry, &mut lines).map_err(refused)?;
    drop(lines);
    let runs = plural(hunted.runs, "schedule");
    let how = if hunted.aimed { "aimed at its stacks" } else { "not aimed" };
    if let Some(as_found) = &hunted.as_found {
        attach(&found.folder, as_found).map_err(|error| Failed::Own(error.to_string()))?;
        eprintln!("waylay: found after {runs}, {how}; it has a schedule now: waylay replay {}", found.id);
    } else {
        eprintln!(
            "waylay: not found in {runs}: it may need what ran beside it, real time, or another iteration"
        );
    }
    for other in &hunted.others {
        eprintln!("waylay: another failure was found: waylay show {}", other.display());
    }
    if json {
        print_json(&hunted)?;
    }
    Ok(if hunted.found { FAILURES } else { CLEAN })
}
