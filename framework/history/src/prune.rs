//! Evidence goes: what [`retention`](crate::retention) decided is removed from the disk and noted in the tables.
//!
//! The tables are written first. A process that is killed between the two leaves a folder that nobody lists; the next
//! time finds it by its size and removes it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use rusqlite::params;
use waylay_driver::store::is_at_work;

use crate::retention::{Kept, KeptFailure, Limits, Removal, decide};
use crate::schema::failure_of;
use crate::{History, HistoryError};

/// What went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Folders of campaigns that are gone.
    pub campaigns: u64,
    /// Folders that keep only open failures.
    pub trimmed: u64,
    /// Bytes that were freed.
    pub bytes: u64,
}

impl History {
    /// Removes evidence until the limits hold. What cannot be removed now is tried again the next time, and no reason to
    /// keep the rest.
    pub fn prune(&mut self, limits: &Limits) -> Result<Pruned, HistoryError> {
        let kept = self.kept()?;
        let mut pruned = Pruned::default();
        let mut refused = None;
        for removal in decide(&kept, limits) {
            self.note_removal(&removal)?;
            let folder = self.out().join(&removal.campaign);
            let before = size(&folder);
            if let Err(source) = remove(&folder, &removal.except) {
                self.note_left(&removal.campaign)?;
                refused.get_or_insert(HistoryError::File { path: folder, source });
                continue;
            }
            pruned.bytes += before.saturating_sub(size(&folder));
            if removal.except.is_empty() {
                pruned.campaigns += 1;
            } else {
                pruned.trimmed += 1;
            }
        }
        refused.map_or(Ok(pruned), Err)
    }

    /// Every campaign of which something is on the disk.
    fn kept(&mut self) -> Result<Vec<Kept>, HistoryError> {
        let out = self.out().to_owned();
        let mut sizes = self.at(self.known_sizes())?;
        let mut open: HashMap<String, bool> = HashMap::new();
        let result = (|| {
            let mut select = self.connection.prepare(
                "SELECT signature, state <> 'resolved' FROM failure
                 UNION ALL SELECT name, state <> 'resolved' FROM alias JOIN failure ON failure.id = alias.failure",
            )?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                open.insert(row.get(0)?, row.get(1)?);
            }
            Ok(())
        })();
        self.at(result)?;
        let mut kept = Vec::new();
        for (name, started, over, bytes) in std::mem::take(&mut sizes) {
            let folder = out.join(&name);
            if !folder.is_dir() {
                continue;
            }
            let running = is_at_work(&out, &name);
            let mut failures = Vec::new();
            let mut in_failures = 0;
            for entry in fs::read_dir(folder.join("failures")).into_iter().flatten().flatten() {
                let signature = entry.file_name().to_string_lossy().into_owned();
                let bytes = size(&entry.path());
                in_failures += bytes;
                // What the history does not know may be anything: it is kept like an open failure.
                let open = open.get(&signature).copied().unwrap_or(true);
                failures.push(KeptFailure { signature, bytes, open });
            }
            // What is over does not grow, so it is measured once.
            let all = match bytes {
                Some(bytes) if over && !running => bytes,
                _ => {
                    let bytes = size(&folder).saturating_sub(in_failures);
                    if over && !running {
                        self.note_size(&name, bytes)?;
                    }
                    bytes
                }
            };
            kept.push(Kept { name, started, bytes: all, running, failures });
        }
        Ok(kept)
    }

    #[allow(clippy::type_complexity, reason = "four columns, used once above")]
    fn known_sizes(&self) -> rusqlite::Result<Vec<(String, jiff::Timestamp, bool, Option<u64>)>> {
        let mut select = self
            .connection
            .prepare("SELECT name, started, state <> 'running', bytes FROM campaign WHERE evidence > 0")?;
        let rows = select.query_map([], |row| {
            let started = jiff::Timestamp::from_millisecond(row.get(1)?).unwrap_or_default();
            let bytes = row.get::<_, Option<i64>>(3)?.map(|bytes| bytes as u64);
            Ok((row.get(0)?, started, row.get(2)?, bytes))
        })?;
        rows.collect()
    }

    fn note_size(&mut self, campaign: &str, bytes: u64) -> Result<(), HistoryError> {
        self.transaction(|connection| {
            connection
                .prepare_cached("UPDATE campaign SET bytes = ?2 WHERE name = ?1")?
                .execute(params![campaign, bytes as i64])
                .map(drop)
        })
    }

    /// On Windows a file that somebody has open, a dump in a debugger, cannot be removed.
    fn note_left(&mut self, campaign: &str) -> Result<(), HistoryError> {
        self.transaction(|connection| {
            let left = "UPDATE campaign SET evidence = 1, bytes = NULL WHERE name = ?1";
            connection.execute(left, [campaign]).map(drop)
        })
    }

    fn note_removal(&mut self, removal: &Removal) -> Result<(), HistoryError> {
        self.transaction(|connection| {
            let evidence = i64::from(!removal.except.is_empty());
            connection.execute(
                "UPDATE campaign SET evidence = ?2, bytes = 0 WHERE name = ?1",
                params![removal.campaign, evidence],
            )?;
            connection.execute(
                "UPDATE sighting SET evidence = 0 WHERE campaign = (SELECT id FROM campaign WHERE name = ?1)",
                [&removal.campaign],
            )?;
            let mut keep = connection.prepare(&format!(
                "UPDATE sighting SET evidence = 1 WHERE campaign = (SELECT id FROM campaign WHERE name = ?1)
                     AND failure = {}",
                failure_of("?2")
            ))?;
            removal
                .except
                .iter()
                .try_for_each(|signature| keep.execute(params![removal.campaign, signature]).map(drop))
        })
    }
}

/// Removes a campaign's folder, or everything in it but some failures and the record, which is small and says what they
/// belong to.
fn remove(folder: &Path, except: &[String]) -> io::Result<()> {
    if except.is_empty() {
        return match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        };
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != "failures" && name != "campaign.json" {
            remove_any(&entry.path())?;
        }
    }
    for entry in fs::read_dir(folder.join("failures"))? {
        let entry = entry?;
        if !except.iter().any(|signature| entry.file_name().to_string_lossy() == signature.as_str()) {
            remove_any(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_any(path: &Path) -> io::Result<()> {
    // A link is removed, not followed.
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// Bytes of a folder and all that is below it; links are not followed.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => size(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}
