//! One failure: a line that says what it is, and everything that is known when it is opened.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::command;
use super::files::{FileLinks, files};
use super::overview::{environment, facts, pill};
use super::stacks::stacks;
use crate::chart::{Axis, Chart, Series};
use crate::confidence::{SURE, clean_runs_for};
use crate::escape::{Html, base64};
use crate::model::{Failure, FailureState, Occurrence, side_by_side};
use crate::numbers::{count, plural};

/// Workers that are listed.
const MOST_WORKERS: usize = 128;

/// What is said of a schedule that was followed once more.
const CONFIRMED: &str = "a fresh process that followed it failed in the same way";

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
        FailureState::Resolved | FailureState::Open => {
            format!("{} before", plural(failure.count_ever, "time"))
        }
        _ => plural(failure.count, "time"),
    };
    format!(
        "<details class=\"failure\" id=\"{id}\"{}><summary><span class=\"title\">{state} {} {}</span>\
         <span class=\"often dim\">{often}</span><span class=\"what\">{}</span></summary><div class=\"body\">{}</div></details>",
        if open { " open" } else { "" },
        pill("kind", failure.kind.word()),
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
    if let Some(growth) = &failure.growth {
        let series = vec![Series { name: &growth.of, colour: 5, points: growth.points.clone() }];
        let chart = Chart { title: "Growth", unit: &growth.of, series, axis: Axis::Elapsed, bars: false };
        let _ = write!(out, "<h3>How it grows</h3>{}", chart.html());
    }
    if let Some(svg) = &failure.timeline_svg {
        // As an image: whatever is in the file, nothing of it runs.
        let _ = write!(
            out,
            "<h3>Who ran when</h3><div class=\"timeline-frame\"><img class=\"timeline\" alt=\"timeline of the failure\" \
             src=\"data:image/svg+xml;base64,{}\"></div><p class=\"dim small on-phones\">the picture goes on to the right</p>",
            base64(svg.as_bytes())
        );
    }
    out += &forced(failure);
    if !failure.stacks.is_empty() {
        out.push_str("<h3>Where</h3>");
        out += &stacks(failure);
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
    let mut rows = Vec::new();
    if let Some(cause) = &failure.why.cause {
        rows.push(("cause", cause.sentence()));
    } else if let Some(reason) = &failure.why.no_cause {
        rows.push(("cause", format!("none was found: {reason}")));
    }
    rows.push(("what", failure.what.clone()));
    if let Some(cause) = &failure.why.cause {
        rows.push(("orders", cause.details().join("\n")));
    }
    if let Some(reason) = &failure.reason {
        rows.push(("why", reason.clone()));
    }
    rows.push(("often", often(failure)));
    if !failure.variants.is_empty() {
        rows.push(("also", failure.also().join("\n")));
    }
    rows.extend(side_by_side(&failure.rates).map(|rates| ("modes", rates)));
    rows.extend(on_machines(failure).map(|machines| ("machines", machines)));
    if let Some(schedule) = &failure.schedule {
        rows.push((
            "schedule",
            format!(
                "{}: {}, {}, {}{}",
                schedule.strategy,
                plural(schedule.steps, "step"),
                plural(u64::from(schedule.threads), "thread"),
                match schedule.switches {
                    1 => "1 switch".to_owned(),
                    n => format!("{} switches", count(n)),
                },
                match schedule.confirmed {
                    // The reason of a strict test ends with these words already.
                    true if failure.reason.as_ref().is_some_and(|why| why.contains(CONFIRMED)) =>
                        String::new(),
                    true => format!("; {CONFIRMED}"),
                    false => "; not confirmed by a fresh process".to_owned(),
                }
            ),
        ));
    }
    if let Some(builds) = &failure.builds {
        rows.push(("builds", builds.lines().join("\n")));
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

/// Machines that are named.
const MACHINES: usize = 16;

/// All nights together, then the campaign that the rest of the page is about.
fn often(failure: &Failure) -> String {
    let mut out = plural(failure.count_ever.max(failure.count), "time");
    if failure.nights > 1 || !failure.is_here() {
        out += &format!(" in {}", plural(failure.nights, "night"));
    } else if let Some(campaigns) = failure.campaigns.filter(|campaigns| *campaigns > 1) {
        out += &format!(" in {campaigns} campaigns of one night");
    }
    if failure.count > 0 && failure.count < failure.count_ever {
        out += &format!(", {} of them in the campaign shown here", count(failure.count));
    }
    out + &format!("; first {}, last {}", date(failure.first_seen), date(failure.last_seen))
}

/// How often on which machine, those first that saw it most.
fn on_machines(failure: &Failure) -> Option<String> {
    let mut machines: Vec<(&String, &u64)> = failure.machines.iter().collect();
    machines.sort_by_key(|(name, times)| (std::cmp::Reverse(**times), *name));
    let named: Vec<String> = machines
        .iter()
        .take(MACHINES)
        .map(|(name, times)| format!("{name} ({})", plural(**times, "time")))
        .collect();
    let more = machines.len().saturating_sub(MACHINES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| named.join(", ") + &more)
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
    if let Some(seen) = &failure.other_builds {
        let (back, times) = (count(seen.reproduced), plural(seen.runs, "time"));
        parts.push(format!("came back {back} of {times} with other builds"));
    }
    if let Some(rate) = &failure.best_rate() {
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
    let Some(schedule) = failure.schedule.as_ref().filter(|schedule| schedule.forced.is_some()) else {
        return String::new();
    };
    let switches = schedule.deciding();
    let mut out = format!(
        "<h3>{} decide{}</h3>",
        match switches.len() {
            0 => "No switch".to_owned(),
            1 => "1 switch".to_owned(),
            n => format!("{n} switches"),
        },
        if switches.len() <= 1 { "s" } else { "" }
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
    for line in schedule.going_on() {
        let _ = write!(out, "<p class=\"dim small\">{}</p>", Html(&line));
    }
    out
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
