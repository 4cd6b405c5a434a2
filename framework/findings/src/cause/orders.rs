//! The orders of events that a failure needs, as data, and when two failures need the same.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// One of the two events of an order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPlace {
    /// The program's own function in which it is; empty when that is not known.
    pub function: String,
    /// The file; empty when that is not known.
    pub file: String,
    /// The line; 0 when that is not known.
    pub line: u32,
    /// Number of the thread, 0 being the main one.
    pub thread: u32,
    /// `read`, `write`, `update`, `lock`, `wait`, `signal`, `free`, or the name of the step.
    pub access: String,
    /// The how manieth of this access, to this object, by this thread: 1 is the first.
    pub occurrence: u32,
    /// The step at which it happens in the schedule; none when the failure comes before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<u64>,
    /// Functions and lines, from the inside out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stack: Vec<String>,
    /// The line of the source with two before it and two behind it, if the file is there.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub source: Vec<String>,
    /// Locks that the thread holds there.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub locks: Vec<String>,
    /// What it reads or writes, as a number, where that was seen; of an update both.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub value: Option<String>,
    /// Whether it is a lock that the thread wants and never gets.
    #[serde(skip_serializing_if = "is_false", default)]
    pub wanted: bool,
    /// Bytes from the start of the function, where no line is known but the function is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub offset: Option<u64>,
    /// The how manieth of `occurrence` are at this place: 1 is the first; 0 when nobody counted.
    #[serde(skip_serializing_if = "is_none", default)]
    pub here: u32,
    /// The how manieth of `occurrence` are in this function: 1 is the first; 0 when nobody counted.
    #[serde(skip_serializing_if = "is_none", default)]
    pub in_function: u32,
}

/// Two events that come in this order when it fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// What comes first.
    pub first: EventPlace,
    /// What comes after it, or would.
    pub then: EventPlace,
    /// What both touch.
    pub object: String,
    /// Who allocated that, and where, if it is freed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub allocated: Option<Allocated>,
}

/// Where memory comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocated {
    /// Number of the thread.
    pub thread: u32,
    /// The program's own function and its line, as [`EventPlace::place`] says them.
    pub place: String,
}

/// Runs that were made to find something out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trials {
    /// How many.
    pub runs: u64,
    /// How many showed the failure.
    pub failures: u64,
    /// How many failed in another way.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub other_failures: u64,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The orders that are enough for a failure, and of which none can be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// How many there are.
    pub depth: u32,
    /// They, as they come in the schedule.
    pub constraints: Vec<Constraint>,
    /// Runs with one of them reversed and the others kept.
    pub flipped: Trials,
    /// Runs with one and the same of them reversed, at least.
    pub flipped_each: u64,
    /// Runs with all of them kept, and everything else as chance would have it.
    pub kept: Trials,
    /// Whether all else was kept as near to the failing schedule as possible when an order was reversed: otherwise it fails in
    /// another way, such as by another thread that does the same.
    #[serde(skip_serializing_if = "is_false", default)]
    pub near: bool,
    /// Schedules that were run to find this out.
    pub schedules: u64,
}

/// A cause, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// Why something fails, proved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<Cause>,
    /// Why that was sought and not found.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub no_cause: Option<String>,
}

impl Cause {
    /// Whether the other cause is this one: the same orders of events at the same places, whichever threads made them.
    pub fn is_also(&self, other: &Cause) -> bool {
        self.key().is_some_and(|key| other.key() == Some(key))
    }

    /// What causes have in common that are one; none where no order is known.
    pub fn key(&self) -> Option<String> {
        let event = |EventPlace { function, file, line, access, offset, .. }: &EventPlace| {
            format!("{access} {function} {file} {line} {offset:?}")
        };
        let order =
            |Constraint { first, then, .. }: &Constraint| format!("{} < {}", event(first), event(then));
        let orders: BTreeSet<String> = self.constraints.iter().map(order).collect();
        let orders = orders.into_iter().collect::<Vec<_>>().join("\n");
        (!self.constraints.is_empty()).then(|| format!("{}\n{orders}", self.depth))
    }
}
