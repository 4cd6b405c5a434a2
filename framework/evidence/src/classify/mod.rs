//! What kind of hang it is, decided from two samples of the same process.
//!
//! | kind | what the samples show |
//! |---|---|
//! | starvation | other workers of the test completed iterations, this one did not |
//! | livelock | the test's threads use the processor, or wake again and again, and nothing returns |
//! | slow | the late threads sleep, wait with a timeout, or wait for the kernel: they will come back |
//! | deadlock | the late threads wait without a timeout and use no processor time |
//!
//! Samples cannot see into the future: a thread that computes may be about to finish, a sleeping one may
//! wake the others. Such verdicts hold only if nothing returns for a further grace period, and say so
//! ([`Certainty::KeepWatching`]); a deadlock in which every thread waits for another is certain at once.
//!
//! Pure: the driver takes the samples, and asks again when it has watched long enough.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::identity::ThreadId;
use crate::signature::waiting_call;
use crate::snapshot::{SchedulerState, Wait};
use crate::stack::ThreadStack;

/// Share of the interval from which on a thread counts as using the processor: one part in this many.
/// Being stopped for a sample costs a thread some 50 µs; 5 % of 100 ms is a hundred times that.
const BUSY_SHARE: u32 = 20;
/// Turns on a processor that two samples cause by themselves: one to stop and one to go on, each.
const OWN_WAKEUPS: u64 = 4;

/// The kind of a hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HangKind {
    /// Blocked, no processor time.
    Deadlock,
    /// Processor time, no progress.
    Livelock,
    /// Late, but it returns.
    Slow,
    /// Others of the same test make progress, this one does not.
    Starvation,
}

impl HangKind {
    /// The word used everywhere.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            HangKind::Deadlock => "deadlock",
            HangKind::Livelock => "livelock",
            HangKind::Slow => "slow",
            HangKind::Starvation => "starvation",
        }
    }
}

impl std::fmt::Display for HangKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a thread has to do with the late test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Runs the iteration that is late.
    Overdue,
    /// Another worker of the same test, or a thread that the test has started.
    SameTest,
    /// Belongs to another test or to the host.
    Bystander,
}

/// One thread in one sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSample {
    /// The thread.
    pub id: ThreadId,
    /// What it has to do with the test.
    pub role: Role,
    /// What the scheduler thought of it.
    pub state: SchedulerState,
    /// What it waits for.
    pub wait: Wait,
    /// Processor time used so far.
    pub cpu: Duration,
    /// Turns on a processor so far.
    pub wakeups: u64,
    /// Normalised functions, innermost first.
    pub stack: Vec<String>,
    /// The call it waits in, for the reason.
    pub place: Option<String>,
}

impl ThreadSample {
    /// A thread of a symbolised snapshot.
    #[must_use]
    pub fn of(stack: &ThreadStack, role: Role) -> ThreadSample {
        ThreadSample {
            id: stack.id,
            role,
            state: stack.state,
            wait: stack.wait,
            cpu: Duration::from_nanos(stack.cpu_ns),
            wakeups: stack.wakeups,
            stack: stack
                .frames
                .iter()
                .filter_map(|frame| frame.function.as_deref().map(crate::signature::normal_name))
                .collect(),
            place: waiting_call(&stack.frames)
                .or_else(|| stack.syscall.as_ref().and_then(|syscall| syscall.name.clone())),
        }
    }
}

/// Two samples and what the shared page said between them.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// The earlier sample.
    pub first: &'a [ThreadSample],
    /// The later sample.
    pub second: &'a [ThreadSample],
    /// Time between them.
    pub interval: Duration,
    /// Whether the late iteration returned between the samples.
    pub returned: bool,
    /// Iterations that other workers of the same test completed between the samples.
    pub iterations_elsewhere: u64,
    /// How long the test has been watched beyond its timeout.
    pub watched: Duration,
    /// How long it is watched before an uncertain verdict stands.
    pub grace: Duration,
}

/// Whether a verdict may still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// It will not.
    Certain,
    /// If the late iteration returns within this time, it was slow.
    KeepWatching {
        /// What is left of the grace period.
        remaining: Duration,
    },
}

/// The kind of a hang and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The kind.
    pub kind: HangKind,
    /// Whether it may change.
    pub certainty: Certainty,
    /// One sentence for people.
    pub reason: String,
}

/// What a thread did between the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Doing {
    Computes,
    WakesAgain,
    WaitsForThread,
    WaitsForInput,
    WaitsWithTimeout,
    WaitsForKernel,
    Stopped,
    Unseen,
}

struct Watched<'a> {
    role: Role,
    doing: Doing,
    cpu: Duration,
    wakeups: u64,
    place: &'a str,
}

/// Decides the kind of a hang.
#[must_use]
pub fn classify(observation: &Observation<'_>) -> Verdict {
    let interval = observation.interval;
    if observation.returned {
        return certain(HangKind::Slow, "the iteration returned, late".into());
    }
    let threads = compare(observation);
    let overdue: Vec<_> = threads.iter().filter(|thread| thread.role == Role::Overdue).collect();
    if overdue.is_empty() {
        return watch(observation, HangKind::Slow, "the late thread could not be looked at".into());
    }
    let returns_by_itself = |thread: &&Watched<'_>| -> bool {
        matches!(
            thread.doing,
            Doing::WaitsWithTimeout | Doing::WaitsForKernel | Doing::Stopped | Doing::Unseen
        )
    };
    let elsewhere = observation.iterations_elsewhere;
    if elsewhere > 0 && !overdue.iter().all(returns_by_itself) {
        let reason = format!(
            "other workers of the test completed {elsewhere} {} in {} while {}",
            if elsewhere == 1 { "iteration" } else { "iterations" },
            milliseconds(interval),
            describe(&overdue)
        );
        return watch(observation, HangKind::Starvation, reason);
    }
    let active: Vec<_> =
        threads.iter().filter(|thread| matches!(thread.doing, Doing::Computes | Doing::WakesAgain)).collect();
    if !active.is_empty() {
        let cpu: Duration = active.iter().map(|thread| thread.cpu).sum();
        let reason = format!(
            "{}: {} of processor time in {}, and the iteration does not return",
            describe(&active),
            milliseconds(cpu),
            milliseconds(interval)
        );
        return watch(observation, HangKind::Livelock, reason);
    }
    if overdue.iter().all(returns_by_itself) {
        return watch(observation, HangKind::Slow, format!("{}, which ends by itself", describe(&overdue)));
    }
    let reason = format!(
        "{}, no CPU was used in {}",
        describe(&threads.iter().collect::<Vec<_>>()),
        milliseconds(interval)
    );
    match threads.iter().all(|thread| thread.doing == Doing::WaitsForThread) {
        true => certain(HangKind::Deadlock, reason),
        false => watch(observation, HangKind::Deadlock, reason),
    }
}

fn certain(kind: HangKind, reason: String) -> Verdict {
    Verdict { kind, certainty: Certainty::Certain, reason }
}

fn watch(observation: &Observation<'_>, kind: HangKind, reason: String) -> Verdict {
    let remaining = observation.grace.saturating_sub(observation.watched);
    let certainty =
        if remaining.is_zero() { Certainty::Certain } else { Certainty::KeepWatching { remaining } };
    Verdict { kind, certainty, reason }
}

/// What each thread of the test did between the samples. A thread that only the second sample has was
/// created meanwhile: somebody is active.
fn compare<'a>(observation: &Observation<'a>) -> Vec<Watched<'a>> {
    let before: HashMap<_, _> = observation.first.iter().map(|thread| (thread.id, thread)).collect();
    let of_test = observation.second.iter().filter(|thread| thread.role != Role::Bystander);
    of_test
        .map(|now| {
            let earlier = before.get(&now.id).copied();
            let cpu = now.cpu.saturating_sub(earlier.map_or(Duration::ZERO, |earlier| earlier.cpu));
            let wakeups = now.wakeups.saturating_sub(earlier.map_or(0, |earlier| earlier.wakeups));
            let wait = same_wait(earlier, now);
            let doing = doing(now, earlier, wait, cpu, wakeups, observation.interval);
            Watched {
                role: now.role,
                doing,
                cpu,
                wakeups,
                place: now.place.as_deref().unwrap_or("the kernel"),
            }
        })
        .collect()
}

/// A wait that the first sample interrupted continues under another number and has lost its timeout. If the
/// thread has not moved, it is still the wait that the first sample saw.
fn same_wait(earlier: Option<&ThreadSample>, now: &ThreadSample) -> Wait {
    match earlier {
        Some(earlier)
            if now.wait == Wait::Sleep && earlier.wait != Wait::No && earlier.stack == now.stack =>
        {
            earlier.wait
        }
        _ => now.wait,
    }
}

fn doing(
    now: &ThreadSample,
    earlier: Option<&ThreadSample>,
    wait: Wait,
    cpu: Duration,
    wakeups: u64,
    interval: Duration,
) -> Doing {
    let Some(earlier) = earlier else { return Doing::WakesAgain };
    let moved = earlier.stack != now.stack;
    if cpu >= interval / BUSY_SHARE {
        return Doing::Computes;
    }
    // A thread that waits for its turn on a busy machine has used nothing and is still computing.
    if now.state == SchedulerState::Running && wait == Wait::No {
        return Doing::Computes;
    }
    if wakeups > OWN_WAKEUPS || (moved && wakeups > 1) {
        return Doing::WakesAgain;
    }
    match (now.state, wait) {
        (SchedulerState::Uninterruptible, _) => Doing::WaitsForKernel,
        (SchedulerState::Stopped, _) => Doing::Stopped,
        (_, Wait::ThreadUntimed) => Doing::WaitsForThread,
        (_, Wait::InputUntimed) => Doing::WaitsForInput,
        (_, Wait::ThreadTimed | Wait::Sleep | Wait::InputTimed) => Doing::WaitsWithTimeout,
        (_, Wait::No) if now.stack.is_empty() => Doing::Unseen,
        // Asleep in a call that is not known to wait: as good as waiting for input.
        (_, Wait::No) => Doing::WaitsForInput,
    }
}

/// "both threads of the test wait in pthread_mutex_lock"
fn describe(threads: &[&Watched<'_>]) -> String {
    let mut groups: Vec<((Doing, &str), usize)> = Vec::new();
    for thread in threads {
        // Where a computing thread is differs from sample to sample.
        let place = if thread.doing == Doing::Computes { "" } else { thread.place };
        match groups.iter_mut().find(|(group, _)| *group == (thread.doing, place)) {
            Some((_, count)) => *count += 1,
            None => groups.push(((thread.doing, place), 1)),
        }
    }
    let only_group = groups.len() == 1;
    let parts: Vec<_> = groups
        .iter()
        .map(|((doing, place), count)| {
            let subject = match (*count, only_group) {
                (1, true) => "the only thread concerned".to_owned(),
                (2, true) => "both threads of the test".to_owned(),
                (count, true) => format!("all {count} threads of the test"),
                (1, false) => "one thread".to_owned(),
                (count, false) => format!("{count} threads"),
            };
            let wakes = threads.iter().map(|thread| thread.wakeups).max().unwrap_or_default();
            format!("{subject} {}", phrase(*doing, place, *count > 1, wakes))
        })
        .collect();
    parts.join(", ")
}

fn phrase(doing: Doing, place: &str, plural: bool, wakes: u64) -> String {
    let (wait, wake) = if plural { ("wait", "wake") } else { ("waits", "wakes") };
    match doing {
        Doing::Computes => if plural { "compute" } else { "computes" }.to_owned(),
        Doing::WakesAgain => format!("{wake} again and again in {place} (up to {wakes} times)"),
        Doing::WaitsForThread => format!("{wait} in {place}"),
        Doing::WaitsForInput => format!("{wait} for input in {place}"),
        Doing::WaitsWithTimeout => format!("{wait} with a timeout in {place}"),
        Doing::WaitsForKernel => format!("{wait} inside the kernel, uninterruptibly"),
        Doing::Stopped => {
            if plural { "are stopped by a signal" } else { "is stopped by a signal" }.to_owned()
        }
        Doing::Unseen => "could not be looked at".to_owned(),
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

#[cfg(test)]
mod tests;
