//! How a strict scenario makes its schedules: the keys of a `[[scenario]]` with `mode = "strict"`.

use std::num::NonZeroU64;
use std::time::Duration;

use waylay_control_protocol::{Level, Memory};
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
    /// After so many steps a schedule is stopped and not judged.
    pub max_steps: NonZeroU64,
    /// A schedule that is stopped there has failed.
    pub limit_is_failure: bool,
    /// When a wait with a deadline, or a sleep, may end by itself.
    pub timeouts: TimeoutRule,
    /// When others see a store.
    pub memory: Memory,
    /// What is a step in plugins.
    pub level: StepLevel,
    /// Atomic instructions of plugins that were not compiled to report them are found in their code, and are steps too.
    pub patch: bool,
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

/// What is a step, beside calls of library functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepLevel {
    /// Nothing.
    Sync,
    /// Atomic operations and volatile accesses.
    Atomics,
    /// And accesses of plugins to memory that threads share.
    Memory,
    /// And those of them whose order nothing settles. What Windows lacks for that in hosts is in docs/platforms.md.
    Auto,
}

/// Whether this system can let stores wait in store buffers (`memory = "tso"`).
pub const STORES_CAN_WAIT: bool = crate::sys::STORES_CAN_WAIT;

impl Default for StepLevel {
    fn default() -> Self {
        if crate::sys::LEARNS_PLACES { Self::Auto } else { Self::Atomics }
    }
}

impl StepLevel {
    /// Every level.
    pub const ALL: [Self; 4] = [Self::Sync, Self::Atomics, Self::Memory, Self::Auto];

    /// The level's name in TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Atomics => "atomics",
            Self::Memory => "memory",
            Self::Auto => "auto",
        }
    }

    /// The level in the words of the control library.
    pub fn level(self) -> Level {
        match self {
            Self::Sync => Level::Sync,
            Self::Atomics => Level::Atomics,
            Self::Memory => Level::Memory,
            Self::Auto => Level::Auto,
        }
    }
}

/// When a wait with a deadline, or a sleep, may end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutRule {
    /// Whenever the strategy chooses so.
    Choice,
    /// Only when nothing else can run.
    Idle,
}

impl TimeoutRule {
    /// Every rule.
    pub const ALL: [Self; 2] = [Self::Choice, Self::Idle];

    /// The rule's name in TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::Choice => "choice",
            Self::Idle => "idle",
        }
    }
}

/// The keys as they were written.
#[derive(Default)]
pub(super) struct StrictKeys {
    pub(super) strategy: Option<At<String>>,
    pub(super) depth: Option<At<u32>>,
    pub(super) runs: Option<At<u64>>,
    pub(super) stop_after_quiet: Option<At<u64>>,
    pub(super) max_steps: Option<At<u64>>,
    pub(super) limit_is_failure: Option<At<bool>>,
    pub(super) timeouts: Option<At<TimeoutRule>>,
    pub(super) memory: Option<At<Memory>>,
    pub(super) level: Option<At<StepLevel>>,
    pub(super) patch: Option<At<bool>>,
    pub(super) minimize: Option<At<Minimizing>>,
}

/// Far beyond any schedule of a test that makes progress, and reached within a second.
const MAX_STEPS: u64 = 1_000_000;

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
        let level = self.level.map_or(StepLevel::default(), |level| level.value);
        let patch = self.patch.is_none_or(|patch| patch.value);
        if let Some(tso) = self.memory.filter(|memory| memory.value == Memory::Tso) {
            if !STORES_CAN_WAIT {
                let why = "`memory = \"tso\"` works on Linux only: on Windows stores are seen at once";
                findings.add(Diagnostic::error(tso.span, why.to_owned()));
            } else if !level.level().sees_accesses() || !patch {
                let why = "a store that is not seen would overtake those that wait";
                findings.add(
                    Diagnostic::error(
                        tso.span,
                        format!("`memory = \"tso\"` needs to see every store: {why}"),
                    )
                    .help("set level = \"auto\" or \"memory\", and leave patch = false out"),
                );
            }
        }
        let runs = self.runs.and_then(|runs| NonZeroU64::new(runs.value));
        Strict {
            strategy: self.strategy_with_depth(runs, findings),
            runs,
            stop_after_quiet: self.stop_after_quiet.and_then(|quiet| NonZeroU64::new(quiet.value)),
            max_steps: self
                .max_steps
                .and_then(|steps| NonZeroU64::new(steps.value))
                .or(NonZeroU64::new(MAX_STEPS))
                .unwrap_or(NonZeroU64::MIN),
            limit_is_failure: self.limit_is_failure.is_some_and(|failure| failure.value),
            timeouts: self.timeouts.map_or(TimeoutRule::Choice, |rule| rule.value),
            memory: self.memory.map_or(Memory::Sc, |memory| memory.value),
            level,
            patch,
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
            ("timeouts", self.timeouts.map(|at| at.span)),
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
