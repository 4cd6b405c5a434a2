//! Can a run have told this? Pure: what is looked at was copied before. The program on the other side can write over all of it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::report::{Ending, HeldAt, Report};
use crate::settings::Switching;
use crate::sizes::{ACCOUNT, PARAMETERS, STRETCHES};
use crate::stretch::Stretch;

/// Steps and runs that may have been counted before the first nanosecond is over.
const SLACK_COUNT: u64 = 1_000_000;
/// Far more threads than a run can have.
const MOST_THREADS: u32 = 1 << 20;
/// Far more instructions than are patched in a program and all its libraries.
const MOST_MOVED: u64 = 1 << 20;

/// More orders than a library remembers.
const MOST_ORDERS: u64 = 1 << 20;

/// Far more steps than a strategy plans with.
const MOST_PLANNED: u64 = 1 << 48;

/// More than a library can have counted in so much time.
pub fn most_in(age: Duration) -> u64 {
    (age.as_nanos().min(u128::from(u64::MAX)) as u64).saturating_add(SLACK_COUNT)
}

/// What a report says that no library writes, if nothing can have been counted more often than `most`.
pub(crate) fn impossible(report: &Report, most: u64) -> Option<String> {
    let word = |word: &AtomicU32| word.load(Ordering::Acquire);
    let long = |word: &AtomicU64| word.load(Ordering::Acquire);
    if Ending::from_code(word(&report.ending)).is_none() {
        return Some(format!("a schedule ended in way {}", word(&report.ending)));
    }
    if Switching::from_code(word(&report.switching)).is_none() {
        return Some(format!("threads are switched in way {}", word(&report.switching)));
    }
    if word(&report.held) != 0 && HeldAt::from_code(word(&report.held)).is_none() {
        return Some(format!("a process is held in way {}", word(&report.held)));
    }
    let most_threads = u64::from(MOST_THREADS);
    let lengths = [
        ("what the run tells about itself", u64::from(word(&report.account)), ACCOUNT as u64),
        ("what is handed over", u64::from(word(&report.handed)), PARAMETERS as u64),
        ("the schedule", long(&report.stretches), STRETCHES as u64),
        ("what was said of the schedule", long(&report.notes), most),
        ("the number of threads", u64::from(word(&report.threads)), most_threads),
        ("the most threads", u64::from(word(&report.tally.threads)), most_threads),
        ("the store buffers", long(&report.delayed.flushers), most_threads),
        ("the stores that waited", long(&report.delayed.count), most),
        ("what is incomplete", u64::from(word(&report.cut)), 1),
        ("what was not controlled", u64::from(word(&report.partly_controlled)), 1),
        ("the number of steps", long(&report.steps), most),
        ("the steps that count", long(&report.reach), MOST_PLANNED),
        ("the number of switches", long(&report.switches), most),
        ("the steps that threads were made to take", long(&report.forced), most),
        ("the step at which the schedule was left", long(&report.diverged), most),
        ("the number of accesses", long(&report.accesses), most),
        ("the list of moved instructions", long(&report.moved_count), MOST_MOVED),
        ("the number of schedules", long(&report.tally.runs), most),
        ("the steps of all schedules", long(&report.tally.steps), most),
        ("the longest schedule", long(&report.tally.longest), most),
        ("the length that was planned with", long(&report.tally.reach), MOST_PLANNED),
        ("the schedules partly controlled", long(&report.tally.partly_controlled), most),
        ("the repeated schedules", long(&report.tally.repeats), most),
        ("the orders seen", long(&report.tally.orders[0]), long(&report.tally.orders[1])),
        ("the orders that are possible", long(&report.tally.orders[1]), MOST_ORDERS),
        ("the schedules listened to", long(&report.tally.orders[2]), most),
        ("the end for want of new orders", long(&report.tally.orders[4]), 1),
        ("the last schedule with a new order", long(&report.tally.orders[3]), MOST_PLANNED),
    ];
    if let Some((what, value, most)) = lengths.iter().find(|(_, value, most)| value > most) {
        return Some(format!("{what}: {value}, and {most} is the most that there can be"));
    }
    let aimed = report.tally.aimed.iter().map(long).find(|runs| *runs > most);
    aimed.map(|runs| format!("{runs} schedules aimed at one depth"))
}

/// What a recorded schedule shows that nobody records, if no more steps than `most` can have been made.
pub(crate) fn impossible_schedule(schedule: &[Stretch], most: u64) -> Option<String> {
    let mut check = ScheduleCheck::new(most);
    let _ = schedule.iter().all(|stretch| check.add(stretch));
    check.fault
}

/// Looks at a schedule, stretch by stretch.
pub(crate) struct ScheduleCheck {
    steps: u64,
    most: u64,
    pub(crate) fault: Option<String>,
}

impl ScheduleCheck {
    pub(crate) fn new(most: u64) -> ScheduleCheck {
        ScheduleCheck { steps: 0, most, fault: None }
    }

    /// Says whether it can be.
    pub(crate) fn add(&mut self, stretch: &Stretch) -> bool {
        self.steps = self.steps.saturating_add(stretch.steps);
        self.fault = match stretch {
            // A stretch is begun with its first step.
            Stretch { steps: 0, .. } => Some("nothing was done in a part of the schedule".to_owned()),
            Stretch { thread, .. } if *thread >= MOST_THREADS => {
                Some(format!("thread {thread} is scheduled"))
            }
            _ if self.steps > self.most => Some(format!("the schedule has {} steps", self.steps)),
            _ => None,
        };
        self.fault.is_none()
    }
}
