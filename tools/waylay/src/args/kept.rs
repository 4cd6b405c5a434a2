//! Arguments of the commands about what campaigns left behind.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use waylay_dist::Seed;

use super::duration;

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// The campaign: its name or its folder; the latest when absent.
    pub(crate) campaign: Option<PathBuf>,
    /// Folder of the results.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// What to compare with: `last` (the campaign before), `none`, or a campaign.
    #[arg(long, value_name = "CAMPAIGN", default_value = "last")]
    pub(crate) since: String,
    /// Write one HTML page that needs nothing else.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Show the HTML page in the browser; report.html in the campaign's folder where --html names no file.
    #[arg(long)]
    pub(crate) open: bool,
    /// Write JUnit XML; every iteration that failed is a test case.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write SARIF 2.1.0 with code locations.
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write Markdown for the summary of a CI job; without FILE to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write JSON; the same as `--json FILE`.
    #[arg(long, value_name = "FILE")]
    pub(crate) json_file: Option<PathBuf>,
    /// Code below this folder is named relative to it in SARIF; the current folder when absent.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) source_root: Option<PathBuf>,
    /// Whatever this configuration of `waylay serve` suppresses is marked so, and makes no campaign a failed one.
    #[arg(long, value_name = "CONFIG")]
    pub(crate) suppressions: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FailuresOptions {
    /// The campaign: its name or its folder; the latest when absent.
    pub(crate) campaign: Option<PathBuf>,
    /// Folder of the results.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// What to compare with: `last` (the campaign before), `none`, or a campaign.
    #[arg(long, value_name = "CAMPAIGN", default_value = "last")]
    pub(crate) since: String,
    /// Whatever this configuration of `waylay serve` suppresses is marked so, and makes no campaign a failed one.
    #[arg(long, value_name = "CONFIG")]
    pub(crate) suppressions: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowOptions {
    /// The failure: its folder, its number in the latest campaign, or the beginning of its signature.
    #[arg(value_name = "ID")]
    pub(crate) failure: PathBuf,
    /// Folder of the results.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// Show every frame of every thread.
    #[arg(long)]
    pub(crate) all_frames: bool,
    /// Write what led to it as a trace for ui.perfetto.dev or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct OpenOptions {
    /// The failure: its folder, its number in the latest campaign, or the beginning of its signature.
    #[arg(value_name = "ID")]
    pub(crate) failure: PathBuf,
    /// Folder of the results.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// The debugger; gdb when absent. gdb needs a core, lldb takes a minidump too.
    #[arg(long, value_name = "DEBUGGER")]
    pub(crate) with: Option<DumpReader>,
    /// Print the command line instead of running it.
    #[arg(long)]
    pub(crate) print: bool,
}

/// Who opens dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DumpReader {
    /// The GNU debugger.
    Gdb,
    /// The debugger of LLVM.
    Lldb,
}

impl DumpReader {
    /// The command.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DumpReader::Gdb => "gdb",
            DumpReader::Lldb => "lldb",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The failure: its folder, its number in the latest campaign, or the beginning of its signature.
    #[arg(value_name = "ID")]
    pub(crate) failure: PathBuf,
    /// Folder of the results.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// The file to write; ID.zip in the current folder when absent.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Replace the file if it is there.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyOptions {
    /// The failure: its folder, its number in the latest campaign, or the beginning of its signature.
    #[arg(value_name = "ID")]
    pub(crate) failure: PathBuf,
    /// Folder of the results.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// How sure to be that it is fixed, between 0 and 1.
    #[arg(long, default_value_t = 0.95, value_name = "PROBABILITY")]
    pub(crate) confidence: f64,
    /// Give up after this time.
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,
    /// Only say how many clean runs it takes.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HuntOptions {
    /// The failure: its folder, its number in the latest campaign, or the beginning of its signature.
    #[arg(value_name = "ID")]
    pub(crate) failure: PathBuf,
    /// Folder of the results.
    #[arg(long, default_value = "waylay-out")]
    pub(crate) out: PathBuf,
    /// How many schedules at most; a quarter of them is aimed at the functions of its stacks.
    #[arg(long, default_value_t = 2_000)]
    pub(crate) runs: u64,
    /// For how long at most.
    #[arg(long, alias = "for", value_parser = duration, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,
    /// The seed that every random choice comes from.
    #[arg(long)]
    pub(crate) seed: Option<Seed>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// Write one page per command into this folder; the page of `waylay` to standard output when absent.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) into: Option<PathBuf>,
}
