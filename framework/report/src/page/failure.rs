//! One failure: a line that says what it is, and everything that is known when it is opened.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::command;
use super::overview::{environment, facts, pill};
use crate::confidence::{SURE, clean_runs_for};
use crate::escape::{Html, base64};
use crate::model::{Failure, FailureState, Frame, Occurrence, Origin, Stack};
use crate::numbers::{bytes, count, plural};

/// Groups of equal stacks that are shown.
const MOST_STACKS: usize = 24;
/// Frames that are shown of one stack; the file of stacks has all.
const MOST_FRAMES: usize = 60;
/// Frames that stay open of a stack without any of the test's own.
const INNERMOST: usize = 3;
/// Workers that are listed.
const MOST_WORKERS: usize = 128;

/// Where the files of a failure can be had.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileLinks<'a> {
    /// What comes before a file's name in its address; none when files cannot be had through the page.
    pub base: Option<&'a str>,
    /// The address of everything in one file.
    pub bundle: Option<&'a str>,
}

fn date(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "?".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// A failure that opens.
pub fn failure_card(failure: &Failure, links: FileLinks<'_>, open: bool) -> String {
    let state = match failure.suppressed {
        Some(_) => pill("", "suppressed"),
        // Nothing to compare with is nothing to say.
        None if failure.state == FailureState::Unknown => String::new(),
        None => pill(failure.state.word(), failure.state.word()),
    };
    let often = match failure.state {
        FailureState::Resolved => format!("{} before", plural(failure.count_ever, "time")),
        _ => plural(failure.count, "time"),
    };
    format!(
        "<details class=\"failure\" id=\"{id}\"{}><summary><span class=\"title\">{state} {} {}</span>\
         <span class=\"often dim\">{often}</span><span class=\"what\">{}</span></summary><div class=\"body\">{}</div></details>",
        if open { " open" } else { "" },
        pill("kind", &failure.kind),
        Html(failure.subject()),
        Html(&failure.what),
        failure_details(failure, links),
        id = Html(&failure.id),
    )
}

/// Everything that is known about a failure.
pub fn failure_details(failure: &Failure, links: FileLinks<'_>) -> String {
    let mut out = facts(&rows(failure));
    if !failure.replay.is_empty() {
        out.push_str("<h3>Run it again</h3>");
        out += &command(&failure.replay);
        out += &how_sure(failure);
    }
    if let Some(svg) = &failure.timeline_svg {
        // As an image: whatever is in the file, nothing of it runs.
        let _ = write!(
            out,
            "<h3>Who ran when</h3><div class=\"timeline-frame\"><img class=\"timeline\" alt=\"timeline of the failure\" \
             src=\"data:image/svg+xml;base64,{}\"></div>",
            base64(svg.as_bytes())
        );
    }
    out += &forced(failure);
    if !failure.stacks.is_empty() {
        out.push_str("<h3>Where</h3>");
        out += &stacks(&failure.stacks);
    }
    if let Some(occurrence) = failure.occurrences.first() {
        out += &workers(occurrence);
    }
    out += &occurrences(&failure.occurrences, failure.count);
    out += &files(failure, links);
    if let Some(machine) = &failure.environment {
        let _ = write!(
            out,
            "<details class=\"more\"><summary>Where it ran</summary>{}</details>",
            environment(machine, None)
        );
    }
    out
}

fn rows(failure: &Failure) -> Vec<(&'static str, String)> {
    let mut rows = vec![("what", failure.what.clone())];
    if let Some(reason) = &failure.reason {
        rows.push(("why", reason.clone()));
    }
    let mut often = plural(failure.count, "time");
    if failure.nights > 1 || failure.state == FailureState::Resolved {
        often += &format!("; {} in {}", plural(failure.count_ever, "time"), plural(failure.nights, "night"));
    }
    rows.push((
        "often",
        format!("{often}, first {}, last {}", date(failure.first_seen), date(failure.last_seen)),
    ));
    if let Some(schedule) = &failure.schedule {
        rows.push((
            "schedule",
            format!(
                "{}: {}, {}, {}; {}",
                schedule.strategy,
                plural(schedule.steps, "step"),
                plural(u64::from(schedule.threads), "thread"),
                match schedule.switches {
                    1 => "1 switch".to_owned(),
                    n => format!("{} switches", count(n)),
                },
                if schedule.confirmed {
                    "a fresh process that followed it failed in the same way"
                } else {
                    "not confirmed by a fresh process"
                }
            ),
        ));
    }
    if let Some(suppressed) = &failure.suppressed {
        rows.push(("suppressed", suppressed.clone()));
    }
    for gap in &failure.gaps {
        rows.push(("missing", gap.clone()));
    }
    rows.push(("signature", format!("{}\n{}", failure.id, failure.signature)));
    rows
}

/// The measured rate, and what it takes to call it fixed.
fn how_sure(failure: &Failure) -> String {
    let mut parts = Vec::new();
    if let Some(seen) = &failure.reproduction {
        parts.push(format!(
            "came back {} of {} when it was run again",
            count(seen.reproduced),
            plural(seen.runs, "time")
        ));
    }
    if let Some(rate) = &failure.rate {
        parts.push(format!("seen {} in {}", plural(rate.reproduced, "time"), plural(rate.runs, "iteration")));
        if let Some(runs) = clean_runs_for(rate, SURE) {
            let id = &failure.id;
            let clean = plural(runs, "clean iteration");
            parts.push(format!("{clean} make it 95 % sure that it is fixed: waylay verify {id}"));
        }
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("<p class=\"dim small\">{}</p>", Html(&parts.join("; ")))
    }
}

/// The switches that decide, each with its two stacks.
fn forced(failure: &Failure) -> String {
    let Some(switches) = failure.schedule.as_ref().and_then(|schedule| schedule.forced.as_ref()) else {
        return String::new();
    };
    let mut out = format!(
        "<h3>{} decide{}</h3>",
        match switches.len() {
            1 => "1 switch".to_owned(),
            n => format!("{n} switches"),
        },
        if switches.len() == 1 { "s" } else { "" }
    );
    for switch in switches {
        let _ = write!(
            out,
            "<p>At step {} thread {} has to stop and thread {} to run:</p>",
            count(switch.step),
            switch.from,
            switch.to
        );
        for (thread, stack) in [(switch.from, &switch.from_stack), (switch.to, &switch.to_stack)] {
            let stack = stack.as_deref().unwrap_or("(no stack)");
            let _ = write!(out, "<p class=\"dim small\">thread {thread}</p><pre>{}</pre>", Html(stack));
        }
    }
    out
}

/// Stacks, equal ones once, own frames in front, others folded.
pub fn stacks(stacks: &[Stack]) -> String {
    let mut groups: Vec<(&Stack, Vec<&Stack>)> = Vec::new();
    for stack in stacks {
        let equal =
            |other: &Stack| !stack.crashed && other.frames == stack.frames && other.doing == stack.doing;
        match groups.iter_mut().find(|(first, _)| !first.crashed && equal(first)) {
            Some((_, group)) => group.push(stack),
            None => groups.push((stack, vec![stack])),
        }
    }
    let mut out = String::new();
    for (stack, group) in groups.iter().take(MOST_STACKS) {
        let _ = write!(
            out,
            "<div class=\"stack{}\"><div class=\"who\"><b>{}</b>",
            if stack.crashed { " crashed" } else { "" },
            Html(&who(group))
        );
        if !stack.doing.is_empty() {
            let _ = write!(out, "<span class=\"dim\">{}</span>", Html(&stack.doing));
        }
        let _ = write!(out, "</div>{}</div>", frames(&stack.frames));
    }
    if groups.len() > MOST_STACKS {
        let more: usize = groups[MOST_STACKS..].iter().map(|(_, group)| group.len()).sum();
        let _ = write!(out, "<p class=\"dim\">and {} more threads in stacks.txt</p>", count(more as u64));
    }
    out
}

fn who(group: &[&Stack]) -> String {
    const NAMES: usize = 6;
    let name = |stack: &&Stack| format!("{} ({})", stack.name, stack.thread);
    let mut names: Vec<String> = group.iter().take(NAMES).map(name).collect();
    if group.len() > NAMES {
        names.push(format!("and {} more", group.len() - NAMES));
    }
    match group.len() {
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
            let _ = write!(
                out,
                "<li class=\"{}\"><span class=\"fn\">{}</span> <span class=\"at\">{}</span></li>",
                if own { "own" } else { "other" },
                Html(frame.function.as_deref().unwrap_or("??")),
                Html(&place(frame))
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

fn place(frame: &Frame) -> String {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => frame
            .module
            .as_ref()
            .map_or_else(|| format!("{:#x}", frame.offset), |module| format!("{module}+{:#x}", frame.offset)),
    }
}

/// What every worker was doing.
fn workers(occurrence: &Occurrence) -> String {
    if occurrence.workers.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<details class=\"more\"><summary>What else was running ({})</summary><div class=\"scroll\"><table><thead><tr>\
         <th>worker</th><th>state</th><th class=\"num\">iteration</th><th class=\"num\">for</th><th>runs</th><th>holds</th>\
         </tr></thead><tbody>",
        plural(occurrence.workers.len() as u64, "worker")
    );
    for worker in occurrence.workers.iter().take(MOST_WORKERS) {
        let _ = write!(
            out,
            "<tr><td>{} #{}</td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{} ms</td><td>{}</td><td>{}</td></tr>",
            Html(&worker.test),
            worker.worker,
            Html(&worker.state),
            count(worker.iteration),
            count(worker.for_ms),
            Html(worker.running.as_deref().unwrap_or("")),
            Html(&worker.holds.join(", "))
        );
    }
    out + "</tbody></table></div></details>"
}

fn occurrences(occurrences: &[Occurrence], count_all: u64) -> String {
    if occurrences.len() < 2 {
        return match occurrences.first() {
            Some(one) => format!(
                "<p class=\"dim small\">scenario {}, iteration {}, seed {}</p>",
                Html(&one.scenario),
                count(one.iteration),
                Html(&one.seed)
            ),
            None => String::new(),
        };
    }
    let mut out = format!(
        "<details class=\"more\"><summary>The first {} of {}</summary><div class=\"scroll\"><table><thead><tr><th>when</th>\
         <th>scenario</th><th class=\"num\">worker</th><th class=\"num\">iteration</th><th>seed</th></tr></thead><tbody>",
        occurrences.len(),
        plural(count_all, "time")
    );
    for one in occurrences {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"mono\">{}</td></tr>",
            date(Some(one.at)),
            Html(&one.scenario),
            one.worker.map_or_else(|| "–".to_owned(), |worker| worker.to_string()),
            count(one.iteration),
            Html(&one.seed)
        );
    }
    out + "</tbody></table></div></details>"
}

fn files(failure: &Failure, links: FileLinks<'_>) -> String {
    if failure.files.is_empty() && links.bundle.is_none() {
        return String::new();
    }
    let mut out = format!("<h3>Files</h3><p class=\"mono small\">{}</p><p>", Html(&failure.folder));
    if let Some(bundle) = links.bundle {
        let _ = write!(out, "<a href=\"{}\"><b>Download everything as one zip</b></a> &nbsp; ", Html(bundle));
    }
    for file in &failure.files {
        let name = match links.base {
            Some(base) => format!("<a href=\"{}{}\">{}</a>", Html(base), Html(&file.name), Html(&file.name)),
            None => format!("{}", Html(&file.name)),
        };
        let _ = write!(
            out,
            "<span class=\"small\">{name} <span class=\"dim\">{}</span></span> &nbsp; ",
            bytes(file.bytes)
        );
    }
    out + "</p>"
}
