//! How the shards of a night stand: by what they wrote, and by what their engine says of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use waylay_driver::archive;
use waylay_driver::store::{CampaignRecord, CampaignState, Unit, is_at_work};
use waylay_schedule::Shard;

use super::Task;

/// A process whose results go through a bucket writes its record at least so often.
const SILENT: Duration = Duration::from_secs(120);

/// What an engine says of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It will be started, for the first time or again.
    Waiting,
    /// Its process is at work.
    Running,
}

/// What an engine says of all shards, by number; it knows nothing any more of those that are over.
pub type Words = BTreeMap<u64, Word>;

/// How a shard stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing is known of it yet, or it will go on.
    Waiting,
    /// Its process is at work.
    Running,
    /// It was cut off, or runs where it cannot be seen.
    Lost,
    /// All of it is done.
    Done,
}

impl State {
    /// As people read it.
    pub fn word(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Lost => "lost",
            State::Done => "done",
        }
    }
}

/// One shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShardStanding {
    /// Its number, from 1.
    pub number: u64,
    /// How it stands.
    pub state: State,
    /// The machine that had it last.
    pub machine: Option<String>,
    /// Iterations, schedules included.
    pub iterations: u64,
    /// Failures.
    pub failures: u64,
}

/// How all shards stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Shards of which nothing is known yet.
    pub waiting: u64,
    /// Shards whose process is at work, as seen from this machine.
    pub running: u64,
    /// Shards that were cut off, or run where it cannot be seen.
    pub lost: u64,
    /// Shards that are done.
    pub done: u64,
    /// Iterations, schedules included.
    pub iterations: u64,
    /// Failures.
    pub failures: u64,
}

impl Standing {
    /// The sum of shards.
    pub fn of(shards: &[ShardStanding]) -> Standing {
        let mut standing = Standing::default();
        for shard in shards {
            match shard.state {
                State::Waiting => standing.waiting += 1,
                State::Running => standing.running += 1,
                State::Lost => standing.lost += 1,
                State::Done => standing.done += 1,
            }
            standing.iterations += shard.iterations;
            standing.failures += shard.failures;
        }
        standing
    }
}

impl Task {
    /// How every shard stands. `words` is what the engine says, if it was asked.
    pub fn shard_standings(&self, words: Option<&Words>) -> Vec<ShardStanding> {
        let all: Vec<Vec<Seen>> = (0..self.shards)
            .map(|place| seen(&self.shard_folder(&(self.first + place).to_string())))
            .collect();
        // How many lots the night has is said by all that began.
        let lots = all.iter().flatten().find_map(|one| {
            let shard = one.record.shard.as_ref()?;
            (shard.unit == Unit::Lots).then_some(shard.part.of)
        });
        let each = all.iter().zip(1..).map(|(campaigns, number)| {
            let own = Shard { number, of: self.shards };
            let word = words.map(|words| words.get(&number).copied());
            ShardStanding {
                number,
                state: state(campaigns, own, lots, word),
                machine: campaigns
                    .iter()
                    .rev()
                    .find_map(|one| Some(one.record.shard.as_ref()?.machine.clone())),
                iterations: campaigns.iter().map(|one| iterations(&one.record)).sum(),
                failures: campaigns.iter().map(|one| one.record.failures).sum(),
            }
        });
        each.collect()
    }

    /// How all shards stand together.
    pub fn standing(&self, words: Option<&Words>) -> Standing {
        Standing::of(&self.shard_standings(words))
    }
}

/// A campaign of a shard.
struct Seen {
    record: CampaignRecord,
    at_work: bool,
}

fn seen(out: &Path) -> Vec<Seen> {
    let mut outs = vec![out.to_owned()];
    // What comes from a bucket lies in a folder for each process.
    let mut below: Vec<PathBuf> = fs::read_dir(out)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    below.sort();
    outs.extend(below);
    let mut all = Vec::new();
    for (place, out) in outs.iter().enumerate() {
        for folder in archive::campaigns(out) {
            let Ok(record) = archive::read_record(&folder) else { continue };
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            let running = record.state == CampaignState::Running;
            let silent = Timestamp::now().duration_since(record.updated).unsigned_abs() > SILENT;
            let at_work = running && if place == 0 { is_at_work(out, &name) } else { !silent };
            all.push(Seen { record, at_work });
        }
    }
    all
}

fn iterations(record: &CampaignRecord) -> u64 {
    record.scenarios.iter().flat_map(|scenario| &scenario.tests).map(|test| test.iterations).sum()
}

/// `word` is none when the engine was not asked, and holds none when it knows nothing of the shard.
fn state(campaigns: &[Seen], own: Shard, lots: Option<u64>, word: Option<Option<Word>>) -> State {
    if is_done(campaigns, own, lots) {
        return State::Done;
    }
    match word {
        Some(Some(Word::Running)) => State::Running,
        Some(Some(Word::Waiting)) => State::Waiting,
        Some(None) => State::Lost,
        None if campaigns.iter().any(|one| one.at_work) => State::Running,
        None if campaigns.is_empty() => State::Waiting,
        None => State::Lost,
    }
}

fn is_done(campaigns: &[Seen], own: Shard, lots: Option<u64>) -> bool {
    let done = |part: Shard| {
        let is = |one: &Seen| one.record.shard.as_ref().is_some_and(|shard| shard.part == part && shard.done);
        campaigns.iter().any(is)
    };
    match lots {
        // One that has no lot is done before it begins.
        Some(count) => {
            (0..count).filter(|lot| own.has(*lot)).all(|lot| done(Shard { number: lot + 1, of: count }))
        }
        None => done(own),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use waylay_driver::store::{Outcomes, ShardRecord};

    use super::super::Engine;
    use super::super::tests::task;
    use super::*;

    fn campaign(out: &Path, name: &str, part: Shard, unit: Unit, done: bool) {
        let shard = ShardRecord {
            night: "n".into(),
            pack: None,
            part,
            unit,
            machine: format!("node{}", part.number),
            from: 0,
            to: 10,
            planned: None,
            done,
            why: None,
            exhausted: false,
            steps: String::new(),
            outcomes: Outcomes::default().to_string(),
            failures: BTreeMap::new(),
        };
        let environment = json!({
            "waylay": "0.1.0", "system": "s", "processor": "p", "cores": 2, "memory_mib": 1, "config_digest": "0"
        });
        let record = json!({
            "format": 1, "name": name, "state": "interrupted", "started": "2026-11-18T00:00:00Z",
            "updated": "2026-11-18T00:10:00Z", "driver_pid": 1, "seed": "7", "environment": environment, "problems": [],
            "hosts": 1, "signatures": 1, "failures": 2, "scenarios": [], "shard": shard,
        });
        let folder = out.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("campaign.json"), record.to_string()).unwrap();
    }

    #[test]
    fn shards_stand_as_they_wrote_and_as_their_engine_says() {
        let folder = tempfile::tempdir().unwrap();
        let mut task = task(Engine::Slurm);
        (task.folder, task.shards) = (folder.path().to_owned(), 5);
        let part = |number| Shard { number, of: 5 };
        campaign(&task.shard_folder("1"), "a", part(1), Unit::Schedules, true);
        campaign(&task.shard_folder("2"), "a", part(2), Unit::Schedules, false);
        // Through a bucket: a process that was cut off, and the one that went on.
        let processes = [("20261118-1", false), ("20261118-2", true)];
        for (process, done) in processes {
            campaign(&task.shard_folder("3").join(process), "a", part(3), Unit::Schedules, done);
        }
        let states = |words: Option<&Words>| -> Vec<&str> {
            task.shard_standings(words).iter().map(|shard| shard.state.word()).collect()
        };
        assert_eq!(states(None), ["done", "lost", "done", "waiting", "waiting"]);
        let words = Words::from([(2, Word::Waiting), (4, Word::Running)]);
        assert_eq!(states(Some(&words)), ["done", "waiting", "done", "running", "lost"]);
        let standing = task.standing(Some(&words));
        assert_eq!((standing.done, standing.lost, standing.failures), (2, 1, 8));
        assert_eq!(task.shard_standings(None)[2].machine.as_deref(), Some("node3"));
    }

    #[test]
    fn a_shard_of_lots_is_done_when_all_of_them_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut task = task(Engine::Local);
        (task.folder, task.shards) = (folder.path().to_owned(), 4);
        let lot = |number| Shard { number, of: 3 };
        campaign(&task.shard_folder("1"), "a", lot(1), Unit::Lots, true);
        campaign(&task.shard_folder("2"), "a", lot(2), Unit::Lots, false);
        let states: Vec<&str> = task.shard_standings(None).iter().map(|shard| shard.state.word()).collect();
        assert_eq!(states, ["done", "lost", "waiting", "done"], "the fourth has no lot");
        task.shards = 2;
        assert_eq!(task.shard_standings(None)[0].state, State::Lost, "lot 3 is its own, too");
    }
}
