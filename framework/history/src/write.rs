//! Campaigns and failures go in. Everything here may be written again and again: what is there is replaced by what is
//! newer, counts never go down, and sums take only what was added.

use jiff::tz::TimeZone;
use rusqlite::{Connection, OptionalExtension, named_params, params};
use waylay_driver::store::{CampaignRecord, CampaignState, PluginBuild, ScenarioRecord, TestRecord};
use waylay_report::model::{FailureState, Sample};
use waylay_report::night::night_of;

use crate::builds::build_id;
use crate::schema::failure_of;
use crate::sighting::{Sighting, file_name, shorten};
use crate::standing::{restate_one, test_ran, test_ran_more};
use crate::suppression::Suppressions;
use crate::{History, HistoryError};

/// Most samples of one campaign; when there are more, every second one goes.
const SAMPLES: i64 = 512;

/// What the writer knows beside the records.
#[derive(Clone, Debug)]
pub struct Context {
    /// Where nights are nights.
    pub zone: TimeZone,
    /// The mix of the service that the campaign belongs to.
    pub mix: Option<String>,
    /// What nobody wants to hear of.
    pub suppressions: Suppressions,
}

impl Default for Context {
    fn default() -> Context {
        Context { zone: TimeZone::system(), mix: None, suppressions: Suppressions::default() }
    }
}

/// Row number of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CampaignId(pub(crate) i64);

/// How a state is written in the tables.
pub(crate) fn state_word(state: CampaignState) -> &'static str {
    match state {
        CampaignState::Running => "running",
        CampaignState::Finished => "finished",
        CampaignState::Stopped => "stopped",
        CampaignState::Interrupted => "interrupted",
    }
}

impl History {
    /// Writes a campaign as it stands, and failures of it. Returns how many of these nobody has seen before.
    pub fn put(
        &mut self,
        record: &CampaignRecord,
        sightings: &[Sighting],
        context: &Context,
    ) -> Result<u64, HistoryError> {
        self.transaction(|connection| {
            let campaign = put_campaign(connection, record, context)?;
            put_sightings(connection, campaign, sightings, context)
        })
    }

    /// Charges a mix of the service with time beside that of its campaigns.
    pub fn add_turn(&mut self, mix: &str, seconds: f64) -> Result<(), HistoryError> {
        self.transaction(|connection| {
            connection
                .execute(
                    "INSERT INTO mix (name, seconds, turns) VALUES (?1, ?2, 1)
                     ON CONFLICT (name) DO UPDATE SET seconds = seconds + ?2, turns = turns + 1",
                    params![mix, seconds],
                )
                .map(drop)
        })
    }

    /// Notes that somebody was told about these failures.
    pub fn noticed(&mut self, signatures: &[String]) -> Result<(), HistoryError> {
        let now = jiff::Timestamp::now().as_millisecond();
        self.transaction(|connection| {
            let mut insert = connection.prepare(&format!(
                "INSERT OR IGNORE INTO notice SELECT id, ?2 FROM failure WHERE id = {}",
                failure_of("?1")
            ))?;
            signatures.iter().try_for_each(|signature| insert.execute(params![signature, now]).map(drop))
        })
    }

    /// Adds to one of the sums that only grow.
    pub fn add_to(&mut self, counter: &str, label: &str, value: f64) -> Result<(), HistoryError> {
        self.transaction(|connection| count(connection, counter, label, value))
    }
}

/// Writes failures of a campaign that is there already.
pub(crate) fn put_sightings(
    connection: &Connection,
    campaign: CampaignId,
    sightings: &[Sighting],
    context: &Context,
) -> rusqlite::Result<u64> {
    let mut new = 0;
    for sighting in sightings {
        new += u64::from(put_sighting(connection, campaign, sighting, context)?);
    }
    Ok(new)
}

/// What of a campaign goes into sums and trends.
#[derive(Clone, Copy, Default)]
struct Numbers {
    iterations: i64,
    schedules: i64,
    suspensions: i64,
    hosts: i64,
    failures: i64,
}

impl Numbers {
    fn of(record: &CampaignRecord) -> Numbers {
        let tests = || record.scenarios.iter().flat_map(|scenario| &scenario.tests);
        let schedules = |scenario: &ScenarioRecord| -> u64 {
            if scenario.mode == "strict" {
                scenario.tests.iter().map(|test| test.iterations).sum()
            } else {
                0
            }
        };
        Numbers {
            iterations: tests().map(|test| test.iterations).sum::<u64>() as i64,
            schedules: record.scenarios.iter().map(schedules).sum::<u64>() as i64,
            suspensions: record.scenarios.iter().map(suspensions).sum(),
            hosts: record.hosts as i64,
            failures: record.failures as i64,
        }
    }
}

fn suspensions(scenario: &ScenarioRecord) -> i64 {
    scenario.randomizer.as_ref().map_or(0, |randomizer| randomizer.counts.suspensions as i64)
}

/// Writes a campaign as it stands.
pub(crate) fn put_campaign(
    connection: &Connection,
    record: &CampaignRecord,
    context: &Context,
) -> rusqlite::Result<CampaignId> {
    let now = Numbers::of(record);
    let known: Option<(i64, String, String, Numbers)> = connection
        .prepare_cached(
            "SELECT id, state, night, iterations, schedules, suspensions, hosts, failures FROM campaign WHERE name = ?1",
        )?
        .query_row([&record.name], |row| {
            let numbers = Numbers {
                iterations: row.get(3)?,
                schedules: row.get(4)?,
                suspensions: row.get(5)?,
                hosts: row.get(6)?,
                failures: row.get(7)?,
            };
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, numbers))
        })
        .optional()?;
    let (before, night) = match &known {
        Some((_, _, night, numbers)) => (*numbers, night.clone()),
        None => (Numbers::default(), night_of(record.started, &context.zone).to_string()),
    };
    connection
        .prepare_cached(
            "INSERT INTO campaign (name, night, mix, state, started, updated, iterations, schedules, suspensions, hosts,
                 failures, signatures, problems)
             VALUES (:name, :night, :mix, :state, :started, :updated, :iterations, :schedules, :suspensions, :hosts,
                 :failures, :signatures, :problems)
             ON CONFLICT (name) DO UPDATE SET state = :state, updated = max(updated, :updated),
                 iterations = max(iterations, :iterations), schedules = max(schedules, :schedules),
                 suspensions = max(suspensions, :suspensions), hosts = max(hosts, :hosts),
                 failures = max(failures, :failures), signatures = max(signatures, :signatures), problems = :problems",
        )?
        .execute(named_params! {
            ":name": record.name,
            ":night": night,
            ":mix": context.mix,
            ":state": state_word(record.state),
            ":started": record.started.as_millisecond(),
            ":updated": record.updated.as_millisecond(),
            ":iterations": now.iterations,
            ":schedules": now.schedules,
            ":suspensions": now.suspensions,
            ":hosts": now.hosts,
            ":failures": now.failures,
            ":signatures": record.signatures as i64,
            ":problems": record.problems.len() as i64,
        })?;
    let id = match known {
        Some((id, ..)) => id,
        None => connection.last_insert_rowid(),
    };
    let text = serde_json::to_string(record).expect("a record is plain data");
    connection
        .prepare_cached("INSERT OR REPLACE INTO campaign_record (campaign, record) VALUES (?1, ?2)")?
        .execute(params![id, text])?;
    for (place, scenario) in record.scenarios.iter().enumerate() {
        put_scenario(connection, id, place as i64, scenario, (&night, &record.builds))?;
    }
    if now.iterations > 0 {
        let host = test_id(connection, "", "")?;
        test_ran(connection, host, &night)?;
    }
    put_sample(connection, id, record, now)?;
    let grown = |name: &str, after: i64, before: i64| -> rusqlite::Result<()> {
        if after > before { count(connection, name, "", (after - before) as f64) } else { Ok(()) }
    };
    grown("iterations", now.iterations, before.iterations)?;
    grown("schedules", now.schedules, before.schedules)?;
    grown("suspensions", now.suspensions, before.suspensions)?;
    grown("hosts", now.hosts, before.hosts)?;
    grown("failures", now.failures, before.failures)?;
    let was_over = known_state(known.as_ref()).is_some_and(|state| state != "running");
    if record.state != CampaignState::Running && !was_over {
        count(connection, "campaigns", state_word(record.state), 1.0)?;
    }
    Ok(CampaignId(id))
}

fn known_state(known: Option<&(i64, String, String, Numbers)>) -> Option<&str> {
    known.map(|(_, state, ..)| state.as_str())
}

fn put_scenario(
    connection: &Connection,
    campaign: i64,
    place: i64,
    scenario: &ScenarioRecord,
    (night, builds): (&str, &[PluginBuild]),
) -> rusqlite::Result<()> {
    connection.prepare_cached("INSERT OR REPLACE INTO scenario VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(
        params![
            campaign,
            place,
            shorten(&scenario.name),
            scenario.mode,
            scenario.seconds,
            suspensions(scenario)
        ],
    )?;
    for test in &scenario.tests {
        let id = test_id(connection, &shorten(&test.name), &file_name(&test.plugin))?;
        let before: Option<i64> = connection
            .prepare_cached("SELECT runs FROM run WHERE campaign = ?1 AND place = ?2 AND test = ?3")?
            .query_row([campaign, place, id], |row| row.get(0))
            .optional()?;
        let runs = runs(test);
        let build = build_id(connection, builds, &test.plugin)?;
        connection
            .prepare_cached(
                "INSERT INTO run (campaign, place, test, iterations, failures, average_ns, runs, build, way)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                 ON CONFLICT (campaign, place, test) DO UPDATE SET iterations = ?4, failures = ?5, average_ns = ?6,
                     runs = max(runs, ?7), build = ?8, way = ?9",
            )?
            .execute(params![
                campaign,
                place,
                id,
                test.iterations as i64,
                test.failures as i64,
                test.average_ns,
                runs,
                build,
                way(scenario, test)
            ])?;
        if test.iterations > 0 {
            test_ran(connection, id, night)?;
        }
        if runs > before.unwrap_or(0) {
            test_ran_more(connection, id, night)?;
        }
    }
    Ok(())
}

/// Under which conditions a test ran in a scenario.
fn way(scenario: &ScenarioRecord, test: &TestRecord) -> String {
    let strategy = test.strict.as_ref().map_or("", |strict| &strict.strategy);
    shorten(&format!("{} {} {strategy}", scenario.mode, scenario.name))
}

/// How often a test ran, counted as reports do: an iteration that failed did not finish; schedules are counted when they begin,
/// and those that reached a limit were not judged.
fn runs(test: &TestRecord) -> i64 {
    match &test.strict {
        Some(strict) => strict.runs.saturating_sub(strict.limit_reached) as i64,
        None => test.iterations.saturating_add(test.failures) as i64,
    }
}

/// How a campaign stood over time, as its folder tells it: for one that was not heard of while it ran.
pub(crate) fn put_series(
    connection: &Connection,
    CampaignId(campaign): CampaignId,
    series: &[Sample],
) -> rusqlite::Result<()> {
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO sample VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    // The last is there already: it is the record itself.
    for sample in series.iter().step_by(series.len().div_ceil(SAMPLES as usize).max(1)) {
        insert.execute(params![
            campaign,
            (sample.at_s * 1000.0) as i64,
            sample.iterations as i64,
            sample.schedules as i64,
            sample.failures as i64,
            sample.signatures as i64,
            sample.suspensions as i64,
            sample.orders as i64,
            sample.orders_predicted as i64
        ])?;
    }
    Ok(())
}

fn put_sample(
    connection: &Connection,
    campaign: i64,
    record: &CampaignRecord,
    now: Numbers,
) -> rusqlite::Result<()> {
    let at = record.updated.as_millisecond() - record.started.as_millisecond();
    let (samples, last): (i64, Option<i64>) = connection
        .prepare_cached("SELECT count(*), max(at_ms) FROM sample WHERE campaign = ?1")?
        .query_row([campaign], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // As far apart as those that are there: after every second one went, twice as far as before.
    let apart = last.map_or(0, |last| last / samples.max(1)) / 2;
    let over = record.state != CampaignState::Running;
    if !over && last.is_some_and(|last| at - last < apart) {
        return Ok(());
    }
    let orders = record.sample();
    connection
        .prepare_cached("INSERT OR REPLACE INTO sample VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
        .execute(params![
        campaign,
        at,
        now.iterations,
        now.schedules,
        now.failures,
        record.signatures as i64,
        now.suspensions,
        orders.orders as i64,
        orders.orders_predicted as i64
    ])?;
    if samples >= SAMPLES {
        connection.execute(
            "DELETE FROM sample WHERE campaign = ?1 AND at_ms IN (
                 SELECT at_ms FROM (SELECT at_ms, row_number() OVER (ORDER BY at_ms) AS number
                     FROM sample WHERE campaign = ?1) WHERE number % 2 = 0)",
            [campaign],
        )?;
    }
    Ok(())
}

/// Row number of a test, which is made when it is not known.
fn test_id(connection: &Connection, name: &str, plugin: &str) -> rusqlite::Result<i64> {
    let known = connection
        .prepare_cached("SELECT id FROM test WHERE name = ?1 AND plugin = ?2")?
        .query_row([name, plugin], |row| row.get(0))
        .optional()?;
    match known {
        Some(id) => Ok(id),
        None => {
            connection
                .prepare_cached("INSERT INTO test (name, plugin) VALUES (?1, ?2)")?
                .execute([name, plugin])?;
            Ok(connection.last_insert_rowid())
        }
    }
}

/// Writes one failure of a campaign; true when it was never seen before.
fn put_sighting(
    connection: &Connection,
    campaign: CampaignId,
    sighting: &Sighting,
    context: &Context,
) -> rusqlite::Result<bool> {
    let night: String = connection
        .prepare_cached("SELECT night FROM campaign WHERE id = ?1")?
        .query_row([campaign.0], |row| row.get(0))?;
    let test = test_of(connection, campaign, sighting)?;
    test_ran(connection, test, &night)?;
    let known = known_failure(connection, sighting)?;
    let (first, last) = (sighting.first_seen.as_millisecond(), sighting.last_seen.as_millisecond());
    let failure = match known {
        Some(failure) => failure,
        None => {
            connection
                .prepare_cached(
                    "INSERT INTO failure (signature, text, kind, what, place, test, count, nights, first_seen, last_seen,
                         first_night, last_night, state)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, 0, ?7, ?8, ?9, ?9, ?10)",
                )?
                .execute(params![
                    sighting.signature,
                    sighting.text,
                    sighting.kind,
                    sighting.what,
                    sighting.place,
                    test,
                    first,
                    last,
                    night,
                    FailureState::New.word(),
                ])?;
            count(connection, "signatures", sighting.kind, 1.0)?;
            connection.last_insert_rowid()
        }
    };
    put_aliases(connection, failure, sighting)?;
    let before: Option<i64> = connection
        .prepare_cached("SELECT count FROM sighting WHERE failure = ?1 AND campaign = ?2")?
        .query_row([failure, campaign.0], |row| row.get(0))
        .optional()?;
    let seen_that_night = before.is_some()
        || known.is_some()
            && connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM sighting JOIN campaign ON campaign.id = sighting.campaign
                         WHERE failure = ?1 AND night = ?2)",
                )?
                .query_row(params![failure, night], |row| row.get(0))?;
    let more = (sighting.count as i64 - before.unwrap_or(0)).max(0);
    if before.is_none() {
        first_seen_in(connection, campaign, failure, known.is_none(), first)?;
    }
    connection
        .prepare_cached(
            "INSERT INTO sighting (failure, campaign, count, first_seen, last_seen, kept_as) VALUES (?1, ?2, ?3, ?4, ?5,
                 (SELECT ?6 WHERE NOT EXISTS (SELECT 1 FROM failure WHERE id = ?1 AND signature = ?6)))
             ON CONFLICT (failure, campaign) DO UPDATE SET count = max(count, ?3), last_seen = max(last_seen, ?5)",
        )?
        .execute(params![
            failure,
            campaign.0,
            sighting.count as i64,
            first,
            last,
            sighting.signature
        ])?;
    connection
        .prepare_cached(
            "UPDATE failure SET count = count + ?2, nights = nights + ?3,
                 first_seen = min(first_seen, ?4), last_seen = max(last_seen, ?5),
                 first_night = min(first_night, ?6), last_night = max(last_night, ?6) WHERE id = ?1",
        )?
        .execute(params![failure, more, i64::from(!seen_that_night), first, last, night])?;
    if more > 0 {
        count(connection, "occurrences", sighting.kind, more as f64)?;
    }
    put_ways(connection, campaign, (failure, test), sighting)?;
    if known.is_some() && (before.is_none() || more > 0) {
        restate_one(connection, failure, test)?;
    }
    if more > 0 || before.is_none() {
        context.suppressions.note(connection, failure, sighting, more)?;
    }
    Ok(known.is_none())
}

/// Notes in which ways a failure came. A scenario that the campaign's record does not have yet is told of again with it.
fn put_ways(
    connection: &Connection,
    campaign: CampaignId,
    (failure, test): (i64, i64),
    sighting: &Sighting,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO sighting_way (failure, way, campaign, count)
         SELECT ?1, way, ?2, ?5 FROM run JOIN scenario USING (campaign, place)
             WHERE campaign = ?2 AND test = ?3 AND scenario.name = ?4 AND way IS NOT NULL LIMIT 1
         ON CONFLICT (failure, way, campaign) DO UPDATE SET count = max(count, ?5)",
    )?;
    for (scenario, count) in &sighting.scenarios {
        insert.execute(params![failure, campaign.0, test, scenario, *count as i64])?;
    }
    connection
        .prepare_cached(
            "UPDATE failure SET way = (SELECT way FROM sighting_way WHERE failure = ?1 GROUP BY way
                 ORDER BY sum(count) DESC, way LIMIT 1) WHERE id = ?1",
        )?
        .execute([failure])
        .map(drop)
}

/// The row of a failure that was seen before: under its signature, or under another one that the same cause had.
fn known_failure(connection: &Connection, sighting: &Sighting) -> rusqlite::Result<Option<i64>> {
    let mut select = connection.prepare_cached(&format!("SELECT {}", failure_of("?1")))?;
    for name in std::iter::once(&sighting.signature).chain(&sighting.also) {
        let failure: Option<i64> = select.query_row([name], |row| row.get(0))?;
        if failure.is_some() {
            return Ok(failure);
        }
    }
    Ok(None)
}

/// Writes down by what else a failure is known. What has a row of its own, because it came before anybody knew the cause, keeps it.
fn put_aliases(connection: &Connection, failure: i64, sighting: &Sighting) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO alias SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM failure WHERE signature = ?1)",
    )?;
    std::iter::once(&sighting.signature)
        .chain(&sighting.also)
        .try_for_each(|name| insert.execute(params![name, failure]).map(drop))
}

/// A campaign has a failure. It is the one that showed it first if nobody has seen that before, or if only campaigns of later
/// have: then a campaign of long ago was imported after younger ones, and what these wrote down is this one's.
fn first_seen_in(
    connection: &Connection,
    campaign: CampaignId,
    failure: i64,
    never_seen: bool,
    at: i64,
) -> rusqlite::Result<()> {
    let other: Option<(i64, i64)> = connection
        .prepare_cached(
            "SELECT sighting.campaign, sighting.first_seen FROM sighting JOIN campaign ON campaign.id = sighting.campaign
             WHERE failure = ?1 ORDER BY sighting.first_seen, started, sighting.campaign LIMIT 1",
        )?
        .query_row([failure], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let mut add = connection
        .prepare_cached("UPDATE campaign SET new_signatures = max(new_signatures + ?2, 0) WHERE id = ?1")?;
    match other {
        Some((_, first)) if first <= at => return Ok(()),
        Some((other, _)) => add.execute([other, -1]).map(drop)?,
        None if never_seen => {}
        None => return Ok(()),
    }
    add.execute([campaign.0, 1]).map(drop)
}

/// The test to blame; the host itself has a row without a name. Whole programs are known by their name alone.
fn test_of(connection: &Connection, campaign: CampaignId, sighting: &Sighting) -> rusqlite::Result<i64> {
    match (&sighting.test, &sighting.plugin) {
        (None, _) => test_id(connection, "", ""),
        (Some(test), Some(plugin)) => test_id(connection, test, plugin),
        (Some(test), None) => {
            let ran = connection
                .prepare_cached(
                    "SELECT test.id FROM run JOIN test ON test.id = run.test WHERE campaign = ?1 AND name = ?2 LIMIT 1",
                )?
                .query_row(params![campaign.0, test], |row| row.get(0))
                .optional()?;
            ran.map_or_else(|| test_id(connection, test, ""), Ok)
        }
    }
}

pub(crate) fn count(connection: &Connection, name: &str, label: &str, value: f64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO counter VALUES (?1, ?2, ?3) ON CONFLICT (name, label) DO UPDATE SET value = value + ?3",
        )?
        .execute(params![name, label, value])
        .map(drop)
}
