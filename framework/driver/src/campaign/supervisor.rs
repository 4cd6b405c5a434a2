//! What the scenarios of a campaign share, and how something is told and written down. What is done with it stands in
//! `running`, `attending`, `recording` and their neighbours, one concern each.

use std::time::Instant;

use waylay_page::Clock;

use super::Options;
use super::draft::Unattributed;
use super::investigation::Investigator;
use super::strict::{Examined, Examiner};
use crate::dumps::Dumper;
use crate::host::{HostCommand, HostLog};
use crate::randomizer::RandomizerCommand;
use crate::report::Live;
use crate::secrets;
use crate::store::{Averages, Campaign, FailureStore, owed, take_made_again};

/// Problems of a campaign that are kept: what goes wrong in many ways is not understood by reading a list.
const MOST_PROBLEMS: usize = 500;
/// Bytes of one of them.
const LONGEST_PROBLEM: usize = 4096;

/// What the scenarios of a campaign share.
pub(crate) struct Supervisor<'a> {
    pub(crate) command: HostCommand,
    pub(crate) randomizer: RandomizerCommand,
    pub(crate) clock: Clock,
    pub(crate) log: HostLog,
    pub(crate) options: &'a Options,
    pub(crate) campaign: &'a mut Campaign,
    pub(crate) failures: &'a mut FailureStore,
    pub(crate) investigator: Investigator,
    pub(crate) live: &'a mut dyn Live,
    pub(crate) began: Instant,
    /// When what changed was last written.
    pub(crate) housekept: Instant,
    pub(crate) kept_hosts: Vec<u32>,
    /// Iterations of the scenarios that are over.
    pub(crate) earlier_iterations: u64,
    /// What the tests of a scenario left behind together.
    pub(crate) unattributed: Vec<Unattributed>,
    /// Tests of a scenario of which one wrote over memory of ours.
    pub(crate) suspected: Vec<usize>,
    /// How long the tests of pots take.
    pub(crate) averages: Averages,
    /// Runs failing schedules again; none where that is impossible.
    pub(crate) examiner: Option<Box<dyn Examiner>>,
    /// Writes dumps as the scenario at work wants them.
    pub(crate) dumper: Dumper,
    /// What was examined already.
    pub(crate) examined: Examined,
}

/// Cuts off what is too long.
fn shorten(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
}

impl Supervisor<'_> {
    /// Writes what changed, and tells who listens.
    pub(super) fn put_down(&mut self) {
        self.campaign.record.failures = self.failures.total();
        self.campaign.record.signatures = self.failures.signatures() as u64;
        super::part_of_night(self.campaign, self.failures, false);
        let changed = self.failures.changed();
        self.live.counted(&changed);
        owed::settle();
        self.failures.flush();
        self.campaign.save();
        self.tell_what_is_owed();
        for folder in take_made_again() {
            self.problem(format!(
                "{} was removed while the campaign ran; it was made again",
                folder.display()
            ));
        }
        self.live.campaign(&self.campaign.record, self.campaign.folder());
    }

    /// Says that something cannot be written, or is written at last. It is no problem of the campaign until that is over.
    pub(super) fn tell_what_is_owed(&mut self) {
        for text in owed::take_news() {
            self.log.append(format!("waylay: {text}\n").as_bytes());
            self.live.note(&text);
        }
    }

    /// Whether there are as many failures as were asked for, or who listens has heard enough.
    pub(super) fn enough(&self) -> bool {
        self.options.stop_after_failures.is_some_and(|most| self.failures.total() >= most)
            || self.live.enough()
    }

    /// Something that was asked for did not run, or not as it should: told, and the campaign is not clean.
    pub(crate) fn problem(&mut self, mut text: String) {
        secrets::clean_text(&mut text);
        shorten(&mut text, LONGEST_PROBLEM);
        let problems = &mut self.campaign.record.problems;
        // Tests can cause them, and must not fill the record and the screen.
        if problems.len() > MOST_PROBLEMS || problems.contains(&text) {
            return;
        }
        if problems.len() == MOST_PROBLEMS {
            text = format!("there are more than {MOST_PROBLEMS} problems: the others are not listed");
        }
        self.live.note(&text);
        self.campaign.record.problems.push(text);
    }
}
