//! The command line.

mod behind_test;
mod fleet;
mod kept;
mod suite;
#[cfg(test)]
mod written;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use waylay_control_protocol::Patch;
use waylay_dist::Seed;
use waylay_driver::config::{Minimizing, suggestion};
use waylay_explore::directed::spot::Spot;
use waylay_explore::restart::Restart;
use waylay_explore::{Level, Memory};
use waylay_schedule::Shard;

use crate::output::Failed;
use crate::serve::{ServeOptions, ServiceCommand};
pub(crate) use fleet::{
    CollectOptions, FleetCommand, FleetFolder, FleetRunOptions, MergeOptions, On, PackOptions,
};
pub(crate) use kept::{
    CompletionsOptions, DumpReader, ExportOptions, FailuresOptions, HuntOptions, ManOptions, OpenOptions,
    ReportOptions, ShowOptions, VerifyOptions,
};
pub(crate) use suite::{CargoOptions, CaseOptions, SuiteOptions};

/// Finds concurrency bugs in native code by putting threads where they least want to be.
#[derive(Debug, Parser)]
#[command(name = "waylay", version, long_version = crate::version::long(), max_term_width = 110, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print one machine-readable object on standard output.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    run: RunOptions,
}

const EXIT_CODES: &str = "Without a command, `waylay` runs the embedded default mix, like `waylay run`.\n\n\
    Exit codes: 0 clean, 1 failures found, 2 bad usage or configuration or nothing ran, 3 Waylay itself failed.";

impl Arguments {
    /// The command, or a run of the mix that was named, or of the default mix. A single word that is no file was meant to
    /// be a command.
    pub(crate) fn command(self) -> Result<Command, Failed> {
        if let (None, Some(file)) = (&self.command, &self.run.config)
            && file.components().count() == 1
            && file.extension().is_none()
            && !file.exists()
        {
            let command = Arguments::command_for_help();
            let known: Vec<&str> = command
                .get_subcommands()
                .filter(|one| !one.is_hide_set())
                .map(|one| one.get_name())
                .collect();
            let word = file.display();
            let help = suggestion::help(&word.to_string(), &known);
            return Err(Failed::Usage(format!("there is no command and no file `{word}`: {help}")));
        }
        Ok(self.command.unwrap_or(Command::Run(self.run)))
    }

    /// The whole command line, as data.
    pub(crate) fn command_for_help() -> clap::Command {
        <Arguments as clap::CommandFactory>::command()
    }
}

/// The command line in the form that is read: `--json FILE` of `waylay report` is `--json-file FILE`, because everywhere else
/// `--json` takes no value; and options of ours behind `waylay cargo test` stand in front of `test`.
pub(crate) fn spelled_out(given: impl Iterator<Item = std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let mut given = given.peekable();
    let mut words: Vec<std::ffi::OsString> = Vec::new();
    while let Some(word) = given.next() {
        let is_report = words.get(1).is_some_and(|command| command == "report");
        let is_file =
            |next: &std::ffi::OsString| std::path::Path::new(next).extension().is_some_and(|e| e == "json");
        let names_a_file = is_report && word == "--json" && given.peek().is_some_and(is_file);
        words.push(if names_a_file { "--json-file".into() } else { word });
    }
    behind_test::ours_first(words)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a mix of tests, watch them, keep evidence of every failure.
    Run(RunOptions),
    /// Run any program in strict mode, schedule after schedule, and keep what fails.
    Explore(Box<ExploreOptions>),
    /// Explore every case of a suite of unit tests (libtest, GoogleTest, Catch2, doctest, Boost.Test, CTest, Meson).
    Suite(Box<SuiteOptions>),
    /// Build the tests of a Cargo workspace and explore every case; the same as `cargo waylay test`.
    Cargo(Box<CargoOptions>),
    /// Try strategies on tests, many times each: how often and how soon each finds what.
    Compare(CompareOptions),
    /// Put the command, plugins, libraries and a configuration into one file that runs on other machines.
    Pack(PackOptions),
    /// Run a night on several machines, or as several processes: Slurm, Kubernetes, or this machine.
    #[command(subcommand)]
    Fleet(FleetCommand),
    /// Put the results of all shards of a night together into one campaign.
    Merge(MergeOptions),
    /// Run campaigns in time windows, night after night, with a dashboard.
    Serve(ServeOptions),
    /// Have the system start `waylay serve` with the machine, or see how it is.
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Check a configuration and everything that it names, without running anything.
    Check(CheckOptions),
    /// List the tests of a plugin, of a configuration, or of this installation.
    List(ListOptions),
    /// Make a new plugin that builds and runs as it is.
    New(NewOptions),
    /// Say what this machine allows, why a plugin does not load, and what of a program can be a step.
    Doctor(DoctorOptions),
    /// Run a failure again and count how often it comes back.
    Replay(ReplayOptions),
    /// Look for a failure that was only seen freely in strict mode, and give it the schedule.
    Hunt(HuntOptions),
    /// Find the fewest forced switches with which a failure of strict mode still happens.
    Minimize(MinimizeOptions),
    /// Print what to compile C and C++ with, so that atomics and accesses are steps.
    Cflags(FlagOptions),
    /// Print what to link C and C++ with after compiling with `waylay cflags`.
    Ldflags(FlagOptions),
    /// Print RUSTFLAGS with which atomics and accesses of Rust code are steps.
    Rustflags(FlagOptions),
    /// Make a report of a campaign: HTML, JUnit, SARIF, Markdown, JSON, or a few lines.
    Report(Box<ReportOptions>),
    /// List the failures of a campaign, and what became of those before.
    Failures(FailuresOptions),
    /// Show everything that is known about a failure.
    Show(ShowOptions),
    /// Open what was kept of a failure in a debugger.
    Open(OpenOptions),
    /// Pack a failure with its evidence into one zip.
    Export(ExportOptions),
    /// Run until it is sure that a failure is fixed, or until it comes back.
    Verify(VerifyOptions),
    /// Compute what a strategy guarantees.
    Bound(BoundOptions),
    /// Print a configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print completions for a shell.
    Completions(CompletionsOptions),
    /// Print the manual page, or write one per command.
    Man(ManOptions),
    /// Suspend threads of any process at random; the same as `waylay-randomizer`.
    Randomizer {
        /// Its own flags; `waylay randomizer --help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// The process that runs tests; started by the other commands.
    #[command(hide = true)]
    Host {
        /// Run one schedule of one test, alone; this is its description.
        #[arg(long, value_name = "PLAN")]
        schedule: Option<String>,
    },
}

impl Command {
    /// Whether it writes what was found, of which nobody but the user is to see anything. What others write is the user's own, like
    /// a new project, or is meant for others.
    pub(crate) fn writes_results(&self) -> bool {
        use Command::*;
        matches!(
            self,
            Run(_)
                | Explore(_)
                | Suite(_)
                | Cargo(_)
                | Compare(_)
                | Fleet(_)
                | Merge(_)
                | Serve(_)
                | Replay(_)
                | Hunt(_)
                | Minimize(_)
                | Report(_)
                | Export(_)
                | Verify(_)
        )
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// The embedded default configuration, with comments.
    Default(WhoseConfig),
    /// The effective configuration: every default filled in, and where each value comes from.
    Show(CheckOptions),
    /// The JSON schema of configurations, for editors.
    Schema(WhoseConfig),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct WhoseConfig {
    /// Of `waylay serve` instead of `waylay run`.
    #[arg(long)]
    pub(crate) service: bool,
}

/// What is laid over a configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct LayerOptions {
    /// Lay this profile of the configuration over the rest of it: [profile.NAME].
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Set a key, such as defaults.workers=8 or scenario.NAME.duration=10m; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RunOptions {
    /// Configuration file; the embedded default mix when absent.
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) layers: LayerOptions,
    /// How long the whole campaign runs, for example 30s, 10m, 8h.
    #[arg(long, value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// The seed that every random choice comes from.
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
    /// Folder for the results.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Run only scenarios whose name matches this pattern.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) scenario: Option<String>,
    /// Run only tests whose name matches this pattern.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) test: Option<String>,
    /// Leave a hung process alone and print how to attach a debugger.
    #[arg(long)]
    pub(crate) keep_hung: bool,
    /// Show the campaign on the whole screen; where there is no terminal, lines as without.
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) tui: bool,
    /// Print only the summary.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print every failure as a block, every note and every test, however many lines that takes; also with WAYLAY_VERBOSE=1 in the
    /// environment.
    #[arg(long, short, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// Print what happens on standard output while it happens, one JSON object a line.
    #[arg(long)]
    pub(crate) json_lines: bool,
    #[command(flatten)]
    pub(crate) shard: ShardOptions,
}

/// Which part of a night this process is.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ShardOptions {
    /// The I-th of N parts of a night, for several machines; from the engine's variables (Slurm, Kubernetes) when absent.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Go on where an earlier process of the same shard ended, from what is in the folder for results.
    #[arg(long)]
    pub(crate) resume: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExploreOptions {
    /// The program and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) aim: AimOptions,
    #[command(flatten)]
    pub(crate) shard: ShardOptions,
    #[command(flatten)]
    pub(crate) settings: ExploreSettings,
}

/// Where a search is aimed at.
#[derive(Debug, Args)]
pub(crate) struct AimOptions {
    /// Aim at this line and that of `--and`: threads are held back at one until another thread has come by the other, in both
    /// orders.
    #[arg(long, value_name = "FILE:LINE", requires = "and")]
    pub(crate) between: Option<Spot>,
    /// The other line; it may be the same.
    #[arg(long, value_name = "FILE:LINE", requires = "between")]
    pub(crate) and: Option<Spot>,
    /// Aim at the places of this report: a text of ThreadSanitizer or helgrind, or a failure of ours (its folder).
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["between", "and"])]
    pub(crate) reproduce: Option<PathBuf>,
}

/// How programs are explored, whichever these are.
#[derive(Debug, Args)]
pub(crate) struct ExploreSettings {
    /// Who decides which thread runs: pct, pct:depth=3, rpro, stride, pos, surw, idiom, random, pb, db, dfs, portfolio, …;
    /// a portfolio of several when absent.
    #[arg(long)]
    pub(crate) strategy: Option<String>,
    /// Depth of the bugs that are looked for, for pct and rpro; pct when no strategy is named.
    #[arg(long)]
    pub(crate) depth: Option<u32>,
    /// How many schedules; 1000 unless a time is given.
    #[arg(long)]
    pub(crate) runs: Option<u64>,
    /// For how long, for example 30s, 10m.
    #[arg(long, alias = "for", value_parser = duration, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,
    /// End with the first failure.
    #[arg(long)]
    pub(crate) stop_on_first: bool,
    /// End when so many schedules in a row showed no new order of two conflicting places in the code.
    #[arg(long, value_name = "SCHEDULES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) stop_after_quiet: Option<u64>,
    /// Say at the end where the time went, stage by stage.
    #[arg(long)]
    pub(crate) timings: bool,
    /// The seed that every random choice comes from.
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
    /// Schedules at once; the same ones are run for any number.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: u32,
    /// How runs begin: snapshot (restored in one process, many times as fast), fork (a process each), auto (the faster one).
    #[arg(long, default_value = "auto", value_name = "WAY")]
    pub(crate) restart: Restart,
    /// Environment variable for the program; may be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) environment: Vec<(String, String)>,
    /// Folder in which the program runs.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,
    /// Every run gets a fresh copy of that folder, so that no run sees what another one wrote.
    #[arg(long)]
    pub(crate) isolate: bool,
    /// File that the program reads as its standard input; nothing when absent.
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Exit statuses that are good.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', default_value = "0")]
    pub(crate) good_exit: Vec<i32>,
    /// A text that must not be in the standard error output; may be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(crate) bad_stderr: Vec<String>,
    /// A file with what the standard output must be.
    #[arg(long, value_name = "FILE")]
    pub(crate) expect_stdout: Option<PathBuf>,
    /// Steps after which a run is stopped; it is not judged then.
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) max_steps: u64,
    /// A run that reaches that limit has failed.
    #[arg(long)]
    pub(crate) limit_is_failure: bool,
    /// Time after which a run that does not end is killed.
    #[arg(long, value_parser = duration, default_value = "10s")]
    pub(crate) timeout: Duration,
    /// Switch between kernel threads instead of fibers: slower, for programs that fibers disturb.
    #[arg(long)]
    pub(crate) baton: bool,
    /// Sleeps and timeouts end only when nothing else can run, not whenever the strategy likes. Cases of suites are run so, because
    /// many wait by sleeping, unless `--idle-timeouts=false` is said.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) idle_timeouts: Option<bool>,
    /// Let the program see the real clocks.
    #[arg(long)]
    pub(crate) real_time: bool,
    /// Let the program's random bytes come from the kernel.
    #[arg(long)]
    pub(crate) real_random: bool,
    /// What is a step: sync (library calls), atomics (and atomic instructions), auto (and those accesses of the program and
    /// its own libraries that conflict in an order that nothing settles), memory (and accesses that threads share).
    #[arg(long, default_value = waylay_explore::DEFAULT_LEVEL)]
    pub(crate) level: Level,
    /// What of unmodified code is patched: `none`; or `memory=LIBRARY`, every access of a library too, from auto on.
    #[arg(long, value_name = "WHAT")]
    pub(crate) patch: Vec<Patch>,
    /// Two accesses to the same memory that nothing orders are a failure, whether or not anything comes of it; from memory or
    /// auto on.
    #[arg(long)]
    pub(crate) races: bool,
    /// When other threads see a store: sc (at once), tso (when it leaves the store buffer, as on x86; see
    /// docs/memory-models.md).
    #[arg(long, default_value = "sc", value_name = "MODEL")]
    pub(crate) memory: Memory,
    /// Allocating, freeing, output and files are no steps.
    #[arg(long)]
    pub(crate) no_calls: bool,
    /// Let freed memory be reused at once; misuse of it then shows less often.
    #[arg(long)]
    pub(crate) no_guard: bool,
    /// Processor time that goes into minimising each failure and finding its cause; `off`: neither.
    #[arg(long, value_parser = minimizing, default_value = "5s", value_name = "TIME")]
    pub(crate) minimize: Minimizing,
    /// Folder for the results.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// Print only the summary.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FlagOptions {
    /// The most detailed level that the code should be able to run at.
    #[arg(long, default_value = "memory")]
    pub(crate) level: Level,
    /// The compiler; cc (on Windows gcc) or rustc when absent.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) compiler: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MinimizeOptions {
    /// The failure: its folder, its number in the latest campaign, or the beginning of its signature.
    pub(crate) failure: PathBuf,
    /// Folder of the results.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// How long to try.
    #[arg(long, value_parser = duration, default_value = "30s")]
    pub(crate) budget: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// Comparisons, each a TOML file; several become sections of one Markdown page.
    #[arg(required = true, value_name = "CONFIG")]
    pub(crate) configs: Vec<PathBuf>,
    /// Folder for the results; trials that are there already are not run again.
    #[arg(long, default_value = "waylay-out/compare")]
    pub(crate) out: PathBuf,
    /// The I-th of N parts of the trials, for several machines; from the engine's variables when absent.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Trials at a time; one per processor when absent.
    #[arg(long)]
    pub(crate) jobs: Option<std::num::NonZeroUsize>,
    /// Trials of each strategy on each test, instead of what the file says.
    #[arg(long)]
    pub(crate) trials: Option<u32>,
    /// Write all sections into this Markdown file.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Fail when a test's `within` or `rate` does not hold, or a correct test fails.
    #[arg(long)]
    pub(crate) check: bool,
    /// Run nothing: say what the trials that are there say.
    #[arg(long)]
    pub(crate) report_only: bool,
    /// Print only the tables.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Configuration file; the embedded default mix when absent.
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) layers: LayerOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// A plugin (name or file) or a configuration (.toml); this installation's own plugins when absent.
    pub(crate) source: Option<PathBuf>,
}

/// A language to write a plugin in.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Language {
    /// Rust, with Cargo.
    Rust,
    /// C11, with CMake or make.
    C,
    /// C++17, with CMake or make.
    Cpp,
}

#[derive(Debug, Args)]
pub(crate) struct NewOptions {
    /// Name of the plugin and of its folder.
    pub(crate) name: String,
    /// Language.
    #[arg(long, value_enum, default_value = "rust")]
    pub(crate) lang: Language,
    /// Where to make the folder.
    #[arg(long, default_value = ".")]
    pub(crate) into: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// A plugin that does not load, or a program: which of its instructions can be steps.
    #[arg(value_name = "PLUGIN|PROGRAM")]
    pub(crate) subject: Option<PathBuf>,
    /// For a program: what is wanted of it and its libraries, as for explore.
    #[arg(long, default_value = waylay_explore::DEFAULT_LEVEL)]
    pub(crate) level: Level,
    /// A process: can its threads be suspended and its stacks be taken, and if not, who is in the way?
    #[arg(long, value_name = "PID", conflicts_with = "subject")]
    pub(crate) pid: Option<u32>,
}

/// A debugger that a failure can be run under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Debugger {
    /// The GNU debugger.
    Gdb,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ReplayOptions {
    /// The failure: its folder, its number in the latest campaign, or the beginning of its signature.
    pub(crate) failure: PathBuf,
    /// How long to try.
    #[arg(long, value_parser = duration, default_value = "30s")]
    pub(crate) duration: Duration,
    /// Stop after it came back so many times; a failure of strict mode is run exactly so many times.
    #[arg(long)]
    pub(crate) times: Option<u64>,
    /// Run a failure of strict mode under this debugger, with a kernel thread for every thread.
    #[arg(long, value_enum)]
    pub(crate) debugger: Option<Debugger>,
    /// Follow the minimised schedule.
    #[arg(long)]
    pub(crate) minimized: bool,
    /// Folder of the results, those of this run too.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// Leave a hung process alone and print how to attach a debugger.
    #[arg(long)]
    pub(crate) keep_hung: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BoundOptions {
    #[command(subcommand)]
    pub(crate) strategy: BoundStrategy,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BoundStrategy {
    /// Probabilistic concurrency testing.
    Pct(BoundNumbers),
    /// Randomized stride; the depth is the number of orders of event pairs that one run must get right.
    Stride(StrideBoundNumbers),
    /// As PCT, with all change points within a radius.
    Rpro(RProBoundNumbers),
    /// Random suspension of threads from outside.
    Randomizer(RandomizerNumbers),
}

#[derive(Debug, Args)]
pub(crate) struct RandomizerNumbers {
    /// Threads to choose from (N).
    #[arg(long, short = 'n')]
    pub(crate) threads: u32,
    /// Shortest iteration of the test (MINTP), for example 40us.
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) min_test: Duration,
    /// Longest rest between two windows (MAXRP).
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) max_period: Duration,
    /// Longest suspension (MAXSD).
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) max_suspend: Duration,
    /// Planned number of iterations.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iterations: Option<u64>,
    /// Wanted probability of finding the bug.
    #[arg(long, default_value_t = 0.95)]
    pub(crate) confidence: f64,
}

#[derive(Debug, Args)]
pub(crate) struct BoundNumbers {
    /// Threads (n).
    #[arg(long, short = 'n')]
    pub(crate) threads: u64,
    /// Steps of one run (k).
    #[arg(long, short = 'k')]
    pub(crate) steps: u64,
    /// Depth of the bug (d).
    #[arg(long, short = 'd', default_value_t = 1)]
    pub(crate) depth: u32,
    /// Planned number of runs.
    #[arg(long)]
    pub(crate) runs: Option<u64>,
    /// Wanted probability of finding the bug.
    #[arg(long, default_value_t = 0.95)]
    pub(crate) confidence: f64,
}

#[derive(Debug, Args)]
pub(crate) struct StrideBoundNumbers {
    #[command(flatten)]
    pub(crate) numbers: BoundNumbers,
    /// Length of a thread divided by its greatest stride; else the greatest that the confidence and the runs allow.
    #[arg(long)]
    pub(crate) ratio: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct RProBoundNumbers {
    #[command(flatten)]
    pub(crate) numbers: BoundNumbers,
    /// Steps within which the change points lie.
    #[arg(long, default_value_t = 50)]
    pub(crate) radius: u64,
}

fn duration(text: &str) -> Result<Duration, String> {
    waylay_dist::parse_duration(text).map_err(|error| error.to_string())
}

/// A time, or `off`.
fn minimizing(text: &str) -> Result<Minimizing, String> {
    match text {
        "off" | "0" | "0s" => Ok(Minimizing(None)),
        text => {
            duration(text).map(|time| Minimizing(Some(time))).map_err(|error| format!("{error}; or `off`"))
        }
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}
