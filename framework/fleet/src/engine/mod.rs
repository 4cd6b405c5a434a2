//! Who runs the shards: this machine, Slurm or Kubernetes. None of them is replaced: an engine gets processes that know which
//! shard they are, and says what became of them.
//!
//! A night on an engine has a folder:
//!
//! ```text
//! NIGHT/
//!   fleet.json      what was handed to which engine
//!   shards/I/       results of shard I, as `waylay run --out` writes them
//!   log/I.log       what shard I printed
//!   night/          all of them merged
//! ```

pub mod kubernetes;
pub mod local;
pub mod slurm;
pub mod standing;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use standing::{ShardStanding, Standing, State, Word, Words};

/// Format of `fleet.json`.
const FORMAT: u32 = 1;

fn from_one() -> u64 {
    1
}

/// What runs processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Processes of this machine.
    Local,
    /// A job array of Slurm.
    Slurm,
    /// An Indexed Job of Kubernetes.
    Kubernetes,
}

/// What is handed to an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Format of this record.
    pub format: u32,
    /// The engine.
    pub engine: Engine,
    /// The folder of the night, absolute.
    pub folder: PathBuf,
    /// The waylay command.
    pub waylay: PathBuf,
    /// The subcommand and its arguments, without those that are a shard's.
    pub arguments: Vec<String>,
    /// How many shards.
    pub shards: u64,
    /// The number of the first folder of a shard: Kubernetes counts from 0.
    #[serde(default = "from_one")]
    pub first: u64,
    /// How many at the same time, at most.
    pub at_most: Option<u64>,
    /// Where shards leave their results, if not in the folder: an address such as `s3://nights/one`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bucket: Option<String>,
    /// Names the night to all shards: where no seed is given, it is made from this as well.
    pub night: String,
    /// Numbers of the jobs, if the engine gave any: that of the shards, that of the merge.
    #[serde(default)]
    pub jobs: Vec<String>,
}

impl Task {
    /// A task that was not handed over yet.
    pub fn new(
        engine: Engine,
        folder: PathBuf,
        waylay: PathBuf,
        arguments: Vec<String>,
        shards: u64,
    ) -> Task {
        let night = jiff::Timestamp::now().to_string();
        Task {
            format: FORMAT,
            engine,
            folder,
            waylay,
            arguments,
            shards,
            first: u64::from(engine != Engine::Kubernetes),
            at_most: None,
            bucket: None,
            night,
            jobs: Vec::new(),
        }
    }

    /// The folder of a shard's results.
    pub fn shard_folder(&self, number: &str) -> PathBuf {
        self.shards_folder().join(number)
    }

    /// The folder of all shards' results.
    pub fn shards_folder(&self) -> PathBuf {
        self.folder.join("shards")
    }

    /// What all `--out` of shards begin with.
    pub fn shards_out(&self) -> String {
        match &self.bucket {
            Some(bucket) => below(bucket, "shards"),
            None => self.shards_folder().display().to_string(),
        }
    }

    /// The `--out` of a shard.
    pub fn shard_out(&self, number: &str) -> String {
        match &self.bucket {
            Some(_) => below(&self.shards_out(), number),
            None => self.shard_folder(number).display().to_string(),
        }
    }

    /// Where the merged night lies.
    pub fn merged(&self) -> PathBuf {
        self.folder.join("night")
    }

    /// The arguments of a shard whose folder for results is `out`; `shard` when the engine does not tell it.
    pub fn shard_arguments(&self, out: &str, shard: Option<&str>) -> Vec<String> {
        let mut words: Vec<String> = self.arguments.iter().take(1).cloned().collect();
        // Cases of a suite are made again as a whole; of two processes of a shard one counts.
        let resumes = words.first().is_some_and(|word| word != "suite");
        words.extend(resumes.then(|| "--resume".to_owned()));
        words.extend(["--out".to_owned(), out.to_owned()]);
        words.extend(shard.iter().flat_map(|shard| ["--shard".to_owned(), (*shard).to_owned()]));
        words.extend(self.arguments.iter().skip(1).cloned());
        words
    }

    /// Makes the folders, and writes down what is handed over.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn save(&self) -> io::Result<()> {
        fs::create_dir_all(self.folder.join("log"))?;
        fs::create_dir_all(self.shards_folder())?;
        let half = self.folder.join("fleet.json.part");
        fs::write(&half, serde_json::to_string_pretty(self).expect("plain data") + "\n")?;
        fs::rename(half, self.folder.join("fleet.json"))
    }

    /// Reads what was handed over from the folder of a night.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn load(folder: &Path) -> Result<Task, String> {
        let file = folder.join("fleet.json");
        let text = fs::read(&file).map_err(|error| {
            format!("{} is no night of a fleet ({}: {error})", folder.display(), file.display())
        })?;
        let task: Task = serde_json::from_slice(&text)
            .map_err(|error| format!("{} is damaged: {error}", file.display()))?;
        match task.format {
            FORMAT => Ok(task),
            newer => Err(format!("{} has format {newer}: it was written by a newer version", file.display())),
        }
    }
}

/// An address below another.
pub fn below(address: &str, name: &str) -> String {
    format!("{}/{name}", address.trim_end_matches('/'))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn task(engine: Engine) -> Task {
        let words = ["run", "mix.toml", "--seed", "7"].map(str::to_owned).to_vec();
        let mut task = Task::new(engine, "/nights/one two".into(), "/opt/waylay".into(), words, 16);
        task.at_most = Some(4);
        task.night = "n".to_owned();
        task
    }

    #[test]
    fn what_is_a_shard_s_stands_behind_the_subcommand() {
        let words = task(Engine::Local).shard_arguments("out", Some("2/16")).join(" ");
        assert_eq!(words, "run --resume --out out --shard 2/16 mix.toml --seed 7");
    }
}
