//! How the failures of a test stand, kept up to date in the tables: nights and runs come behind, states follow.
//!
//! The rule itself is in [`crate::state`]; this asks the tables for what it weighs.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::state::{Runs, Sightings};

/// What [`sightings`] reads, for a query of `failure`.
pub(crate) const SIGHTINGS: &str = "nights,
    (SELECT count(*) FROM test_night AS n WHERE n.test = failure.test AND night BETWEEN first_night AND last_night),
    (SELECT count(*) FROM test_night AS n WHERE n.test = failure.test AND night > last_night),
    (SELECT name <> '' FROM test WHERE test.id = failure.test),
    CASE WHEN failure.way IS NULL THEN count ELSE
        (SELECT sum(s.count) FROM sighting_way AS s WHERE s.failure = failure.id AND s.way = failure.way) END,
    CASE WHEN failure.way IS NULL THEN (SELECT coalesce(sum(runs), 0) FROM test_night AS n WHERE n.test = failure.test
            AND night BETWEEN first_night AND last_night)
        ELSE (SELECT coalesce(sum(runs), 0) FROM way_night AS n WHERE n.test = failure.test AND n.way = failure.way
            AND night BETWEEN first_night AND last_night) END,
    CASE WHEN failure.way IS NULL THEN (SELECT coalesce(sum(runs), 0) FROM test_night AS n WHERE n.test = failure.test
            AND night > last_night)
        ELSE (SELECT coalesce(sum(runs), 0) FROM way_night AS n WHERE n.test = failure.test AND n.way = failure.way
            AND night > last_night) END";

/// The columns of [`SIGHTINGS`], which come first in the row.
pub(crate) fn sightings(row: &Row<'_>) -> rusqlite::Result<Sightings> {
    let nights = |column| row.get::<_, i64>(column).map(|number| number as u32);
    let runs = |column| row.get::<_, i64>(column).map(|number| number as u64);
    let of_a_test: bool = row.get(3)?;
    let weighed = Runs { failed: runs(4)?, span: runs(5)?, clean: runs(6)? };
    Ok(Sightings {
        seen: nights(0)?,
        span: nights(1)?,
        clean: nights(2)?,
        runs: of_a_test.then_some(weighed),
    })
}

/// Notes that a test ran in a night. What has stayed away then has stayed away one night longer.
pub(crate) fn test_ran(connection: &Connection, test: i64, night: &str) -> rusqlite::Result<()> {
    let known: Option<i64> = connection
        .prepare_cached("SELECT number FROM test_night WHERE test = ?1 AND night = ?2")?
        .query_row(params![test, night], |row| row.get(0))
        .optional()?;
    if known.is_some() {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO test_night (test, night, number)
             SELECT ?1, ?2, coalesce(max(number), 0) + 1 FROM test_night WHERE test = ?1",
        )?
        .execute(params![test, night])?;
    add_up(connection, test, night)?;
    let later = is_before_others(connection, test, night)?;
    if later {
        // A campaign of long ago was imported after younger ones.
        connection.execute(
            "UPDATE test_night SET number = (SELECT count(*) FROM test_night AS other
                 WHERE other.test = ?1 AND other.night <= test_night.night) WHERE test = ?1",
            [test],
        )?;
    }
    restate(connection, test, later)
}

/// Notes that a test ran more often in a night than was known. What has stayed away may be resolved by that.
pub(crate) fn test_ran_more(connection: &Connection, test: i64, night: &str) -> rusqlite::Result<()> {
    if add_up(connection, test, night)? {
        let before_others = is_before_others(connection, test, night)?;
        restate(connection, test, before_others)?;
    }
    Ok(())
}

/// Sums up the runs of a night; false when that changed nothing.
fn add_up(connection: &Connection, test: i64, night: &str) -> rusqlite::Result<bool> {
    let runs: i64 = connection
        .prepare_cached(
            "SELECT coalesce(sum(runs), 0) FROM campaign CROSS JOIN run ON run.campaign = campaign.id AND run.test = ?1
             WHERE night = ?2",
        )?
        .query_row(params![test, night], |row| row.get(0))?;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO way_night (test, way, night, runs)
             SELECT ?1, way, ?2, sum(runs) FROM campaign CROSS JOIN run ON run.campaign = campaign.id AND run.test = ?1
             WHERE night = ?2 AND way IS NOT NULL GROUP BY way",
        )?
        .execute(params![test, night])?;
    let changed = connection
        .prepare_cached("UPDATE test_night SET runs = ?3 WHERE test = ?1 AND night = ?2 AND runs <> ?3")?
        .execute(params![test, night, runs])?;
    Ok(changed > 0)
}

fn is_before_others(connection: &Connection, test: i64, night: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM test_night WHERE test = ?1 AND night > ?2)")?
        .query_row(params![test, night], |row| row.get(0))
}

/// A night in which a test ran: how many there were with it, and the runs in them.
#[derive(Clone, Copy, Default)]
struct UpTo {
    nights: i64,
    runs: i64,
}

/// Works out anew how the failures of a test stand. Those that are resolved stay so when runs only came behind, and those of
/// the last night stay what they are.
fn restate(connection: &Connection, test: i64, all: bool) -> rusqlite::Result<()> {
    let newest: Option<String> = connection
        .prepare_cached("SELECT max(night) FROM test_night WHERE test = ?1")?
        .query_row([test], |row| row.get(0))?;
    let wanted = "test = ?1 AND (?2 OR state <> 'resolved' AND last_night < ?3)";
    let any: bool = connection
        .prepare_cached(&format!("SELECT EXISTS (SELECT 1 FROM failure WHERE {wanted})"))?
        .query_row(params![test, all, newest], |row| row.get(0))?;
    if !any {
        return Ok(());
    }
    let of_a_test: bool = connection
        .prepare_cached("SELECT name <> '' FROM test WHERE id = ?1")?
        .query_row([test], |row| row.get(0))?;
    let mut nights: HashMap<String, (UpTo, UpTo)> = HashMap::new();
    let mut select =
        connection.prepare_cached("SELECT night, runs FROM test_night WHERE test = ?1 ORDER BY night")?;
    let mut rows = select.query([test])?;
    let mut last = UpTo::default();
    while let Some(row) = rows.next()? {
        let before = last;
        last = UpTo { nights: last.nights + 1, runs: last.runs + row.get::<_, i64>(1)? };
        nights.insert(row.get(0)?, (before, last));
    }
    let by_way = runs_by_way(connection, test)?;
    let mut changes = Vec::new();
    let mut select = connection.prepare_cached(&format!(
        "SELECT id, nights, first_night, last_night, state, count, way,
             (SELECT sum(s.count) FROM sighting_way AS s WHERE s.failure = failure.id AND s.way = failure.way)
         FROM failure WHERE {wanted}"
    ))?;
    let mut rows = select.query(params![test, all, newest])?;
    while let Some(row) = rows.next()? {
        let (first_night, last_night): (String, String) = (row.get(2)?, row.get(3)?);
        let night = |night: &str| nights.get(night).copied().unwrap_or((last, last));
        let ((from, _), (_, to)) = (night(&first_night), night(&last_night));
        let runs = match row.get::<_, Option<String>>(6)?.as_ref().and_then(|way| by_way.get(way)) {
            Some(ran) => Runs {
                failed: row.get::<_, i64>(7)? as u64,
                span: sum(ran, |night| (&first_night..=&last_night).contains(&night)),
                clean: sum(ran, |night| *night > last_night),
            },
            None => Runs {
                failed: row.get::<_, i64>(5)? as u64,
                span: (to.runs - from.runs) as u64,
                clean: (last.runs - to.runs) as u64,
            },
        };
        let sightings = Sightings {
            seen: row.get::<_, i64>(1)? as u32,
            span: (to.nights - from.nights) as u32,
            clean: (last.nights - to.nights) as u32,
            runs: of_a_test.then_some(runs),
        };
        let word = sightings.state().word();
        if row.get_ref(4)?.as_str()? != word {
            changes.push((row.get::<_, i64>(0)?, word));
        }
    }
    let mut update = connection.prepare_cached("UPDATE failure SET state = ?2 WHERE id = ?1")?;
    changes.into_iter().try_for_each(|(id, word)| update.execute(params![id, word]).map(drop))
}

/// How often a test ran in each night, by the way that it ran in.
type ByWay = HashMap<String, Vec<(String, i64)>>;

fn runs_by_way(connection: &Connection, test: i64) -> rusqlite::Result<ByWay> {
    let mut ways = ByWay::new();
    let mut select = connection.prepare_cached("SELECT way, night, runs FROM way_night WHERE test = ?1")?;
    let mut rows = select.query([test])?;
    while let Some(row) = rows.next()? {
        ways.entry(row.get(0)?).or_default().push((row.get(1)?, row.get(2)?));
    }
    Ok(ways)
}

fn sum(ran: &[(String, i64)], wanted: impl Fn(&String) -> bool) -> u64 {
    ran.iter().filter(|(night, _)| wanted(night)).map(|(_, runs)| *runs as u64).sum()
}

/// Works out anew how all failures stand.
pub(crate) fn restate_everything(connection: &Connection) -> rusqlite::Result<()> {
    let mut select = connection.prepare("SELECT id FROM test")?;
    let tests: Vec<i64> = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    tests.into_iter().try_for_each(|test| restate(connection, test, true))
}

/// A failure that was seen again stands anew.
pub(crate) fn restate_one(connection: &Connection, failure: i64, test: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE failure SET test = ?2 WHERE id = ?1 AND test <> ?2")?
        .execute([failure, test])?;
    let sightings = connection
        .prepare_cached(&format!("SELECT {SIGHTINGS} FROM failure WHERE id = ?1"))?
        .query_row([failure], sightings)?;
    connection
        .prepare_cached("UPDATE failure SET state = ?2 WHERE id = ?1 AND state <> ?2")?
        .execute(params![failure, sightings.state().word()])
        .map(drop)
}
