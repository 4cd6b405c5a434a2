//! A campaign's numbers over time, in a file that stays small: `series.json`, beside `campaign.json`.
//!
//! A sample is kept about every second at first. When there are too many, every other one is dropped and the distance
//! doubles: an hour and a month both fill the picture, and the file is written less and less often.

use std::path::Path;

use waylay_report::model::Sample;

use super::campaign::CampaignRecord;
use super::owed;

pub(crate) const FILE: &str = "series.json";
/// Samples that are kept at most: more than a picture has columns.
const MOST: usize = 720;
/// Distance of the first samples in seconds.
const FIRST_SPACING_S: f64 = 1.0;

/// The samples so far.
#[derive(Debug, Default)]
pub(crate) struct Series {
    samples: Vec<Sample>,
    spacing_s: f64,
}

impl Series {
    /// Adds a sample if the last is long enough ago; whether it did.
    fn push(&mut self, sample: Sample, always: bool) -> bool {
        self.spacing_s = self.spacing_s.max(FIRST_SPACING_S);
        let near = self.samples.last().is_some_and(|last| sample.at_s - last.at_s < self.spacing_s);
        if near && !always {
            return false;
        }
        self.samples.push(sample);
        if self.samples.len() > MOST {
            // The last one stays, whatever its number.
            let last = self.samples.len() - 1;
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                (index - 1) % 2 == 0 || index - 1 == last
            });
            self.spacing_s *= 2.0;
        }
        true
    }

    /// Takes the record's numbers and writes the file when there is something new. `last` is never left out.
    pub(crate) fn take(&mut self, record: &CampaignRecord, folder: &Path, last: bool) {
        if self.push(record.sample(), last) {
            let text = serde_json::to_vec(&self.samples).expect("plain data");
            owed::write(&folder.join(FILE), &text, false);
        }
    }
}

impl CampaignRecord {
    /// The numbers of the record at the moment of its last update.
    pub fn sample(&self) -> Sample {
        let tests = || self.scenarios.iter().flat_map(|scenario| &scenario.tests);
        let orders = || tests().filter_map(|test| test.strict.as_ref()?.orders);
        Sample {
            at_s: self.updated.duration_since(self.started).as_secs_f64().max(0.0),
            iterations: tests().map(|test| test.iterations).sum(),
            schedules: tests().filter_map(|test| test.strict.as_ref()).map(|strict| strict.runs).sum(),
            failures: self.failures,
            signatures: self.signatures,
            suspensions: self
                .scenarios
                .iter()
                .filter_map(|scenario| scenario.randomizer.as_ref())
                .map(|randomizer| randomizer.counts.suspensions)
                .sum(),
            orders: orders().map(|orders| orders.seen).sum(),
            orders_predicted: orders().map(|orders| orders.predicted).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_fits_and_both_ends_stay() {
        let mut series = Series::default();
        let seconds = 30 * 24 * 3600;
        for second in 0..seconds {
            let sample = Sample { at_s: f64::from(second), iterations: second as u64, ..Sample::default() };
            series.push(sample, false);
        }
        let end = Sample { at_s: f64::from(seconds), iterations: seconds as u64, ..Sample::default() };
        series.push(end, true);
        assert!(series.samples.len() <= MOST && series.samples.len() > MOST / 3, "{}", series.samples.len());
        assert_eq!(series.samples[0].at_s, 0.0);
        assert_eq!(series.samples.last(), Some(&end));
        assert!(series.samples.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
    }
}
