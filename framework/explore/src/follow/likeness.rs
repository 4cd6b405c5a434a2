//! How much a place in one build is like a place in another: by function, text of the line, caller; pure.

use waylay_report::cause::EventPlace;
use waylay_schedule::EventKind;

/// How well two places agree. More is better; what is not [`Likeness::is_known`] is no place that was meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Likeness {
    /// In the order of what they say: the text of the line, the function, its caller or one that it was put into, the line.
    text: bool,
    function: bool,
    related: bool,
    line: bool,
}

impl Likeness {
    pub(crate) fn of(one: &EventPlace, other: &EventPlace) -> Likeness {
        let (function, now) = (plain(&one.function), plain(&other.function));
        let callers = |place: &EventPlace| -> Vec<String> {
            place.stack.iter().skip(1).map(|frame| plain(function_of(frame)).to_owned()).collect()
        };
        let same = !function.is_empty() && function == now;
        let related = [(function, callers(other)), (now, callers(one))];
        let related = related
            .iter()
            .any(|(name, callers)| !name.is_empty() && callers.first().is_some_and(|caller| caller == name));
        // A renamed function is still called by the same one.
        let beside = callers(one).first().is_some_and(|caller| callers(other).first() == Some(caller));
        let (text, text_now) = (marked(one), marked(other));
        Likeness {
            text: text.is_some() && text == text_now,
            function: same,
            related: related || (beside && !same),
            line: one.line != 0 && one.line == other.line,
        }
    }

    /// Whether this can be the place that was meant. That something has the same caller, or was put into its caller, speaks for
    /// it and is not enough.
    pub(crate) fn is_known(self) -> bool {
        self.text || self.function
    }

    /// As a number, to be added up.
    pub(crate) fn score(self) -> u32 {
        8 * u32::from(self.text)
            + 8 * u32::from(self.function)
            + 3 * u32::from(self.related)
            + u32::from(self.line)
    }

    /// Whether it is the same function.
    pub(crate) fn is_function(self) -> bool {
        self.function
    }

    /// Whether it is the very place, not only the function.
    pub(crate) fn is_exact(self) -> bool {
        self.text || self.line
    }
}

/// A function's name without what a compiler adds to the copies that it makes.
fn plain(function: &str) -> &str {
    let marks = [".constprop", ".isra", ".part", ".cold", ".llvm", "+0x"];
    marks.iter().filter_map(|mark| function.find(mark)).min().map_or(function, |end| &function[..end])
}

/// The function of a line of a stack.
fn function_of(frame: &str) -> &str {
    match frame.rfind(" (").map_or(frame, |end| &frame[..end]) {
        "??" => "",
        function => function,
    }
}

/// The text of a place's own line.
fn marked(place: &EventPlace) -> Option<String> {
    let line = place.source.iter().find(|line| line.starts_with('>'))?;
    let text = line.split_once('│')?.1.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(text).filter(|text| !text.is_empty())
}

/// Whether an event can be what a word of [`EventPlace::access`] says. A compiler may make one instruction of a read and a
/// write, or two of one.
pub(crate) fn can_be(access: &str, kind: EventKind) -> bool {
    use EventKind::*;
    match access {
        "read" => matches!(kind, PlainRead | UserRead | AtomicLoad | AtomicRmw),
        "write" => matches!(kind, PlainWrite | UserWrite | AtomicStore | AtomicRmw),
        "update" => matches!(kind, AtomicRmw | AtomicStore | PlainWrite),
        "lock" => matches!(kind, MutexLock | RwWriteLock | MutexTryLock | RwTryWriteLock | AtomicRmw),
        "try to lock" => matches!(kind, MutexTryLock | RwTryReadLock | RwTryWriteLock | AtomicRmw),
        "lock for reading" => matches!(kind, RwReadLock | RwTryReadLock | AtomicRmw),
        "wait" => matches!(kind, CondWait | SemWait | FutexWait | Park | BarrierWait),
        "signal" => matches!(kind, CondSignal | CondBroadcast | FutexWake | Unpark),
        "post" => kind == SemPost,
        "free" => kind == Free,
        "give up waiting" => kind == Timeout,
        other => other == kind.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(function: &str, line: u32, text: &str, caller: &str) -> EventPlace {
        EventPlace {
            function: function.to_owned(),
            file: "/src/a.c".to_owned(),
            line,
            source: vec![format!("> {line:>4} │   {text}")],
            stack: vec![format!("{function} (a.c:{line})"), format!("{caller} (a.c:90)")],
            ..EventPlace::default()
        }
    }

    #[test]
    fn edits_leave_something_that_is_alike() {
        let was = place("sell", 27, "sold = seen + 1;", "worker");
        let likeness = |now: &EventPlace| Likeness::of(&was, now);
        let (same, moved) = (was.clone(), place("sell", 31, "sold  =  seen + 1;", "worker"));
        assert!(likeness(&same) > likeness(&moved) && likeness(&moved).is_exact());
        let changed = place("sell", 31, "sold = 1 + seen;", "worker");
        assert!(likeness(&changed).is_known() && !likeness(&changed).is_exact());
        assert!(likeness(&moved).score() > likeness(&changed).score());
        let renamed = place("vend", 27, "sold = seen + 1;", "worker");
        assert!(likeness(&renamed).is_known());
        let copied = EventPlace { source: Vec::new(), ..place("sell.constprop.0", 0, "", "worker") };
        assert!(likeness(&copied).is_known());
        let inlined = EventPlace { source: Vec::new(), ..place("worker", 0, "", "start") };
        assert!(likeness(&inlined).score() > 0, "it was put into its caller");
        let elsewhere = place("audit", 28, "check(sold);", "main");
        assert!(!likeness(&inlined).is_known() && likeness(&elsewhere).score() == 0);
        let unknown = EventPlace::default();
        assert!(!Likeness::of(&unknown, &unknown).is_known(), "nothing is like nothing");
    }

    #[test]
    fn what_an_event_does_is_read_widely() {
        assert!(can_be("read", EventKind::PlainRead) && can_be("write", EventKind::AtomicRmw));
        assert!(!can_be("read", EventKind::PlainWrite) && !can_be("lock", EventKind::MutexUnlock));
        assert!(can_be("barrier-wait", EventKind::BarrierWait));
    }
}
