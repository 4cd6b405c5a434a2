//! Markdown that fits the summary of a CI job: the verdict, what broke, what is guaranteed, the rest folded.

use std::fmt::Write as _;
use std::time::Duration;

use crate::escape::{Html, Markdown};
use crate::guarantee::{self, TestGuarantee};
use crate::model::{FailureState, Mode, Night, Verdict, side_by_side};
use crate::numbers::{count, span};
use crate::page::verdict_words;

/// Rows of each table: job summaries are cut off at a mebibyte.
const MOST_ROWS: usize = 100;
/// Bytes until which a failure's cause is followed by its events: the rest has room behind them.
const ROOM_FOR_DETAILS: usize = 1 << 19;
/// Characters of what a failure says.
const MOST_WORDS: usize = 160;

/// The report.
pub fn report(night: &Night) -> String {
    let sign = match night.verdict() {
        Verdict::Clean => "✅ clean",
        Verdict::Failed => "❌ failed",
        Verdict::Incomplete => "⚠️ incomplete",
        Verdict::NothingRan => "⚠️ nothing ran",
    };
    let campaign = &night.campaign;
    let mut out = format!("## Waylay: {sign}\n\n{}.\n\n", Markdown(&verdict_words(night)));
    for problem in campaign.problems.iter().take(MOST_ROWS) {
        let _ = writeln!(out, "- did not run: {}", Markdown(problem));
    }
    for note in campaign.notes.iter().take(MOST_ROWS) {
        let _ = writeln!(out, "- noticed: {}", Markdown(note));
    }
    if !campaign.problems.is_empty() || !campaign.notes.is_empty() {
        out.push('\n');
    }
    failures(&mut out, night);
    guarantees(&mut out, &guarantee::of_all(&campaign.scenarios));
    tests(&mut out, night);
    let _ = writeln!(
        out,
        "<sub>campaign {}, seed {}, {}, {} cores, Waylay {}</sub>",
        Html(&campaign.name),
        Html(&campaign.seed),
        Html(&campaign.environment.system),
        campaign.environment.cores,
        Html(&campaign.environment.waylay)
    );
    out
}

fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut cut: String = line.chars().take(MOST_WORDS).collect();
    if cut.len() < line.len() {
        cut.push('…');
    }
    cut
}

fn failures(out: &mut String, night: &Night) {
    if night.failures.is_empty() {
        return;
    }
    out.push_str("### Failures\n\n| | kind | test | what | times | where |\n|---|---|---|---|---:|---|\n");
    for failure in night.failures.iter().take(MOST_ROWS) {
        let place = failure.place().map_or_else(String::new, |frame| {
            let file = frame.file.as_deref().unwrap_or_default();
            let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
            format!("{file}:{}", frame.line.unwrap_or_default())
        });
        let state = if failure.suppressed.is_some() { "suppressed" } else { failure.state.word() };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            if failure.state == FailureState::New { format!("**{state}**") } else { state.to_owned() },
            Markdown(failure.kind.word()),
            Markdown(failure.subject()),
            Markdown(&short(&failure.what)),
            count(failure.count),
            Markdown(&place)
        );
    }
    if night.failures.len() > MOST_ROWS {
        let _ = writeln!(out, "\nand {} more", count((night.failures.len() - MOST_ROWS) as u64));
    }
    for failure in night.failures.iter().take(MOST_ROWS) {
        if let Some(cause) = &failure.why.cause {
            let _ = writeln!(out, "\n{}: {}", Markdown(failure.subject()), Markdown(&cause.sentence()));
            if out.len() < ROOM_FOR_DETAILS {
                out.push_str("\n<details><summary>Both events of every order</summary>\n\n<pre>\n");
                for line in cause.details() {
                    let _ = writeln!(out, "{}", Html(&line));
                }
                out.push_str("</pre>\n\n</details>\n");
            }
        }
        if let Some(rates) = side_by_side(&failure.rates) {
            let _ = writeln!(out, "\n{}, how often: {}", Markdown(failure.subject()), Markdown(&rates));
        }
    }
    out.push('\n');
    let here: Vec<_> = night.here().filter(|failure| !failure.replay.is_empty()).take(MOST_ROWS).collect();
    if !here.is_empty() {
        out.push_str("<details><summary>Run them again</summary>\n\n<pre>\n");
        for failure in here {
            let _ = writeln!(out, "{}", Html(&failure.replay));
        }
        out.push_str("</pre>\n\n</details>\n\n");
    }
}

fn guarantees(out: &mut String, all: &[TestGuarantee]) {
    if all.is_empty() {
        return;
    }
    let (promised, free): (Vec<_>, Vec<_>) =
        all.iter().partition(|one| one.depths.iter().any(|depth| depth.found.is_some()));
    out.push_str("### What this guarantees\n\n");
    if !promised.is_empty() {
        out.push_str(
            "The least probability with which a bug of that depth would have been found.\n\n\
             | test | mode | depth 1 | depth 2 | depth 3 |\n|---|---|---|---|---|\n",
        );
    }
    for one in promised.iter().take(MOST_ROWS) {
        let _ = write!(out, "| {} | {}", Markdown(&one.test), one.mode.word());
        if !one.broken.is_empty() {
            out.push_str(" (assumption broken)");
        }
        for depth in &one.depths {
            let left = match (depth.found, depth.seconds_left) {
                (Some(_), Some(0.0)) => String::new(),
                _ => format!("<br><sub>{}</sub>", Markdown(&depth.time_text())),
            };
            let _ = write!(out, " | {}{left}", Markdown(&depth.found_text()));
        }
        out.push_str(" |\n");
    }
    let (free, others): (Vec<_>, Vec<_>) = free.into_iter().partition(|one| one.mode == Mode::Free);
    for (tests, where_so) in [(free, " where threads ran freely"), (others, "")] {
        let all = guarantee::names(&tests);
        if all.is_empty() {
            continue;
        }
        let names: Vec<String> = all.iter().take(20).map(|name| Markdown(name).to_string()).collect();
        let more = if all.len() > 20 { format!(" and {} more", all.len() - 20) } else { String::new() };
        let _ = write!(out, "\nNothing is guaranteed{where_so} for {}{more}.\n", names.join(", "));
    }
    out.push('\n');
}

fn tests(out: &mut String, night: &Night) {
    let shares = night.campaign.tests().any(|(_, test)| test.share.is_some());
    let (head, rule) = if shares { (" share of the pot's time |", "---|") } else { ("", "") };
    let _ = writeln!(
        out,
        "<details><summary>Tests</summary>\n\n| scenario | test | iterations | failures | average |{head}\n\
         |---|---|---:|---:|---:|{rule}"
    );
    for (scenario, test) in night.campaign.tests().take(MOST_ROWS) {
        let average = match test.average_ns {
            n if n > 0.0 && n.is_finite() => span(Duration::from_nanos(n as u64)),
            _ => String::new(),
        };
        let retired = test.retired.as_ref();
        let share = match &test.share {
            Some(share) => format!(" {} |", share.words(retired.is_some(), "")),
            None if shares => " |".to_owned(),
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "| {} | {}{} | {} | {} | {average} |{share}",
            Markdown(&scenario.name),
            Markdown(&test.name),
            retired.map_or_else(String::new, |why| format!("<br><sub>{}</sub>", Markdown(why))),
            count(test.iterations),
            count(test.failures)
        );
    }
    let all = night.campaign.tests().count();
    if all > MOST_ROWS {
        let _ = writeln!(out, "\nand {} more", count((all - MOST_ROWS) as u64));
    }
    out.push_str("\n</details>\n\n");
}
