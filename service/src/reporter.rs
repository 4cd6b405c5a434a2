//! Hears of a campaign: the board and the log are told, and it is noticed when the campaign has told what it can.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use waylay_driver::failure::FailureEntry;
use waylay_driver::report::{Live, RunningNow, Tick, running_text};
use waylay_driver::store::CampaignRecord;

use crate::board::{Board, Recent};
use crate::log::Log;
use crate::stop::{Conditions, Watch};

/// Who listens to one campaign.
#[derive(Debug)]
pub struct Reporter {
    board: Arc<Board>,
    log: Arc<Log>,
    watch: Watch,
}

impl Reporter {
    /// Listens to a campaign that begins now.
    pub fn new(board: Arc<Board>, log: Arc<Log>, stop: Conditions) -> Reporter {
        Reporter { board, log, watch: Watch::new(stop, Instant::now()) }
    }

    /// Why the campaign was to end early, if it was.
    pub fn reason(&self) -> Option<&'static str> {
        self.watch.reason(Instant::now())
    }
}

impl Live for Reporter {
    fn note(&mut self, text: &str) {
        self.log.line(text);
        self.board.note(text);
    }

    fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        self.watch.failure(Instant::now());
        let test = entry.test.as_deref().unwrap_or("the host itself");
        self.log.line(&format!("{} in {test}: {} ({})", entry.kind, entry.what, folder.display()));
        self.board.failure(Recent {
            signature: entry.signature.id.clone(),
            kind: entry.kind.word().to_owned(),
            test: entry.test.clone(),
            what: entry.what.clone(),
            at: entry.first_seen,
        });
    }

    fn tick(&mut self, tick: &Tick) {
        // Twice a second is as often as anybody looks; locks are not for every look at a host.
        if self.board.quiet_for() >= 500 {
            self.board.beat();
            self.board.slowest(tick.slowest.as_ref().map(|(who, time)| (who.clone(), time.as_secs_f64())));
        }
    }

    fn campaign(&mut self, record: &CampaignRecord, _folder: &Path) {
        self.board.beat();
        self.board.campaign(record, record.sample());
    }

    fn running(&mut self, now: &RunningNow) {
        running_text(now).lines().for_each(|line| self.log.line(line));
    }

    fn enough(&self) -> bool {
        self.reason().is_some()
    }
}
