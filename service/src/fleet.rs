//! Nights of mixes on an engine: handed over, watched, put together, and then campaigns like any other.
//!
//! A night that is on its way has a folder `.fleet/MIX/MOMENT`. A service that is started again finds it there and goes on with it
//! instead of beginning another.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use waylay_driver::interrupt;
use waylay_fleet::engine::ShardStanding;

use crate::board::{Board, FleetNight};
use crate::config::{Config, Fleet, Mix};
use crate::log::Log;
use crate::runner::{Ended, Runner, Watcher, Wish};

/// Where nights are that are on their way.
const FOLDER: &str = ".fleet";
/// The file of a night that was begun.
const TASK: &str = "fleet.json";

struct Watch<'w> {
    board: &'w Board,
    night: FleetNight,
    until: Option<Timestamp>,
}

impl Watcher for Watch<'_> {
    fn stands(&mut self, shards: Vec<ShardStanding>) {
        self.night.shards = shards;
        self.board.fleet(self.night.clone());
    }

    fn wish(&mut self) -> Wish {
        self.board.beat();
        match self.until {
            _ if interrupt::requested() => Wish::Leave,
            Some(until) if Timestamp::now() >= until => Wish::End,
            _ => Wish::GoOn,
        }
    }
}

/// One turn of a mix on the engine, until `until` at most. Returns in a sentence how it went.
pub(crate) fn turn(
    config: &Config,
    (fleet, mix): (&Fleet, &Mix),
    until: Option<Timestamp>,
    runner: &mut dyn Runner,
    board: &Arc<Board>,
    log: &Arc<Log>,
) -> Result<String, String> {
    let night = place_for(&config.out);
    let name = night.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let nights = config.out.join(FOLDER).join(folder_name(&mix.name));
    let folder = on_its_way(&nights).unwrap_or_else(|| nights.join(&name));
    if folder.exists() {
        log.line(&format!("mix {}: its night is on its way already", mix.name));
    }
    let began = FleetNight { mix: mix.name.clone(), shards: Vec::new(), campaign: None, missing: Vec::new() };
    let mut watch = Watch { board, night: began, until };
    match runner.run_fleet(fleet, mix, (&folder, &night), &mut watch) {
        Ok(Ended::Left) => Ok("goes on without the service, which will come back to it".to_owned()),
        Ok(Ended::Merged(missing)) => {
            missing.iter().for_each(|sentence| log.line(&format!("mix {}: {sentence}", mix.name)));
            let mut told = watch.night;
            (told.campaign, told.missing) = (Some(name.clone()), missing);
            let lost = told.missing.len();
            board.fleet(told);
            // All of it is in the merged night.
            let _ = fs::remove_dir_all(&folder);
            Ok(if lost == 0 { format!("is whole: {name}") } else { format!("is not whole: {name}") })
        }
        Err(problem) => {
            // What shards left is not thrown away, and not taken for a night that goes on.
            let aside = config.out.join(FOLDER).join(format!("failed-{name}"));
            match folder.exists().then(|| fs::rename(&folder, &aside)) {
                Some(Ok(())) => Err(format!("{problem}; what its shards left is in {}", aside.display())),
                _ => Err(problem),
            }
        }
    }
}

/// The night that was begun and not put together. What processes that were left behind write again after that is none: it has no
/// task, and goes.
fn on_its_way(nights: &Path) -> Option<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(nights).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    let (begun, rest): (Vec<PathBuf>, _) = all.into_iter().partition(|night| night.join(TASK).is_file());
    for left in rest {
        let _ = fs::remove_dir_all(left);
    }
    begun.into_iter().next()
}

/// A name that no other mix has, whatever is in it.
fn folder_name(mix: &str) -> String {
    mix.bytes().fold(String::new(), |name, byte| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' => name + &char::from(byte).to_string(),
        other => format!("{name}_{other:02x}"),
    })
}

/// Where the merged night will lie: named as campaigns are.
fn place_for(out: &Path) -> PathBuf {
    let name = Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let others = (2..).map(|number| format!("{name}-{number}"));
    let mut places = std::iter::once(name.clone()).chain(others).map(|name| out.join(name));
    places.find(|place| !place.exists()).unwrap_or_else(|| out.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_folders_of_their_own_whatever_they_are_called() {
        let names = ["a b", "a-b", "A-b", "a_b", "../a", "a_20b", ""];
        let folders: std::collections::BTreeSet<String> =
            names.iter().map(|name| folder_name(name)).collect();
        assert_eq!(folders.len(), names.len(), "{folders:?}");
        assert!(folders.iter().all(|folder| !folder.contains(['/', '.'])), "{folders:?}");
    }
}
