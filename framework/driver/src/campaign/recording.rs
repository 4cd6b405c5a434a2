//! Findings on their way to the disk: kept at once, shelved until they are decided, or put aside until it is known whose
//! they are.

use std::path::Path;

use super::draft::{Draft, GONE, Unattributed};
use super::leaks::LeakSeen;
use super::progress::Progress;
use super::scene::Scene;
use super::session::Session;
use super::supervisor::Supervisor;
use crate::archive;
use crate::dumps::Subject;
use crate::failure::{Finding, Kind};
use crate::report::plural;
use crate::store::{Dumped, Shelved};

impl Supervisor<'_> {
    /// Records a finding and, when it is the test's last permitted one, retires the test.
    pub(super) fn record(&mut self, session: &Session, progress: &mut Progress, draft: Draft) {
        // A schedule of a host that is not to be believed cannot be run again.
        if session.region.is_some() && draft.finding.kind != Kind::Corrupted {
            self.record_strict(session, progress, draft);
            return;
        }
        let Draft { finding, crash, test, alive, shelved, still } = draft;
        let mut lost_log = Ok(());
        let dumper = self.dumper.clone();
        let first = finding.stacks.first().map(|stack| stack.id);
        let subject = Subject { pid: session.host.pid(), crash: crash.as_ref(), first, known: Vec::new() };
        self.keep(finding, shelved, |path| {
            lost_log = Self::keep_randomizer_log(session, path);
            if alive { dumper.write(&subject, path) } else { Err(GONE.to_owned()) }
        });
        session.goes_on_after(still);
        if let Err(reason) = lost_log {
            self.problem(reason);
        }
        self.count_failure(session, progress, test);
    }

    /// Counts a failure of a test and retires the test when it is its last permitted one.
    pub(super) fn count_failure(&mut self, session: &Session, progress: &mut Progress, test: Option<usize>) {
        if let Some(host_test) = test {
            let index = session.assignment.tests[host_test];
            let running = Some((&session.assignment, session.host.believed()));
            let share = progress.share_of(index, &progress.totals(running), &self.clock);
            let test = &mut progress.tests[index];
            test.failures += 1;
            if test.test.max_failures > 0 && test.failures >= test.test.max_failures && test.retired.is_none()
            {
                let after = format!("retired after {}", plural(test.failures, "failure"));
                self.live.note(&format!("{} is {after} (max-failures); the others go on", test.test.name));
                test.retired = Some(after);
                test.share_until_retired = share.map(|share| share.achieved);
                session.host.cancel_test(host_test);
            } else if let Some(retired) = test.retired.as_mut().filter(|why| why.starts_with("retired after"))
            {
                // Other workers of it had failed already.
                let more = test.failures.saturating_sub(test.test.max_failures);
                let limit = plural(test.test.max_failures, "failure");
                *retired = format!("retired after {limit}; {more} more came before it stopped");
            }
        }
    }

    /// Puts a finding on disk and tells about it when it is new.
    pub(super) fn keep(
        &mut self,
        finding: Finding,
        shelved: Option<Shelved>,
        dump: impl FnOnce(&Path) -> Result<Dumped, String>,
    ) {
        self.keep_with(finding, shelved, dump, || {});
    }

    /// Puts a finding on disk, calls `before`, and then tells about the finding when it is new.
    pub(super) fn keep_with(
        &mut self,
        finding: Finding,
        shelved: Option<Shelved>,
        dump: impl FnOnce(&Path) -> Result<Dumped, String>,
        before: impl FnOnce(),
    ) {
        let signature = finding.signature.id.clone();
        let recorded = match shelved {
            Some(shelved) => self.failures.record_shelved(finding, shelved),
            None => self.failures.record(finding, dump),
        };
        before();
        if recorded.new
            && let Some(entry) =
                self.failures.entries().into_iter().find(|entry| entry.signature.id == signature)
        {
            let folder = self.failures.folder_of(&signature);
            // Whoever ran a schedule again has drawn it already, and knows more.
            if !folder.join(archive::TIMELINE_FILE).exists() {
                archive::draw(entry, &folder);
            }
            self.live.failure(entry, &folder);
        }
        self.tell_what_is_owed();
    }

    /// Puts the evidence of a finding that is not decided yet on disk.
    pub(super) fn shelve(&mut self, session: &Session, draft: &mut Draft) {
        let mut lost_log = Ok(());
        let still = draft.still.take();
        let first = draft.finding.stacks.first().map(|stack| stack.id);
        let subject =
            Subject { pid: session.host.pid(), crash: draft.crash.as_ref(), first, known: Vec::new() };
        draft.shelved = self.failures.shelve(&draft.finding, |path| {
            lost_log = Self::keep_randomizer_log(session, path);
            self.dumper.write(&subject, path)
        });
        session.goes_on_after(still);
        if let Err(reason) = lost_log {
            self.problem(reason);
        }
    }

    /// A host that is lost takes its suspects with it: what their evidence says is all that will be known.
    pub(super) fn record_undecided(&mut self, session: &mut Session, progress: &mut Progress) {
        for suspect in std::mem::take(&mut session.suspects) {
            self.record(session, progress, suspect.into_undecided());
        }
    }

    /// Records a leak, or puts it aside until it is known whose it is.
    pub(super) fn take_leak(&mut self, session: &mut Session, progress: &mut Progress, mut seen: LeakSeen) {
        let growth = seen.growth.take();
        let _quiet = self.quiet(session, progress);
        let scene = Scene::of(session, progress, self.clock, &self.log);
        let mut draft = self.investigator.leak(&scene, seen);
        if draft.test.is_some() {
            let folder = self.failures.folder_of(&draft.finding.signature.id);
            self.record(session, progress, draft);
            // Of a signature that is only counted there is no folder.
            if let Some(growth) = growth.filter(|_| folder.is_dir()) {
                archive::keep_growth(&growth, &folder);
            }
            return;
        }
        self.shelve(session, &mut draft);
        self.unattributed.push(Unattributed { draft, among: session.assignment.tests.clone() });
    }
}
