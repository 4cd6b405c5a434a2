//! Who runs a turn: the command's part, for a campaign of this machine and for a night on an engine.

use std::path::Path;
use std::time::Duration;

use waylay_driver::report::Live;
use waylay_fleet::engine::ShardStanding;

use crate::config::{Fleet, Mix};

/// What a night should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Go on.
    GoOn,
    /// End in order, and put together what there is: its time is over.
    End,
    /// Be left alone: the service ends and will come back to it.
    Leave,
}

/// Who watches a night.
pub trait Watcher {
    /// How its shards stand.
    fn stands(&mut self, shards: Vec<ShardStanding>);
    /// What it should do.
    fn wish(&mut self) -> Wish;
}

/// How a night ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is put together; what is missing of it, in sentences.
    Merged(Vec<String>),
    /// It goes on without the service.
    Left,
}

/// Runs one campaign: the command's part.
pub trait Runner {
    /// Whether that mix can be run at all; what is wrong, in words, when not.
    fn check(&mut self, mix: &Mix) -> Result<(), String>;
    /// Whether that engine can be used from here; what is wrong, in words, when not.
    fn check_fleet(&mut self, fleet: &Fleet) -> Result<(), String>;
    /// Runs a night of that mix on an engine, in the folder that is named first, which may hold one that was begun. Put together it
    /// becomes the folder that is named second.
    fn run_fleet(
        &mut self,
        fleet: &Fleet,
        mix: &Mix,
        folders: (&Path, &Path),
        watcher: &mut dyn Watcher,
    ) -> Result<Ended, String>;
    /// Runs it for at most so long, with its results below `out`.
    fn run(
        &mut self,
        mix: &Mix,
        out: &Path,
        most: Option<Duration>,
        live: &mut dyn Live,
    ) -> Result<(), String>;
}
