//! The shards of the night that is on an engine, or of the last one.

use std::fmt::Write as _;

use axum::extract::State;
use axum::response::Html as Answer;
use waylay_fleet::engine::Standing;
use waylay_report::escape::Html;
use waylay_report::numbers::{compact, count, plural};
use waylay_report::page::{pill, tile};

use super::Shared;
use super::shell::{self, part};
use crate::board::FleetNight;

/// Where the page is.
pub(super) const PAGE: &str = "/fleet";

/// The page.
pub(super) async fn page(State(shared): State<Shared>) -> Answer<String> {
    let body = match &shared.site.board.look().fleet {
        Some(night) => body(night),
        None => "<div class=\"card dim\">No night was handed to an engine since the service began.</div>"
            .to_owned(),
    };
    shell::page("Shards", PAGE, &body)
}

/// How the shards stand, in a line for the live page.
pub(super) fn line(night: &FleetNight) -> String {
    let standing = Standing::of(&night.shards);
    let words = match &night.campaign {
        Some(_) if night.missing.is_empty() => "the night is whole".to_owned(),
        Some(_) => plural(night.missing.len() as u64, "part") + " missing of the night",
        None => told(&standing),
    };
    format!(
        "<div class=\"card\"><a href=\"{PAGE}\">{}</a>: {}</div>",
        plural(night.shards.len() as u64, "shard"),
        Html(&words)
    )
}

fn told(standing: &Standing) -> String {
    let Standing { done, running, waiting, lost, .. } = standing;
    format!("{done} done, {running} running, {waiting} waiting, {lost} lost")
}

fn body(night: &FleetNight) -> String {
    let standing = Standing::of(&night.shards);
    let mut out = String::from("<div class=\"tiles first\">");
    out += &tile("Shards", &count(night.shards.len() as u64), &told(&standing));
    out += &tile("Iterations", &compact(standing.iterations as f64), &night.mix);
    out += &tile("Failures", &count(standing.failures), "as often as they were seen");
    if let Some(campaign) = &night.campaign {
        let words = if night.missing.is_empty() { "whole" } else { "not whole" };
        let _ = write!(
            out,
            "<a class=\"tile\" href=\"/campaign/{}\"><span>Merged night</span><b>{words}</b><span>{}</span></a>",
            part(campaign),
            Html(campaign)
        );
    }
    out += "</div>";
    for sentence in &night.missing {
        let _ = write!(out, "<p>{} {}</p>", pill("ongoing", "missing"), Html(sentence));
    }
    out += "<div class=\"scroll\"><table class=\"list\"><thead><tr><th>shard</th><th>state</th><th>machine</th>\
            <th class=\"num\">iterations</th><th class=\"num\">failures</th></tr></thead><tbody>";
    for shard in &night.shards {
        let _ = write!(
            out,
            "<tr><td class=\"name\">{}/{}</td><td>{}</td><td>{}</td><td class=\"num\" data-unit=\"iterations\">{}</td>\
             <td class=\"num\" data-unit=\"failures\">{}</td></tr>",
            shard.number,
            night.shards.len(),
            pill(shard.state.word(), shard.state.word()),
            Html(shard.machine.as_deref().unwrap_or("")),
            compact(shard.iterations as f64),
            count(shard.failures)
        );
    }
    out + "</tbody></table></div>"
}
