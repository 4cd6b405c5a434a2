//! Stacks as a reader wants them: the one to blame first, equal ones once, own frames in front, everything else folded.

use std::fmt::Write as _;

use waylay_findings::Evidence;

use crate::escape::Html;
use crate::model::{Failure, Frame, Origin, Stack};
use crate::numbers::plural;

/// Groups of equal stacks that are shown.
const MOST_STACKS: usize = 24;
/// Frames that are shown of one stack; the file of stacks has all.
const MOST_FRAMES: usize = 60;
/// Frames that stay open of a stack without any of the test's own.
const INNERMOST: usize = 3;
/// Threads that a group names.
const NAMES: usize = 6;

/// Threads with the same stack.
struct Group<'a> {
    first: &'a Stack,
    all: Vec<&'a Stack>,
    blamed: bool,
}

impl Group<'_> {
    fn is_own(&self) -> bool {
        self.first.frames.iter().any(|frame| frame.origin == Origin::Own)
    }
}

/// The stacks of a failure.
pub(super) fn stacks(failure: &Failure) -> String {
    let groups = grouped(failure);
    let one_place = matches!(failure.kind.evidence(), Evidence::Noticed | Evidence::Place);
    // The first is there in any case: a reader of a failure without own code still wants a place.
    let open = |place: usize, group: &Group<'_>| place == 0 || group.blamed || (!one_place && group.is_own());
    let mut out = String::new();
    let mut folded = Vec::new();
    let mut left_out = 0;
    for (place, group) in groups.iter().enumerate() {
        match () {
            () if place >= MOST_STACKS => left_out += group.all.len(),
            () if open(place, group) => out += &shown(group),
            () => folded.push(group),
        }
    }
    if !folded.is_empty() {
        let threads = folded.iter().map(|group| group.all.len() as u64).sum();
        let whose = if one_place { "" } else { " without code of the test" };
        let _ = write!(
            out,
            "<details class=\"more\"><summary>{}{whose}</summary>{}</details>",
            plural(threads, "other thread"),
            folded.into_iter().map(shown).collect::<String>()
        );
    }
    if left_out > 0 {
        let _ =
            write!(out, "<p class=\"dim\">and {} in stacks.txt</p>", plural(left_out as u64, "more thread"));
    }
    out
}

fn grouped(failure: &Failure) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (place, stack) in failure.stacks.iter().enumerate() {
        let blamed = stack.crashed || (place == 0 && failure.failed_in_one_place());
        let equal = |group: &&mut Group<'_>| {
            !blamed && !group.blamed && group.first.frames == stack.frames && group.first.doing == stack.doing
        };
        match groups.iter_mut().find(equal) {
            Some(group) => group.all.push(stack),
            None => groups.push(Group { first: stack, all: vec![stack], blamed }),
        }
    }
    groups
}

fn shown(group: &Group<'_>) -> String {
    let stack = group.first;
    let mut out = format!(
        "<div class=\"stack{}\"><div class=\"who\"><b>{}</b>",
        if group.blamed { " crashed" } else { "" },
        Html(&who(&group.all))
    );
    // A thread that failed waits while it is looked at, which is not what it was doing.
    let doing = if group.blamed && !stack.crashed { "failed here" } else { &stack.doing };
    if !doing.is_empty() {
        let _ = write!(out, "<span class=\"dim\">{}</span>", Html(doing));
    }
    let _ = write!(out, "</div>{}</div>", frames(&stack.frames));
    out
}

fn who(group: &[&Stack]) -> String {
    // A stack of no thread, such as where memory was allocated, and one with a number say themselves what they are.
    let is_named = |stack: &Stack| stack.thread == 0 || stack.number.is_some();
    let name = |stack: &&Stack| match is_named(stack) {
        true => stack.name.clone(),
        false => format!("{} ({})", stack.name, stack.thread),
    };
    let mut names: Vec<String> = group.iter().take(NAMES).map(name).collect();
    if group.len() > NAMES {
        names.push(format!("and {} more", group.len() - NAMES));
    }
    match group.len() {
        1 if is_named(group[0]) || names[0].starts_with("thread ") => names.remove(0),
        1 => format!("thread {}", names[0]),
        n => format!("{n} threads: {}", names.join(", ")),
    }
}

fn frames(frames: &[Frame]) -> String {
    if frames.is_empty() {
        return "<ol><li class=\"other\">(no frames)</li></ol>".to_owned();
    }
    let mut out = String::from("<ol>");
    let shown = &frames[..frames.len().min(MOST_FRAMES)];
    let any_own = shown.iter().any(|frame| frame.origin == Origin::Own);
    for run in shown.chunk_by(|a, b| (a.origin == Origin::Own) == (b.origin == Origin::Own)) {
        let own = run[0].origin == Origin::Own;
        // One folded frame would take as much room as itself. Where nothing is the test's own, the innermost tell most.
        let open = if any_own { 0 } else { INNERMOST };
        let fold = !own && run.len() > open + 1;
        for (number, frame) in run.iter().enumerate() {
            if fold && number == open {
                let whose = match run.iter().all(|frame| frame.origin == Origin::Waylay) {
                    true => "of Waylay",
                    false => "of the runtime",
                };
                let (folded, more) = (run.len() - open, if open > 0 { "more " } else { "" });
                let _ = write!(
                    out,
                    "<li class=\"other\"><details><summary>{folded} {more}frames {whose}</summary><ol>"
                );
            }
            let (short, whole) = place(frame);
            let _ = write!(
                out,
                "<li class=\"{}\"><span class=\"fn\">{}</span> <span class=\"at\" title=\"{}\">{}</span></li>",
                if own { "own" } else { "other" },
                Html(frame.function.as_deref().unwrap_or("??")),
                Html(&whole),
                Html(&short)
            );
        }
        if fold {
            out.push_str("</ol></details></li>");
        }
    }
    if frames.len() > MOST_FRAMES {
        let _ = write!(out, "<li class=\"other\">… {} more in stacks.txt</li>", frames.len() - MOST_FRAMES);
    }
    out + "</ol>"
}

/// Where a frame is: in short, and in full.
fn place(frame: &Frame) -> (String, String) {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => (format!("{}:{line}", without_store(file)), format!("{file}:{line}")),
        _ => {
            let whole = frame.module.as_ref().map_or_else(
                || format!("{:#x}", frame.offset),
                |module| format!("{module}+{:#x}", frame.offset),
            );
            (whole.clone(), whole)
        }
    }
}

/// A source file without the folder that toolchains and package managers keep such files in.
fn without_store(path: &str) -> &str {
    let behind = |mark: &str| path.split_once(mark).map(|(_, rest)| rest);
    // `…/registry/src/INDEX-HASH/serde-1.0.0/src/lib.rs`, `/rustc/HASH/library/core/src/lib.rs`
    let package = behind("/registry/src/").and_then(|rest| rest.split_once('/')).map(|(_, rest)| rest);
    package
        .or_else(|| if path.starts_with("/rustc/") { behind("/library/") } else { None })
        .filter(|rest| !rest.is_empty())
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use waylay_findings::Kind;

    fn stack(thread: u32, name: &str, origin: Origin) -> Stack {
        let frame = Frame {
            function: Some(format!("f{}", if origin == Origin::Own { "own" } else { "runtime" })),
            file: None,
            line: None,
            module: None,
            offset: 1,
            origin,
        };
        let doing = "waits".into();
        Stack { thread, name: name.into(), number: None, doing, crashed: false, frames: vec![frame] }
    }

    fn failure(kind: &str) -> Failure {
        let stacks = vec![
            stack(1, "map#0", Origin::Own),
            stack(2, "map#1", Origin::Own),
            stack(3, "waylay", Origin::Runtime),
        ];
        Failure { kind: Kind::from_word(kind).unwrap(), stacks, ..Failure::default() }
    }

    #[test]
    fn what_failed_is_in_front_and_the_rest_is_folded() {
        let html = stacks(&failure("assert"));
        let (open, folded) = html.split_once("<details class=\"more\">").expect("the others are folded");
        assert!(open.contains("thread map#0 (1)") && open.contains("failed here"), "{html}");
        assert!(folded.contains("2 other threads<") && folded.contains("map#1"), "{html}");
    }

    #[test]
    fn of_a_deadlock_every_stack_of_the_test_is_open() {
        let html = stacks(&failure("deadlock"));
        let (open, folded) = html.split_once("<details class=\"more\">").expect("the host's own is folded");
        assert!(open.contains("2 threads: map#0 (1), map#1 (2)") && !open.contains("failed here"), "{html}");
        assert!(folded.contains("1 other thread without code of the test"), "{html}");
    }

    #[test]
    fn names_and_places_are_short() {
        let numbered = |number, name| Stack { number: Some(number), ..stack(7, name, Origin::Own) };
        let (one, two) = (numbered(1, "thread 1, read of 8 bytes"), numbered(2, "thread 2"));
        assert_eq!(who(&[&one]), "thread 1, read of 8 bytes");
        assert_eq!(who(&[&one, &two]), "2 threads: thread 1, read of 8 bytes, thread 2");
        assert_eq!(who(&[&stack(7, "map#0", Origin::Own)]), "thread map#0 (7)");
        assert_eq!(who(&[&stack(0, "allocated here", Origin::Own)]), "allocated here");
        assert_eq!(
            without_store("/home/a/.cargo/registry/src/index-19/rand-0.10.0/src/lib.rs"),
            "rand-0.10.0/src/lib.rs"
        );
        assert_eq!(without_store("/rustc/5980/library/core/src/ops.rs"), "core/src/ops.rs");
        assert_eq!(without_store("/home/a/library/own.rs"), "/home/a/library/own.rs");
    }
}
