//! The report as one HTML file that needs nothing else.

use std::fmt::Write as _;

use crate::escape::Html;
use crate::model::Night;
use crate::numbers::count;
use crate::page::{
    FileLinks, bar, document, environment, failure_card, guarantees, overview_tiles, problems, tests_table,
    verdict_banner,
};
use crate::{chart, guarantee};

/// Failures that are shown with everything; further ones are one line each, so that a report can be opened and mailed.
const MOST_CARDS: usize = 200;
/// Lines of further ones.
const MOST_LINES: usize = 5000;

/// The whole report.
pub fn report(night: &Night) -> String {
    let campaign = &night.campaign;
    let title = format!("{} · {}", campaign.started.strftime("%A %-d %B %Y"), campaign.name);
    let mut body = bar(
        &title,
        &[
            ("#failures", "Failures"),
            ("#guarantees", "Guarantees"),
            ("#tests", "Tests"),
            ("#time", "Over time"),
        ],
    );
    body.push_str("<main>");
    body += &verdict_banner(night);
    body += &overview_tiles(night);
    body += &problems(campaign);
    body += &failures(night);
    body.push_str("<h2 id=\"guarantees\">What this night guarantees</h2>");
    body += &guarantees(&guarantee::of_all(&campaign.scenarios));
    body.push_str("<h2 id=\"tests\">Tests</h2>");
    body += &tests_table(campaign);
    let _ =
        write!(body, "<h2 id=\"time\">Over time</h2>{}", chart::row(&chart::of_campaign(&campaign.series)));
    if night.trend.len() > 1 {
        let charts = chart::row(&chart::of_nights(&night.trend, "per campaign"));
        let _ = write!(body, "<h2>Campaigns up to this one</h2>{charts}");
    }
    body.push_str("<h2>Where it ran</h2><div class=\"card\">");
    body += &environment(&campaign.environment, Some(&campaign.seed));
    let _ = write!(
        body,
        "</div><footer>made {} from what campaign {} left behind, Waylay {}</footer></main>",
        night.made.strftime("%Y-%m-%d %H:%M:%S UTC"),
        Html(&campaign.name),
        Html(&campaign.environment.waylay)
    );
    document(&format!("Waylay {}", campaign.name), &body)
}

fn failures(night: &Night) -> String {
    let (here, gone): (Vec<_>, Vec<_>) = night.failures.iter().partition(|failure| failure.is_here());
    let mut out = String::from("<h2 id=\"failures\">Failures</h2>");
    if here.is_empty() {
        out.push_str("<div class=\"card dim\">None.</div>");
    }
    for (index, failure) in here.iter().enumerate().take(MOST_CARDS) {
        // One failure alone is what the reader came for.
        out += &failure_card(failure, FileLinks::default(), here.len() == 1 && index == 0);
    }
    if here.len() > MOST_CARDS {
        out.push_str("<div class=\"scroll\"><table><tbody>");
        for failure in here.iter().skip(MOST_CARDS).take(MOST_LINES) {
            let _ = write!(
                out,
                "<tr><td>{}</td><td>{}</td><td class=\"name\">{}</td><td class=\"num\">{}</td></tr>",
                Html(failure.kind.word()),
                Html(failure.subject()),
                Html(&failure.what.lines().next().unwrap_or_default().chars().take(200).collect::<String>()),
                count(failure.count)
            );
        }
        out.push_str("</tbody></table></div>");
        if let more @ 1.. = here.len().saturating_sub(MOST_CARDS + MOST_LINES) {
            let _ = write!(out, "<p class=\"dim\">and {} more</p>", count(more as u64));
        }
    }
    if !gone.is_empty() {
        out.push_str("<h3>Not seen any more</h3>");
        for failure in gone.iter().take(MOST_CARDS) {
            out += &failure_card(failure, FileLinks::default(), false);
        }
    }
    out
}
