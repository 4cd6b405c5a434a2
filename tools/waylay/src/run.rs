//! `waylay run`: from a configuration to a summary.

use std::io::IsTerminal;
use std::time::Duration;

use waylay_dist::Seed;
use waylay_driver::campaign::{self, Examiner, LeakPolicy, LeakSettings, Options, Scenario, Selection};
use waylay_driver::catalog::Installation;
use waylay_driver::config::{self, Loaded, Overrides, Pattern, Source};
use waylay_driver::dumps::DumpPlan;
use waylay_driver::interrupt;
use waylay_driver::report::{Detail, Live, Silent, Terminal, count, plural, summary_text};
use waylay_driver::store::{Campaign, Retention};
use waylay_explore::plugin_test::Confirmer;
use waylay_history::feed::Recorded;
use waylay_history::write::Context;

use crate::args::RunOptions;
use crate::installation::installation;
use crate::lines::Writer;
use crate::lots::Night;
use crate::output::{Failed, print_json};
use crate::pack::unpacked;
use crate::progress::{Bar, OnBar};
use crate::shard;
use crate::tui::FullScreen;

/// The configuration that runs when none is given.
pub(crate) const DEFAULT_CONFIG: &str = include_str!("../../../configs/default.toml");

/// How often a line about progress is written: people look at terminals, machines keep logs.
const LINE_ON_TERMINAL: Duration = Duration::from_secs(2);
const LINE_IN_LOG: Duration = Duration::from_secs(5);
/// How often the words beside a bar change: a rate over less jumps about.
const WORDS_ON_BAR: Duration = Duration::from_secs(1);
/// Dumps of one campaign; each is a few hundred KiB.
const DUMPS_PER_CAMPAIGN: u64 = 200;
/// Longest time that something late is given to come back before it counts as stuck.
const MOST_GRACE: Duration = Duration::from_secs(5);

/// Reads the configuration, or the embedded one.
pub(crate) fn load(path: Option<&std::path::Path>, overrides: &Overrides) -> Result<Loaded, Failed> {
    config::parse(source(path)?, overrides)
        .map_err(|diagnostics| Failed::Config(diagnostics.render(colour())))
}

/// The text of the configuration, or of the embedded one.
pub(crate) fn source(path: Option<&std::path::Path>) -> Result<Source, Failed> {
    match path {
        Some(path) => config::source_of(path).map_err(|error| Failed::Usage(error.to_string())),
        None => Ok(Source::new("the embedded default configuration", DEFAULT_CONFIG)),
    }
}

/// Whether error messages are coloured.
pub(crate) fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// How a campaign of that configuration is run.
pub(crate) fn options(loaded: &Loaded) -> Options {
    let config = &loaded.config;
    Options {
        out: config.out.clone(),
        seed: config.seed.unwrap_or_else(Seed::fresh),
        duration: config.duration,
        config: loaded.portable().to_string(),
        dumps: DumpPlan {
            formats: config.evidence.dump_format.clone(),
            size: config.evidence.dump,
            limit: config.evidence.dump_limit.0,
        },
        retention: Retention {
            evidence_per_signature: config.evidence.dumps_per_signature.into(),
            dumps_per_campaign: DUMPS_PER_CAMPAIGN,
            signatures: config.evidence.max_signatures.into(),
        },
        log_limit: config.evidence.log_limit.0,
        keep_hung: config.evidence.keep_hung,
        heap_sampling: config.leaks.enabled.then_some(config.leaks.sample_bytes.0),
        leaks: leak_settings(&config.leaks),
        stop_after_failures: None,
        most_grace: MOST_GRACE,
        mode: config.evidence.mode,
        redact: config.evidence.redact.clone(),
        shard: None,
    }
}

fn leak_settings(leaks: &config::Leaks) -> LeakSettings {
    LeakSettings {
        policy: LeakPolicy {
            warm_up: leaks.warm_up,
            false_alarms_per_hour: leaks.false_alarms_per_hour,
            ..LeakPolicy::default()
        },
        handles: leaks.handles,
        threads: leaks.threads,
    }
}

/// Who runs failing schedules again.
pub(crate) fn examiner(installation: &Installation) -> Option<Box<dyn Examiner>> {
    let library = installation.control_library()?;
    let executable = std::env::current_exe().ok()?;
    Some(Box::new(Confirmer::new(executable, library)))
}

/// The campaign on the whole screen, or a word why not.
fn full_screen(loaded: &Loaded) -> Option<Box<dyn Live>> {
    match FullScreen::open(loaded.source.name(), LINE_ON_TERMINAL) {
        Ok(screen) => Some(Box::new(screen)),
        Err(reason) => {
            eprintln!("waylay: lines instead of the whole screen: {reason}");
            None
        }
    }
}

/// One line that is written over on a terminal, which fills with the time that `what` may take; elsewhere a line every few
/// seconds; or nothing.
pub(crate) fn live(what: &str, limit: Option<Duration>, quiet: bool, detail: Detail) -> Box<dyn Live> {
    if quiet {
        return Box::new(Silent);
    }
    let bar = match limit {
        Some(limit) => Bar::within(what, limit, quiet),
        None => Bar::of(what, quiet),
    };
    match bar.is_shown() {
        true => Box::new(OnBar::new(Terminal::new(WORDS_ON_BAR, detail), bar)),
        false => {
            let every = if std::io::stderr().is_terminal() { LINE_ON_TERMINAL } else { LINE_IN_LOG };
            Box::new(Terminal::new(every, detail))
        }
    }
}

/// How long a campaign of these scenarios may take; none when one of them goes on until it is stopped.
fn limit(scenarios: &[Scenario], whole: Option<Duration>) -> Option<Duration> {
    let sum = scenarios.iter().map(|scenario| scenario.duration).sum::<Option<Duration>>();
    match (whole, sum) {
        (Some(whole), Some(sum)) => Some(whole.min(sum)),
        (whole, sum) => whole.or(sum),
    }
}

pub(crate) fn run(arguments: &RunOptions, json: bool) -> Result<u8, Failed> {
    if arguments.json_lines && json {
        let words = "the last of --json-lines is what --json prints: give one of them";
        return Err(Failed::Usage(words.to_owned()));
    }
    // Asking what is running is harmless from the first moment on.
    interrupt::watch_for_looks();
    let overrides = Overrides {
        seed: arguments.seed,
        duration: arguments.duration,
        out: arguments.out.clone(),
        keep_hung: arguments.keep_hung.then_some(true),
        profile: arguments.layers.profile.clone(),
        set: arguments.layers.set.clone(),
    };
    let pack = unpacked(arguments.config.as_deref())?;
    let (config, installation) = match &pack {
        Some(pack) => (Some(pack.config()), pack.installation()),
        None => (arguments.config.clone(), installation()?),
    };
    let loaded = load(config.as_deref(), &overrides)?;
    let selection = Selection {
        scenario: arguments.scenario.as_ref().map(Pattern::new),
        test: arguments.test.as_ref().map(Pattern::new),
        plugin: None,
    };
    let options = options(&loaded);
    waylay_driver::keep_private(options.mode);
    for interrupted in Campaign::find_interrupted(&options.out) {
        eprintln!("waylay: {}", describe_interrupted(&interrupted));
    }
    let mix = campaign::mix(&loaded, &installation, &selection)
        .map_err(|diagnostics| Failed::Config(diagnostics.render(colour())))?;
    for problem in &mix.problems {
        eprintln!("waylay: cannot use {problem}");
    }
    if mix.scenarios.is_empty() {
        let why = if mix.problems.is_empty() {
            "no test fits --scenario and --test"
        } else {
            "no plugin could be loaded"
        };
        return Err(Failed::Usage(format!("nothing to run: {why}")));
    }
    let night = shard::wanted(arguments.shard.shard)?.map(|shard| {
        Night::new(shard, &loaded, &mix.scenarios, pack.as_ref().map(|pack| pack.pack.digest.clone()))
    });
    if !arguments.quiet {
        let tests: usize = mix.scenarios.iter().map(|scenario| scenario.tests.len()).sum();
        let scenarios = plural(mix.scenarios.len() as u64, "scenario");
        eprintln!("waylay: {scenarios}, {}, seed {}", plural(tests as u64, "test"), options.seed);
    }
    let screen = if arguments.tui { full_screen(&loaded) } else { None };
    let verbose = arguments.verbose || std::env::var_os("WAYLAY_VERBOSE").is_some_and(|value| value == "1");
    let detail = if verbose { Detail::All } else { Detail::Page };
    let mut live = screen
        .unwrap_or_else(|| live("running", limit(&mix.scenarios, options.duration), arguments.quiet, detail));
    let lines = match arguments.json_lines {
        true => {
            Some(Writer::start().map_err(|error| Failed::Own(format!("cannot start a thread: {error}")))?)
        }
        false => None,
    };
    if let Some(lines) = &lines {
        live = lines.beside(live);
    }
    let mut live = Recorded::open(live, &options.out, Context::default());
    let mut campaign = |scenarios: Vec<Scenario>, options: &Options| {
        let problems = mix.problems.clone();
        let examiner = examiner(&installation);
        campaign::run(scenarios, problems, &installation, options, &mut live, examiner)
            .map_err(|error| Failed::Own(error.to_string()))
    };
    if let Some(night) = night {
        if lines.is_some() {
            return Err(Failed::Usage(
                "--json-lines tells of one campaign: a shard may have several".to_owned(),
            ));
        }
        let mut told = |scenarios: Vec<Scenario>, options: &Options| {
            let summary = campaign(scenarios, options)?;
            eprint!("\n{}", summary_text(&summary, detail));
            Ok(summary)
        };
        let code = night.run(&mix.scenarios, &options, &arguments.shard, json, &mut told);
        live.finish();
        return code;
    }
    let summary = campaign(mix.scenarios.clone(), &options);
    // The whole screen, where it was shown, takes what is printed on it with it.
    live.finish();
    let summary = summary?;
    eprint!("\n{}", summary_text(&summary, detail));
    if let Some(lines) = lines {
        lines.finish(&summary);
    } else if json {
        print_json(&summary)?;
    }
    Ok(summary.exit_code)
}

fn describe_interrupted(interrupted: &waylay_driver::store::InterruptedCampaign) -> String {
    let folder = interrupted.folder.display();
    match &interrupted.record {
        Some(record) => {
            let iterations: u64 = record.scenarios.iter().flat_map(|s| &s.tests).map(|t| t.iterations).sum();
            format!(
                "the campaign {folder} was interrupted at {} after {}; {} kept there",
                record.updated.strftime("%Y-%m-%d %H:%M:%S UTC"),
                plural(iterations, "iteration"),
                match record.failures {
                    1 => "its one failure is".to_owned(),
                    failures => format!("its {} failures are", count(failures)),
                }
            )
        }
        None => format!("the campaign {folder} was interrupted before it wrote anything"),
    }
}
