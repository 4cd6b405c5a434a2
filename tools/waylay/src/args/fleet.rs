//! Arguments of the commands for more than one machine.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::duration;

#[derive(Debug, Args)]
pub(crate) struct MergeOptions {
    /// Folders with the results of shards, or nights that were merged before; also in a bucket, as s3://bucket/night/shards.
    #[arg(required = true, value_name = "FOLDER")]
    pub(crate) folders: Vec<PathBuf>,
    /// The folder of the whole night; one that was merged before is replaced.
    #[arg(long, short, value_name = "NIGHT")]
    pub(crate) out: PathBuf,
    /// Print only what is wrong.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PackOptions {
    /// Configuration file; the embedded default mix when absent.
    pub(crate) config: Option<PathBuf>,
    /// The pack; named after the configuration when absent.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) layers: super::LayerOptions,
}

/// Who runs the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// Processes of this machine.
    Local,
    /// A job array of Slurm.
    Slurm,
    /// An Indexed Job of Kubernetes: its manifests are printed, for kubectl.
    Kubernetes,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Hand a night to an engine, watch it, and merge the results.
    Run(Box<FleetRunOptions>),
    /// Say how the shards of a night stand.
    Status(FleetFolder),
    /// End a night in order.
    Cancel(FleetFolder),
    /// Merge what there is of a night.
    Collect(CollectOptions),
}

#[derive(Debug, Args)]
pub(crate) struct FleetRunOptions {
    /// A configuration or a pack.
    #[arg(value_name = "CONFIG", required_unless_present = "command")]
    pub(crate) config: Option<PathBuf>,
    /// Who runs the shards.
    #[arg(long, value_enum, default_value = "local")]
    pub(crate) on: On,
    /// How many shards.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) shards: u64,
    /// How many at the same time.
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) at_most: Option<u64>,
    /// Folder of the night, which all machines share.
    #[arg(long, default_value = "waylay-fleet")]
    pub(crate) out: PathBuf,
    /// Where shards leave their results instead of in the folder: a bucket, such as s3://nights/2026-11-18.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bucket: Option<String>,
    /// The seed that every random choice comes from.
    #[arg(long)]
    pub(crate) seed: Option<waylay_dist::Seed>,
    /// Print what would be handed to the engine, and hand nothing over.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not wait for the end (Slurm).
    #[arg(long)]
    pub(crate) detach: bool,
    /// Longest time of a shard, as Slurm takes it, for example 08:00:00.
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Partition of Slurm.
    #[arg(long)]
    pub(crate) partition: Option<String>,
    /// A further option for sbatch, for example --sbatch=--mem=4G; may be repeated.
    #[arg(long, value_name = "OPTION")]
    pub(crate) sbatch: Vec<String>,
    /// Image for Kubernetes, with waylay and what is tested in it.
    #[arg(long, default_value = "waylay:latest")]
    pub(crate) image: String,
    /// Claim of the volume for results on Kubernetes, where they do not go to a bucket.
    #[arg(long, default_value = "waylay-results")]
    pub(crate) claim: String,
    /// Secret with the variables that a bucket needs (AWS_ACCESS_KEY_ID and so on) on Kubernetes.
    #[arg(long, default_value = "waylay-bucket")]
    pub(crate) secret: String,
    /// Name of the jobs on Kubernetes.
    #[arg(long, default_value = "waylay")]
    pub(crate) name: String,
    /// Processors of a pod on Kubernetes.
    #[arg(long, default_value = "2")]
    pub(crate) cpu: String,
    /// Memory of a pod on Kubernetes.
    #[arg(long, default_value = "4Gi")]
    pub(crate) memory: String,
    /// Instead of a configuration: a command of waylay that takes --shard, such as `explore --runs 100000 -- ./program`.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "config")]
    pub(crate) command: Vec<String>,
    /// Print only how it ended.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FleetFolder {
    /// Folder of the night.
    #[arg(default_value = "waylay-fleet", value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CollectOptions {
    /// Folder of the night, or its address in a bucket.
    #[arg(default_value = "waylay-fleet", value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Wait for all shards, at most so long.
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) wait: Option<Duration>,
    /// How many shards to wait for; as many as were handed over when absent.
    #[arg(long)]
    pub(crate) shards: Option<u64>,
}
