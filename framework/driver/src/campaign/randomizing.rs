//! The randomizer in a scenario: started beside every host, watched, got out of the way for evidence, started again.
//!
//! It never keeps a scenario from going on. One that ends is started again, after a pause when it did nothing; one that
//! does not let go of threads is killed, which lets them go. A scenario that asked for it and had no thread suspended
//! says so in the end and makes the campaign fail.

use std::path::Path;
use std::time::{Duration, Instant};

use waylay_page::HostPhase;

use super::disturbance::LONGEST_PAUSE;
use super::progress::Progress;
use super::session::Session;
use super::supervisor::Supervisor;
use crate::randomizer::{Quiet, RandomizerProcess, RandomizerTask};

/// How long the first test waits for the randomizer to be at work.
const READY: Duration = Duration::from_secs(2);

impl Supervisor<'_> {
    /// Keeps a randomizer beside the host while its tests live, if the scenario asks for one.
    pub(super) fn tend_randomizer(&mut self, session: &mut Session, progress: &mut Progress) {
        let Some(disturbance) = &mut progress.disturbance else { return };
        let phase = HostPhase::load(&session.host.layout().header.phase);
        if !(HostPhase::Starting..HostPhase::Ended).contains(&phase) {
            self.end_randomizer(session, progress);
            return;
        }
        let Some(randomizer) = &mut session.randomizer else {
            if disturbance.not_before.is_none_or(|time| Instant::now() >= time) {
                self.start_randomizer(session, progress);
            }
            return;
        };
        disturbance.running = randomizer.progress();
        if randomizer.has_ended() {
            let reason =
                session.randomizer.take().map(|ended| disturbance.harvest(ended, true)).unwrap_or_default();
            // The end of the host explains any end of its randomizer.
            if !reason.is_empty() && session.host.ended().is_none() {
                self.say_about_randomizer(progress, &reason);
            }
        } else if randomizer.is_silent() {
            randomizer.kill();
            disturbance.tally.killed();
            session.released.set(Some(Instant::now()));
        }
    }

    /// Whether the first test may begin: the randomizer is at work, or will not be soon.
    pub(super) fn may_begin(session: &Session) -> bool {
        let ready = |randomizer: &RandomizerProcess| randomizer.is_at_work() || randomizer.age() >= READY;
        session.randomizer.as_ref().is_none_or(ready)
    }

    fn start_randomizer(&mut self, session: &mut Session, progress: &mut Progress) {
        let seed = self.campaign.record.seed;
        let Some(disturbance) = &mut progress.disturbance else { return };
        let settings = disturbance.how.settings.to_raw();
        let task = RandomizerTask {
            pid: session.host.pid(),
            page: session.host.page(),
            settings: &settings,
            seed: disturbance.next_seed(seed, &progress.name),
        };
        match self.randomizer.start(&task, &self.log) {
            Ok(randomizer) => {
                disturbance.number = disturbance.number.wrapping_add(1);
                disturbance.tally.started(std::mem::take(&mut disturbance.again));
                session.randomizer = Some(randomizer);
            }
            Err(error) => {
                disturbance.not_before = Some(Instant::now() + LONGEST_PAUSE);
                self.say_about_randomizer(progress, &format!("it cannot be started: {error}"));
            }
        }
    }

    fn say_about_randomizer(&mut self, progress: &mut Progress, reason: &str) {
        let Some(disturbance) = &mut progress.disturbance else { return };
        if disturbance.said != reason {
            reason.clone_into(&mut disturbance.said);
            self.live.note(&format!("{}: the randomizer is started again: {reason}", progress.name));
        }
    }

    /// Ends the randomizer of a host that is over or about to be, and counts what it did.
    pub(super) fn end_randomizer(&mut self, session: &mut Session, progress: &mut Progress) {
        if let (Some(randomizer), Some(disturbance)) = (session.randomizer.take(), &mut progress.disturbance)
        {
            let reason = disturbance.harvest(randomizer, false);
            if disturbance.suspensions() == 0 {
                disturbance.said = reason;
            }
            // The next host gets one at once.
            disturbance.not_before = None;
        }
    }

    /// Gets the randomizer out of the way for as long as the guard lives: before stacks and dumps are taken. One that
    /// does not let go in time is killed, and started again later.
    pub(super) fn quiet(&mut self, session: &mut Session, progress: &mut Progress) -> Option<Quiet> {
        let randomizer = session.randomizer.as_mut()?;
        let (quiet, answered) = randomizer.quiet();
        if !answered {
            session.released.set(Some(Instant::now()));
            if let Some(disturbance) = &mut progress.disturbance {
                disturbance.tally.killed();
            }
        }
        Some(quiet)
    }

    /// Copies the randomizer's log beside a dump.
    pub(super) fn keep_randomizer_log(session: &Session, dump: &Path) -> Result<(), String> {
        match (&session.randomizer, dump.parent()) {
            (Some(randomizer), Some(folder)) => {
                randomizer.keep_log(folder).map_err(|error| format!("no log of the randomizer: {error}"))
            }
            _ => Ok(()),
        }
    }
}
