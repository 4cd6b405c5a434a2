//! Reports of other tools, and of ours, as places to aim at: the text of ThreadSanitizer and of helgrind, and a failure's
//! stacks; pure.

use std::collections::BTreeSet;

use waylay_driver::failure::FailureEntry;
use waylay_evidence::{Frame, Origin, ThreadStack, origin};
use waylay_report::cause::EventPlace;

use super::spot::{Spot, Target};

/// Targets of one report that are kept: a report of a deadlock has four stacks.
const MOST_TARGETS: usize = 12;

/// The pairs of places that a text report accuses.
pub fn of_text(text: &str) -> Vec<Target> {
    let mut all = BTreeSet::new();
    let mut stacks: Vec<Vec<Spot>> = Vec::new();
    // What stands above a stack says what it is; none before the first report.
    let (mut heading, mut in_stack) = (None, false);
    let mut inversion = false;
    for line in text.lines().map(plain_line) {
        let begins = line.contains("WARNING: ThreadSanitizer: ")
            || line.starts_with("Possible data race")
            || line.contains("lock order") && line.ends_with("violated");
        if begins {
            all.extend(accused(&stacks, inversion));
            stacks.clear();
            inversion = line.contains("lock-order-inversion") || line.contains("lock order");
        }
        match frame(line) {
            Some(spot) => {
                let wanted = heading.is_some_and(is_accusation);
                if wanted && !in_stack {
                    stacks.push(Vec::new());
                }
                in_stack = true;
                if let (true, Some(stack), Some(spot)) = (wanted, stacks.last_mut(), spot) {
                    stack.push(spot);
                }
            }
            None => {
                in_stack = false;
                if begins || heading.is_some() && !line.is_empty() {
                    heading = Some(line);
                }
            }
        }
    }
    all.extend(accused(&stacks, inversion));
    all.into_iter().take(MOST_TARGETS).collect()
}

/// Whether a stack under that heading is of what is reported, not of who made the threads, the memory or the locks.
fn is_accusation(heading: &str) -> bool {
    let aside = ["created", "first observed", "allocated", "Announcement", "As if synchronized"];
    !aside.iter().any(|mark| heading.contains(mark))
}

/// Of a race, its two accesses are the first two stacks. Of locks in opposite order there are two stacks of each thread.
fn accused(stacks: &[Vec<Spot>], inversion: bool) -> Vec<Target> {
    // The innermost line of the program's own.
    let own: Vec<&Spot> = stacks.iter().filter_map(|stack| stack.first()).collect();
    let target = |one: usize, other: usize| Target { one: own[one].clone(), other: own[other].clone() };
    match (own.len(), inversion) {
        (4.., true) => [(0, 2), (0, 3), (1, 2), (1, 3)].map(|(one, other)| target(one, other)).to_vec(),
        (2.., _) => vec![target(0, 1)],
        _ => Vec::new(),
    }
}

/// A line without the mark of valgrind, `==1234==`.
fn plain_line(line: &str) -> &str {
    let line = line.trim();
    let marked = line.strip_prefix("==").and_then(|rest| rest.split_once("=="));
    marked
        .filter(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(line, |(_, rest)| rest.trim())
}

/// A frame of a stack, if the line is one; with its place, if it has one that is not a system's.
fn frame(line: &str) -> Option<Option<Spot>> {
    let place = if let Some(rest) = line.strip_prefix('#') {
        // `#0 sell /src/stock.c:27:13 (program+0x1234)`
        let (number, rest) = rest.split_once(' ')?;
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        rest.split(' ').find(|word| word.parse::<Spot>().is_ok())
    } else {
        // `at 0x10915F: sell (stock.c:27)`
        let rest = line.strip_prefix("at 0x").or_else(|| line.strip_prefix("by 0x"))?;
        rest.rsplit_once(" (")
            .and_then(|(_, place)| place.strip_suffix(')'))
            .filter(|place| !place.starts_with("in "))
    };
    let installed =
        ["/usr/", "libsanitizer", "/rustc/", "vg_replace", "hg_intercepts.c", "sanitizer_common", "<null>"];
    let own = place.filter(|place| !installed.iter().any(|mark| place.contains(mark)));
    Some(own.and_then(|place| place.parse().ok()))
}

/// The pairs of places that a failure of ours is about: of its cause, or of the stacks of its threads.
pub fn of_failure(entry: &FailureEntry) -> Vec<Target> {
    if let Some(cause) = &entry.why.cause {
        let pair = |one: &EventPlace, other: &EventPlace| {
            Some(Target { one: spot_of(one)?, other: spot_of(other)? })
        };
        let all: BTreeSet<Target> =
            cause.constraints.iter().filter_map(|order| pair(&order.first, &order.then)).collect();
        return all.into_iter().take(MOST_TARGETS).collect();
    }
    let spots: Vec<Spot> = entry.stacks.iter().filter_map(innermost).collect();
    let mut all = BTreeSet::new();
    for (place, one) in spots.iter().enumerate() {
        // Who failed comes first, and what it met is elsewhere or in the same code.
        for other in &spots[place..] {
            all.insert(Target { one: one.clone(), other: other.clone() });
        }
    }
    all.into_iter().take(MOST_TARGETS).collect()
}

fn spot_of(place: &EventPlace) -> Option<Spot> {
    match (place.line, place.function.as_str()) {
        (0, "") => None,
        (0, function) => Some(Spot::Function(function.to_owned())),
        (line, _) => format!("{}:{line}", place.file).parse().ok(),
    }
}

/// The innermost place of a stack that is the program's own. Where a failure shows is seldom where it comes from, so the
/// whole function is meant.
fn innermost(stack: &ThreadStack) -> Option<Spot> {
    let own = |frame: &&Frame| origin(frame) == Origin::Own && frame.function.is_some();
    let frame = stack.frames.iter().find(own)?;
    frame.function.clone().map(Spot::Function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        of_text(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_race_of_thread_sanitizer_is_its_first_two_stacks() {
        let text = "\
==================
WARNING: ThreadSanitizer: data race (pid=4711)
  Write of size 4 at 0x55d0c0 by thread T2:
    #0 sell /src/stock.c:8:10 (stock+0xd1c3a) (BuildId: 12)
    #1 worker /src/stock.c:40 (stock+0xd1c4f)

  Previous read of size 4 at 0x55d0c0 by thread T1:
    #0 __interceptor_memcpy /usr/src/libsanitizer/tsan.inc:7 (libtsan.so.2+0x3)
    #1 std::copy(int*, int*) /usr/include/c++/12/bits/x.h:30 (stock+0x1)
    #2 look(int) /src/shop.c:7 (stock+0xd1c2a)

  Thread T2 (tid=3, running) created by main thread at:
    #0 pthread_create ../../../src/libsanitizer/tsan.cpp:1 (libtsan.so.2+0x5)
    #1 main /src/stock.c:14 (stock+0xd1d1f)
SUMMARY: ThreadSanitizer: data race /src/stock.c:8:10 in sell
==================
";
        assert_eq!(names(text), ["stock.c:8 and shop.c:7"]);
        assert!(names("nothing of the kind\n#include <x>\n").is_empty());
    }

    #[test]
    fn a_race_of_helgrind_is_read_too() {
        let text = "\
==77== Thread #3 was created
==77==    at 0x496EB3F: clone (clone.S:76)
==77==    by 0x1091BD: main (stock.c:14)
==77==
==77== Possible data race during write of size 4 at 0x10C014 by thread #3
==77== Locks held: none
==77==    at 0x1091A0: sell (stock.c:8)
==77==    by 0x485396A: mythread_wrapper (hg_intercepts.c:406)
==77==
==77== This conflicts with a previous read of size 4 by thread #2
==77== Locks held: none
==77==    at 0x484BCA0: strlen (in /usr/libexec/valgrind/vgpreload.so)
==77==    by 0x109197: look (stock.c:7)
==77==  Address 0x10c014 is 0 bytes inside data symbol \"sold\"
";
        assert_eq!(names(text), ["stock.c:8 and stock.c:7"]);
    }

    #[test]
    fn locks_in_opposite_order_are_tried_against_each_other() {
        let stack =
            |line: u32| format!("    #0 pthread_mutex_lock <null> (x+0x1)\n    #1 f /a.c:{line} (x+0x2)\n\n");
        let text = format!(
            "WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=1)\n  a:\n{}  b:\n{}  c:\n{}  d:\n{}",
            stack(1),
            stack(2),
            stack(3),
            stack(4)
        );
        assert_eq!(
            names(&text),
            ["a.c:1 and a.c:3", "a.c:1 and a.c:4", "a.c:2 and a.c:3", "a.c:2 and a.c:4"]
        );
    }
}
