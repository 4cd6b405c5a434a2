//! Why something fails: the orders of events that it needs, each proved by running it the other way round, in words.

use serde::{Deserialize, Serialize};

use crate::escape::Plain;

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
    /// The line of the source and two around it, if the file is there.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub source: Vec<String>,
    /// Locks that the thread holds there.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub locks: Vec<String>,
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

impl Why {
    /// What the first line of a failure says, in lines of about so many characters; nothing when nobody sought.
    pub fn lines(&self, width: usize) -> Vec<String> {
        match (&self.cause, &self.no_cause) {
            (Some(cause), _) => cause.lines(width),
            (None, Some(reason)) => wrap(&format!("none was found: {reason}"), width),
            (None, None) => Vec::new(),
        }
    }
}

/// Characters of a line of a cause on a terminal.
pub const WIDTH: usize = 100;

impl EventPlace {
    /// The function and its line.
    pub fn place(&self) -> String {
        let file = self.file.rsplit(['/', '\\']).next().unwrap_or_default();
        match (self.function.as_str(), file, self.line) {
            ("", "", _) => "code without a name".to_owned(),
            ("", file, line) => format!("{file}:{line}"),
            (function, _, 0) => {
                let offset = self.offset.map_or_else(String::new, |offset| format!("+{offset:#x}"));
                format!("{function}{offset}")
            }
            (function, "", _) => function.to_owned(),
            (function, file, line) => format!("{function} ({file}:{line})"),
        }
    }

    /// The event in words.
    pub fn sentence(&self, object: &str) -> String {
        format!("thread {} {} {object} in {}", self.thread, self.does(), self.place())
    }

    /// What it does, of a thread in the present: `reads`, `takes`.
    fn does(&self) -> String {
        match self.access.as_str() {
            "read" => "reads",
            "write" => "writes",
            "update" => "updates",
            "lock" => "takes",
            "try to lock" => "tries to take",
            "lock for reading" => "takes for reading",
            "unlock" => "gives back",
            "wait" => "waits for",
            "signal" => "signals",
            "post" => "posts",
            "free" => "frees",
            "give up waiting" => "gives up waiting for",
            other => return format!("does {other} on"),
        }
        .to_owned()
    }

    /// What is done to the object: `is read`.
    fn is_done(&self) -> Option<&'static str> {
        Some(match self.access.as_str() {
            "read" => "is read",
            "write" => "is written",
            "update" => "is updated",
            "lock" => "is taken",
            "free" => "is freed",
            _ => return None,
        })
    }

    /// What it did, of a thread in the past.
    fn did(&self) -> Option<&'static str> {
        Some(match self.access.as_str() {
            "read" => "read",
            "write" => "wrote",
            "update" => "updated",
            "lock" => "took",
            "free" => "freed",
            _ => return None,
        })
    }
}

impl Constraint {
    /// The order in words.
    pub fn sentence(&self) -> String {
        before(self)
    }
}

impl Cause {
    /// The orders in one sentence, without the proof.
    pub fn orders(&self) -> String {
        if let [one, other] = self.constraints.as_slice()
            && let Some(sentence) = between(one, other)
        {
            return sentence;
        }
        let each: Vec<String> = self.constraints.iter().map(before).collect();
        each.join(", and ")
    }

    /// What turning them round showed.
    pub fn proof(&self) -> String {
        let which = match self.constraints.len() {
            1 => "that order",
            2 => "either order",
            _ => "any of these orders",
        };
        let runs = self.flipped_each;
        let ends = if self.flipped.other_failures > 0 { "this failure does not happen" } else { "it passes" };
        format!("With {which} reversed {ends} ({runs} of {runs} runs).")
    }

    /// All of it.
    pub fn sentence(&self) -> String {
        format!("depth {}: {}. {}", self.depth, self.orders(), self.proof())
    }

    /// The sentence in lines of about so many characters.
    pub fn lines(&self, width: usize) -> Vec<String> {
        wrap(&self.sentence(), width)
    }

    /// Both events of every order, with lines of the source, for people who want to see it.
    pub fn details(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, Constraint { first, then, object }) in self.constraints.iter().enumerate() {
            for (event, when) in [(first, "first"), (then, "then")] {
                let locks = match event.locks.as_slice() {
                    [] => String::new(),
                    locks => format!(", holding {}", locks.join(", ")),
                };
                lines.push(format!(
                    "{}. {when}: thread {} {} {object} in {}{locks}",
                    number + 1,
                    event.thread,
                    event.does(),
                    event.place()
                ));
                lines.extend(event.source.iter().map(|line| format!("      {}", Plain(line))));
                lines.extend(
                    event.stack.iter().skip(1).map(|frame| format!("    called by {}", Plain(frame))),
                );
            }
        }
        lines
    }
}

/// `x` is written by one thread between two accesses of another: one event is the second of one order and the first of the
/// other.
fn between(one: &Constraint, other: &Constraint) -> Option<String> {
    let (before, after) = match () {
        () if one.then == other.first => (one, other),
        () if other.then == one.first => (other, one),
        () => return None,
    };
    let middle = &before.then;
    if before.object != after.object || before.first.thread != after.then.thread {
        return None;
    }
    let (object, done) = (&before.object, middle.is_done()?);
    let thread = before.first.thread;
    Some(format!(
        "{object} {done} in {} by thread {} after thread {thread} {} it in {} and before thread {thread} {} it in {}",
        middle.place(),
        middle.thread,
        before.first.did()?,
        before.first.place(),
        after.then.does(),
        after.then.place()
    ))
}

fn before(Constraint { first, then, object }: &Constraint) -> String {
    let signals = first.access == "signal" && then.access == "wait";
    let lost = if signals { ", so nobody waits for it yet" } else { "" };
    let wants = if then.step.is_none() && then.access == "lock" { "wants" } else { "" };
    let does = if wants.is_empty() { then.does() } else { wants.to_owned() };
    format!(
        "thread {} {} {object} in {} before thread {} {does} it in {}{lost}",
        first.thread,
        first.does(),
        first.place(),
        then.thread,
        then.place()
    )
}

/// Breaks a text into lines at spaces.
/// A text in lines of about so many characters.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(thread: u32, access: &str, line: u32) -> EventPlace {
        EventPlace {
            function: "sell".to_owned(),
            file: "/src/stock.cpp".to_owned(),
            line,
            thread,
            access: access.to_owned(),
            occurrence: 1,
            step: Some(3),
            ..EventPlace::default()
        }
    }

    fn cause(constraints: Vec<Constraint>) -> Cause {
        let runs = 20 * constraints.len() as u64;
        Cause {
            depth: constraints.len() as u32,
            constraints,
            flipped: Trials { runs, failures: 0, other_failures: 0 },
            flipped_each: 20,
            kept: Trials { runs: 20, failures: 20, other_failures: 0 },
            schedules: 90,
        }
    }

    fn order(first: EventPlace, then: EventPlace) -> Constraint {
        Constraint { first, then, object: "`sold`".to_owned() }
    }

    #[test]
    fn two_orders_are_one_sentence() {
        let lost = cause(vec![
            order(event(1, "read", 27), event(2, "write", 29)),
            order(event(2, "read", 27), event(1, "write", 29)),
        ]);
        assert_eq!(
            lost.sentence(),
            "depth 2: thread 1 reads `sold` in sell (stock.cpp:27) before thread 2 writes it in sell (stock.cpp:29), \
             and thread 2 reads `sold` in sell (stock.cpp:27) before thread 1 writes it in sell (stock.cpp:29). \
             With either order reversed it passes (20 of 20 runs)."
        );
        assert!(lost.lines(80).iter().all(|line| line.chars().count() <= 80));
        assert_eq!(lost.lines(80).join(" "), lost.sentence());
    }

    #[test]
    fn what_comes_between_two_accesses_is_said_so() {
        let torn = cause(vec![
            order(event(1, "read", 27), event(2, "write", 40)),
            order(event(2, "write", 40), event(1, "read", 29)),
        ]);
        assert_eq!(
            torn.orders(),
            "`sold` is written in sell (stock.cpp:40) by thread 2 after thread 1 read it in sell (stock.cpp:27) \
             and before thread 1 reads it in sell (stock.cpp:29)"
        );
    }

    #[test]
    fn a_lock_that_is_never_got_is_wanted_and_a_signal_is_lost() {
        let wanted = EventPlace { step: None, ..event(2, "lock", 8) };
        assert!(
            cause(vec![order(event(1, "lock", 3), wanted)])
                .orders()
                .ends_with("before thread 2 wants it in sell (stock.cpp:8)")
        );
        let lost =
            cause(vec![order(event(2, "signal", 5), EventPlace { step: None, ..event(1, "wait", 7) })]);
        assert!(lost.sentence().contains("so nobody waits for it yet. With that order reversed it passes"));
    }
}
