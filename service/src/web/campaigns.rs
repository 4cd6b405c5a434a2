//! The campaigns, and one of them.

use std::fmt::Write as _;

use axum::extract::{Path, Query, State};
use axum::response::Html as Answer;
use serde::Deserialize;
use waylay_history::query::{CampaignRow, Filter, Order};
use waylay_report::escape::Html;
use waylay_report::model::Campaign;
use waylay_report::numbers::{compact, count, long_span, plural};
use waylay_report::page::{environment, guarantees, pill, problems, tests_table, tile};
use waylay_report::{chart, guarantee};

use super::shell::{self, date, part};
use super::{PAGE, Shared, Site, Trouble, failures};

/// Failures of one campaign that are listed; the rest is a click away.
const LISTED: u64 = 100;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    page: u64,
}

/// All of them, newest first.
pub(super) async fn list(
    State(shared): State<Shared>,
    Query(asked): Query<Asked>,
) -> Result<Answer<String>, Trouble> {
    let page = asked.page.min(1_000_000);
    let (rows, all) = shared
        .site
        .ask(move |history| Ok((history.campaigns(page * PAGE, PAGE)?, history.count_campaigns()?)))
        .await?;
    let mut body = table(&rows, &shared.site);
    body += &shell::turns("/campaigns?", page, rows.len() as u64, all, u64::MAX);
    Ok(shell::page("Campaigns", "/campaigns", &body))
}

pub(super) fn table(rows: &[CampaignRow], site: &Site) -> String {
    if rows.is_empty() {
        return "<div class=\"card dim\">None yet. Each turn of a mix is one; the first begins when a window opens.</div>".to_owned();
    }
    let mut out = String::from(
        "<div class=\"scroll\"><table class=\"list\"><thead><tr><th>began</th><th>campaign</th><th>state</th>\
         <th class=\"num\">iterations</th><th class=\"num\">different failures</th><th class=\"num\">first seen</th>\
         <th class=\"num\">ran for</th></tr></thead><tbody>",
    );
    for row in rows {
        let new = match row.new_signatures {
            0 => "0".to_owned(),
            new => pill("new", &count(new)),
        };
        let trouble = match row.problems {
            0 => String::new(),
            number => format!(" {}", pill("ongoing", &plural(number, "problem"))),
        };
        let _ = write!(
            out,
            "<tr><td class=\"when\">{}</td><td class=\"name\"><a href=\"/campaign/{}\">{}</a> <span class=\"dim\">{}</span></td><td>{}{trouble}</td>\
             <td class=\"num\" data-unit=\"iteration{}\">{}</td><td class=\"num\" data-unit=\"failure{}\">{}</td>\
             <td class=\"num\" data-unit=\"first seen\">{new}</td><td class=\"num\">{}</td></tr>",
            date(row.started, &site.zone),
            part(&row.name),
            Html(&row.title()),
            Html(&row.name),
            Html(&row.state),
            if row.iterations == 1 { "" } else { "s" },
            compact(row.iterations as f64),
            if row.signatures == 1 { "" } else { "s" },
            count(row.signatures),
            long_span(row.updated.duration_since(row.started).as_secs_f64().max(0.0)),
        );
    }
    out + "</tbody></table></div>"
}

/// One campaign.
pub(super) async fn page(
    State(shared): State<Shared>,
    Path(name): Path<String>,
) -> Result<Answer<String>, Trouble> {
    let filter =
        Filter { campaign: Some(name.clone()), order: Order::Count, limit: LISTED, ..Filter::default() };
    let (campaign, row, failures) = shared
        .site
        .ask(move |history| {
            Ok((history.known_campaign(&name)?, history.campaign(&name)?, history.failures(&filter)?))
        })
        .await?;
    let (Some(campaign), Some(row)) = (campaign, row) else {
        return Err(Trouble::Nothing("There is no such campaign."));
    };
    let mut body = tiles(&campaign, &row, &shared.site);
    body += &problems(&campaign);
    body.push_str("<h2>Failures</h2>");
    body += &failures::table(&failures, &shared.site.zone);
    if row.signatures > LISTED {
        let _ = write!(body, "<p class=\"dim\">the {LISTED} most frequent of {}</p>", count(row.signatures));
    }
    body.push_str("<h2>What it guarantees</h2>");
    body += &guarantees(&guarantee::of_all(&campaign.scenarios));
    body.push_str("<h2>Over time</h2>");
    body += &chart::row(&chart::of_campaign(&campaign.series));
    body.push_str("<h2>Tests</h2>");
    body += &tests_table(&campaign);
    let _ = write!(
        body,
        "<h2>Where it ran</h2><div class=\"card\">{}</div>",
        environment(&campaign.environment, Some(&campaign.seed))
    );
    let title = format!("{}, {}", row.title(), date(row.started, &shared.site.zone));
    Ok(shell::page(&title, "/campaigns", &body))
}

fn tiles(campaign: &Campaign, row: &CampaignRow, site: &Site) -> String {
    let seconds = campaign.seconds();
    let iterations = campaign.iterations();
    let rate = if seconds > 0.0 { iterations as f64 / seconds } else { 0.0 };
    let mut out = String::from("<div class=\"tiles first\">");
    let _ = write!(
        out,
        "<a class=\"tile\" href=\"/night/{}\"><span>Began</span><b>{}</b><span>night of {}</span></a>",
        part(&row.night),
        date(row.started, &site.zone),
        Html(&row.night)
    );
    out += &tile("Ran for", &long_span(seconds), campaign.state.word());
    out += &tile("Iterations", &compact(iterations as f64), &format!("{} per second", compact(rate)));
    out += &tile(
        "Different failures",
        &count(row.signatures),
        // A failure is new for a whole night, and other campaigns of it may have shown it before this one.
        &format!("{} first seen here, {} in all", count(row.new_signatures), plural(row.failures, "time")),
    );
    let _ = write!(out, "</div><p class=\"dim small\">Folder <code>{}</code></p>", Html(&row.name));
    out
}
