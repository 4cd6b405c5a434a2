//! Which builds had a failure and which did not.
//!
//! Each campaign says which build of a test's plugin or program it ran. A build is **clean** of a failure when its test ran in it
//! and none of its campaigns, of whatever time, had the failure. Whether it ran often enough to tell is said beside it, by the rule
//! of [`crate::state`], by runs of the way that showed the failure most often.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};
use waylay_driver::store::PluginBuild;
use waylay_report::confidence::{SURE, clean_runs_for};
use waylay_report::model::{BuildRange, BuiltFile, CleanBuild, Reproduction};

use crate::schema::failure_of;
use crate::sighting::file_name;
use crate::{History, HistoryError};

/// A campaign that ran a failure's test.
#[derive(Clone, Copy, Debug)]
struct Ran {
    /// The row of its build; none of a campaign that did not say.
    build: Option<i64>,
    /// How often the test ran, in the way that showed the failure most often.
    runs: u64,
    /// How often the failure came in that way; none when the campaign did not have it in any.
    failed: Option<u64>,
}

/// The ends of a failure: rows of builds, with the runs of those that are clean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    first: i64,
    clean_before: Option<(i64, u64)>,
    last: i64,
    clean_since: Option<(i64, u64)>,
    /// How often it came in all runs of the builds that had it.
    rate: (u64, u64),
}

/// The ends of a failure in campaigns, oldest first. None where the builds that had it first or last are not known.
fn ends(campaigns: &[Ran]) -> Option<Ends> {
    let had = |ran: &Ran| ran.failed.is_some();
    let from = campaigns.iter().position(had)?;
    let to = campaigns.iter().rposition(had)?;
    let bad: BTreeSet<i64> = campaigns.iter().filter(|ran| had(ran)).filter_map(|ran| ran.build).collect();
    let is_clean = |build: &i64| !bad.contains(build);
    let builds = |campaigns: &[Ran]| -> Vec<i64> {
        campaigns.iter().filter_map(|ran| ran.build).filter(is_clean).collect()
    };
    let runs_of = |wanted: &dyn Fn(i64) -> bool| -> u64 {
        let ran = campaigns.iter().filter(|ran| ran.build.is_some_and(wanted));
        ran.map(|ran| ran.runs).sum()
    };
    let with_runs = |build: i64| (build, runs_of(&|other| other == build));
    Some(Ends {
        first: campaigns[from].build?,
        clean_before: builds(&campaigns[..from]).last().copied().map(with_runs),
        last: campaigns[to].build?,
        clean_since: builds(&campaigns[to + 1..]).first().copied().map(with_runs),
        rate: (campaigns.iter().filter_map(|ran| ran.failed).sum(), runs_of(&|build| bad.contains(&build))),
    })
}

impl History {
    /// The builds at both ends of a failure, where campaigns say which builds they ran.
    pub fn build_range(&self, signature: &str) -> Result<Option<BuildRange>, HistoryError> {
        self.at((|| {
            let mut select = self.connection.prepare_cached(&format!(
                "SELECT max(run.build), sum(iif(failure.way IS NULL OR run.way = failure.way, run.runs, 0)),
                     CASE WHEN sighting.count IS NULL OR failure.way IS NULL THEN sighting.count ELSE
                         coalesce((SELECT s.count FROM sighting_way AS s WHERE s.failure = failure.id AND s.way = failure.way
                             AND s.campaign = campaign.id), 0) END
                 FROM failure JOIN run ON run.test = failure.test JOIN campaign ON campaign.id = run.campaign
                     LEFT JOIN sighting ON sighting.failure = failure.id AND sighting.campaign = campaign.id
                 WHERE failure.id = {}
                     AND (run.runs > 0 AND (failure.way IS NULL OR run.way = failure.way) OR sighting.count > 0)
                 GROUP BY campaign.id ORDER BY campaign.started, campaign.id",
                failure_of("?1")
            ))?;
            let rows = select.query_map([signature], |row| {
                let number = |number: i64| number.max(0) as u64;
                Ok(Ran {
                    build: row.get(0)?,
                    runs: number(row.get(1)?),
                    failed: row.get::<_, Option<i64>>(2)?.map(number),
                })
            })?;
            let campaigns: Vec<Ran> = rows.collect::<rusqlite::Result<_>>()?;
            let Some(ends) = ends(&campaigns) else { return rusqlite::Result::Ok(None) };
            let (reproduced, runs) = ends.rate;
            let rate = Reproduction { reproduced, runs: runs.max(reproduced), seconds: 0.0 };
            let needed = clean_runs_for(&rate, SURE);
            let clean = |end: Option<(i64, u64)>| {
                let clean = |(build, runs)| -> rusqlite::Result<CleanBuild> {
                    Ok(CleanBuild { files: self.files_of(build)?, runs, needed })
                };
                end.map(clean).transpose()
            };
            Ok(Some(BuildRange {
                first: self.files_of(ends.first)?,
                clean_before: clean(ends.clean_before)?,
                last: self.files_of(ends.last)?,
                clean_since: clean(ends.clean_since)?,
            }))
        })())
    }

    fn files_of(&self, build: i64) -> rusqlite::Result<Vec<BuiltFile>> {
        let text: String = self
            .connection
            .prepare_cached("SELECT files FROM build WHERE id = ?1")?
            .query_row([build], |row| row.get(0))?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }
}

/// The row of the build of a plugin or a program, which is made when it is not known. None when the campaign does not say.
pub(crate) fn build_id(
    connection: &Connection,
    builds: &[PluginBuild],
    plugin: &std::path::Path,
) -> rusqlite::Result<Option<i64>> {
    let Some(build) = builds.iter().find(|build| build.plugin == plugin) else { return Ok(None) };
    let file = |build: &waylay_driver::failure::Build| BuiltFile {
        file: file_name(std::path::Path::new(&build.file)),
        id: match (&build.build_id, &build.digest) {
            (Some(id), _) => id.clone(),
            (None, Some(digest)) => format!("{digest}:{}", build.bytes),
            (None, None) => build.bytes.to_string(),
        },
        commit: build.commit.clone(),
    };
    let files: Vec<BuiltFile> = build.modules.iter().map(file).collect();
    let text = serde_json::to_string(&files).expect("files are plain data");
    let known = connection
        .prepare_cached("SELECT id FROM build WHERE files = ?1")?
        .query_row([&text], |row| row.get(0))
        .optional()?;
    match known {
        Some(id) => Ok(Some(id)),
        None => {
            connection.prepare_cached("INSERT INTO build (files) VALUES (?1)")?.execute(params![text])?;
            Ok(Some(connection.last_insert_rowid()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Option<u64> = None;

    fn ran(build: i64, runs: u64, failed: Option<u64>) -> Ran {
        Ran { build: Some(build), runs, failed }
    }

    #[test]
    fn the_ends_are_the_builds_beside_those_that_had_it() {
        let nights = [
            ran(1, 100, CLEAN),
            ran(2, 50, CLEAN),
            ran(2, 60, CLEAN),
            ran(3, 70, Some(7)),
            ran(4, 30, Some(3)),
            ran(5, 400, CLEAN),
            ran(6, 10, CLEAN),
        ];
        let found = ends(&nights).unwrap();
        assert_eq!((found.first, found.clean_before), (3, Some((2, 110))));
        assert_eq!((found.last, found.clean_since), (4, Some((5, 400))));
        assert_eq!(found.rate, (10, 100));
    }

    /// What came once in many runs was there before it came: a build that had it at any time is not clean.
    #[test]
    fn a_build_that_showed_it_later_is_not_clean_before() {
        let rare = [ran(1, 9, CLEAN), ran(2, 9, CLEAN), ran(2, 9, Some(1)), ran(2, 9, CLEAN)];
        let found = ends(&rare).unwrap();
        assert_eq!((found.clean_before, found.clean_since), (Some((1, 9)), None));
        let back = [ran(1, 9, CLEAN), ran(2, 9, CLEAN), ran(3, 9, Some(1)), ran(2, 9, Some(1))];
        assert_eq!(ends(&back).unwrap().clean_before, Some((1, 9)));
        assert_eq!(ends(&[ran(1, 9, Some(1))]).unwrap().clean_before, None);
    }

    #[test]
    fn nothing_is_said_where_the_builds_that_had_it_are_not_known() {
        let unknown = Ran { build: None, runs: 5, failed: Some(1) };
        assert_eq!(ends(&[ran(1, 9, CLEAN), unknown, ran(2, 5, Some(1))]), None);
        assert_eq!(ends(&[ran(1, 9, CLEAN)]), None);
        let before = Ran { failed: None, ..unknown };
        assert_eq!(ends(&[ran(1, 9, CLEAN), before, ran(2, 5, Some(1))]).unwrap().clean_before, Some((1, 9)));
    }
}
