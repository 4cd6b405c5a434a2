//! How things stand now: noted by the thread that runs campaigns, looked at by everybody else.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use waylay_driver::store::CampaignRecord;
use waylay_fleet::engine::ShardStanding;
use waylay_report::model::Sample;

/// Samples of the campaign that runs; more than a chart has room for.
const SAMPLES: usize = 720;
/// New failures that are listed.
const RECENT: usize = 12;
/// Words about what happened that are listed.
const NOTES: usize = 8;

/// What the service is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Doing {
    /// It has just begun.
    #[default]
    Starting,
    /// No window is open; the next one opens then.
    Waiting(Option<Timestamp>),
    /// A campaign of that mix, until then at most.
    Running {
        /// The mix.
        mix: String,
        /// The end of its turn.
        until: Option<Timestamp>,
    },
    /// It has been asked to end.
    Stopping,
}

/// A failure that the campaign had not seen before.
#[derive(Clone, Debug, PartialEq)]
pub struct Recent {
    /// The signature.
    pub signature: String,
    /// What broke.
    pub kind: String,
    /// The test; none for the host itself.
    pub test: Option<String>,
    /// One line.
    pub what: String,
    /// When.
    pub at: Timestamp,
}

/// A night that was handed to an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetNight {
    /// The mix.
    pub mix: String,
    /// Its shards.
    pub shards: Vec<ShardStanding>,
    /// The campaign that it became, when it is put together.
    pub campaign: Option<String>,
    /// What is missing of that, in sentences.
    pub missing: Vec<String>,
}

/// What is on the board.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// What the service is doing.
    pub doing: Doing,
    /// The campaign that runs, or the last one.
    pub campaign: Option<Arc<CampaignRecord>>,
    /// Its numbers over time.
    pub series: Vec<Sample>,
    /// The worker that is longest in its iteration, and for how many seconds.
    pub slowest: Option<(String, f64)>,
    /// Its newest failures, newest first.
    pub recent: VecDeque<Recent>,
    /// The night on an engine, or the last one.
    pub fleet: Option<FleetNight>,
    /// What happened, newest first.
    pub notes: VecDeque<(Timestamp, String)>,
}

/// The board.
#[derive(Debug)]
pub struct Board {
    standing: Mutex<Standing>,
    began: Instant,
    beat: AtomicU64,
}

impl Default for Board {
    fn default() -> Board {
        Board { standing: Mutex::default(), began: Instant::now(), beat: AtomicU64::new(0) }
    }
}

impl Board {
    fn change(&self, how: impl FnOnce(&mut Standing)) {
        how(&mut self.standing.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// How things stand.
    pub fn look(&self) -> Standing {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the service does now.
    pub fn doing(&self, doing: Doing) {
        self.beat();
        self.change(|standing| standing.doing = doing);
    }

    /// The thread that runs campaigns is alive.
    pub fn beat(&self) {
        self.beat.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Milliseconds since it last said so.
    pub fn quiet_for(&self) -> u64 {
        (self.began.elapsed().as_millis() as u64).saturating_sub(self.beat.load(Ordering::Relaxed))
    }

    /// How the night on an engine stands.
    pub fn fleet(&self, night: FleetNight) {
        self.change(|standing| standing.fleet = Some(night));
    }

    pub(crate) fn note(&self, text: &str) {
        self.change(|standing| {
            standing.notes.push_front((Timestamp::now(), text.to_owned()));
            standing.notes.truncate(NOTES);
        });
    }

    pub(crate) fn failure(&self, failure: Recent) {
        self.change(|standing| {
            standing.recent.push_front(failure);
            standing.recent.truncate(RECENT);
        });
    }

    pub(crate) fn slowest(&self, slowest: Option<(String, f64)>) {
        self.change(|standing| standing.slowest = slowest);
    }

    pub(crate) fn campaign(&self, record: &CampaignRecord, sample: Sample) {
        let record = Arc::new(record.clone());
        self.change(|standing| {
            let other = standing.campaign.as_ref().is_none_or(|known| known.name != record.name);
            if other {
                standing.series.clear();
                standing.recent.clear();
                standing.slowest = None;
            }
            standing.campaign = Some(record);
            if standing.series.last().is_none_or(|last| last.at_s < sample.at_s) {
                standing.series.push(sample);
            }
            if standing.series.len() > SAMPLES {
                let mut place = 0;
                standing.series.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listed_is_bounded_and_newest_first() {
        let board = Board::default();
        for number in 0..100 {
            board.note(&number.to_string());
        }
        let notes = board.look().notes;
        assert_eq!((notes.len(), notes[0].1.as_str()), (NOTES, "99"));
    }
}
