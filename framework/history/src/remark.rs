//! What people say about a failure on its page: that they know it, which ticket it has, and until when they do not want to
//! hear of it. It is kept here and nowhere else: a database that is made again from the folders of campaigns has none of it.

use jiff::Timestamp;
use jiff::civil::Date;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::schema::failure_of;
use crate::{History, HistoryError};

/// What was said last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remark {
    /// Somebody has seen it and takes care.
    pub acknowledged: bool,
    /// Where that is written down.
    pub ticket: Option<String>,
    /// The last day on which nobody is told about it.
    pub quiet_until: Option<Date>,
    /// Why not.
    pub reason: Option<String>,
    /// When it was said.
    pub at: Timestamp,
}

impl Remark {
    fn of(row: &Row<'_>) -> rusqlite::Result<Remark> {
        let until: Option<String> = row.get(2)?;
        Ok(Remark {
            acknowledged: row.get(0)?,
            ticket: row.get(1)?,
            quiet_until: until.and_then(|date| date.parse().ok()),
            reason: row.get(3)?,
            at: Timestamp::from_millisecond(row.get(4)?).unwrap_or_default(),
        })
    }

    /// Why the failure is kept quiet on that day.
    pub(crate) fn quiet(&self, today: Date) -> Option<String> {
        self.quiet_until
            .filter(|until| today <= *until)
            .map(|_| self.reason.clone().unwrap_or_else(|| "suppressed on its page".to_owned()))
    }
}

const REMARK: &str = "acknowledged, ticket, quiet_until, reason, at";

/// The remark about a failure, by its number.
pub(crate) fn of_failure(connection: &Connection, failure: i64) -> rusqlite::Result<Option<Remark>> {
    let sql = format!("SELECT {REMARK} FROM remark WHERE failure = ?1");
    connection.prepare_cached(&sql)?.query_row([failure], Remark::of).optional()
}

impl History {
    /// What was said about a failure.
    pub fn remark(&self, signature: &str) -> Result<Option<Remark>, HistoryError> {
        let sql = format!("SELECT {REMARK} FROM remark WHERE failure = {}", failure_of("?1"));
        self.at(self.connection.query_row(&sql, [signature], Remark::of).optional())
    }

    /// Failures that people asked not to hear of, those that end last first.
    pub fn quiet_remarks(&self) -> Result<Vec<(String, Remark)>, HistoryError> {
        self.at((|| {
            let mut select = self.connection.prepare(&format!(
                "SELECT {REMARK}, signature FROM remark JOIN failure ON failure.id = failure
                 WHERE quiet_until IS NOT NULL ORDER BY quiet_until DESC LIMIT 1000"
            ))?;
            let rows = select.query_map([], |row| Ok((row.get(5)?, Remark::of(row)?)))?;
            rows.collect()
        })())
    }

    /// Takes the place of what was said before. False when there is no such failure.
    pub fn put_remark(&mut self, signature: &str, remark: &Remark) -> Result<bool, HistoryError> {
        self.transaction(|connection| {
            let written = connection.execute(
                &format!(
                    "INSERT INTO remark SELECT id, ?2, ?3, ?4, ?5, ?6 FROM failure WHERE id = {}
                     ON CONFLICT (failure) DO UPDATE SET acknowledged = ?2, ticket = ?3, quiet_until = ?4, reason = ?5,
                         at = ?6",
                    failure_of("?1")
                ),
                params![
                    signature,
                    remark.acknowledged,
                    remark.ticket,
                    remark.quiet_until.map(|date| date.to_string()),
                    remark.reason,
                    remark.at.as_millisecond()
                ],
            )?;
            Ok(written > 0)
        })
    }
}
