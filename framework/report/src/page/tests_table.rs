//! The tests of a campaign, one row each, with what a pot's tests were meant to get and got.

use std::fmt::Write as _;
use std::time::Duration;

use super::overview::pill;
use crate::escape::Html;
use crate::model::{Campaign, Scenario, Share, StrictNumbers, Test};
use crate::numbers::{count, plural, span};

/// Rows that are shown of one scenario; a page stays a page.
const MOST_ROWS: usize = 500;

/// The table.
pub fn tests_table(campaign: &Campaign) -> String {
    campaign.scenarios.iter().map(of_scenario).collect()
}

/// The table of a campaign that runs: the scenario that is at work in front, those that are over folded.
pub fn tests_now(campaign: &Campaign) -> String {
    let Some((now, over)) = campaign.scenarios.split_last() else { return String::new() };
    let mut out = of_scenario(now);
    for scenario in over.iter().rev() {
        let failures: u64 = scenario.tests.iter().map(|test| test.failures).sum();
        let _ = write!(
            out,
            "<details class=\"more over\" id=\"over-{}\"><summary>{}: {}, {}</summary>{}</details>",
            Html(&scenario.name),
            Html(&scenario.name),
            plural(scenario.tests.iter().map(|test| test.iterations).sum(), "iteration"),
            plural(failures, "failure"),
            of_scenario(scenario)
        );
    }
    out
}

fn of_scenario(scenario: &Scenario) -> String {
    let shares = scenario.tests.iter().any(|test| test.share.is_some());
    let time = span(Duration::from_secs_f64(scenario.seconds.max(0.0)));
    let mut out = format!(
        "<h3>{} {} <span class=\"dim small\">{time}",
        Html(&scenario.name),
        pill("", scenario.mode.word())
    );
    if let Some(randomizer) = &scenario.suspensions {
        let _ = write!(
            out,
            ", {}, {} never suspended",
            plural(randomizer.suspensions, "suspension"),
            plural(randomizer.never_suspended, "thread")
        );
        if let Some(tracer) = &randomizer.refused_for {
            let _ = write!(out, ", refused because {} traced the host", Html(tracer));
        }
    }
    out.push_str(
        "</span></h3><div class=\"scroll\"><table class=\"list tests\"><thead><tr><th>test</th><th class=\"num\">iterations</th>\
         <th class=\"num\">failures</th><th class=\"num\">average</th><th class=\"num\">shortest</th>\
         <th class=\"num\">longest</th>",
    );
    if shares {
        out.push_str("<th>share of the time (line: asked)</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for test in scenario.tests.iter().take(MOST_ROWS) {
        out += &row(test, shares);
    }
    out.push_str("</tbody></table></div>");
    if scenario.tests.len() > MOST_ROWS {
        let _ = write!(
            out,
            "<p class=\"dim\">and {} more tests</p>",
            count((scenario.tests.len() - MOST_ROWS) as u64)
        );
    }
    out
}

fn row(test: &Test, shares: bool) -> String {
    let time = |nanos: f64| match nanos {
        n if n > 0.0 && n.is_finite() => span(Duration::from_nanos(n as u64)),
        _ => "–".to_owned(),
    };
    let failures = match test.failures {
        0 => "0".to_owned(),
        n => pill("new", &count(n)),
    };
    let mut out = format!("<tr><td class=\"name\"><b>{}</b>", Html(&test.name));
    if let Some(strict) = &test.strict {
        let _ = write!(out, "<span class=\"dim small\">{}</span>", Html(&strict_words(strict)));
    }
    if let Some(retired) = &test.retired {
        let _ = write!(out, "<span class=\"dim small\">{}</span>", Html(retired));
    }
    let unit = |number: u64, word: &str| if number == 1 { word.to_owned() } else { format!("{word}s") };
    let _ = write!(
        out,
        "</td><td class=\"num\" data-unit=\"{}\">{}</td><td class=\"num\" data-unit=\"{}\">{failures}</td>\
         <td class=\"num\" data-word=\"average\">{}</td><td class=\"num\" data-word=\"shortest\">{}</td>\
         <td class=\"num\" data-word=\"longest\">{}</td>",
        unit(test.iterations, "iteration"),
        count(test.iterations),
        unit(test.failures, "failure"),
        time(test.average_ns),
        time(test.shortest_ns),
        time(test.longest_ns)
    );
    if shares {
        out.push_str("<td class=\"part\">");
        if let Some(share) = &test.share {
            out += &share_bar(share, test.retired.is_some());
        }
        out.push_str("</td>");
    }
    out + "</tr>"
}

/// What a test was meant to get and got, as words and as a bar.
fn share_bar(share: &Share, retired: bool) -> String {
    let mut out = format!("<span class=\"small\">{}</span>", Html(&share.words(retired, "")));
    // What is out for a part of the time is measured by what it had until then.
    let got = if retired { share.until_retired } else { Some(share.achieved) };
    if let Some(got) = got {
        // The longest bar is that of twice what was asked, so that too much is seen as well as too little.
        let scale = (share.asked * 2.0).max(got).max(1e-9);
        let _ = write!(
            out,
            "<div class=\"share{}\"><i style=\"width:{:.1}%\"></i><b style=\"left:{:.1}%\"></b></div>",
            if retired { " retired" } else { "" },
            got / scale * 100.0,
            share.asked / scale * 100.0
        );
    }
    out
}

/// What the schedules of a strict test were like.
fn strict_words(strict: &StrictNumbers) -> String {
    if strict.runs == 0 {
        return format!("{}, no schedule was run", strict.strategy);
    }
    format!(
        "{}, {}, {}, {} per second",
        strict.strategy,
        plural(strict.threads.into(), "thread"),
        plural(strict.steps, "step"),
        count(strict.schedules_per_second as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_retired_is_measured_until_then() {
        let share =
            Share { pot: "pot".into(), total_ns: 1e9, asked: 0.25, achieved: 0.02, until_retired: None };
        assert!(
            share_bar(&share, false).starts_with("<span class=\"small\">2.0 % (asked 25.0 %)</span><div")
        );
        let retired = Share { until_retired: Some(0.24), ..share.clone() };
        let html = share_bar(&retired, true);
        assert!(
            html.contains("24.0 % until it was retired (asked 25.0 %)") && html.contains("width:48.0%"),
            "{html}"
        );
        // Of what was stored without it, no bar says that it got too little.
        let html = share_bar(&Share { asked: 0.0, ..share }, true);
        assert_eq!(html, "<span class=\"small\">retired, 2.0 % of all</span>");
    }
}
