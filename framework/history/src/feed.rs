//! Fills the history while a campaign runs. The campaign never waits for the database: what is to be written goes to a
//! thread of its own, which writes everything that has come up in one transaction.
//!
//! When the database cannot be written, the campaign goes on, its folder has everything, and the next start imports it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use waylay_driver::failure::FailureEntry;
use waylay_driver::report::{Live, RunningNow, Tick};
use waylay_driver::store::{CampaignRecord, TestRecord};

use crate::sighting::Sighting;
use crate::write::{self, CampaignId, Context};
use crate::{History, HistoryError};

/// How long what comes up is gathered before it is written.
const GATHER: Duration = Duration::from_millis(100);
/// Most pieces in one transaction, so that other processes get their turn.
const BATCH: usize = 5000;

enum Piece {
    Campaign(Box<CampaignRecord>),
    Failures(Vec<Sighting>),
}

/// Takes in one campaign as it goes.
#[derive(Debug)]
pub struct Feed {
    pieces: Option<Sender<Piece>>,
    writer: Option<JoinHandle<()>>,
    problem: Arc<Mutex<Option<String>>>,
}

impl Feed {
    /// Opens the history of that folder, imports what is there and not known yet, and waits for a campaign.
    pub fn open(out: &Path, context: Context) -> Result<Feed, HistoryError> {
        let history = History::open(out)?;
        let (pieces, receiver) = mpsc::channel();
        let problem = Arc::new(Mutex::new(None));
        let told = Arc::clone(&problem);
        let work = move || {
            if let Err(error) = write_all(history, &receiver, &context) {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            }
        };
        let writer = std::thread::Builder::new()
            .name("waylay-history".into())
            .spawn(work)
            .map_err(|source| HistoryError::File { path: out.to_owned(), source })?;
        Ok(Feed { pieces: Some(pieces), writer: Some(writer), problem })
    }

    /// A campaign as it stands.
    pub fn campaign(&self, record: &CampaignRecord) {
        self.send(Piece::Campaign(Box::new(record.clone())));
    }

    /// Failures of the last campaign.
    pub fn failures<'a>(&self, entries: impl IntoIterator<Item = &'a FailureEntry>) {
        let sightings: Vec<Sighting> = entries.into_iter().map(Sighting::of).collect();
        if !sightings.is_empty() {
            self.send(Piece::Failures(sightings));
        }
    }

    fn send(&self, piece: Piece) {
        // After a problem nobody listens: it is told once, and the folder has everything.
        let _ = self.pieces.as_ref().map(|pieces| pieces.send(piece));
    }

    /// Why nothing is written any more; told once.
    pub fn take_problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until everything is written, and says what went wrong.
    pub fn finish(mut self) -> Option<String> {
        self.end();
        self.take_problem()
    }

    fn end(&mut self) {
        drop(self.pieces.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.end();
    }
}

fn write_all(mut history: History, pieces: &Receiver<Piece>, context: &Context) -> Result<(), HistoryError> {
    history.import(context)?;
    let mut campaign: Option<CampaignId> = None;
    while let Ok(first) = pieces.recv() {
        let mut batch = vec![first];
        let until = Instant::now() + GATHER;
        while batch.len() < BATCH
            && let Ok(piece) = pieces.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            batch.push(piece);
        }
        campaign = history.transaction(|connection| {
            let mut campaign = campaign;
            // Of several states of one campaign in a batch only the last is worth writing, but before the failures:
            // they belong to it.
            let newest = batch.iter().rev().find_map(|piece| match piece {
                Piece::Campaign(record) => Some(record),
                Piece::Failures(_) => None,
            });
            if let Some(record) = newest {
                campaign = Some(write::put_campaign(connection, record, context)?);
            }
            for piece in &batch {
                if let (Some(campaign), Piece::Failures(sightings)) = (campaign, piece) {
                    write::put_sightings(connection, campaign, sightings, context)?;
                }
            }
            Ok(campaign)
        })?;
    }
    Ok(())
}

/// Tells the history and somebody else.
pub struct Recorded<L> {
    inner: L,
    feed: Option<Feed>,
}

impl<L: Live> Recorded<L> {
    /// `inner` hears everything, the feed what it needs.
    pub fn new(inner: L, feed: Option<Feed>) -> Recorded<L> {
        Recorded { inner, feed }
    }

    /// Opens the feed of a folder. When that fails, it is said, and the campaign goes without.
    pub fn open(mut inner: L, out: &Path, context: Context) -> Recorded<L> {
        let feed = match Feed::open(out, context) {
            Ok(feed) => Some(feed),
            Err(error) => {
                inner.note(&without(&error.to_string()));
                None
            }
        };
        Recorded { inner, feed }
    }

    /// Waits until everything is written.
    pub fn finish(mut self) -> L {
        if let Some(problem) = self.feed.take().and_then(Feed::finish) {
            self.inner.note(&without(&problem));
        }
        self.inner
    }
}

fn without(problem: &str) -> String {
    format!("the history is not written, the campaign's folder is: {problem}")
}

impl<L: Live> Live for Recorded<L> {
    fn note(&mut self, text: &str) {
        self.inner.note(text);
    }

    fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        if let Some(feed) = &self.feed {
            feed.failures([entry]);
        }
        self.inner.failure(entry, folder);
    }

    fn tick(&mut self, tick: &Tick) {
        self.inner.tick(tick);
    }

    fn tests(&mut self, tests: &[TestRecord]) {
        self.inner.tests(tests);
    }

    fn counted(&mut self, entries: &[&FailureEntry]) {
        if let Some(feed) = &self.feed {
            feed.failures(entries.iter().copied());
        }
        self.inner.counted(entries);
    }

    fn campaign(&mut self, record: &CampaignRecord, folder: &Path) {
        if let Some(feed) = &self.feed {
            feed.campaign(record);
            if let Some(problem) = feed.take_problem() {
                self.inner.note(&without(&problem));
            }
        }
        self.inner.campaign(record, folder);
    }

    fn wants_look(&mut self) -> bool {
        self.inner.wants_look()
    }

    fn running(&mut self, now: &RunningNow) {
        self.inner.running(now);
    }

    fn enough(&self) -> bool {
        self.inner.enough()
    }
}

/// The folder of a failure of a campaign.
pub fn failure_folder(out: &Path, campaign: &str, signature: &str) -> PathBuf {
    out.join(campaign).join("failures").join(signature)
}
