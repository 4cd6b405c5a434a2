//! A search for a part of a text looks at every failure: once, for the list and for how many there are.

use rusqlite::params_from_iter;

use crate::query::{FAILURE, FailureRow, Filter, Order, failure_row};
use crate::{History, HistoryError};

impl History {
    /// A part of the list of failures, and how many there are of them in all; counting stops at `most`.
    pub fn find(&self, filter: &Filter, most: u64) -> Result<(Vec<FailureRow>, u64), HistoryError> {
        if filter.text.is_none() {
            return Ok((self.failures(filter)?, self.count_failures(filter, most)?));
        }
        let conditions = filter.conditions();
        // The sign keeps SQLite from walking an index in that order, with a jump into the table for every failure:
        // reading the table from one end to the other and sorting what fits is several times faster.
        let order = match filter.order {
            Order::LastSeen => "+failure.last_seen",
            Order::FirstSeen => "+failure.first_seen",
            Order::Count => "+failure.count",
        };
        let fit = format!(
            "SELECT failure.id FROM failure {} ORDER BY {order} DESC, failure.id DESC LIMIT {most}",
            conditions.text()
        );
        self.at((|| {
            let mut select = self.connection.prepare_cached(&fit)?;
            let ids = select.query_map(params_from_iter(&conditions.values), |row| row.get::<_, i64>(0))?;
            let ids = ids.collect::<Result<Vec<i64>, _>>()?;
            let shown: Vec<i64> =
                ids.iter().skip(filter.skip as usize).take(filter.limit as usize).copied().collect();
            let mut one = self.connection.prepare_cached(&format!(
                "SELECT {FAILURE} FROM failure JOIN test ON test.id = failure.test WHERE failure.id = ?1"
            ))?;
            let rows = shown.iter().map(|id| one.query_row([id], failure_row));
            Ok((rows.collect::<Result<Vec<FailureRow>, _>>()?, ids.len() as u64))
        })())
    }
}
