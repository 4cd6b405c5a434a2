//! How a strict scenario makes its schedules: the keys of a `[[scenario]]` with `mode = "strict"`.

use std::num::NonZeroU64;
use std::time::Duration;

use waylay_control_protocol::{Level, Memory, Patch, RunConditions};
use waylay_schedule::Spec;
use waylay_schedule::spec::{DEFAULT, PLANNED_RUNS};

use super::diagnostic::{Diagnostic, Findings};
use super::source::At;

/// How schedules are made.
#[derive(Debug, Clone, PartialEq)]
pub struct Strict {
    /// Who decides which thread runs.
    pub strategy: Spec,
    /// Schedules of each test that does not say itself; none means until the time is over.
    pub runs: Option<NonZeroU64>,
    /// So many schedules in a row of a host that show no new order of conflicting places are the last of a test.
    pub stop_after_quiet: Option<NonZeroU64>,
    /// A schedule that is stopped at the limit of steps has failed.
    pub limit_is_failure: bool,
    /// What a schedule is like.
    pub conditions: RunConditions,
    /// Processor time for minimising each failure and looking for its cause.
    pub minimize: Minimizing,
}

/// How much goes into minimising a failure and looking for its cause; none: neither is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minimizing(pub Option<Duration>);

/// As for `waylay explore`.
impl Default for Minimizing {
    fn default() -> Minimizing {
        Minimizing(Some(Duration::from_secs(5)))
    }
}

impl std::fmt::Display for Minimizing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(time) => f.write_str(&waylay_dist::format_duration(time)),
            None => f.write_str("off"),
        }
    }
}

/// Whether this system can let stores wait in store buffers (`memory = "tso"`).
pub const STORES_CAN_WAIT: bool = crate::sys::STORES_CAN_WAIT;

/// What is a step in plugins unless a scenario says it. What Windows lacks for [`Level::Auto`] in hosts is in docs/platforms.md.
pub const STEP_LEVEL: Level = if crate::sys::LEARNS_PLACES { Level::Auto } else { Level::Atomics };

impl Strict {
    /// Schedules of that strategy without an end, as a scenario has them that says nothing else.
    pub fn of(strategy: Spec) -> Strict {
        Strict {
            strategy,
            runs: None,
            stop_after_quiet: None,
            limit_is_failure: false,
            conditions: RunConditions::of_test(STEP_LEVEL),
            minimize: Minimizing::default(),
        }
    }
}

/// Whether waits with a deadline end only when nothing else can run, as it is written: `true`, or `"idle"` under the key's old name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdleTimeouts(pub(super) bool);

/// What is asked of patching, as it is written: a text as on the command line or several, or `false` as the key was once written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patches(pub(super) Vec<Patch>);

/// The keys as they were written.
#[derive(Default)]
pub(super) struct StrictKeys {
    pub(super) strategy: Option<At<String>>,
    pub(super) depth: Option<At<u32>>,
    pub(super) runs: Option<At<u64>>,
    pub(super) stop_after_quiet: Option<At<u64>>,
    pub(super) max_steps: Option<At<u64>>,
    pub(super) limit_is_failure: Option<At<bool>>,
    pub(super) idle_timeouts: Option<At<IdleTimeouts>>,
    pub(super) memory: Option<At<Memory>>,
    pub(super) level: Option<At<Level>>,
    pub(super) patch: Option<At<Patches>>,
    pub(super) minimize: Option<At<Minimizing>>,
}

impl StrictKeys {
    /// What they say together; wrong ones are reported and replaced.
    pub(super) fn check(self, findings: &Findings) -> Strict {
        for (number, what) in
            [(self.runs, "schedules"), (self.stop_after_quiet, "schedules"), (self.max_steps, "steps")]
        {
            if let Some(zero) = number.filter(|number| number.value == 0) {
                findings.add(Diagnostic::error(zero.span, format!("0 {what} run nothing")));
            }
        }
        let mut conditions =
            RunConditions::of_test(self.level.as_ref().map_or(STEP_LEVEL, |level| level.value));
        if let Some(steps) = self.max_steps {
            conditions.max_steps = steps.value;
        }
        if let Some(idle) = self.idle_timeouts {
            conditions.idle_timeouts = idle.value.0;
        }
        if let Some(patch) = &self.patch {
            conditions.set_patches(&patch.value.0);
        }
        if let Some(memory) = self.memory {
            conditions.memory = memory.value;
            if memory.value == Memory::Tso && !STORES_CAN_WAIT {
                let why = "`memory = \"tso\"` works on Linux only: on Windows stores are seen at once";
                findings.add(Diagnostic::error(memory.span, why.to_owned()));
            } else if conditions.misses_stores() {
                let why = "a store that is not seen would overtake those that wait";
                findings.add(
                    Diagnostic::error(
                        memory.span,
                        format!("`memory = \"tso\"` needs to see every store: {why}"),
                    )
                    .help("set level = \"auto\" or \"memory\", and leave patch = \"none\" out"),
                );
            }
        }
        let runs = self.runs.and_then(|runs| NonZeroU64::new(runs.value));
        Strict {
            strategy: self.strategy_with_depth(runs, findings),
            runs,
            stop_after_quiet: self.stop_after_quiet.and_then(|quiet| NonZeroU64::new(quiet.value)),
            limit_is_failure: self.limit_is_failure.is_some_and(|failure| failure.value),
            conditions,
            minimize: self.minimize.map_or(Minimizing::default(), |time| time.value),
        }
    }

    fn strategy_with_depth(&self, runs: Option<NonZeroU64>, findings: &Findings) -> Spec {
        // A depth says that PCT is meant.
        let unsaid = if self.depth.is_some() { "pct" } else { DEFAULT };
        let mut text = self.strategy.as_ref().map_or(unsaid, |text| text.value.as_str()).to_owned();
        if let Some(depth) = self.depth {
            text += if text.contains(':') { "," } else { ":" };
            text += &format!("depth={}", depth.value);
        }
        let planned = runs.map_or(PLANNED_RUNS, NonZeroU64::get);
        Spec::parse(&text, planned).unwrap_or_else(|error| {
            let alone = self.strategy.as_ref().is_some_and(|text| Spec::parse(&text.value, planned).is_err());
            let span = match (&self.strategy, self.depth) {
                (Some(strategy), _) if alone => strategy.span,
                (_, Some(depth)) => depth.span,
                (Some(strategy), None) => strategy.span,
                (None, None) => unreachable!("the default is a strategy"),
            };
            findings.add(Diagnostic::error(span, error.to_string()).help("see docs/strategies.md"));
            Spec::Random
        })
    }

    /// The keys make no sense in another mode.
    pub(super) fn refuse(self, mode: super::Mode, findings: &Findings) {
        let written = [
            ("strategy", self.strategy.map(|at| at.span)),
            ("depth", self.depth.map(|at| at.span)),
            ("runs", self.runs.map(|at| at.span)),
            ("stop-after-quiet", self.stop_after_quiet.map(|at| at.span)),
            ("max-steps", self.max_steps.map(|at| at.span)),
            ("limit-is-failure", self.limit_is_failure.map(|at| at.span)),
            ("idle-timeouts", self.idle_timeouts.map(|at| at.span)),
            ("memory", self.memory.map(|at| at.span)),
            ("level", self.level.map(|at| at.span)),
            ("patch", self.patch.map(|at| at.span)),
            ("minimize", self.minimize.map(|at| at.span)),
        ];
        for (key, span) in written {
            if let Some(span) = span {
                findings.add(
                    Diagnostic::error(span, format!("`{key}` has no meaning in mode `{mode}`"))
                        .help("set mode = \"strict\", or leave it out"),
                );
            }
        }
    }
}
