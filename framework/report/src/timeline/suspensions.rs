//! A timeline from the log of a randomizer: which threads stood still when, until the evidence was taken.

use std::collections::BTreeMap;

use super::{Doing, Failing, Span, Timeline, Unit};

/// Threads that get a lane, most often suspended first; a host may have hundreds.
const MOST_LANES: usize = 64;

/// The timeline of a log, and of the part before it if there is one. None when nothing was suspended.
///
/// Lines that are not understood are left out: a log may end in the middle of one.
pub fn timeline(title: &str, older: Option<&str>, log: &str, what: &str) -> Option<Timeline> {
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    let mut begun: BTreeMap<u64, u64> = BTreeMap::new();
    let mut spans: Vec<(u64, u64, u64)> = Vec::new();
    let (mut first, mut last) = (None, 0);
    // The older part may be of an earlier randomizer, whose times begin elsewhere.
    let seed = |text: &str| text.lines().find(|line| line.starts_with("seed ")).map(str::to_owned);
    let older = older.filter(|older| seed(older) == seed(log));
    for line in older.into_iter().chain([log]).flat_map(str::lines) {
        let mut words = line.splitn(5, ' ');
        let (Some(at), Some(verb), Some(ordinal)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let (Ok(at), Ok(ordinal)) = (at.parse::<u64>(), ordinal.parse::<u64>()) else { continue };
        first.get_or_insert(at);
        last = last.max(at);
        match verb {
            "thread" => {
                let (id, name) = (words.next().unwrap_or("?"), words.next().unwrap_or("?"));
                names.insert(ordinal, format!("{name} ({id})"));
            }
            "suspend" => {
                begun.insert(ordinal, at);
            }
            "resume" | "gone" => {
                if let Some(from) = begun.remove(&ordinal) {
                    spans.push((ordinal, from, at));
                }
            }
            // It never stood still.
            _ => {
                begun.remove(&ordinal);
            }
        }
    }
    spans.extend(begun.into_iter().map(|(ordinal, from)| (ordinal, from, last)));
    if spans.is_empty() {
        return None;
    }
    let mut often: BTreeMap<u64, u64> = names.keys().map(|ordinal| (*ordinal, 0)).collect();
    for (ordinal, _, _) in &spans {
        *often.entry(*ordinal).or_default() += 1;
    }
    let mut chosen: Vec<u64> = often.keys().copied().collect();
    chosen.sort_by_key(|ordinal| (std::cmp::Reverse(often[ordinal]), *ordinal));
    let hidden = chosen.len().saturating_sub(MOST_LANES);
    chosen.truncate(MOST_LANES);
    chosen.sort_unstable();
    let mut timeline = Timeline::new(title, Unit::Nanoseconds);
    (timeline.start, timeline.end) = (first.unwrap_or(0), last);
    for (lane, ordinal) in chosen.iter().enumerate() {
        timeline.lanes.push(names.get(ordinal).cloned().unwrap_or_else(|| format!("thread {ordinal}")));
        let (from, to) = (timeline.start, last);
        timeline.spans.push(Span { lane, from, to, doing: Doing::Alive, label: String::new() });
        for (_, from, to) in spans.iter().filter(|(suspended, _, _)| suspended == ordinal) {
            timeline.spans.push(Span {
                lane,
                from: *from,
                to: *to,
                doing: Doing::Suspended,
                label: String::new(),
            });
        }
    }
    if hidden > 0 {
        timeline.notes.push(format!("{hidden} threads that were suspended less often are not shown"));
    }
    timeline.notes.push("outside of suspensions the operating system decides who runs".to_owned());
    timeline.failing = Some(Failing { at: last, lane: None, what: what.to_owned() });
    Some(timeline)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "waylay-randomizer log 1\nseed 0x0000000000005eed\npid 4711\nbegan 0\n\n\
                       100 thread 0 4714 worker-2\n100 thread 1 4715 a name with spaces\n\
                       1000 suspend 0\n1000 suspend 1\n1500 refused 1\n2000 resume 0\n3000 suspend 1\n4000 gone 1\n4500 susp";

    #[test]
    fn suspensions_are_stretches_and_refusals_are_not() {
        let timeline = timeline("x", None, LOG, "assert").unwrap();
        assert_eq!(timeline.lanes, ["worker-2 (4714)", "a name with spaces (4715)"]);
        let held: Vec<_> = timeline
            .spans
            .iter()
            .filter(|span| span.doing == Doing::Suspended)
            .map(|span| (span.lane, span.from, span.to))
            .collect();
        assert_eq!(held, [(0, 1000, 2000), (1, 3000, 4000)]);
        assert_eq!((timeline.start, timeline.end), (100, 4000));
        assert_eq!(super::timeline("x", None, "seed 1\n\n", "y"), None);
    }

    #[test]
    fn an_older_part_of_another_randomizer_is_left_out() {
        let other = "seed 0x1\n\n5 thread 0 1 a\n6 suspend 0\n7 resume 0\n";
        assert_eq!(timeline("x", Some(other), LOG, "y"), timeline("x", None, LOG, "y"));
        let same = other.replace("0x1", "0x0000000000005eed");
        assert_eq!(timeline("x", Some(&same), LOG, "y").unwrap().start, 5);
    }
}
