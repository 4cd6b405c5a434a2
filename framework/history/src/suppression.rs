//! Failures that nobody wants to hear of for a while: they are recorded and counted, and told to nobody. Pure, except
//! that hits are written down.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use waylay_driver::config::Pattern;

use crate::sighting::Sighting;
use crate::{History, HistoryError, remark};

/// One suppression. Everything that it names has to fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Suppression {
    /// Why; it is shown with every failure that it hides.
    pub reason: String,
    /// The last day on which it holds.
    pub until: Date,
    /// The signature's short name, or a pattern.
    pub signature: Option<Pattern>,
    /// The test's name, or a pattern.
    pub test: Option<Pattern>,
    /// What broke.
    pub kind: Option<String>,
}

/// All that there are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suppressions {
    list: Vec<Suppression>,
    zone: Option<TimeZone>,
}

/// What a suppression kept quiet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// Why it was kept quiet.
    pub reason: String,
    /// The signature.
    pub signature: String,
    /// How often.
    pub count: u64,
    /// When last.
    pub last: Timestamp,
}

impl Suppression {
    fn fits(&self, signature: &str, test: Option<&str>, kind: &str) -> bool {
        self.signature.as_ref().is_none_or(|pattern| pattern.matches(signature))
            && self.test.as_ref().is_none_or(|pattern| test.is_some_and(|test| pattern.matches(test)))
            && self.kind.as_ref().is_none_or(|wanted| wanted == kind)
    }
}

impl Suppressions {
    /// The list, and where its days begin and end.
    pub fn new(list: Vec<Suppression>, zone: TimeZone) -> Suppressions {
        Suppressions { list, zone: Some(zone) }
    }

    /// The suppressions.
    pub fn list(&self) -> &[Suppression] {
        &self.list
    }

    /// The first suppression that holds now and fits.
    pub fn find(
        &self,
        now: Timestamp,
        signature: &str,
        test: Option<&str>,
        kind: &str,
    ) -> Option<&Suppression> {
        let today = self.today(now);
        self.list.iter().find(|one| today <= one.until && one.fits(signature, test, kind))
    }

    fn today(&self, now: Timestamp) -> Date {
        self.zone.clone().unwrap_or(TimeZone::UTC).to_datetime(now).date()
    }

    /// Marks a failure that is kept quiet, and counts the hit.
    pub(crate) fn note(
        &self,
        connection: &Connection,
        failure: i64,
        sighting: &Sighting,
        more: i64,
    ) -> rusqlite::Result<()> {
        let at = sighting.last_seen;
        let hit = self.find(at, &sighting.signature, sighting.test.as_deref(), sighting.kind);
        let reason = match hit {
            Some(hit) => Some(hit.reason.clone()),
            None => remark::of_failure(connection, failure)?.and_then(|remark| remark.quiet(self.today(at))),
        };
        let Some(reason) = reason else { return Ok(()) };
        connection
            .prepare_cached("UPDATE failure SET suppressed = ?2 WHERE id = ?1")?
            .execute(params![failure, reason])?;
        connection
            .prepare_cached(
                "INSERT INTO suppression_hit VALUES (?1, ?2, ?3, ?3, ?4)
                 ON CONFLICT (suppression, failure) DO UPDATE SET last = ?3, count = count + ?4",
            )?
            .execute(params![reason, failure, at.as_millisecond(), more])
            .map(drop)
    }
}

impl History {
    /// Marks every failure as these suppressions and the remarks of people say at that time, and takes away marks of those that no longer hold.
    pub fn apply(&mut self, suppressions: &Suppressions, now: Timestamp) -> Result<(), HistoryError> {
        self.transaction(|connection| {
            let mut select = connection.prepare(
                "SELECT failure.id, signature, test.name, kind, suppressed FROM failure JOIN test ON test.id = test
                 WHERE ?1 OR suppressed IS NOT NULL
                     OR failure.id IN (SELECT failure FROM remark WHERE quiet_until IS NOT NULL)",
            )?;
            let mut changes = Vec::new();
            let mut rows = select.query([!suppressions.list.is_empty()])?;
            while let Some(row) = rows.next()? {
                let test: String = row.get(2)?;
                let test = Some(test.as_str()).filter(|test| !test.is_empty());
                let (signature, kind): (String, String) = (row.get(1)?, row.get(3)?);
                let reason = match suppressions.find(now, &signature, test, &kind) {
                    Some(hit) => Some(hit.reason.clone()),
                    None => remark::of_failure(connection, row.get(0)?)?
                        .and_then(|remark| remark.quiet(suppressions.today(now))),
                };
                if reason != row.get::<_, Option<String>>(4)? {
                    changes.push((row.get::<_, i64>(0)?, reason));
                }
            }
            let mut update = connection.prepare("UPDATE failure SET suppressed = ?2 WHERE id = ?1")?;
            changes.into_iter().try_for_each(|(id, reason)| update.execute(params![id, reason]).map(drop))
        })
    }

    /// What was kept quiet, most recent first.
    pub fn hits(&self) -> Result<Vec<Hit>, HistoryError> {
        self.at((|| {
            let mut select = self.connection.prepare(
                "SELECT suppression, signature, suppression_hit.count, last FROM suppression_hit
                 JOIN failure ON failure.id = failure ORDER BY last DESC LIMIT 1000",
            )?;
            let rows = select.query_map([], |row| {
                Ok(Hit {
                    reason: row.get(0)?,
                    signature: row.get(1)?,
                    count: row.get::<_, i64>(2)? as u64,
                    last: Timestamp::from_millisecond(row.get(3)?).unwrap_or_default(),
                })
            })?;
            rows.collect()
        })())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until_new_year() -> Suppressions {
        let one = Suppression {
            reason: "known, ticket 7".into(),
            until: jiff::civil::date(2026, 12, 31),
            signature: None,
            test: Some(Pattern::new("queue-*")),
            kind: Some("deadlock".into()),
        };
        Suppressions::new(vec![one], TimeZone::get("Europe/Berlin").unwrap())
    }

    #[test]
    fn everything_that_is_named_has_to_fit() {
        let now = "2026-11-16T12:00:00Z".parse().unwrap();
        let all = until_new_year();
        assert!(all.find(now, "deadlock-1", Some("queue-push"), "deadlock").is_some());
        assert!(all.find(now, "crash-1", Some("queue-push"), "crash").is_none());
        assert!(all.find(now, "deadlock-1", Some("map"), "deadlock").is_none());
        assert!(all.find(now, "deadlock-1", None, "deadlock").is_none());
    }

    #[test]
    fn it_ends_with_its_last_day_where_people_live() {
        let all = until_new_year();
        let hit = |at: &str| all.find(at.parse().unwrap(), "d", Some("queue-a"), "deadlock").is_some();
        assert!(hit("2026-12-31T22:59:59Z"));
        assert!(!hit("2026-12-31T23:00:00Z"));
    }
}
