//! A scenario's part of `campaign.json`.

use std::time::Duration;

use waylay_page::{Clock, Layout};

use super::assignment::Assignment;
use super::disturbance::Disturbance;
use super::progress::Progress;
use super::totals::Totals;
use crate::host::ControlRegion;
use crate::randomizer::Tally;
use crate::record::{PotShare, ScenarioRecord, TestRecord};

impl Progress {
    /// The part of a pot's time that a contained test got.
    pub(crate) fn share_of(&self, test: usize, totals: &[Totals], clock: &Clock) -> Option<PotShare> {
        let container = self.tests[test].test.inside?.container;
        let siblings = self
            .tests
            .iter()
            .enumerate()
            .filter(|(_, other)| other.test.inside.is_some_and(|inside| inside.container == container));
        let whole: u64 = siblings.map(|(other, _)| totals[other].busy_ticks).sum();
        let mine = &totals[test];
        let runs = mine.iterations.max(1) as f64;
        let average = mine.busy_ticks as f64 / runs;
        let variance = (mine.squares / runs - average * average).max(0.0);
        Some(PotShare {
            container: self.tests[container].test.name.clone(),
            total_ns: clock.nanos(mine.busy_ticks as f64),
            deviation_ns: clock.nanos(variance.sqrt()),
            asked: mine.asked,
            achieved: mine.busy_ticks as f64 / whole.max(1) as f64,
            until_retired: self.tests[test].share_until_retired,
        })
    }

    /// The scenario's part of `campaign.json`.
    pub(crate) fn record(
        &self,
        elapsed: Duration,
        clock: &Clock,
        running: Option<(&Assignment, &Layout)>,
        region: Option<(&ControlRegion, Duration)>,
    ) -> ScenarioRecord {
        let nanos = |ticks: f64| clock.nanos(ticks);
        let randomizer = self.disturbance.as_ref().map(Disturbance::record);
        let bound_of = |totals: &Totals| {
            let (record, disturbance) = (randomizer.as_ref()?, self.disturbance.as_ref()?);
            let shortest = Duration::from_nanos(nanos(totals.shortest? as f64) as u64);
            Some(Tally::bound(record, disturbance.settings(), shortest, totals.iterations))
        };
        let all = self.totals(running);
        let tests = self.tests.iter().zip(&all).enumerate().map(|(index, (progress, totals))| {
            let region = region.filter(|_| self.turn == Some(index));
            let (running, since) = (region.map(|(region, _)| region), region.map(|(_, since)| since));
            let (bound, no_bound) = match bound_of(totals) {
                Some(Ok(bound)) => (Some(bound), None),
                Some(Err(reason)) => (None, Some(reason)),
                None => (None, None),
            };
            TestRecord {
                name: progress.test.name.clone(),
                plugin: progress.test.plugin.clone(),
                workers: progress.test.workers,
                iterations: totals.iterations,
                failures: progress.failures,
                average_ns: nanos(totals.busy_ticks as f64 / totals.iterations.max(1) as f64),
                shortest_ns: nanos(totals.shortest.unwrap_or(0) as f64),
                longest_ns: nanos(totals.longest as f64),
                retired: progress.retired.clone(),
                bound,
                no_bound,
                pot: self.share_of(index, &all, clock),
                strict: progress
                    .strict
                    .as_ref()
                    .map(|strict| strict.numbers(running, since.unwrap_or_default())),
            }
        });
        let tests = tests.collect();
        let alone = if self.alone { format!(" ({} alone)", self.tests[0].test.name) } else { String::new() };
        ScenarioRecord {
            name: format!("{}{alone}", self.name),
            mode: self.mode().to_owned(),
            seconds: elapsed.as_secs_f64(),
            randomizer,
            tests,
        }
    }
}
