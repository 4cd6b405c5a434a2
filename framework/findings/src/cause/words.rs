//! A cause in words.
//!
//! The first line of a failure says which orders it needs. What everybody knows under a name is said in that way: an update
//! that both read before either writes, a value that changes between two looks at it, locks in a circle, a signal that
//! nobody waits for, memory that is used when it is freed. Everything else is one order after the other.

use std::collections::{BTreeMap, BTreeSet};

use super::orders::{Cause, Constraint, EventPlace, Why};
use crate::escape::Plain;

/// Characters of a line of a cause on a terminal.
pub const WIDTH: usize = 100;

/// Lines of source code around the events that a block shows.
const MOST_CODE: usize = 24;

impl Why {
    /// What the first line of a failure says, in lines of about so many characters; nothing when nobody sought.
    pub fn lines(&self, width: usize) -> Vec<String> {
        match (&self.cause, &self.no_cause) {
            (Some(cause), _) => cause.lines(width),
            (None, Some(reason)) => wrap(&format!("none was found: {reason}"), width),
            (None, None) => Vec::new(),
        }
    }

    /// The code in which the orders are, as [`Cause::code`] shows it.
    pub fn code(&self) -> Vec<String> {
        self.cause.as_ref().map(Cause::code).unwrap_or_default()
    }
}

impl EventPlace {
    /// The function and its line.
    pub fn place(&self) -> String {
        let file = self.file_name();
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

    fn file_name(&self) -> &str {
        self.file.rsplit(['/', '\\']).next().unwrap_or_default()
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

    /// The source around it: numbers and text of lines.
    pub fn source_lines(&self) -> Vec<(u32, &str)> {
        let numbered = |line: &'_ String| -> Option<(u32, usize)> {
            let (number, _) = line.split_once('│')?;
            Some((number.trim_start_matches('>').trim().parse().ok()?, number.len() + '│'.len_utf8()))
        };
        let lines = self.source.iter().filter_map(|line| numbered(line).map(|found| (line, found)));
        lines
            .map(|(line, (number, end))| (number, line[end..].strip_prefix(' ').unwrap_or(&line[end..])))
            .collect()
    }

    /// A lock that it takes in the end, or would.
    fn takes(&self) -> bool {
        self.access.starts_with("lock")
    }

    /// What is known of it beside its place: the value, and the locks that its thread holds.
    pub fn details(&self) -> String {
        let value = match (&self.value, self.access.as_str()) {
            (Some(value), "read") => format!(", which is {value}"),
            (Some(value), "update" | "unlock") => format!(", {value}"),
            (Some(value), _) => format!(", which becomes {value}"),
            (None, _) => String::new(),
        };
        match self.locks.as_slice() {
            [] => value,
            locks => format!("{value}, holding {}", locks.join(", ")),
        }
    }
}

impl Constraint {
    /// The order in words.
    pub fn sentence(&self) -> String {
        let Constraint { first, then, object, allocated } = self;
        let nobody = if self.is_lost() { ", when nobody waits for it," } else { "" };
        let does = if self.is_wanted() { "wants".to_owned() } else { then.does() };
        let origin = allocated.as_ref().map_or_else(String::new, |allocated| {
            format!(" (which thread {} allocated in {})", allocated.thread, allocated.place)
        });
        format!(
            "thread {} {} {object}{origin} in {}{nobody} before thread {} {does} it in {}",
            first.thread,
            first.does(),
            first.place(),
            then.thread,
            then.place()
        )
    }

    /// A signal for which nobody waits yet.
    fn is_lost(&self) -> bool {
        matches!(self.first.access.as_str(), "signal") && self.then.access == "wait"
    }

    /// A lock that is never got.
    fn is_wanted(&self) -> bool {
        self.then.wanted || self.then.step.is_none() && self.then.takes()
    }
}

impl Cause {
    /// The orders in one sentence, without the proof.
    pub fn orders(&self) -> String {
        if let Some(sentence) = self.circle() {
            return sentence;
        }
        if let [one, other] = self.constraints.as_slice()
            && let Some(sentence) = both(one, other).or_else(|| between(one, other))
        {
            return sentence;
        }
        let each: Vec<String> = self.constraints.iter().map(Constraint::sentence).collect();
        each.join(", and ")
    }

    /// Threads of which each holds a lock that the one before wants.
    fn circle(&self) -> Option<String> {
        let orders = &self.constraints;
        if orders.len() < 2 || !orders.iter().all(|order| order.first.takes() && order.is_wanted()) {
            return None;
        }
        let held: BTreeMap<u32, &Constraint> =
            orders.iter().map(|order| (order.first.thread, order)).collect();
        let mut thread = orders[0].first.thread;
        let mut told = Vec::new();
        for _ in orders {
            let holds = held.get(&thread)?;
            let wants = orders.iter().find(|order| order.then.thread == thread)?;
            told.push(format!(
                "thread {thread} took {} in {} and wants {} in {}",
                holds.object,
                holds.first.place(),
                wants.object,
                wants.then.place()
            ));
            thread = wants.first.thread;
        }
        let closed = held.len() == orders.len() && thread == orders[0].first.thread;
        closed.then(|| format!("locks in a circle: {}", told.join("; ")))
    }

    /// What turning them round showed.
    pub fn proof(&self) -> String {
        let runs = self.flipped_each;
        let ends = if self.flipped.other_failures > 0 { "this failure does not happen" } else { "it passes" };
        if self.circle().is_some() {
            let which = if self.constraints.len() == 2 { "either lock" } else { "any of the locks" };
            return format!(
                "When {which} goes first to the thread that wants it, {ends} ({runs} of {runs} runs)."
            );
        }
        let which = match self.constraints.len() {
            1 => "that order",
            2 => "either order",
            _ => "any of these orders",
        };
        let rest = if self.near { ", and the rest as it was," } else { "" };
        format!("With {which} reversed{rest} {ends} ({runs} of {runs} runs).")
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
        for (number, order) in self.constraints.iter().enumerate() {
            let Constraint { first, then, object, allocated } = order;
            for (event, when) in [(first, "first"), (then, "then")] {
                let does =
                    if when == "then" && order.is_wanted() { "wants".to_owned() } else { event.does() };
                lines.push(format!(
                    "{}. {when}: thread {} {does} {object} in {}{}",
                    number + 1,
                    event.thread,
                    event.place(),
                    event.details()
                ));
                lines.extend(event.source.iter().map(|line| format!("      {}", Plain(line))));
                lines.extend(
                    event.stack.iter().skip(1).map(|frame| format!("    called by {}", Plain(frame))),
                );
            }
            if let Some(allocated) = allocated {
                lines.push(format!(
                    "    {object} was allocated by thread {} in {}",
                    allocated.thread, allocated.place
                ));
            }
        }
        lines
    }

    /// The lines of source code in which the events are, each once, and at each who does what there.
    pub fn code(&self) -> Vec<String> {
        let mut files: BTreeMap<&str, BTreeMap<u32, (&str, BTreeSet<String>)>> = BTreeMap::new();
        for order in &self.constraints {
            for event in [&order.first, &order.then] {
                let lines = files.entry(event.file_name()).or_default();
                for (number, text) in event.source_lines() {
                    let (_, said) = lines.entry(number).or_insert((text, BTreeSet::new()));
                    if number == event.line {
                        let wanted = event == &order.then && order.is_wanted();
                        let does = if wanted { "wants".to_owned() } else { event.does() };
                        let details = event.details();
                        said.insert(format!("thread {} {does} {}{details}", event.thread, order.object));
                    }
                }
            }
        }
        let mut shown = Vec::new();
        for (file, lines) in files.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            shown.push(file.to_owned());
            let mut before = None;
            for (number, (text, said)) in lines {
                if before.is_some_and(|before| before + 1 < number) {
                    shown.push("       …".to_owned());
                }
                before = Some(number);
                let mark = if said.is_empty() { ' ' } else { '>' };
                shown.push(format!("{mark}{number:>5} │ {}", Plain(text)));
                shown.extend(said.iter().map(|said| format!("       ╰ {said}")));
            }
        }
        if shown.len() > MOST_CODE {
            shown.truncate(MOST_CODE);
            shown.push("       … more: waylay show".to_owned());
        }
        shown
    }
}

/// Both threads look before either changes what they saw.
fn both(one: &Constraint, other: &Constraint) -> Option<String> {
    let crossed = one.first.thread == other.then.thread && other.first.thread == one.then.thread;
    let alike = |one: &EventPlace, other: &EventPlace| {
        (&one.access, &one.function, &one.file, one.line)
            == (&other.access, &other.function, &other.file, other.line)
    };
    let look = one.first.access == "read" && one.object == other.object;
    if !crossed || !look || !alike(&one.first, &other.first) || !alike(&one.then, &other.then) {
        return None;
    }
    let (low, high) = (one.first.thread.min(other.first.thread), one.first.thread.max(other.first.thread));
    Some(format!(
        "threads {low} and {high} both read {} in {} before either {} it in {}",
        one.object,
        one.first.place(),
        one.then.does(),
        one.then.place()
    ))
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
    use crate::cause::orders::{Allocated, Trials};

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

    fn never(event: EventPlace) -> EventPlace {
        EventPlace { step: None, ..event }
    }

    fn cause(constraints: Vec<Constraint>) -> Cause {
        let runs = 20 * constraints.len() as u64;
        Cause {
            depth: constraints.len() as u32,
            constraints,
            flipped: Trials { runs, failures: 0, other_failures: 0 },
            flipped_each: 20,
            kept: Trials { runs: 20, failures: 20, other_failures: 0 },
            near: false,
            schedules: 90,
        }
    }

    fn order(first: EventPlace, then: EventPlace) -> Constraint {
        Constraint { first, then, object: "`sold`".to_owned(), allocated: None }
    }

    fn of(object: &str, first: EventPlace, then: EventPlace) -> Constraint {
        Constraint { object: object.to_owned(), ..order(first, then) }
    }

    #[test]
    fn two_orders_are_one_sentence() {
        let two = cause(vec![
            order(event(1, "read", 27), event(2, "write", 29)),
            order(event(2, "read", 31), event(1, "write", 33)),
        ]);
        assert_eq!(
            two.sentence(),
            "depth 2: thread 1 reads `sold` in sell (stock.cpp:27) before thread 2 writes it in sell (stock.cpp:29), \
             and thread 2 reads `sold` in sell (stock.cpp:31) before thread 1 writes it in sell (stock.cpp:33). \
             With either order reversed it passes (20 of 20 runs)."
        );
        assert!(two.lines(80).iter().all(|line| line.chars().count() <= 80));
        assert_eq!(two.lines(80).join(" "), two.sentence());
    }

    #[test]
    fn an_update_is_lost_when_both_read_before_either_writes() {
        let lost = cause(vec![
            order(event(1, "read", 27), event(2, "write", 29)),
            order(event(2, "read", 27), event(1, "write", 29)),
        ]);
        assert_eq!(
            lost.orders(),
            "threads 1 and 2 both read `sold` in sell (stock.cpp:27) before either writes it in sell (stock.cpp:29)"
        );
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
    fn a_deadlock_is_told_as_a_circle_with_where_each_lock_was_taken_and_wanted() {
        let circle = cause(vec![
            of("`a`", event(1, "lock", 1), never(event(3, "lock", 6))),
            of("`b`", event(2, "lock", 3), never(event(1, "lock", 2))),
            of("`c`", event(3, "lock", 5), never(event(2, "lock", 4))),
        ]);
        assert_eq!(
            circle.sentence(),
            "depth 3: locks in a circle: thread 1 took `a` in sell (stock.cpp:1) and wants `b` in sell (stock.cpp:2); \
             thread 2 took `b` in sell (stock.cpp:3) and wants `c` in sell (stock.cpp:4); \
             thread 3 took `c` in sell (stock.cpp:5) and wants `a` in sell (stock.cpp:6). \
             When any of the locks goes first to the thread that wants it, it passes (20 of 20 runs)."
        );
    }

    #[test]
    fn a_lock_that_is_never_got_is_wanted_and_a_signal_is_lost() {
        assert!(
            cause(vec![order(event(1, "lock", 3), never(event(2, "lock", 8)))])
                .orders()
                .ends_with("before thread 2 wants it in sell (stock.cpp:8)")
        );
        let lost = cause(vec![order(event(2, "signal", 5), never(event(1, "wait", 7)))]);
        assert_eq!(
            lost.orders(),
            "thread 2 signals `sold` in sell (stock.cpp:5), when nobody waits for it, before thread 1 waits for it in \
             sell (stock.cpp:7)"
        );
    }

    #[test]
    fn of_memory_that_is_used_when_it_is_freed_all_three_places_are_told() {
        let mut freed = of("memory #1", event(0, "free", 20), event(1, "read", 9));
        freed.allocated = Some(Allocated { thread: 0, place: "main (stock.cpp:12)".to_owned() });
        assert_eq!(
            freed.sentence(),
            "thread 0 frees memory #1 (which thread 0 allocated in main (stock.cpp:12)) in sell (stock.cpp:20) before \
             thread 1 reads it in sell (stock.cpp:9)"
        );
    }

    #[test]
    fn code_is_shown_once_with_what_each_thread_does_there() {
        let at = |thread, access, line: u32, value: &str| EventPlace {
            source: (line - 1..=line + 1)
                .map(|number| {
                    format!("{}{number:>5} │ line {number}", if number == line { '>' } else { ' ' })
                })
                .collect(),
            value: Some(value.to_owned()),
            ..event(thread, access, line)
        };
        let lost = cause(vec![
            order(at(1, "read", 27, "0"), at(2, "write", 29, "1")),
            order(
                EventPlace { locks: vec!["lock A".to_owned()], ..at(2, "read", 27, "0") },
                at(1, "write", 29, "1"),
            ),
        ]);
        assert_eq!(
            lost.code(),
            [
                "stock.cpp",
                "    26 │ line 26",
                ">   27 │ line 27",
                "       ╰ thread 1 reads `sold`, which is 0",
                "       ╰ thread 2 reads `sold`, which is 0, holding lock A",
                "    28 │ line 28",
                ">   29 │ line 29",
                "       ╰ thread 1 writes `sold`, which becomes 1",
                "       ╰ thread 2 writes `sold`, which becomes 1",
                "    30 │ line 30",
            ]
        );
    }

    #[test]
    fn one_cause_has_the_same_orders_whichever_threads_made_them() {
        let one = cause(vec![order(event(1, "read", 27), event(2, "write", 29))]);
        let other = cause(vec![order(event(3, "read", 27), event(1, "write", 29))]);
        let another = cause(vec![order(event(1, "read", 27), event(2, "write", 30))]);
        assert!(one.is_also(&other) && !one.is_also(&another));
        assert!(!cause(Vec::new()).is_also(&cause(Vec::new())), "nothing is known of either");
    }
}
