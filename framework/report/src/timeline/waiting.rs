//! Threads that wait in a loop: looks, yields and sleeps that are repeated until somebody else changes what is looked at.
//!
//! A thread waits while it does again and again what changes nothing: a thousand looks say no more than the first and the last.
//! The first stays where it is and tells how many there were, the last stays where it is because it is the one that saw
//! something else, and those between are left out.

use std::collections::HashMap;

use waylay_schedule::{Event, EventKind};

use super::{Doing, Span, StepWords, Timeline};

/// Repetitions from which on a thread waits: two threads that try a lock twice do not.
const FEWEST: u64 = 3;
/// Different things that a loop does, beyond which it is no simple one.
const MOST_DIFFERENT: usize = 4;

/// A stretch of a thread in which it repeats itself.
#[derive(Clone, Debug, Default)]
struct Stretch {
    /// What it does, in words, each with the step at which it did it first and last, and how often.
    looks: HashMap<String, Look>,
    /// The first and the last step at which it did something again.
    again: Option<(u64, u64)>,
    repeated: u64,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    first: u64,
    last: u64,
    times: u64,
}

/// Threads and whether they wait in loops, while a run is told.
#[derive(Clone, Debug, Default)]
pub(super) struct Loops {
    lanes: HashMap<usize, Stretch>,
    /// Stretches that are over: lane, begin, end and number of looks.
    over: Vec<(usize, u64, u64, u64)>,
}

/// What a step is for whoever lists steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// One of its own. If a loop ended with it, the steps that were left out and are worth showing.
    New(Vec<StepWords>),
    /// The thread did the same at this step, and repeats itself: how often by now.
    Again(u64, u64),
}

/// Whether repeating this is waiting.
fn looks(event: &Event) -> bool {
    use EventKind::*;
    let reads = matches!(event.kind, AtomicLoad | PlainRead | MutexTryLock | RwTryReadLock | RwTryWriteLock);
    reads || event.kind.is_idle() || event.kind == SemTryWait
}

impl Loops {
    /// A thread does something.
    pub(super) fn step(&mut self, lane: usize, at: u64, event: &Event, what: &str) -> Told {
        if !looks(event) {
            return Told::New(self.end(lane));
        }
        let stretch = self.lanes.entry(lane).or_default();
        if let Some(look) = stretch.looks.get_mut(what) {
            (look.last, look.times) = (at, look.times + 1);
            stretch.repeated += 1;
            stretch.again = Some((stretch.again.map_or(at, |(first, _)| first), at));
            return Told::Again(look.first, look.times);
        }
        let many = stretch.looks.len() == MOST_DIFFERENT;
        let ended = if many { self.end(lane) } else { Vec::new() };
        let stretch = self.lanes.entry(lane).or_default();
        stretch.looks.insert(what.to_owned(), Look { first: at, last: at, times: 1 });
        Told::New(ended)
    }

    /// A thread does something else, or the run is over: the last look at each thing is worth showing.
    pub(super) fn end(&mut self, lane: usize) -> Vec<StepWords> {
        let Some(Stretch { looks, again, repeated }) = self.lanes.remove(&lane) else { return Vec::new() };
        if let Some((from, to)) = again.filter(|_| repeated >= FEWEST) {
            self.over.push((lane, from, to, repeated));
        }
        let repeated = looks.into_iter().filter(|(_, look)| look.times > 1);
        let mut last: Vec<StepWords> =
            repeated.map(|(what, look)| StepWords { at: look.last, lane, what, times: 1 }).collect();
        last.sort_by_key(|step| step.at);
        last
    }

    /// Draws a thread that waits in a loop as one that waits.
    pub(super) fn fold(&mut self, timeline: &mut Timeline) {
        let lanes: Vec<usize> = self.lanes.keys().copied().collect();
        for lane in lanes {
            self.end(lane);
        }
        for &(lane, from, to, times) in &self.over {
            if to <= from {
                continue;
            }
            let before = std::mem::take(&mut timeline.spans);
            for span in before {
                if span.lane != lane || span.to <= from || span.from >= to {
                    timeline.spans.push(span);
                    continue;
                }
                let head = Span { to: from, ..span.clone() };
                let tail = Span { from: to, ..span };
                timeline.spans.extend([head, tail].into_iter().filter(|part| part.from < part.to));
            }
            let label = format!("waits here, {times} looks");
            timeline.spans.push(Span { lane, from, to, doing: Doing::Blocked, label });
            timeline.switches.retain(|switch| {
                let inside = from < switch.at && switch.at < to;
                !(inside && (switch.from == lane || switch.to == lane))
            });
        }
    }
}

impl StepWords {
    /// What was done, and how often where that was a loop.
    pub fn words(&self) -> String {
        match self.times {
            0..=2 => self.what.clone(),
            times => format!("waits here, {times} looks: {}", self.what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Unit;
    use super::*;
    use waylay_schedule::ObjectId;

    fn event(kind: EventKind) -> Event {
        Event::new(kind, ObjectId(64))
    }

    #[test]
    fn a_loop_is_one_step_that_tells_how_often_and_the_last_look() {
        let mut loops = Loops::default();
        let load = event(EventKind::AtomicLoad);
        assert_eq!(loops.step(1, 0, &load, "load"), Told::New(Vec::new()));
        assert_eq!(loops.step(1, 1, &event(EventKind::Yield), "yield"), Told::New(Vec::new()));
        for round in 1..131 {
            assert_eq!(loops.step(1, 2 * round, &load, "load"), Told::Again(0, round + 1));
            assert_eq!(
                loops.step(1, 2 * round + 1, &event(EventKind::Yield), "yield"),
                Told::Again(1, round + 1)
            );
        }
        let Told::New(last) = loops.step(1, 400, &event(EventKind::AtomicStore), "store") else {
            panic!("a store is a step of its own")
        };
        let told: Vec<(u64, String)> = last.iter().map(|step| (step.at, step.words())).collect();
        assert_eq!(told, [(260, "load".to_owned()), (261, "yield".to_owned())]);
        let folded = StepWords { at: 0, lane: 1, what: "load".to_owned(), times: 131 };
        assert_eq!(folded.words(), "waits here, 131 looks: load");
    }

    #[test]
    fn a_thread_that_waits_in_a_loop_is_drawn_as_one_that_waits() {
        let mut timeline = Timeline::new("x", Unit::Steps);
        timeline.end = 20;
        for at in 0..20 {
            let doing = if at % 2 == 0 { Doing::Running } else { Doing::Ready };
            timeline.spans.push(Span { lane: 1, from: at, to: at + 1, doing, label: String::new() });
        }
        let mut loops = Loops::default();
        for at in (0..20).step_by(2) {
            loops.step(1, at, &event(EventKind::AtomicLoad), "load");
        }
        loops.fold(&mut timeline);
        let waits: Vec<&Span> = timeline.spans.iter().filter(|span| span.doing == Doing::Blocked).collect();
        assert_eq!(waits.len(), 1);
        assert_eq!((waits[0].from, waits[0].to, waits[0].label.as_str()), (2, 18, "waits here, 9 looks"));
        assert_eq!(timeline.spans.iter().map(|span| span.to - span.from).sum::<u64>(), 20, "nothing is lost");
    }

    #[test]
    fn a_writer_never_waits() {
        let mut loops = Loops::default();
        for at in 0..9 {
            assert_eq!(loops.step(0, at, &event(EventKind::PlainWrite), "write"), Told::New(Vec::new()));
        }
    }
}
