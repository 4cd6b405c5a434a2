//! How long tests take on average, remembered from one campaign to the next: a pot that knows begins fairly at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::owed;
use crate::record::ScenarioRecord;

const FORMAT: u32 = 1;
const FILE: &str = ".averages.json";

/// What `.averages.json` holds, beside the campaigns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Averages {
    format: u32,
    /// Nanoseconds of one iteration, by plugin file and test.
    tests: BTreeMap<String, f64>,
    #[serde(skip)]
    folder: PathBuf,
}

fn key(plugin: &Path, test: &str) -> String {
    format!("{}/{test}", plugin.file_name().unwrap_or_default().to_string_lossy())
}

impl Averages {
    /// What is known in that folder. A file that is damaged or of another format is as good as none: it is only a start.
    pub(crate) fn load(folder: &Path) -> Averages {
        let read = std::fs::read(folder.join(FILE)).ok();
        let parsed = read.and_then(|bytes| serde_json::from_slice::<Averages>(&bytes).ok());
        let tests = parsed.filter(|averages| averages.format == FORMAT).map(|averages| averages.tests);
        Averages { format: FORMAT, tests: tests.unwrap_or_default(), folder: folder.to_owned() }
    }

    /// Nanoseconds of one iteration; 0 when it is not known.
    pub(crate) fn of(&self, plugin: &Path, test: &str) -> f64 {
        self.tests.get(&key(plugin, test)).copied().filter(|average| *average > 0.0).unwrap_or(0.0)
    }

    /// Takes over what the tests of pots took.
    pub(crate) fn learn(&mut self, scenario: &ScenarioRecord) {
        let contained = scenario.tests.iter().filter(|test| test.pot.is_some() && test.iterations > 0);
        for test in contained {
            self.tests.insert(key(&test.plugin, &test.name), test.average_ns);
        }
    }

    /// Writes them, if there are any.
    pub(crate) fn save(&self) {
        if !self.tests.is_empty() {
            let text = serde_json::to_vec_pretty(self).expect("plain data");
            owed::write(&self.folder.join(FILE), &text, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{PotShare, TestRecord};

    #[test]
    fn what_was_learned_is_there_after_a_restart_and_a_damaged_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let share = PotShare {
            container: "melting-pot".into(),
            total_ns: 1e9,
            deviation_ns: 0.0,
            asked: 1.0,
            until_retired: None,
            achieved: 1.0,
        };
        let test = |name: &str, pot: Option<PotShare>| TestRecord {
            name: name.into(),
            plugin: "/somewhere/libqueue.so".into(),
            workers: 0,
            iterations: 5,
            failures: 0,
            average_ns: 250.0,
            shortest_ns: 0.0,
            longest_ns: 0.0,
            retired: None,
            strict: None,
            bound: None,
            no_bound: None,
            pot,
        };
        let tests = vec![test("push", Some(share)), test("alone", None)];
        let mut averages = Averages::load(folder.path());
        assert_eq!(averages.of(Path::new("libqueue.so"), "push"), 0.0);
        averages.learn(&scenario(tests));
        averages.save();
        let again = Averages::load(folder.path());
        assert_eq!(again.of(Path::new("/elsewhere/libqueue.so"), "push"), 250.0);
        assert_eq!(again.of(Path::new("libqueue.so"), "alone"), 0.0);
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert_eq!(Averages::load(folder.path()).of(Path::new("libqueue.so"), "push"), 0.0);
    }

    fn scenario(tests: Vec<TestRecord>) -> ScenarioRecord {
        let empty = serde_json::json!({ "name": "s", "mode": "free", "seconds": 1.0, "tests": [] });
        ScenarioRecord { tests, ..serde_json::from_value(empty).unwrap() }
    }
}
