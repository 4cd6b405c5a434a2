//! What the driver should know and the page has no room for: one JSON object per line on an inherited pipe.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::description::PluginDescription;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Answer to [`crate::plan::Plan::Describe`].
    Described {
        /// What is inside.
        plugin: PluginDescription,
    },
    /// A plugin could not be loaded; its tests will not run.
    PluginRefused {
        /// Index in the plan.
        plugin: usize,
        /// Why, and what to do.
        reason: String,
    },
    /// The kinds of shared objects that the plugins can make, in the order of their numbers in the page.
    Kinds {
        /// Their names.
        names: Vec<String>,
    },
    /// A test could not be created or started; the others run.
    TestRefused {
        /// Index in the plan.
        test: usize,
        /// Why.
        reason: String,
    },
    /// A schedule ended and threads of the test did not; the next schedules need a fresh process.
    LeftBehind {
        /// Index in the plan.
        test: usize,
        /// Number of the schedule.
        run: u64,
        /// How many.
        threads: u32,
    },
    /// A life of a comparison failed and went on to its end.
    Failed {
        /// Index in the plan.
        test: usize,
        /// Number of the schedule.
        run: u64,
        /// Ticks of the page's clock since the first began.
        ticks: u64,
    },
    /// A systematic search has run every schedule within its bound.
    Exhausted {
        /// Index in the plan.
        test: usize,
    },
    /// A test's workers are running.
    TestStarted {
        /// Index in the plan.
        test: usize,
    },
}

/// The writing end.
#[derive(Debug)]
pub(crate) struct Events(Mutex<File>);

impl Events {
    /// Takes over the inherited handle.
    ///
    /// # Safety
    ///
    /// `raw` must be an open handle that nothing else in this process owns.
    pub(crate) unsafe fn from_raw(raw: i64) -> Events {
        // SAFETY: passed on to our caller.
        Events(Mutex::new(unsafe { crate::sys::file_from_raw(raw) }))
    }

    /// Sends one line. A driver that is gone does not matter: the host is about to end too.
    pub(crate) fn send(&self, event: &Event) {
        let mut line = serde_json::to_vec(event).expect("an event is plain data");
        line.push(b'\n');
        let mut file = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = file.write_all(&line);
    }
}
