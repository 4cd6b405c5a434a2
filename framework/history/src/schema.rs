//! The tables, their version, and how a database of an older version becomes one of this.
//!
//! The version is SQLite's `user_version`. A step from one version to the next is never changed once it was released:
//! a change of the tables is a further step. All steps that are needed run in one transaction, so that two processes
//! that start together do them once.
//!
//! Times are milliseconds since 1970. A night is a date, the one on whose evening it begins.

use rusqlite::{Connection, TransactionBehavior};

/// The version that this program writes.
pub const VERSION: i64 = STEPS.len() as i64;

/// From nothing to the newest version.
const STEPS: [&str; 8] = [CAMPAIGNS_AND_FAILURES, SERVICE, RUNS, REMARKS, ORDERS, BUILDS, WAYS, ALIASES];

const CAMPAIGNS_AND_FAILURES: &str = "
-- One `waylay run` or `waylay explore`. Rows stay when the evidence goes: they are small, and trends need them.
CREATE TABLE campaign (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    night TEXT NOT NULL,
    state TEXT NOT NULL,
    started INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    iterations INTEGER NOT NULL DEFAULT 0,
    schedules INTEGER NOT NULL DEFAULT 0,
    suspensions INTEGER NOT NULL DEFAULT 0,
    hosts INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    signatures INTEGER NOT NULL DEFAULT 0,
    new_signatures INTEGER NOT NULL DEFAULT 0,
    problems INTEGER NOT NULL DEFAULT 0,
    -- The evidence: 2 all of it is there, 1 only that of open failures, 0 none.
    evidence INTEGER NOT NULL DEFAULT 2,
    bytes INTEGER
);
CREATE INDEX campaign_by_time ON campaign (started);
CREATE INDEX campaign_by_night ON campaign (night);

-- The last campaign.json, for the pages and reports of campaigns whose folder is gone.
CREATE TABLE campaign_record (
    campaign INTEGER PRIMARY KEY REFERENCES campaign,
    record TEXT NOT NULL
);

CREATE TABLE test (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    plugin TEXT NOT NULL,
    UNIQUE (name, plugin)
);

-- The nights in which a test ran, numbered from 1.
CREATE TABLE test_night (
    test INTEGER NOT NULL REFERENCES test,
    night TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (test, night)
) WITHOUT ROWID;

CREATE TABLE scenario (
    campaign INTEGER NOT NULL REFERENCES campaign,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    mode TEXT NOT NULL,
    seconds REAL NOT NULL,
    suspensions INTEGER NOT NULL,
    PRIMARY KEY (campaign, place)
) WITHOUT ROWID;

-- A test in a scenario of a campaign.
CREATE TABLE run (
    campaign INTEGER NOT NULL REFERENCES campaign,
    place INTEGER NOT NULL,
    test INTEGER NOT NULL REFERENCES test,
    iterations INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    average_ns REAL NOT NULL,
    PRIMARY KEY (campaign, place, test)
) WITHOUT ROWID;
CREATE INDEX run_by_test ON run (test, campaign);

-- One signature, over all campaigns.
CREATE TABLE failure (
    id INTEGER PRIMARY KEY,
    signature TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    kind TEXT NOT NULL,
    what TEXT NOT NULL,
    place TEXT NOT NULL,
    test INTEGER NOT NULL REFERENCES test,
    count INTEGER NOT NULL,
    nights INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    first_night TEXT NOT NULL,
    last_night TEXT NOT NULL,
    state TEXT NOT NULL
);
CREATE INDEX failure_by_time ON failure (last_seen);
CREATE INDEX failure_by_count ON failure (count);
CREATE INDEX failure_by_first ON failure (first_seen);
CREATE INDEX failure_by_state ON failure (state, last_seen);
CREATE INDEX failure_by_kind ON failure (kind, last_seen);
CREATE INDEX failure_by_test ON failure (test, state);

-- A signature in one campaign.
CREATE TABLE sighting (
    failure INTEGER NOT NULL REFERENCES failure,
    campaign INTEGER NOT NULL REFERENCES campaign,
    count INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    -- Whether its folder is there.
    evidence INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (failure, campaign)
) WITHOUT ROWID;
CREATE INDEX sighting_by_campaign ON sighting (campaign);

-- How a campaign stood over time.
CREATE TABLE sample (
    campaign INTEGER NOT NULL REFERENCES campaign,
    at_ms INTEGER NOT NULL,
    iterations INTEGER NOT NULL,
    schedules INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    signatures INTEGER NOT NULL,
    suspensions INTEGER NOT NULL,
    PRIMARY KEY (campaign, at_ms)
) WITHOUT ROWID;

-- Sums over everything that was ever written here. They only grow, whatever else goes.
CREATE TABLE counter (
    name TEXT NOT NULL,
    label TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (name, label)
) WITHOUT ROWID;
";

const SERVICE: &str = "
-- What each mix of the service is charged with beside the time of its campaigns.
CREATE TABLE mix (
    name TEXT PRIMARY KEY,
    seconds REAL NOT NULL,
    turns INTEGER NOT NULL
) WITHOUT ROWID;
ALTER TABLE campaign ADD COLUMN mix TEXT;
CREATE INDEX campaign_by_mix ON campaign (mix, started, updated);

-- Failures that somebody was told about.
CREATE TABLE notice (
    failure INTEGER PRIMARY KEY REFERENCES failure,
    at INTEGER NOT NULL
);

-- What a suppression kept quiet.
ALTER TABLE failure ADD COLUMN suppressed TEXT;
-- Counting all failures by state is then a walk through this alone.
CREATE INDEX failure_totals ON failure (state, suppressed);
CREATE TABLE suppression_hit (
    suppression TEXT NOT NULL,
    failure INTEGER NOT NULL REFERENCES failure,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (suppression, failure)
) WITHOUT ROWID;
";

const ORDERS: &str = "
-- Orders of conflicting places in the code that schedules showed, and those that are possible as far as they showed.
ALTER TABLE sample ADD COLUMN orders INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sample ADD COLUMN orders_predicted INTEGER NOT NULL DEFAULT 0;
";

const BUILDS: &str = "
-- A build of a plugin or a program with the libraries that it brings: names, build ids and commits, as JSON.
CREATE TABLE build (
    id INTEGER PRIMARY KEY,
    files TEXT NOT NULL UNIQUE
);
-- Which one a campaign ran.
ALTER TABLE run ADD COLUMN build INTEGER REFERENCES build;
";

const WAYS: &str = "
-- In which way a test ran: mode, scenario and strategy. Runs of one way say nothing of how often a failure comes in another.
ALTER TABLE run ADD COLUMN way TEXT;
CREATE TABLE way_night (
    test INTEGER NOT NULL REFERENCES test,
    way TEXT NOT NULL,
    night TEXT NOT NULL,
    runs INTEGER NOT NULL,
    PRIMARY KEY (test, way, night)
) WITHOUT ROWID;
CREATE TABLE sighting_way (
    failure INTEGER NOT NULL REFERENCES failure,
    way TEXT NOT NULL,
    campaign INTEGER NOT NULL REFERENCES campaign,
    count INTEGER NOT NULL,
    PRIMARY KEY (failure, way, campaign)
) WITHOUT ROWID;
-- The way that showed it most often; none where campaigns did not count by scenario.
ALTER TABLE failure ADD COLUMN way TEXT;
";

const ALIASES: &str = "
-- What else a failure is known by: the signatures that its cause has with other stacks, and the cause itself.
CREATE TABLE alias (
    name TEXT PRIMARY KEY,
    failure INTEGER NOT NULL REFERENCES failure
) WITHOUT ROWID;
-- The signature that a campaign has it under, if that is another one: its folder is called so.
ALTER TABLE sighting ADD COLUMN kept_as TEXT;
";

/// The row of the failure that a name stands for, as a part of a query.
pub(crate) fn failure_of(name: &str) -> String {
    format!(
        "(SELECT id FROM failure WHERE signature = {name} UNION ALL SELECT failure FROM alias WHERE name = {name} LIMIT 1)"
    )
}

const RUNS: &str = "
-- How often a test ran: with the iterations that failed, which are not among those that finished. Schedules are counted when
-- they begin.
ALTER TABLE run ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
UPDATE run SET runs = iterations + CASE
    WHEN (SELECT mode FROM scenario AS s WHERE s.campaign = run.campaign AND s.place = run.place) = 'strict' THEN 0
    ELSE failures END;
-- The sum of a night, for the question whether a failure would have shown.
ALTER TABLE test_night ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
UPDATE test_night SET runs = coalesce((SELECT sum(run.runs) FROM run JOIN campaign ON campaign.id = run.campaign
    WHERE run.test = test_night.test AND campaign.night = test_night.night), 0);
";

const REMARKS: &str = "
-- What people said about a failure on its page.
CREATE TABLE remark (
    failure INTEGER PRIMARY KEY REFERENCES failure,
    acknowledged INTEGER NOT NULL,
    ticket TEXT,
    quiet_until TEXT,
    reason TEXT,
    at INTEGER NOT NULL
);
";

/// Brings the database to this version. Its own version when that is newer, and nothing was touched.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<Option<i64>> {
    if version(connection)? == VERSION {
        return Ok(None);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Asked again: another process may have been quicker.
    let found = version(&transaction)?;
    if found > VERSION {
        return Ok(Some(found));
    }
    for step in STEPS.iter().skip(found.max(0) as usize) {
        transaction.execute_batch(step)?;
    }
    // What stands there was worked out by the rules of the older version.
    crate::standing::restate_everything(&transaction)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    Ok(None)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_database_gets_the_steps_that_it_lacks_and_keeps_what_it_has() {
        let mut old = Connection::open_in_memory().unwrap();
        old.execute_batch(STEPS[0]).unwrap();
        old.execute_batch(
            "PRAGMA user_version = 1;
             INSERT INTO campaign (name, night, state, started, updated) VALUES ('a', '2026-11-16', 'finished', 1, 2);",
        )
        .unwrap();
        assert_eq!(migrate(&mut old).unwrap(), None);
        assert_eq!(version(&old).unwrap(), VERSION);
        let mix: Option<String> = old.query_row("SELECT mix FROM campaign", [], |row| row.get(0)).unwrap();
        assert_eq!(mix, None);
        assert_eq!(migrate(&mut old).unwrap(), None);
    }

    /// Before, nights alone decided: a failure of one run in 45 was resolved after three nights of 5 runs.
    #[test]
    fn what_an_older_version_called_resolved_is_weighed_again_by_its_runs() {
        let mut old = Connection::open_in_memory().unwrap();
        STEPS[..2].iter().for_each(|step| old.execute_batch(step).unwrap());
        old.execute_batch(
            "PRAGMA user_version = 2;
             INSERT INTO test VALUES (1, 'few', 'libx.so'), (2, 'many', 'libx.so');
             INSERT INTO campaign (id, name, night, state, started, updated) VALUES
                 (1, 'a', '2026-11-01', 'finished', 1, 2), (2, 'b', '2026-11-02', 'finished', 3, 4),
                 (3, 'c', '2026-11-03', 'finished', 5, 6), (4, 'd', '2026-11-04', 'finished', 7, 8);
             INSERT INTO scenario SELECT id, 0, 's', 'free', 1.0, 0 FROM campaign;
             INSERT INTO run SELECT id, 0, 1, CASE id WHEN 1 THEN 44 ELSE 5 END, id = 1, 1.0 FROM campaign;
             INSERT INTO run SELECT id, 0, 2, CASE id WHEN 1 THEN 44 ELSE 500 END, id = 1, 1.0 FROM campaign;
             INSERT INTO test_night SELECT test.id, night, campaign.id FROM test JOIN campaign;
             INSERT INTO failure (signature, text, kind, what, place, test, count, nights, first_seen, last_seen, first_night,
                 last_night, state) SELECT name, '', 'crash', '', '', id, 1, 1, 1, 1, '2026-11-01', '2026-11-01', 'resolved'
                 FROM test;",
        )
        .unwrap();
        migrate(&mut old).unwrap();
        let state = |of: &str| -> String {
            old.query_row("SELECT state FROM failure WHERE signature = ?1", [of], |row| row.get(0)).unwrap()
        };
        assert_eq!((state("few").as_str(), state("many").as_str()), ("rare", "resolved"));
    }

    #[test]
    fn a_newer_database_is_left_alone() {
        let mut newer = Connection::open_in_memory().unwrap();
        newer.pragma_update(None, "user_version", VERSION + 1).unwrap();
        assert_eq!(migrate(&mut newer).unwrap(), Some(VERSION + 1));
        let tables: i64 =
            newer.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 0);
    }
}
