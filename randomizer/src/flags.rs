//! The command line, before and after it is checked.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use waylay_dist::spec::{Uniform, Value};
use waylay_dist::{Seed, Spec, parse_duration};

use crate::pattern::Pattern;
use crate::settings::RawSettings;

/// Suspends threads of another process at random, so that rare interleavings become frequent ones.
///
/// Distributions are written as in TOML, or shortly: `2ms` is always that, `0s..2ms` is uniform from the one to the
/// other.
#[derive(Debug, Parser)]
#[command(name = "waylay-randomizer", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 clean, 1 the command failed, 2 bad usage or settings, 3 the system refused, \
                        4 nothing was suspended."
)]
pub(crate) struct Flags {
    /// The process to disturb.
    #[arg(long, short, value_name = "PID", required_unless_present = "command", conflicts_with = "command")]
    pub(crate) pid: Option<u32>,

    /// A TOML file with settings, at its top or in its table [randomizer]; flags win over it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Rest between two windows, such as 0s..2ms [default: 0s..2ms].
    #[arg(long, value_name = "DIST", value_parser = parse_dist, allow_hyphen_values = true)]
    period: Option<Spec>,

    /// How long threads are held, such as 100us..2ms [default: 100us..2ms].
    #[arg(long, value_name = "DIST", value_parser = parse_dist, allow_hyphen_values = true)]
    suspend: Option<Spec>,

    /// How many threads are held at a time, such as 1..4 [default: 1].
    #[arg(long, value_name = "DIST", value_parser = parse_dist, allow_hyphen_values = true)]
    count: Option<Spec>,

    /// Suspend only threads with this name; * and ? are wildcards. May be repeated.
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,

    /// Never suspend threads with this name. May be repeated.
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,

    /// The seed of all choices [default: a fresh one, printed].
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<Seed>,

    /// Stop after this time, such as 30s; a command then runs on undisturbed.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) duration: Option<Duration>,

    /// Write what is done to which thread and when.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,

    /// Most MiB that the log takes on disk.
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) log_limit: u64,

    /// Do again what a log says. Statistical: the same choices at about the same times.
    #[arg(long, value_name = "LOG", conflicts_with_all = ["period", "suspend", "count", "seed"])]
    pub(crate) replay: Option<PathBuf>,

    /// Print the report as one JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,

    /// No live line.
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// An inherited descriptor of the page shared with the driver.
    #[arg(long, value_name = "FD", hide = true)]
    pub(crate) page: Option<i32>,

    /// An inherited descriptor of a pipe to write statistics to, as lines of JSON.
    #[arg(long, value_name = "FD", hide = true)]
    pub(crate) stats: Option<i32>,

    /// A command to start and disturb.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Flags {
    /// The settings that were given as flags.
    pub(crate) fn settings(&self) -> RawSettings {
        let patterns = |list: &[String]| list.iter().map(Pattern::new).collect();
        RawSettings {
            period: self.period.clone(),
            suspend: self.suspend.clone(),
            count: self.count.clone(),
            include: patterns(&self.include),
            exclude: patterns(&self.exclude),
        }
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// A distribution as in TOML, `value`, or `min..max`.
fn parse_dist(text: &str) -> Result<Spec, String> {
    let value = |text: &str| match text.trim().parse() {
        Ok(number) => Value::Int(number),
        Err(_) => Value::Text(text.trim().to_owned()),
    };
    if text.trim_start().starts_with(['{', '"', '\'']) {
        return text.parse().map_err(|error: waylay_dist::SpecError| error.to_string());
    }
    Ok(match text.split_once("..") {
        Some((min, max)) => Spec::Uniform(Uniform { min: value(min), max: value(max) }),
        None => Spec::fixed(value(text)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn short_and_long_distributions() {
        for (text, expected) in [
            ("2ms", "{ uniform = { min = \"2ms\", max = \"2ms\" } }"),
            ("0s..2ms", "{ uniform = { min = \"0s\", max = \"2ms\" } }"),
            ("1..4", "{ uniform = { min = 1, max = 4 } }"),
            ("3", "{ uniform = { min = 3, max = 3 } }"),
            (
                "{ exponential = { min = '0s', max = '1ms' } }",
                "{ exponential = { min = \"0s\", max = \"1ms\" } }",
            ),
        ] {
            assert_eq!(parse_dist(text).expect("readable").to_string(), expected);
        }
        assert!(parse_dist("{ unform = 3 }").is_err());
    }

    #[test]
    fn a_target_is_needed_and_only_one() {
        let parse = |arguments: &[&str]| {
            Flags::try_parse_from(["waylay-randomizer"].iter().chain(arguments)).map(|_| ())
        };
        assert!(parse(&[]).is_err());
        assert!(parse(&["--pid", "1", "--", "true"]).is_err());
        assert!(parse(&["--pid", "1"]).is_ok());
        assert!(parse(&["--", "true", "--pid"]).is_ok());
        assert!(parse(&["--pid", "1", "--replay", "log", "--seed", "1"]).is_err());
    }
}
