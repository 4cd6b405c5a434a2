//! `waylay compare`: runs the trials of comparisons in hosts, and writes what they say.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use waylay_compare::config::{Config, Scheduling as Wanted, TestTable};
use waylay_compare::gate;
use waylay_compare::journal::{FORMAT, Journal, Record};
use waylay_compare::plan::{Plan, Trial as Planned};
use waylay_compare::results::Results;
use waylay_compare::runner::{self, Progress, Stop};
use waylay_compare::{markdown, page, text};
use waylay_control_protocol::RunConditions;
use waylay_driver::catalog::Installation;
use waylay_driver::config::{Pattern, STEP_LEVEL, Strict};
use waylay_driver::environment::Environment;
use waylay_driver::trial::{self, Arena, Outcome, Scheduling, Trial, TrialError};
use waylay_randomizer::RawSettings;
use waylay_schedule::Shard;

use crate::args::CompareOptions;
use crate::installation::installation;
use crate::output::{CLEAN, FAILURES, Failed, print_json};
use crate::progress::Bar;

/// How often a line about progress is written.
const SAY: Duration = Duration::from_secs(5);

pub(crate) fn compare(options: &CompareOptions, json: bool) -> Result<u8, Failed> {
    let installation = installation()?;
    let shard = crate::shard::wanted(options.shard)?.unwrap_or(Shard::WHOLE);
    trial::watch_for_interrupts();
    std::fs::create_dir_all(&options.out).map_err(|error| cannot("make", &options.out, &error))?;
    let path = options.out.join("trials.jsonl");
    let journal = Journal::open(&path).map_err(|error| cannot("read", &path, &error))?;
    let journal = Mutex::new(journal);
    let environment = Environment::capture("");
    let machine = format!("{}, {} cores, {}", environment.processor, environment.cores, environment.system);
    let when = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();

    let (mut sections, mut answers, mut violations) = (Vec::new(), Vec::new(), Vec::new());
    for file in &options.configs {
        let config = load(file, options)?;
        let plan = Plan::new(&config, |table| find(table, &config, file, &installation))
            .map_err(|error| Failed::Usage(format!("{}: {error}", file.display())))?;
        let stopped =
            if options.report_only { Ok(()) } else { run(&plan, &journal, options, shard, &installation) };
        let name = stem(file);
        let title = if config.title.is_empty() { name.clone() } else { config.title.clone() };
        let results = Results::new(&title, &plan, &journal.lock().unwrap_or_else(PoisonError::into_inner));
        let html = options.out.join(format!("{name}.html"));
        write(&html, &page::render(&config, &results, &when, &machine))?;
        let stored = options.out.join(format!("{name}.json"));
        let value = serde_json::to_value(&results).map_err(|error| Failed::Own(error.to_string()))?;
        write(&stored, &format!("{value:#}\n"))?;
        eprintln!("{}", text::render(&results));
        eprintln!("waylay: {} · {}", html.display(), stored.display());
        match stopped {
            Ok(()) => {}
            Err(Stop::Interrupted) => {
                return Err(Failed::Own("interrupted: the same command goes on where it was".to_owned()));
            }
            Err(Stop::Failed(reason)) => return Err(Failed::Own(reason)),
        }
        sections.push(markdown::section(&config, &results));
        violations.extend(gate::violations(&plan, &results));
        answers.push(value);
    }
    if let Some(file) = &options.markdown {
        write(file, &whole(&sections, options, &when, &machine))?;
        eprintln!("waylay: {}", file.display());
    }
    let code = if options.check && !violations.is_empty() { FAILURES } else { CLEAN };
    if options.check {
        violations.iter().for_each(|violation| eprintln!("waylay: does not hold: {violation}"));
        if code == CLEAN {
            eprintln!("waylay: all holds");
        }
    }
    if json {
        let value =
            json!({ "comparisons": answers, "violations": violations, "date": when, "machine": machine });
        print_json(&Value::clone(&value))?;
    }
    Ok(code)
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failed {
    Failed::Own(format!("cannot {what} {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), Failed> {
    std::fs::write(path, text).map_err(|error| cannot("write", path, &error))
}

fn stem(file: &Path) -> String {
    file.file_stem().map_or_else(|| "comparison".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

fn load(file: &Path, options: &CompareOptions) -> Result<Config, Failed> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failed::Usage(format!("cannot read {}: {error}", file.display())))?;
    let mut config =
        Config::parse(&text).map_err(|error| Failed::Config(format!("{}: {error}", file.display())))?;
    if let Some(trials) = options.trials {
        config.trials = trials;
        config
            .strategy_tables
            .iter_mut()
            .for_each(|table| table.trials = table.trials.map(|own| own.min(trials)));
    }
    Ok(config)
}

/// The file of a plugin and the tests in it that are meant.
fn find(
    table: &TestTable,
    config: &Config,
    file: &Path,
    installation: &Installation,
) -> Result<(PathBuf, Vec<String>), String> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let extra: Vec<PathBuf> = config.plugin_path.iter().map(|path| folder.join(path)).collect();
    let plugin =
        installation.find_plugin(&table.plugin, folder, &extra).map_err(|error| error.to_string())?;
    let pattern = Pattern::new(table.name.clone());
    let described = installation.describe(&plugin)?;
    let names: Vec<String> =
        described.tests.iter().map(|test| test.name.clone()).filter(|name| pattern.matches(name)).collect();
    if names.is_empty() {
        let all: Vec<&str> = described.tests.iter().map(|test| test.name.as_str()).collect();
        return Err(format!("{} has no test `{}`: it has {}", plugin.display(), table.name, all.join(", ")));
    }
    Ok((plugin, names))
}

fn run(
    plan: &Plan,
    journal: &Mutex<Journal>,
    options: &CompareOptions,
    shard: Shard,
    installation: &Installation,
) -> Result<(), Stop> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.map_or(cores, std::num::NonZeroUsize::get);
    let began = Instant::now();
    let said = Mutex::new(began);
    let bar = Bar::of("comparing", options.quiet);
    let make = |job: usize| {
        let arena =
            Arena::new(installation, &options.out, job).map_err(|error| Stop::Failed(error.to_string()))?;
        Ok(move |planned: Planned| one(plan, &arena, planned))
    };
    let tell = |progress: Progress, record: &Record| {
        let fresh = (progress.done - progress.before).max(1);
        let left = began.elapsed().mul_f64((progress.all - progress.done) as f64 / fresh as f64);
        if bar.is_shown() {
            bar.reach(progress.done as u64, Some(progress.all as u64));
            let left = text::seconds(left.as_secs_f64());
            bar.say(format!("about {left} left ({} on {})", record.strategy, record.test));
            return;
        }
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if options.quiet || said.elapsed() < SAY {
            return;
        }
        *said = Instant::now();
        eprintln!(
            "waylay: {} of {} trials, about {} left ({} on {})",
            progress.done,
            progress.all,
            text::seconds(left.as_secs_f64()),
            record.strategy,
            record.test
        );
    };
    runner::run(plan, shard, journal, jobs, make, tell)
}

/// Runs one trial.
fn one(plan: &Plan, arena: &Arena, planned: Planned) -> Result<Record, Stop> {
    let (strategy, test) = (&plan.strategies[planned.strategy], &plan.tests[planned.test]);
    let scheduling = match &strategy.scheduling {
        Wanted::Strict(spec) => Scheduling::Strict(Box::new(Strict {
            runs: std::num::NonZeroU64::new(strategy.runs),
            limit_is_failure: plan.limit_is_failure,
            conditions: RunConditions {
                max_steps: plan.max_steps,
                // Strategies are compared by the steps that a test is known to have.
                patch: false,
                ..RunConditions::of_test(STEP_LEVEL)
            },
            ..Strict::of(spec.clone())
        })),
        Wanted::Stress => Scheduling::Free,
        Wanted::Randomizer { period, suspend } => Scheduling::Randomized(Box::new(RawSettings {
            period: period.clone(),
            suspend: suspend.clone(),
            ..RawSettings::default()
        })),
    };
    let trial = Trial {
        plugin: test.plugin.clone(),
        test: test.name.clone(),
        params: test.params.clone(),
        workers: test.workers,
        seed: plan.seed_of(planned),
        scheduling,
        runs: strategy.runs,
        limit: strategy.limit,
        hang: plan.hang,
        count: plan.count,
        most_failures: u64::MAX,
    };
    let outcome = arena.run(&trial).map_err(|error| match error {
        TrialError::Interrupted => Stop::Interrupted,
        other => Stop::Failed(format!("{} with {}: {other}", test.label, strategy.label)),
    })?;
    Ok(record(plan.key(planned), &strategy.label, &test.label, &outcome))
}

fn record(key: String, strategy: &str, test: &str, outcome: &Outcome) -> Record {
    let strict = outcome.strict.as_ref();
    Record {
        format: FORMAT,
        key,
        strategy: strategy.to_owned(),
        test: test.to_owned(),
        runs: outcome.runs,
        unjudged: outcome.unjudged,
        failures: outcome.failures,
        first_run: outcome.first.as_ref().map(|first| first.run),
        first_seconds: outcome.first.as_ref().map(|first| first.seconds),
        kind: outcome.first.as_ref().map(|first| first.kind.to_owned()),
        seconds: outcome.seconds,
        threads: strict.map_or(0, |numbers| numbers.threads),
        steps: strict.map_or(0, |numbers| numbers.steps),
        longest: outcome.longest,
        promised: outcome.promised.clone(),
        exhausted: strict.is_some_and(|numbers| numbers.exhausted),
    }
}

/// The Markdown page: where the numbers come from, then the sections.
fn whole(sections: &[String], options: &CompareOptions, when: &str, machine: &str) -> String {
    let configs: Vec<String> = options.configs.iter().map(|config| config.display().to_string()).collect();
    let trials = options.trials.map_or_else(String::new, |trials| format!(" --trials {trials}"));
    format!(
        "# Results\n\nMeasured on {when}: {machine}. Made by\n\n    waylay compare {}{trials} --markdown docs/results.md\n\n{}",
        configs.join(" "),
        sections.join("\n")
    )
}
