//! Arguments of the commands for suites of unit tests.

use std::path::PathBuf;

use clap::Args;
use waylay_schedule::Shard;

use super::ExploreSettings;

#[derive(Debug, Args)]
pub(crate) struct SuiteOptions {
    /// The test binary and its arguments, or a build folder of CMake or Meson, after `--`.
    #[arg(last = true, required = true, value_name = "BINARY")]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) cases: CaseOptions,
    #[command(flatten)]
    pub(crate) settings: ExploreSettings,
}

#[derive(Debug, Args)]
pub(crate) struct CargoOptions {
    #[command(flatten)]
    pub(crate) cases: CaseOptions,
    #[command(flatten)]
    pub(crate) settings: ExploreSettings,
    /// `test`, then the arguments of `cargo test`: Cargo's options, a text in the names of cases, and behind `--` what the test
    /// binaries take (`--exact`, `--skip TEXT`, `--ignored`). Options of this command may stand among them; those that both have
    /// (`--jobs`, `--timings`) are Cargo's behind `test`.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "test ARGUMENTS"
    )]
    pub(crate) arguments: Vec<String>,
}

/// Which cases are explored.
#[derive(Clone, Debug, Args)]
pub(crate) struct CaseOptions {
    /// List the cases, and run nothing.
    #[arg(long)]
    pub(crate) list: bool,
    /// Only cases with this text in their name; may be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Vec<String>,
    /// The name has to be the filter's text, not only to have it in it.
    #[arg(long)]
    pub(crate) exact: bool,
    /// The I-th of N equal parts of the cases, for several machines; from the engine's variables when absent.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Write JUnit XML of it, as `waylay report --junit` does.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write SARIF of it, as `waylay report --sarif` does.
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// All time for one case, until it fails; then how often it fails under which strategy.
    #[arg(long, value_name = "CASE", conflicts_with_all = ["filter", "shard", "list"])]
    pub(crate) flaky: Option<String>,
}
