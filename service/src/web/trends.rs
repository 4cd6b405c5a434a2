//! Nights in a row: of everything, or of one test.

use std::fmt::Write as _;

use axum::extract::{Query, State};
use axum::response::Html as Answer;
use serde::Deserialize;
use waylay_history::query::{CampaignRow, TestNight};
use waylay_report::chart::{self, Axis, Chart, Series};
use waylay_report::escape::Html;
use waylay_report::model::NightPoint;
use waylay_report::numbers::{compact, count, long_span};

use super::shell::{self, part};
use super::{Shared, Trouble};

/// Nights that are shown.
const NIGHTS: u64 = 120;
/// Campaigns of a night that are shown while there are few nights.
const CAMPAIGNS: u64 = 60;
/// Tests that can be chosen.
const TESTS: u64 = 500;

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    test: String,
}

/// The page.
pub(super) async fn page(
    State(shared): State<Shared>,
    Query(asked): Query<Asked>,
) -> Result<Answer<String>, Trouble> {
    let test = asked.test.clone();
    let (nights, campaigns, tests, of_test) = shared
        .site
        .ask(move |history| {
            let of_test = if test.is_empty() { Vec::new() } else { history.test_nights(&test, NIGHTS)? };
            let nights = history.nights(NIGHTS)?;
            // Of few nights the campaigns tell more.
            let campaigns = match nights.as_slice() {
                [_, _, _, ..] => Vec::new(),
                few => {
                    let of_night = |night: &NightPoint| history.campaigns_of(&night.campaign, CAMPAIGNS);
                    few.iter().map(of_night).collect::<Result<Vec<_>, _>>()?.concat()
                }
            };
            Ok((nights, campaigns, history.tests(TESTS)?, of_test))
        })
        .await?;
    let mut body = chooser(&tests, &asked.test);
    if asked.test.is_empty() {
        body += &of_nights(&nights, &campaigns);
    } else {
        body += &of_one(&asked.test, &of_test);
    }
    Ok(shell::page("Trends", "/trends", &body))
}

fn chooser(tests: &[String], chosen: &str) -> String {
    let mut out = String::from(
        "<div class=\"filters\"><form method=\"get\" action=\"/trends\"><select name=\"test\" aria-label=\"test\">\
         <option value=\"\">all tests together</option>",
    );
    for test in tests {
        let selected = if test == chosen { " selected" } else { "" };
        let _ = write!(out, "<option value=\"{}\"{selected}>{}</option>", Html(test), Html(test));
    }
    out + "</select><button class=\"copy\">Show</button></form></div>"
}

/// What a campaign is in a chart of campaigns.
fn point(campaign: &CampaignRow) -> NightPoint {
    NightPoint {
        campaign: campaign.name.clone(),
        started: campaign.started,
        seconds: campaign.updated.duration_since(campaign.started).as_secs_f64().max(0.0),
        iterations: campaign.iterations,
        failures: campaign.failures,
        signatures: campaign.signatures,
        new_signatures: campaign.new_signatures,
    }
}

fn of_nights(nights: &[NightPoint], campaigns: &[CampaignRow]) -> String {
    if nights.is_empty() {
        return "<div class=\"card dim\">No night yet. After the first one there is what each campaign found, after three what each \
                night did.</div>"
            .to_owned();
    }
    let mut out = match campaigns {
        [] => chart::row(&chart::of_nights(nights, "per night")),
        few => {
            let points: Vec<NightPoint> = few.iter().map(point).collect();
            chart::row(&chart::of_nights(&points, "per campaign"))
        }
    };
    out.push_str(
        "<h2>Nights</h2><div class=\"scroll\"><table class=\"list\"><thead><tr><th>night</th><th class=\"num\">ran for</th>\
         <th class=\"num\">iterations</th><th class=\"num\">failures</th><th class=\"num\">different</th>\
         <th class=\"num\">new</th></tr></thead><tbody>",
    );
    for night in nights.iter().rev() {
        let _ = write!(
            out,
            "<tr><td class=\"name\"><a href=\"/night/{}\">{}</a></td><td class=\"num\">{}</td>\
             <td class=\"num\" data-unit=\"iterations\">{}</td><td class=\"num\" data-unit=\"failure{}\">{}</td>\
             <td class=\"num\" data-unit=\"different\">{}</td><td class=\"num\" data-unit=\"new\">{}</td></tr>",
            part(&night.campaign),
            Html(&night.campaign),
            long_span(night.seconds),
            compact(night.iterations as f64),
            if night.failures == 1 { "" } else { "s" },
            count(night.failures),
            count(night.signatures),
            count(night.new_signatures)
        );
    }
    out + "</tbody></table></div>"
}

fn of_one(test: &str, nights: &[TestNight]) -> String {
    let labels = || {
        Axis::Labels(nights.iter().map(|night| night.night.get(5..).unwrap_or_default().to_owned()).collect())
    };
    let bars = |title, unit, colour, value: fn(&TestNight) -> f64| {
        let points = nights.iter().enumerate().map(|(place, night)| (place as f64, value(night))).collect();
        Chart {
            title,
            unit,
            series: vec![Series { name: title, colour, points }],
            axis: labels(),
            bars: true,
        }
        .html()
    };
    let charts = [
        bars("Iterations", "per night", 1, |night| night.iterations as f64),
        bars("Failures", "per night", 5, |night| night.failures as f64),
        bars("Average iteration", "in microseconds", 3, |night| night.average_ns / 1000.0),
    ];
    format!(
        "<h2>{} <a class=\"small\" href=\"/failures?test={}\">its failures</a></h2>{}",
        Html(test),
        part(test),
        chart::row(&charts)
    )
}
