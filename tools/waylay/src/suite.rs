//! `waylay suite`: every case of a suite of unit tests in strict mode, schedule after schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use waylay_driver::failure::FailureEntry;
use waylay_driver::interrupt;
use waylay_driver::report::{count, span};
use waylay_driver::store::CampaignRecord;
use waylay_explore::program::Program;
use waylay_explore::suite::first_pass::{Threads, first_pass};
use waylay_explore::suite::fixtures::SetUp;
use waylay_explore::suite::summary::{SuiteNumbers, SuiteSummary};
use waylay_explore::suite::together::{self, Standing, Watcher};
use waylay_explore::suite::{Case, Suite, SuiteError, binary, folder};
use waylay_explore::summary::Found;
use waylay_explore::timings;
use waylay_history::feed::Feed;
use waylay_history::write::Context;
use waylay_schedule::Shard;

use crate::args::{CaseOptions, ExploreSettings, ShardOptions, SuiteOptions};
use crate::explore::{LINE_IN_LOG, LINE_ON_TERMINAL, explore_program, plan};
use crate::output::{BAD_USAGE, CLEAN, FAILURES, Failed, kept, print_json};
use crate::progress::Bar;
use crate::{report, shard};

mod flaky;

pub(crate) fn suite(options: &SuiteOptions, json: bool) -> Result<u8, Failed> {
    let usage = |error: SuiteError| Failed::Usage(error.to_string());
    let SuiteOptions { command, cases, settings } = options;
    let first = Path::new(&command[0]);
    if first.is_dir() {
        let (suites, left_out) = folder::suites(first).map_err(usage)?;
        let notes = left_out.into_iter().map(|one| format!("left out: {one}")).collect();
        return run(suites, notes, cases, settings, json);
    }
    let program =
        Program::new(command, settings.cwd.as_deref()).map_err(|error| Failed::Usage(error.to_string()))?;
    let program = Program { environment: settings.environment.clone(), ..program };
    match binary::suite(&program) {
        Ok(suite) => run(vec![suite], Vec::new(), cases, settings, json),
        Err(error @ SuiteError::NoSuite(_))
            if !cases.list && cases.flaky.is_none() && cases.filter.is_empty() =>
        {
            eprintln!("waylay: {error}: explored as one program");
            let shard = ShardOptions { shard: cases.shard, resume: false };
            explore_program(command, settings, &shard, json)
        }
        Err(error) => Err(usage(error)),
    }
}

/// Explores the chosen cases of suites.
pub(crate) fn run(
    suites: Vec<Suite>,
    mut notes: Vec<String>,
    cases: &CaseOptions,
    settings: &ExploreSettings,
    json: bool,
) -> Result<u8, Failed> {
    let shard = match cases.flaky {
        Some(_) => None,
        None => shard::wanted(cases.shard)?,
    };
    let mut chosen = choose(&suites, cases, shard)?;
    if cases.list {
        return list(&suites, &chosen, json);
    }
    interrupt::watch();
    // What is there stays until all of this is over.
    let _there = set_up(&suites, &mut chosen, &mut notes);
    let begun = Instant::now();
    let mut threaded: Vec<Case> = Vec::new();
    let mut numbers = Vec::new();
    for (suite, chosen) in suites.iter().zip(&chosen) {
        if chosen.is_empty() {
            continue;
        }
        let bar = Bar::of("looking which cases start threads", settings.quiet);
        let mut told = |text: &str| {
            if !settings.quiet {
                eprintln!("waylay: {text}");
            }
        };
        let seen = first_pass(suite, chosen, settings.timeout, &mut told);
        drop(bar);
        let with: Vec<&Case> = chosen
            .iter()
            .zip(&seen)
            .filter(|(_, seen)| **seen == Threads::Maybe)
            .map(|(case, _)| case)
            .collect();
        for (case, seen) in chosen.iter().zip(&seen) {
            let subject = case.program.subject();
            match seen {
                Threads::NoneAndNoEnd => notes.push(format!(
                    "{subject} starts no threads and does not end within {:?}: not explored",
                    settings.timeout
                )),
                Threads::Skipped => notes.push(format!("{subject} says that it is skipped: not explored")),
                Threads::Maybe | Threads::None => {}
            }
        }
        let number = SuiteNumbers {
            name: suite.name.clone(),
            framework: suite.kind_name().to_owned(),
            cases: chosen.len(),
            threaded: with.len(),
        };
        if !settings.quiet {
            eprintln!("waylay: {}", number.line());
        }
        numbers.push(number);
        threaded.extend(with.into_iter().cloned());
    }
    let first_pass_seconds = begun.elapsed().as_secs_f64();
    let any = suites.iter().find_map(|suite| suite.cases.first());
    let first = match (threaded.first(), any.filter(|_| shard.is_some())) {
        (Some(first), _) | (None, Some(first)) => first,
        (None, None) => {
            notes.iter().for_each(|note| eprintln!("waylay: {note}"));
            return Err(nothing(&numbers));
        }
    };
    let mut base = plan(settings, first.program.clone())?;
    base.program.environment.clone_from(&settings.environment);
    // Tests of people wait for other threads by sleeping, which is no bug of what they test.
    base.conditions.run.idle_timeouts = settings.idle_timeouts.unwrap_or(true);
    if let Some(shard) = shard {
        shard::share_cases(&mut base, shard, settings.seed, &suites, cases);
    }
    if cases.flaky.is_some() {
        return flaky::flaky(base, first, (cases, settings), json);
    }
    let mut lines = Lines::new(settings);
    let explored =
        together::explore(&base, &threaded, &mut lines).map_err(|error| Failed::Own(error.to_string()))?;
    lines.finish();
    let without: BTreeMap<&str, usize> =
        explored.cases.iter().filter(|case| case.no_threads).fold(BTreeMap::new(), |mut sums, case| {
            *sums.entry(case.suite.as_str()).or_default() += 1;
            sums
        });
    for number in &mut numbers {
        number.threaded -= without.get(number.name.as_str()).copied().unwrap_or(0);
    }
    let summary = SuiteSummary {
        cases: numbers.iter().map(|one| one.cases).sum(),
        threaded: numbers.iter().map(|one| one.threaded).sum(),
        failed: explored.cases.iter().filter(|case| case.summary.failures > 0).count(),
        runs: explored.cases.iter().map(|case| case.summary.runs).sum(),
        seconds: begun.elapsed().as_secs_f64(),
        first_pass_seconds,
        explored: explored.cases.into_iter().filter(|case| !case.no_threads).collect(),
        suites: numbers,
        notes,
        interrupted: explored.interrupted,
        folder: explored.folder,
    };
    eprint!("\n{}", summary.text());
    if settings.timings {
        eprint!("{}", timings::spent().text());
    }
    if json {
        print_json(&summary)?;
    }
    report::files(&summary.folder, cases.junit.as_deref(), cases.sarif.as_deref())?;
    if summary.failed > 0 {
        return Ok(kept(&summary.folder, FAILURES));
    }
    if summary.threaded == 0 && shard.is_some() {
        return Ok(kept(&summary.folder, CLEAN));
    }
    if summary.threaded == 0 {
        return Err(nothing(&summary.suites));
    }
    // Nothing was judged, so nothing is clean.
    let judged = summary.explored.iter().any(|case| case.summary.runs > case.summary.limit_reached);
    Ok(kept(&summary.folder, if judged { CLEAN } else { BAD_USAGE }))
}

/// Sets up the fixtures that chosen cases need; cases without theirs are taken out and told.
fn set_up<'a>(suites: &'a [Suite], chosen: &mut [Vec<Case>], notes: &mut Vec<String>) -> Vec<SetUp<'a>> {
    let needs: BTreeSet<String> =
        chosen.iter().flatten().flat_map(|case| case.needs.iter().cloned()).collect();
    if needs.is_empty() {
        return Vec::new();
    }
    let needs = needs.iter().map(String::as_str).collect();
    let there: Vec<SetUp<'_>> = suites.iter().map(|suite| suite.fixtures.set_up(&needs)).collect();
    let missing: BTreeMap<&str, &str> =
        there.iter().flat_map(|one| &one.missing).map(|(name, why)| (name.as_str(), why.as_str())).collect();
    chosen.iter_mut().for_each(|cases| {
        cases.retain(|case| {
            let gone = case.needs.iter().find_map(|name| Some((name, missing.get(name.as_str())?)));
            notes.extend(gone.map(|(name, why)| {
                format!("left out: {}: its fixture {name} is not there: {why}", case.program.subject())
            }));
            gone.is_none()
        });
    });
    there
}

/// The chosen cases, by suite.
fn choose(suites: &[Suite], options: &CaseOptions, shard: Option<Shard>) -> Result<Vec<Vec<Case>>, Failed> {
    let wanted = |name: &str| {
        let matches =
            |filter: &String| if options.exact { name == filter } else { name.contains(filter.as_str()) };
        match &options.flaky {
            Some(case) => name == case,
            None => options.filter.is_empty() || options.filter.iter().any(matches),
        }
    };
    let mut index = 0;
    let mut chosen = Vec::new();
    for suite in suites {
        let mut cases: Vec<Case> = suite.cases.iter().filter(|case| wanted(&case.name)).cloned().collect();
        cases.retain(|_| {
            index += 1;
            shard.is_none_or(|shard| shard.has(index - 1))
        });
        chosen.push(cases);
    }
    // A shard may have nothing to do: others have.
    if chosen.iter().all(Vec::is_empty) && (shard.is_none() || index == 0) {
        let all: usize = suites.iter().map(|suite| suite.cases.len()).sum();
        let filters =
            options.filter.iter().chain(&options.flaky).map(|one| format!("`{one}`")).collect::<Vec<_>>();
        return Err(Failed::Usage(match all {
            0 => "there are no cases: nothing ran".to_owned(),
            _ => {
                format!(
                    "{} matches none of the {} cases: nothing ran (--list shows them)",
                    filters.join(", "),
                    count(all as u64)
                )
            }
        }));
    }
    Ok(chosen)
}

fn nothing(numbers: &[SuiteNumbers]) -> Failed {
    if numbers.is_empty() {
        return Failed::Usage("no case is left: nothing ran".to_owned());
    }
    let said = numbers.iter().map(SuiteNumbers::line).collect::<Vec<_>>().join("; ");
    Failed::Usage(format!("{said}: no case has threads, so each has one schedule only: nothing ran"))
}

fn list(suites: &[Suite], chosen: &[Vec<Case>], json: bool) -> Result<u8, Failed> {
    if json {
        let one = |(suite, cases): (&Suite, &Vec<Case>)| {
            let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            json!({ "name": suite.name, "framework": suite.kind_name(), "cases": names })
        };
        print_json(&json!({ "suites": suites.iter().zip(chosen).map(one).collect::<Vec<_>>() }))?;
        return Ok(CLEAN);
    }
    for (suite, cases) in suites.iter().zip(chosen) {
        eprintln!("{} ({}), {} cases", suite.name, suite.kind_name(), count(cases.len() as u64));
        for case in cases {
            println!("{}", case.name);
        }
    }
    Ok(CLEAN)
}

/// A line that is written over, or one every few seconds in a log, and one for every failure.
struct Lines {
    quiet: bool,
    bar: Bar,
    every: Duration,
    next: Duration,
    begun: Instant,
    feed: Option<Feed>,
}

impl Lines {
    fn new(settings: &ExploreSettings) -> Lines {
        let every = if std::io::stderr().is_terminal() { LINE_ON_TERMINAL } else { LINE_IN_LOG };
        let feed = match Feed::open(&settings.out, Context::default()) {
            Ok(feed) => Some(feed),
            Err(error) => {
                eprintln!("waylay: the history is not written: {error}");
                None
            }
        };
        let bar = Bar::of("exploring cases", settings.quiet);
        Lines { quiet: settings.quiet, bar, every, next: every, begun: Instant::now(), feed }
    }

    fn finish(&mut self) {
        self.bar.end();
        if let Some(problem) = self.feed.take().and_then(Feed::finish) {
            eprintln!("waylay: the history is not written: {problem}");
        }
    }
}

impl Watcher for Lines {
    fn tick(&mut self, standing: &Standing<'_>) -> bool {
        let elapsed = self.begun.elapsed();
        if self.bar.is_shown() {
            self.bar.reach(standing.done as u64, Some(standing.cases as u64));
            let (runs, failed) = (count(standing.runs), count(standing.failed as u64));
            self.bar.say(format!("{runs} schedules, {failed} failed; now {}", standing.case));
        } else if !self.quiet && elapsed >= self.next {
            self.next = elapsed + self.every;
            eprintln!(
                "waylay: {}  {} schedules, {} of {} cases done, {} failed; now {}",
                span(elapsed),
                count(standing.runs),
                count(standing.done as u64),
                count(standing.cases as u64),
                count(standing.failed as u64),
                standing.case
            );
        }
        !interrupt::requested()
    }

    fn found(&mut self, case: &str, found: &Found) {
        if !self.quiet {
            eprintln!("waylay: {case}: run {}: {}: {}", count(found.first_run), found.kind, found.what);
        }
    }

    fn note(&mut self, text: &str) {
        eprintln!("waylay: {text}");
    }

    fn campaign(&mut self, record: &CampaignRecord, _folder: &Path, failures: &[&FailureEntry]) {
        if let Some(feed) = &self.feed {
            feed.campaign(record);
            feed.failures(failures.iter().copied());
        }
    }
}
