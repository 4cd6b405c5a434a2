//! What one sees first: the verdict, the numbers, what could not run, where it ran.

use std::fmt::Write as _;
use std::time::Duration;

use crate::escape::Html;
use crate::model::{Campaign, CampaignState, Environment, Failure, FailureState, Night, Verdict};
use crate::numbers::{compact, count, long_span, plural, span};

/// A number with what it is and one more thing to know about it.
pub fn tile(label: &str, value: &str, more: &str) -> String {
    let more = if more.is_empty() { String::new() } else { format!("<span>{}</span>", Html(more)) };
    format!("<div class=\"tile\"><span>{}</span><b>{}</b>{more}</div>", Html(label), Html(value))
}

/// A word in a colour; `class` is one of the style's.
pub fn pill(class: &str, word: &str) -> String {
    format!("<span class=\"pill {}\">{}</span>", Html(class), Html(word))
}

/// The verdict's class in the style, and the word that people read.
fn verdict_word(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Clean => ("clean", "Clean"),
        Verdict::Failed => ("failed", "Failed"),
        Verdict::Incomplete => ("incomplete", "Incomplete"),
        Verdict::NothingRan => ("nothing-ran", "Nothing ran"),
    }
}

/// What came of the night, in one sentence.
pub fn verdict_words(night: &Night) -> String {
    let here = night.here().filter(|failure| failure.suppressed.is_none()).count() as u64;
    let suppressed = night.here().filter(|failure| failure.suppressed.is_some()).count();
    let heard = |failure: &&Failure| failure.suppressed.is_none();
    let of =
        |state| night.failures.iter().filter(heard).filter(|failure| failure.state == state).count() as u64;
    let iterations = plural(night.campaign.iterations(), "iteration");
    let mut words = match night.verdict() {
        Verdict::Clean => format!("no failure in {iterations}"),
        Verdict::Failed => format!("{} in {iterations}", plural(here, "different failure")),
        Verdict::Incomplete => format!("no failure in {iterations}, but not everything could run"),
        Verdict::NothingRan => "not one iteration was made, so nothing is known".to_owned(),
    };
    if let Some(before) = &night.compared_with {
        use FailureState::{New, Ongoing, Open, Rare, Resolved};
        let mut parts: Vec<String> = [New, Rare, Ongoing, Open, Resolved]
            .into_iter()
            .filter(|state| of(*state) > 0)
            .map(|state| match state {
                Rare => format!("{} back", count(of(state))),
                Open => format!("{} not seen in too few iterations to tell", count(of(state))),
                Resolved => format!("{} not seen any more", count(of(state))),
                state => format!("{} {}", count(of(state)), state.word()),
            })
            .collect();
        if parts.is_empty() {
            parts.push("nothing changed".to_owned());
        }
        let _ = write!(words, "; against {before}: {}", parts.join(", "));
    }
    if suppressed > 0 {
        let _ = write!(words, "; {} suppressed", count(suppressed as u64));
    }
    match night.campaign.state {
        CampaignState::Interrupted => {
            words.push_str("; its driver died, the numbers are the last that it wrote")
        }
        CampaignState::Stopped => words.push_str("; it was stopped early"),
        CampaignState::Running => words.push_str("; it is still at work"),
        CampaignState::Finished => {}
    }
    words
}

/// The verdict across the page.
pub fn verdict_banner(night: &Night) -> String {
    let (class, word) = verdict_word(night.verdict());
    format!("<div class=\"verdict {class}\"><b>{word}</b><span>{}</span></div>", Html(&verdict_words(night)))
}

/// The numbers of a campaign.
pub fn overview_tiles(night: &Night) -> String {
    let campaign = &night.campaign;
    let seconds = campaign.seconds();
    let iterations = campaign.iterations();
    let occurrences: u64 = night.here().map(|failure| failure.count).sum();
    // As the verdict and the failures' own marks say it: what is suppressed is marked as that.
    let is_new = |failure: &&Failure| failure.state == FailureState::New && failure.suppressed.is_none();
    let new = night.failures.iter().filter(is_new).count();
    let mut out = String::from("<div class=\"tiles\">");
    let rate = if seconds > 0.0 { iterations as f64 / seconds } else { 0.0 };
    out += &tile("Iterations", &compact(iterations as f64), &format!("{} per second", compact(rate)));
    out += &tile(
        "Different failures",
        &count(night.here().count() as u64),
        &match night.compared_with {
            Some(_) => format!("{new} new, {} in all", plural(occurrences, "time")),
            None => format!("{} in all", plural(occurrences, "time")),
        },
    );
    out += &tile("Ran for", &long_span(seconds), campaign.state.word());
    let tests = campaign.tests().filter(|(_, test)| test.iterations > 0).count() as u64;
    out +=
        &tile("Tests", &count(tests), &format!("in {}", plural(campaign.scenarios.len() as u64, "scenario")));
    let suspensions: u64 =
        campaign.scenarios.iter().filter_map(|one| one.suspensions.as_ref()).map(|s| s.suspensions).sum();
    let held: f64 =
        campaign.scenarios.iter().filter_map(|one| one.suspensions.as_ref()).map(|s| s.suspended_s).sum();
    if campaign.scenarios.iter().any(|scenario| scenario.suspensions.is_some()) {
        let held = format!("{} of standing still", span(Duration::from_secs_f64(held.max(0.0))));
        out += &tile("Suspensions", &compact(suspensions as f64), &held);
    }
    let schedules: u64 =
        campaign.tests().filter_map(|(_, test)| test.strict.as_ref()).map(|strict| strict.runs).sum();
    if schedules > 0 {
        out += &tile("Schedules", &compact(schedules as f64), "one thread at a time");
    }
    out += &tile("Hosts", &count(campaign.hosts), "processes that ran tests");
    out + "</div>"
}

/// What could not run, and what tests did besides; nothing when there is nothing.
pub fn problems(campaign: &Campaign) -> String {
    listed("What did not run", &campaign.problems) + &listed("What was noticed", &campaign.notes)
}

fn listed(heading: &str, texts: &[String]) -> String {
    if texts.is_empty() {
        return String::new();
    }
    let items: String = texts.iter().map(|text| format!("<li>{}</li>", Html(text))).collect();
    format!("<h2>{heading}</h2><div class=\"card problems\"><ul class=\"plain\">{items}</ul></div>")
}

/// Where it ran.
pub fn environment(environment: &Environment, seed: Option<&str>) -> String {
    let mut rows = vec![
        ("machine", format!("{}, {}", environment.processor, plural(environment.cores, "core"))),
        ("memory", format!("{} MiB", count(environment.memory_mib))),
        ("system", environment.system.clone()),
        ("Waylay", environment.waylay.clone()),
        ("configuration", format!("digest {}", environment.config_digest)),
    ];
    if let Some(seed) = seed {
        rows.push(("seed", seed.to_owned()));
    }
    facts(&rows)
}

/// Rows of a word and what it is.
pub(crate) fn facts(rows: &[(&str, String)]) -> String {
    let rows: String =
        rows.iter().map(|(word, text)| format!("<dt>{}</dt><dd>{}</dd>", Html(word), Html(text))).collect();
    format!("<dl class=\"facts\">{rows}</dl>")
}
