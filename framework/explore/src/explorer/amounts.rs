//! What the runs of an exploration amount to: the records that a campaign keeps, what is promised, and the summary.

use waylay_control_protocol::report::LIMITED;
use waylay_driver::report::ledger;
use waylay_driver::store::{ShardRecord, StrictNumbers, TestRecord, Unit};
use waylay_schedule::promise::{Promise, headline, promises};

use super::Exploration;
use crate::libraries;
use crate::share::Share;
use crate::summary::{Summary, covered, not_looked_at};

impl Exploration<'_> {
    /// Which part of the night the runs so far are.
    pub(super) fn part(&self, share: &Share) -> ShardRecord {
        let to = self.pending.first().map_or(self.next(), |first| first.run.index);
        let search = self.plan.strategy.is_search();
        let found = self.findings.found.iter();
        ShardRecord {
            to: to.max(share.from),
            // How many schedules a search has is known when it is over.
            planned: self.plan.runs.filter(|_| !search),
            exhausted: self.summary.exhausted,
            steps: self.sites.digest(),
            outcomes: self.outcomes.to_string(),
            failures: found.map(|found| (found.signature.clone(), found.count)).collect(),
            ..share.record(Unit::Schedules)
        }
    }

    /// What the runs so far amount to, as a campaign keeps it. They took so many seconds.
    pub(crate) fn record(&self, seconds: f64) -> TestRecord {
        TestRecord {
            name: self.plan.program.title(),
            plugin: self.plan.program.file.clone(),
            workers: self.summary.threads,
            iterations: self.summary.runs,
            failures: self.summary.failures,
            average_ns: seconds * 1e9 / self.summary.runs.max(1) as f64,
            shortest_ns: 0.0,
            longest_ns: 0.0,
            retired: None,
            strict: Some(self.numbers(seconds)),
            bound: None,
            no_bound: None,
            pot: None,
        }
    }

    /// Finds out which libraries of the system what is promised has to leave out, and where. What fails here fails nothing else.
    pub(crate) fn look_into_libraries(&mut self) {
        let worth_it = self.sites.learns() && self.plan.conditions.run.patch && !self.summary.interrupted;
        if !worth_it || self.unseen.libraries.is_empty() || self.promises().is_empty() {
            return;
        }
        let conditions = self.sites.conditions();
        let looked = libraries::look(self.plan, &conditions, &self.unseen.libraries);
        let Ok(Some(conflicts)) = looked else { return };
        self.unseen.libraries = conflicts
            .into_iter()
            .map(|(library, sites)| {
                let worst: Vec<u64> = sites.iter().copied().take(LIMITED).collect();
                format!("{library} ({})", self.names.names(&worst).join(", "))
            })
            .collect();
    }

    /// What the runs promise, and what that leaves out.
    fn promises(&self) -> Vec<Promise> {
        let covered = covered(&self.plan.conditions.run, &self.summary);
        let ledger = ledger(&covered, &self.unseen, self.summary.partly_controlled);
        let mut promises = promises(&self.parameters, self.rivals, &self.aimed);
        promises.iter_mut().for_each(|promise| promise.leaves_out.clone_from(&ledger));
        promises
    }

    /// What the runs so far amount to, as in the record of a strict test.
    fn numbers(&self, seconds: f64) -> StrictNumbers {
        let summary = &self.summary;
        let steps = if self.aimed.reach > 0 { self.aimed.reach } else { summary.steps };
        let guarantees = self.promises();
        let missing = not_looked_at(&self.plan.conditions.run, summary);
        let guarantee = headline(&guarantees);
        StrictNumbers {
            strategy: self.parameters.strategy.clone(),
            seed: summary.seed.clone(),
            runs: summary.runs,
            threads: self.rivals,
            steps,
            depth: guarantee.as_ref().map_or(0, |promise| promise.depth),
            guarantee,
            guarantees,
            schedules_per_second: summary.runs as f64 / seconds.max(1e-9),
            steps_per_second: self.total_steps as f64 / seconds.max(1e-9),
            exhausted: summary.exhausted,
            partly_controlled: summary.partly_controlled,
            left_behind: 0,
            limit_reached: summary.limit_reached,
            unconfirmed: self.findings.found.iter().filter(|found| !found.confirmed).count() as u64,
            level: summary.level.clone(),
            sites: self.sites.numbers().0 as u64,
            looked_at: self.looked_at,
            accesses: self.sites.numbers().1,
            limited_sites: self.sites.limited(),
            patched: summary.patched,
            refused: summary.refused,
            orders: Some(self.coverage.numbers()),
            quiet: summary.quiet,
            notes: missing,
        }
    }

    /// Sums it up, when it took all the time since it began.
    pub(super) fn close(self) -> Summary {
        let seconds = self.begun.elapsed().as_secs_f64();
        self.summed_up(seconds)
    }

    /// Sums it up; it took so many seconds.
    pub(crate) fn summed_up(mut self, seconds: f64) -> Summary {
        if self.sites.learns() {
            let (sites, accesses) = self.sites.numbers();
            (self.summary.sites, self.summary.accesses) = (sites as u64, accesses);
            self.summary.limited_sites = self.sites.limited();
        }
        let promises = self.promises();
        let summary = &mut self.summary;
        summary.orders = self.coverage.numbers();
        summary.seconds = seconds;
        summary.found = std::mem::take(&mut self.findings.found);
        summary.not_examined = self.findings.not_examined;
        summary.schedules_per_second = summary.runs as f64 / seconds.max(1e-9);
        summary.steps_per_second = self.total_steps as f64 / seconds.max(1e-9);
        if self.aimed.reach > 0 {
            summary.steps = self.aimed.reach;
        }
        summary.guarantees = promises;
        summary.guarantee = headline(&summary.guarantees);
        if summary.first_failure_run.is_none() {
            summary.depth = summary.guarantee.as_ref().map_or(0, |promise| promise.depth);
        }
        summary.races = self.plan.conditions.run.races;
        summary.doubtful_races = self.findings.doubtful_races;
        summary.unconfirmed_races = self.findings.unconfirmed_races;
        summary.memory = self.plan.conditions.run.memory.name();
        summary.unconfirmed_delays = self.findings.unconfirmed_delays;
        if summary.unconfirmed_delays > 0 {
            summary.notes.push(format!(
                "{} failing runs in which stores waited were not shown by a fresh process that sees every store, and are not \
                 reported",
                summary.unconfirmed_delays
            ));
        }
        if let Some(instead) = &self.findings.shown_instead {
            summary.notes.push(format!(
                "{} races were not shown by a fresh process and are not reported (the first: {instead})",
                self.findings.unconfirmed_races
            ));
        }
        summary.notes.extend(not_looked_at(&self.plan.conditions.run, summary));
        let unheard = self.learner.unheard() + self.of_handed.unheard();
        if unheard > 0 {
            summary.notes.push(format!(
                "{unheard} runs could not be learned from: they are too long, or the program does not repeat itself"
            ));
        }
        self.summary
    }
}
