//! Lists and numbers come out. Every list has a limit, and every order has an index behind it, so that a page takes as
//! long with a hundred thousand failures as with ten.

use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Row, params, params_from_iter};
use serde::Serialize;
use waylay_report::model::{FailureState, NightPoint, Sample};

use crate::schema::failure_of;
use crate::standing::{SIGHTINGS, sightings};
use crate::state::Sightings;
use crate::{History, HistoryError};

/// One line of the list of failures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailureRow {
    /// The signature's short name.
    pub signature: String,
    /// What it was computed from.
    pub text: String,
    /// What broke.
    pub kind: String,
    /// One line about it.
    pub what: String,
    /// Source file and line; empty when not known.
    pub place: String,
    /// The test; empty for the host itself.
    pub test: String,
    /// How it stands.
    pub state: FailureState,
    /// How often, in all.
    pub count: u64,
    /// Nights that showed it.
    pub nights: u64,
    /// When first.
    pub first_seen: Timestamp,
    /// When last.
    pub last_seen: Timestamp,
    /// Why nobody is told about it.
    pub suppressed: Option<String>,
    /// Whether somebody has seen it and takes care.
    pub acknowledged: bool,
}

/// What a list of failures is ordered by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Last seen, newest first.
    #[default]
    LastSeen,
    /// First seen, newest first.
    FirstSeen,
    /// Most frequent first.
    Count,
}

/// Which failures are asked for.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of these states; all when empty.
    pub states: Vec<FailureState>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only of this test.
    pub test: Option<String>,
    /// Only those of this campaign.
    pub campaign: Option<String>,
    /// Only those that were seen in this night.
    pub night: Option<String>,
    /// Of these, only those that no night before had.
    pub first_seen_then: bool,
    /// Not those that nobody wants to hear of.
    pub not_suppressed: bool,
    /// Only those whose signature, message, place or test has this text in it.
    pub text: Option<String>,
    /// In this order.
    pub order: Order,
    /// Leave out so many.
    pub skip: u64,
    /// At most so many.
    pub limit: u64,
}

/// One line of the list of campaigns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CampaignRow {
    /// Its name.
    pub name: String,
    /// The night that it belongs to.
    pub night: String,
    /// The mix of the service.
    pub mix: Option<String>,
    /// Its scenarios; of many the first few.
    pub scenarios: Vec<String>,
    /// How many scenarios it has.
    pub scenario_count: u64,
    /// How it stands.
    pub state: String,
    /// When it began.
    pub started: Timestamp,
    /// When it was last heard of.
    pub updated: Timestamp,
    /// Finished iterations.
    pub iterations: u64,
    /// Failures.
    pub failures: u64,
    /// Different failures.
    pub signatures: u64,
    /// Those that nobody had seen before.
    pub new_signatures: u64,
    /// Things that could not run.
    pub problems: u64,
    /// Whether its folder is there, in whole or in part.
    pub evidence: Evidence,
}

impl CampaignRow {
    /// What people call it by: its mix, or what ran. Its name, which is a time, where nothing has run yet.
    pub fn title(&self) -> String {
        let more = self.scenario_count.saturating_sub(self.scenarios.len() as u64);
        match (&self.mix, self.scenarios.as_slice()) {
            (Some(mix), _) => mix.clone(),
            (None, []) => self.name.clone(),
            (None, scenarios) if more > 0 => format!("{} and {more} more", scenarios.join(", ")),
            (None, scenarios) => scenarios.join(", "),
        }
    }
}

/// What is left of a campaign's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// All of it.
    Whole,
    /// Only that of failures which were open when the rest went.
    Trimmed,
    /// Nothing.
    Gone,
}

/// A failure in one campaign.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SightingRow {
    /// The campaign.
    pub campaign: String,
    /// Its night.
    pub night: String,
    /// How often.
    pub count: u64,
    /// When first.
    pub first_seen: Timestamp,
    /// When last.
    pub last_seen: Timestamp,
    /// Whether its folder is there.
    pub evidence: bool,
    /// The signature that the campaign has it under, which its folder is called after.
    pub signature: String,
}

/// How many failures there are of each state, suppressed ones counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// New.
    pub new: u64,
    /// Ongoing.
    pub ongoing: u64,
    /// Rare.
    pub rare: u64,
    /// Resolved.
    pub resolved: u64,
    /// Of any state, and suppressed.
    pub suppressed: u64,
}

/// One night of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestNight {
    /// The night.
    pub night: String,
    /// Finished iterations.
    pub iterations: u64,
    /// Failures.
    pub failures: u64,
    /// Average duration of an iteration in nanoseconds.
    pub average_ns: f64,
}

/// The state that a word of the tables stands for.
pub(crate) fn state_of(word: &str) -> FailureState {
    let all = [FailureState::New, FailureState::Ongoing, FailureState::Rare, FailureState::Resolved];
    all.into_iter().find(|state| state.word() == word).unwrap_or_default()
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    Ok(Timestamp::from_millisecond(row.get(column)?).unwrap_or_default())
}

pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.max(0) as u64)
}

pub(crate) const FAILURE: &str =
    "signature, text, kind, what, place, test.name, state, failure.count, nights,
    failure.first_seen, failure.last_seen, suppressed,
    coalesce((SELECT acknowledged FROM remark WHERE remark.failure = failure.id), 0)";

pub(crate) fn failure_row(row: &Row<'_>) -> rusqlite::Result<FailureRow> {
    Ok(FailureRow {
        signature: row.get(0)?,
        text: row.get(1)?,
        kind: row.get(2)?,
        what: row.get(3)?,
        place: row.get(4)?,
        test: row.get(5)?,
        state: state_of(row.get_ref(6)?.as_str()?),
        count: unsigned(row, 7)?,
        nights: unsigned(row, 8)?,
        first_seen: time(row, 9)?,
        last_seen: time(row, 10)?,
        suppressed: row.get(11)?,
        acknowledged: row.get(12)?,
    })
}

const CAMPAIGN: &str =
    "name, night, mix, state, started, updated, iterations, failures, signatures, new_signatures,
    problems, evidence,
    (SELECT json_group_array(name) FROM (SELECT scenario.name FROM scenario WHERE scenario.campaign = campaign.id
        ORDER BY place LIMIT 3)),
    (SELECT count(*) FROM scenario WHERE scenario.campaign = campaign.id)";

fn campaign_row(row: &Row<'_>) -> rusqlite::Result<CampaignRow> {
    Ok(CampaignRow {
        name: row.get(0)?,
        night: row.get(1)?,
        mix: row.get(2)?,
        state: row.get(3)?,
        started: time(row, 4)?,
        updated: time(row, 5)?,
        iterations: unsigned(row, 6)?,
        failures: unsigned(row, 7)?,
        signatures: unsigned(row, 8)?,
        new_signatures: unsigned(row, 9)?,
        problems: unsigned(row, 10)?,
        evidence: match row.get::<_, i64>(11)? {
            2 => Evidence::Whole,
            1 => Evidence::Trimmed,
            _ => Evidence::Gone,
        },
        scenarios: serde_json::from_str(row.get_ref(12)?.as_str()?).unwrap_or_default(),
        scenario_count: unsigned(row, 13)?,
    })
}

fn noon(night: &str) -> Option<Timestamp> {
    let date: jiff::civil::Date = night.parse().ok()?;
    Some(date.at(12, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
}

/// What a condition and its values are.
pub(crate) struct Conditions {
    sql: Vec<String>,
    pub(crate) values: Vec<Value>,
}

impl Filter {
    pub(crate) fn conditions(&self) -> Conditions {
        let mut all = Conditions { sql: Vec::new(), values: Vec::new() };
        if !self.states.is_empty() {
            let marks = vec!["?"; self.states.len()].join(", ");
            all.sql.push(format!("state IN ({marks})"));
            all.values.extend(self.states.iter().map(|state| Value::Text(state.word().to_owned())));
        }
        let mut equal = |sql: &str, value: &Option<String>| {
            if let Some(value) = value {
                all.sql.push(sql.to_owned());
                all.values.push(Value::Text(value.clone()));
            }
        };
        equal("kind = ?", &self.kind);
        equal("failure.test IN (SELECT id FROM test WHERE name = ?)", &self.test);
        equal(
            "failure.id IN (SELECT failure FROM sighting
                 WHERE campaign = (SELECT id FROM campaign WHERE name = ?))",
            &self.campaign,
        );
        equal(
            "failure.id IN (SELECT failure FROM sighting
                 WHERE campaign IN (SELECT id FROM campaign WHERE night = ?))",
            &self.night,
        );
        equal("first_night = ?", if self.first_seen_then { &self.night } else { &None });
        if self.not_suppressed {
            all.sql.push("suppressed IS NULL".to_owned());
        }
        if let Some(text) = &self.text {
            // Neither of the pattern's own characters means anything special in what people type.
            let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            let pattern = Value::Text(format!("%{escaped}%"));
            all.sql.push(
                "(signature LIKE ? ESCAPE '\\' OR what LIKE ? ESCAPE '\\' OR place LIKE ? ESCAPE '\\'
                  OR failure.test IN (SELECT id FROM test WHERE name LIKE ? ESCAPE '\\'))"
                    .to_owned(),
            );
            all.values.extend(std::iter::repeat_n(pattern, 4));
        }
        all
    }
}

impl Conditions {
    pub(crate) fn text(&self) -> String {
        if self.sql.is_empty() { String::new() } else { format!("WHERE {}", self.sql.join(" AND ")) }
    }
}

impl History {
    /// A part of the list of failures.
    pub fn failures(&self, filter: &Filter) -> Result<Vec<FailureRow>, HistoryError> {
        let conditions = filter.conditions();
        let order = match filter.order {
            Order::LastSeen => "failure.last_seen DESC",
            Order::FirstSeen => "failure.first_seen DESC",
            Order::Count => "failure.count DESC",
        };
        let sql = format!(
            "SELECT {FAILURE} FROM failure JOIN test ON test.id = failure.test {} ORDER BY {order} LIMIT {} OFFSET {}",
            conditions.text(),
            filter.limit,
            filter.skip
        );
        self.at((|| {
            let mut select = self.connection.prepare_cached(&sql)?;
            let rows = select.query_map(params_from_iter(&conditions.values), failure_row)?;
            rows.collect()
        })())
    }

    /// How many failures fit a filter, whatever its limit; counting stops at `most`.
    pub fn count_failures(&self, filter: &Filter, most: u64) -> Result<u64, HistoryError> {
        let conditions = filter.conditions();
        let sql = format!("SELECT count(*) FROM (SELECT 1 FROM failure {} LIMIT {most})", conditions.text());
        self.at(self.connection.prepare_cached(&sql).and_then(|mut select| {
            select.query_row(params_from_iter(&conditions.values), |row| unsigned(row, 0))
        }))
    }

    /// One failure.
    pub fn failure(&self, signature: &str) -> Result<Option<FailureRow>, HistoryError> {
        let sql = format!(
            "SELECT {FAILURE} FROM failure JOIN test ON test.id = failure.test WHERE failure.id = {}",
            failure_of("?1")
        );
        self.at(self.connection.query_row(&sql, [signature], failure_row).optional())
    }

    /// The campaigns that had a failure, newest first.
    pub fn sightings(&self, signature: &str, limit: u64) -> Result<Vec<SightingRow>, HistoryError> {
        self.at((|| {
            let mut select = self.connection.prepare_cached(&format!(
                "SELECT campaign.name, night, sighting.count, sighting.first_seen, sighting.last_seen, sighting.evidence,
                     coalesce(kept_as, signature)
                 FROM sighting JOIN campaign ON campaign.id = sighting.campaign JOIN failure ON failure.id = sighting.failure
                 WHERE failure = {} ORDER BY started DESC LIMIT ?2",
                failure_of("?1")
            ))?;
            let rows = select.query_map(params![signature, limit as i64], |row| {
                Ok(SightingRow {
                    campaign: row.get(0)?,
                    night: row.get(1)?,
                    count: unsigned(row, 2)?,
                    first_seen: time(row, 3)?,
                    last_seen: time(row, 4)?,
                    evidence: row.get(5)?,
                    signature: row.get(6)?,
                })
            })?;
            rows.collect()
        })())
    }

    /// How a failure's state comes about.
    pub fn reasons(&self, signature: &str) -> Result<Option<Sightings>, HistoryError> {
        let sql = format!("SELECT {SIGHTINGS} FROM failure WHERE id = {}", failure_of("?1"));
        self.at(self.connection.query_row(&sql, [signature], sightings).optional())
    }

    /// How many failures of each state there are.
    pub fn totals(&self) -> Result<Totals, HistoryError> {
        self.at((|| {
            let mut totals = Totals::default();
            let mut select = self
                .connection
                .prepare_cached("SELECT state, count(*), count(suppressed) FROM failure GROUP BY state")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let suppressed = unsigned(row, 2)?;
                let heard = unsigned(row, 1)? - suppressed;
                totals.suppressed += suppressed;
                match state_of(row.get_ref(0)?.as_str()?) {
                    FailureState::New => totals.new = heard,
                    FailureState::Ongoing => totals.ongoing = heard,
                    FailureState::Rare => totals.rare = heard,
                    FailureState::Resolved => totals.resolved = heard,
                    FailureState::Open | FailureState::Unknown => {}
                }
            }
            Ok(totals)
        })())
    }

    /// The newest campaigns.
    pub fn campaigns(&self, skip: u64, limit: u64) -> Result<Vec<CampaignRow>, HistoryError> {
        let sql = format!("SELECT {CAMPAIGN} FROM campaign ORDER BY started DESC LIMIT ?1 OFFSET ?2");
        self.at((|| {
            let mut select = self.connection.prepare_cached(&sql)?;
            let rows = select.query_map(params![limit as i64, skip as i64], campaign_row)?;
            rows.collect()
        })())
    }

    /// How many campaigns there are.
    pub fn count_campaigns(&self) -> Result<u64, HistoryError> {
        self.at(self.connection.query_row("SELECT count(*) FROM campaign", [], |row| unsigned(row, 0)))
    }

    /// One campaign.
    pub fn campaign(&self, name: &str) -> Result<Option<CampaignRow>, HistoryError> {
        let sql = format!("SELECT {CAMPAIGN} FROM campaign WHERE name = ?1");
        self.at(self.connection.query_row(&sql, [name], campaign_row).optional())
    }

    /// How a campaign stood over time, oldest first.
    pub fn series(&self, campaign: &str) -> Result<Vec<Sample>, HistoryError> {
        self.at((|| {
            let mut select = self.connection.prepare_cached(
                "SELECT at_ms, iterations, schedules, failures, signatures, suspensions, orders, orders_predicted
                 FROM sample
                 WHERE campaign = (SELECT id FROM campaign WHERE name = ?1) ORDER BY at_ms",
            )?;
            let rows = select.query_map([campaign], |row| {
                Ok(Sample {
                    at_s: row.get::<_, i64>(0)? as f64 / 1000.0,
                    iterations: unsigned(row, 1)?,
                    schedules: unsigned(row, 2)?,
                    failures: unsigned(row, 3)?,
                    signatures: unsigned(row, 4)?,
                    suspensions: unsigned(row, 5)?,
                    orders: unsigned(row, 6)?,
                    orders_predicted: unsigned(row, 7)?,
                })
            })?;
            rows.collect()
        })())
    }

    /// The campaigns of a night, oldest first.
    pub fn campaigns_of(&self, night: &str, limit: u64) -> Result<Vec<CampaignRow>, HistoryError> {
        let sql = format!("SELECT {CAMPAIGN} FROM campaign WHERE night = ?1 ORDER BY started LIMIT ?2");
        self.at((|| {
            let mut select = self.connection.prepare_cached(&sql)?;
            let rows = select.query_map(params![night, limit as i64], campaign_row)?;
            rows.collect()
        })())
    }

    /// The last nights, oldest first; what ran in one night is one point.
    pub fn nights(&self, limit: u64) -> Result<Vec<NightPoint>, HistoryError> {
        self.at((|| {
            let mut select = self.connection.prepare_cached(
                "SELECT night, min(started), sum(updated - started), sum(iterations), sum(failures),
                     (SELECT count(DISTINCT failure) FROM campaign AS of_night
                      JOIN sighting ON sighting.campaign = of_night.id WHERE of_night.night = campaign.night),
                     sum(new_signatures) FROM campaign
                 WHERE night IN (SELECT DISTINCT night FROM campaign ORDER BY night DESC LIMIT ?1)
                 GROUP BY night ORDER BY night",
            )?;
            let rows = select.query_map([limit as i64], |row| {
                let night: String = row.get(0)?;
                Ok(NightPoint {
                    // A night has the name of the day on which it begins, whenever its first campaign did.
                    started: match noon(&night) {
                        Some(noon) => noon,
                        None => time(row, 1)?,
                    },
                    campaign: night,
                    seconds: row.get::<_, i64>(2)? as f64 / 1000.0,
                    iterations: unsigned(row, 3)?,
                    failures: unsigned(row, 4)?,
                    signatures: unsigned(row, 5)?,
                    new_signatures: unsigned(row, 6)?,
                })
            })?;
            rows.collect()
        })())
    }

    /// What a test did over the last nights, oldest first.
    pub fn test_nights(&self, test: &str, limit: u64) -> Result<Vec<TestNight>, HistoryError> {
        self.at((|| {
            let mut select = self.connection.prepare_cached(
                "SELECT night, sum(run.iterations), sum(run.failures),
                     sum(run.average_ns * run.iterations) / max(sum(run.iterations), 1)
                 FROM run JOIN campaign ON campaign.id = run.campaign
                 WHERE run.test IN (SELECT id FROM test WHERE name = ?1)
                 GROUP BY night ORDER BY night DESC LIMIT ?2",
            )?;
            let rows = select.query_map(params![test, limit as i64], |row| {
                Ok(TestNight {
                    night: row.get(0)?,
                    iterations: unsigned(row, 1)?,
                    failures: unsigned(row, 2)?,
                    average_ns: row.get(3)?,
                })
            })?;
            let mut nights: Vec<TestNight> = rows.collect::<rusqlite::Result<_>>()?;
            nights.reverse();
            Ok(nights)
        })())
    }

    /// The tests that ran last, by name.
    pub fn tests(&self, limit: u64) -> Result<Vec<String>, HistoryError> {
        self.at((|| {
            let mut select = self.connection.prepare_cached(
                "SELECT DISTINCT name FROM test JOIN test_night ON test_night.test = test.id WHERE name <> ''
                 AND night >= (SELECT min(night) FROM (SELECT DISTINCT night FROM campaign ORDER BY night DESC LIMIT 30))
                 ORDER BY name LIMIT ?1",
            )?;
            let rows = select.query_map([limit as i64], |row| row.get(0))?;
            rows.collect()
        })())
    }

    /// The sums that only grow: name, label, value.
    pub fn counters(&self) -> Result<Vec<(String, String, f64)>, HistoryError> {
        self.at((|| {
            let mut select = self
                .connection
                .prepare_cached("SELECT name, label, value FROM counter ORDER BY name, label")?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect()
        })())
    }

    /// How long each mix of the service ran, in seconds, with what it was charged with beside. Of a campaign whose
    /// process was killed, the time until it was last heard of counts.
    pub fn mixes(&self) -> Result<Vec<(String, f64)>, HistoryError> {
        self.at((|| {
            let mut select = self.connection.prepare(
                "SELECT name, sum(seconds) FROM (
                     SELECT name, seconds FROM mix
                     UNION ALL SELECT mix, (updated - started) / 1000.0 FROM campaign WHERE mix IS NOT NULL)
                 GROUP BY name ORDER BY name",
            )?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })())
    }

    /// New failures that nobody was told about and that nobody asked to keep quiet, oldest first.
    pub fn unnoticed(&self, limit: u64) -> Result<Vec<FailureRow>, HistoryError> {
        let sql = format!(
            "SELECT {FAILURE} FROM failure JOIN test ON test.id = failure.test
             WHERE state = 'new' AND suppressed IS NULL
                 AND NOT EXISTS (SELECT 1 FROM notice WHERE notice.failure = failure.id)
             ORDER BY failure.first_seen LIMIT ?1"
        );
        self.at((|| {
            let mut select = self.connection.prepare_cached(&sql)?;
            let rows = select.query_map([limit as i64], failure_row)?;
            rows.collect()
        })())
    }
}
