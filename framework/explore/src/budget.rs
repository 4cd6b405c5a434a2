//! How much work goes into explaining a failure.

use std::time::{Duration, Instant};

use crate::server::Server;

/// What is left of a limited amount of processor time.
#[derive(Clone, Debug)]
pub struct Budget {
    limit: Duration,
    /// Longest time by the clock.
    longest: Duration,
    begun: Instant,
}

impl Budget {
    /// So much, from now on.
    pub fn new(limit: Duration) -> Budget {
        // What a busy machine takes is not ours, but nobody waits for ever.
        const MOST_WAITED: u32 = 8;
        Budget { limit, longest: limit * MOST_WAITED, begun: Instant::now() }
    }

    /// The same, and never longer than that by the clock.
    pub fn within(self, longest: Duration) -> Budget {
        Budget { longest: self.longest.min(longest), ..self }
    }

    /// Whether a program's runs have used it up. Where their processor time is not known, time counts.
    pub(crate) fn is_spent(&self, server: &Server) -> bool {
        let waited = self.begun.elapsed();
        waited >= self.limit && server.spent().is_none_or(|spent| spent >= self.limit)
            || waited >= self.longest
    }
}
