//! Arguments of the commands for suites of unit tests.

use std::str::FromStr;

use clap::Args;

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
    /// `test`, then the arguments of `cargo test`.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "test ARGUMENTS"
    )]
    pub(crate) arguments: Vec<String>,
}

/// Which cases are explored.
#[derive(Debug, Args)]
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
    /// The I-th of N equal parts of the cases, for several machines.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// All time for one case, until it fails; then how often it fails under which strategy.
    #[arg(long, value_name = "CASE", conflicts_with_all = ["filter", "shard", "list"])]
    pub(crate) flaky: Option<String>,
}

/// A part of the cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Which, from 1.
    pub(crate) number: usize,
    /// Of how many.
    pub(crate) of: usize,
}

impl Shard {
    /// Whether the case with this number is in it.
    pub(crate) fn has(self, index: usize) -> bool {
        index % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            let shard = Shard { number: number.parse().ok()?, of: of.parse().ok()? };
            (1..=shard.of).contains(&shard.number).then_some(shard)
        });
        parsed.ok_or_else(|| format!("`{text}` is no part: say 2/5 for the second of five"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_up_the_whole() {
        let shards: Vec<Shard> = (1..=3).map(|number| format!("{number}/3").parse().unwrap()).collect();
        for index in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(index)).count(), 1);
        }
        for text in ["0/3", "4/3", "1", "a/b", "1/0"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
