//! The history: what every campaign below one folder ran and found, in one SQLite database beside the campaigns.
//!
//! The campaigns' own folders stay the truth. The database can be deleted at any time: it is made again from them, as it
//! is filled up after a process that wrote it was killed. So it is written without waiting for the disk more than once
//! per batch, and several processes may write it at the same time.
//!
//! In the order in which data flows:
//!
//! - [`schema`]: the tables, their version, and how older versions become this one
//! - [`state`]: new, ongoing, rare or resolved; pure
//! - `standing`: the same kept up to date in the tables, as nights and runs come behind
//! - [`sighting`]: a failure of one campaign, reduced to what is kept here
//! - [`write`](mod@write): campaigns and failures go in
//! - [`feed`]: the same while a campaign runs, from a thread of its own
//! - [`import`]: the same from campaign folders that are there already
//! - `builds`: which builds had a failure and which did not
//! - [`query`]: lists and numbers come out; [`gather`]: a campaign or a failure with its evidence, as reports want it
//! - [`suppression`]: failures that nobody wants to hear of for a while; pure
//! - [`retention`]: which evidence goes; pure. [`prune`]: it goes

mod builds;
pub mod feed;
pub mod gather;
pub mod import;
pub mod prune;
pub mod query;
pub mod remark;
pub mod retention;
pub mod schema;
mod search;
pub mod sighting;
mod standing;
pub mod state;
pub mod suppression;
mod sys;
pub mod write;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

/// Name of the database, beside the campaigns.
pub const FILE: &str = "history.sqlite";
/// How long to wait for another process that writes. A batch takes milliseconds; a loaded disk may take seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why the history cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// SQLite says no.
    #[error("{}: {source}", .path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// A newer Waylay wrote it.
    #[error(
        "{} was written by a newer waylay (version {found} of its tables, this one knows {}): use that one, or move \
         the file away and have it made again from the campaigns",
        .path.display(), schema::VERSION
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// A newer Waylay knows a kind of failure that this one does not.
    #[error("{signature}: a newer waylay calls it `{kind}`, a kind of failure that this one does not know")]
    UnknownKind {
        /// The failure.
        signature: String,
        /// Its kind in words.
        kind: String,
    },
    /// A file of the database lost its end while it was used.
    #[error(
        "a file beside {} was cut off while it was used: its disk is full, or somebody truncated it",
        .path.display()
    )]
    CutOff {
        /// The database.
        path: PathBuf,
    },
    /// A folder cannot be read, or evidence not removed.
    #[error("{}: {source}", .path.display())]
    File {
        /// What it is about.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// An open history.
#[derive(Debug)]
pub struct History {
    pub(crate) connection: Connection,
    out: PathBuf,
    path: PathBuf,
    /// How often a mapped file had been cut off when this was opened.
    cut_offs: u64,
}

impl History {
    /// Opens the history of a folder of campaigns, and makes or updates it first where needed.
    pub fn open(out: &Path) -> Result<History, HistoryError> {
        std::fs::create_dir_all(out).map_err(|source| HistoryError::File { path: out.to_owned(), source })?;
        let path = out.join(FILE);
        sys::survive_cut_offs();
        let cut_offs = sys::cut_offs();
        let at = |source| HistoryError::Database { path: path.clone(), source };
        let mut connection = Connection::open(&path).map_err(at)?;
        configure(&connection).map_err(at)?;
        // Readers do not wait for a writer, and a killed writer leaves the last whole transaction.
        patiently(|| connection.pragma_update(None, "journal_mode", "wal")).map_err(at)?;
        if let Some(found) = patiently(|| schema::migrate(&mut connection)).map_err(at)? {
            return Err(HistoryError::Newer { path, found });
        }
        Ok(History { connection, out: out.to_owned(), path, cut_offs })
    }

    /// Opens it for reading only; it has to be there.
    pub fn open_to_read(out: &Path) -> Result<History, HistoryError> {
        let path = out.join(FILE);
        sys::survive_cut_offs();
        let cut_offs = sys::cut_offs();
        let at = |source| HistoryError::Database { path: path.clone(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(at)?;
        configure(&connection).map_err(at)?;
        connection.pragma_update(None, "query_only", true).map_err(at)?;
        Ok(History { connection, out: out.to_owned(), path, cut_offs })
    }

    /// The folder of campaigns.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// Whether a mapped file was cut off since this was opened, so that it has to be opened again.
    pub fn is_cut_off(&self) -> bool {
        sys::cut_offs() != self.cut_offs
    }

    /// Gives an error of the database its name.
    pub(crate) fn at<T>(&self, result: rusqlite::Result<T>) -> Result<T, HistoryError> {
        // What was read since then may be zeros, which nobody wrote.
        if self.is_cut_off() {
            return Err(HistoryError::CutOff { path: self.path.clone() });
        }
        result.map_err(|source| HistoryError::Database { path: self.path.clone(), source })
    }

    /// One transaction that is written as a whole or not at all.
    pub(crate) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, HistoryError> {
        // Immediate: two writers wait for each other at the beginning, and never fail at the end.
        let result = (|| {
            let transaction =
                self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })();
        self.at(result)
    }
}

/// Tries again while another process is busy with the database. SQLite waits by itself but where two
/// that wait for each other would never end, as two that both turn a new database to the log would: there
/// one of them is told at once.
fn patiently<T>(mut work: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match work() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < end =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // With a write-ahead log this survives the death of the process; the campaigns' folders survive more.
    connection.pragma_update(None, "synchronous", "normal")?;
    // Pages of the database that are read stay in memory up to 16 MiB.
    connection.pragma_update(None, "cache_size", -16 * 1024)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}
