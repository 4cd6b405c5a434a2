//! The page that is alive: made on the server once a second for all who look, and sent as it is.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html as Answer, IntoResponse, Response};
use futures_util::stream;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use tokio::sync::watch;
use waylay_driver::archive::record;
use waylay_history::query::Totals;
use waylay_report::chart;
use waylay_report::escape::Html;
use waylay_report::model::{Campaign, Sample};
use waylay_report::numbers::{compact, count, long_span};
use waylay_report::page::{pill, tests_now, tile};

use super::night::Lately;
use super::shell::{self, part};
use super::{Shared, Site, Trouble, fleet};
use crate::board::{Doing, Standing};

/// How often what is shown is made anew.
const EVERY: Duration = Duration::from_secs(1);

/// What a page says that has nothing to show.
const NOTHING_YET: &str = "<div class=\"card dim\">Nothing has run yet. With the first campaign its numbers come here while it runs, and \
    above them what it found that is new.</div>";

/// The parts of the page that change, by the name of the element that they are in.
struct Parts {
    now: String,
    night: String,
    tiles: String,
    charts: String,
    failures: String,
    tests: String,
}

impl Parts {
    fn make(standing: &Standing, lately: &Lately, zone: &TimeZone) -> Parts {
        let campaign = standing.campaign.as_ref().map(|campaign| record::campaign(campaign));
        let running = matches!(standing.doing, Doing::Running { .. });
        Parts {
            now: now(standing, zone),
            night: lately.html(running, zone),
            // Before the first campaign there is nothing to count.
            tiles: match &campaign {
                Some(one) => tiles(standing, one, lately.totals),
                None if lately.is_empty() => NOTHING_YET.to_owned(),
                None => String::new(),
            },
            charts: charts(&standing.series),
            failures: failures(standing, lately, zone),
            tests: campaign.as_ref().map_or_else(String::new, tests_now),
        }
    }

    fn json(&self) -> String {
        let Parts { now, night, tiles, charts, failures, tests } = self;
        json!({
            "now": now, "night": night, "tiles": tiles, "charts": charts, "failures": failures, "tests": tests,
        })
        .to_string()
    }
}

/// Makes the parts anew while somebody looks.
pub(super) async fn keep_up(site: Arc<Site>, live: Arc<watch::Sender<Arc<str>>>) {
    let mut lately = Lately::default();
    let mut asked = None;
    loop {
        tokio::time::sleep(EVERY).await;
        if live.receiver_count() == 0 {
            continue;
        }
        let standing = site.board.look();
        // The states of all failures change slowly, and are counted seldom.
        if asked.is_none_or(|at: tokio::time::Instant| at.elapsed() > Duration::from_secs(5)) {
            lately = ask(&site, &standing).await.unwrap_or(lately);
            asked = Some(tokio::time::Instant::now());
        }
        let text: Arc<str> = Parts::make(&standing, &lately, &site.zone).json().into();
        live.send_if_modified(|known| {
            let other = *known != text;
            if other {
                *known = text;
            }
            other
        });
    }
}

async fn ask(site: &Arc<Site>, standing: &Standing) -> Result<Lately, Trouble> {
    let recent: Vec<String> = standing.recent.iter().map(|recent| recent.signature.clone()).collect();
    site.ask(move |history| Lately::ask(history, &recent)).await
}

/// The stream of parts.
pub(super) async fn events(State(shared): State<Shared>) -> Response {
    let mut receiver = shared.live.subscribe();
    // What was made for others a while ago is of no use; the page came with its own.
    receiver.borrow_and_update();
    let parts = stream::unfold(receiver, |mut receiver| async move {
        receiver.changed().await.ok()?;
        let text = Arc::clone(&receiver.borrow_and_update());
        Some((Ok::<Event, Infallible>(Event::default().data(&*text)), receiver))
    });
    Sse::new(parts).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response()
}

/// The page.
pub(super) async fn page(State(shared): State<Shared>) -> Result<Answer<String>, Trouble> {
    let standing = shared.site.board.look();
    let lately = ask(&shared.site, &standing).await?;
    let parts = Parts::make(&standing, &lately, &shared.site.zone);
    let body = format!(
        "<div id=\"now\" class=\"now\" aria-live=\"polite\">{}</div><div id=\"night\">{}</div><div id=\"tiles\">{}</div>\
         <div id=\"charts\">{}</div><div id=\"failures\">{}</div><div id=\"tests\">{}</div>\
         <p class=\"dim small\" id=\"connection\" data-live=\"/events\"></p>",
        parts.now, parts.night, parts.tiles, parts.charts, parts.failures, parts.tests
    );
    Ok(shell::page("Live", "/", &body))
}

pub(super) fn clock(at: Timestamp, zone: &TimeZone) -> String {
    zone.to_datetime(at).strftime("%a %H:%M").to_string()
}

fn now(standing: &Standing, zone: &TimeZone) -> String {
    let (class, word, more) = match &standing.doing {
        Doing::Starting => ("", "Starting", String::new()),
        Doing::Waiting(None) => ("", "Waiting", "no window ever opens".to_owned()),
        Doing::Waiting(Some(next)) => {
            ("", "Waiting", format!("the next window opens {}", clock(*next, zone)))
        }
        Doing::Stopping => ("", "Stopping", String::new()),
        Doing::Running { mix, until } => {
            let until = until.map_or_else(String::new, |until| format!(" until {}", clock(until, zone)));
            ("running", "Running", format!("{mix}{until}"))
        }
    };
    let mut out = format!("<div class=\"verdict {class}\"><b>{word}</b><span>{}</span>", Html(&more));
    if let Some(campaign) = &standing.campaign {
        let _ = write!(
            out,
            "<span class=\"to-the-right\"><a href=\"/campaign/{}\">campaign of {}</a></span>",
            part(&campaign.name),
            clock(campaign.started, zone)
        );
    }
    out.push_str("</div>");
    out + &standing.fleet.as_ref().map_or_else(String::new, fleet::line)
}

/// What was added per second lately.
fn rate(series: &[Sample], counter: fn(&Sample) -> u64) -> f64 {
    let Some(last) = series.last() else { return 0.0 };
    let Some(before) = series.iter().rev().find(|sample| last.at_s - sample.at_s >= 4.5).or(series.first())
    else {
        return 0.0;
    };
    let seconds = last.at_s - before.at_s;
    if seconds > 0.0 { counter(last).saturating_sub(counter(before)) as f64 / seconds } else { 0.0 }
}

fn tiles(standing: &Standing, campaign: &Campaign, totals: Totals) -> String {
    let last = standing.series.last().copied().unwrap_or_default();
    let per_second = |counter| format!("{} per second", compact(rate(&standing.series, counter)));
    let mut out = String::from("<div class=\"tiles\">");
    // Where every iteration is a schedule, one number tells both.
    if last.schedules < last.iterations || last.iterations == 0 {
        out += &tile("Iterations", &compact(last.iterations as f64), &per_second(|sample| sample.iterations));
    }
    out += &tile(
        "Failures",
        &count(last.failures),
        &format!("{} different in this campaign", count(last.signatures)),
    );
    let known = totals.new + totals.ongoing + totals.rare;
    let _ = write!(
        out,
        "<a class=\"tile\" href=\"/failures?state=open\"><span>Open failures</span><b>{}</b><span>{} of them new</span></a>",
        count(known),
        count(totals.new)
    );
    if last.suspensions > 0 {
        out +=
            &tile("Suspensions", &compact(last.suspensions as f64), &per_second(|sample| sample.suspensions));
    }
    if last.schedules > 0 {
        out += &tile("Schedules", &compact(last.schedules as f64), &per_second(|sample| sample.schedules));
    }
    let scenario = campaign.scenarios.last().map_or("", |scenario| &scenario.name);
    // By the clock: a campaign that takes evidence says nothing for a while, and goes on all the same.
    let runs = match (&standing.doing, &standing.campaign) {
        (Doing::Running { .. }, Some(campaign)) => {
            Timestamp::now().duration_since(campaign.started).as_secs_f64().max(last.at_s)
        }
        _ => last.at_s,
    };
    out += &tile("Campaign runs for", &long_span(runs.floor()), scenario);
    if let Some((who, seconds)) = &standing.slowest {
        out += &tile("Longest now", &long_span(*seconds), who);
    }
    out + "</div>"
}

fn charts(series: &[Sample]) -> String {
    if series.len() < 2 {
        return String::new();
    }
    chart::row(&chart::of_campaign(series))
}

fn failures(standing: &Standing, lately: &Lately, zone: &TimeZone) -> String {
    let mut out = String::new();
    if !standing.recent.is_empty() {
        out.push_str("<h2>Failures of this campaign</h2><div class=\"scroll\"><table class=\"list\"><tbody>");
        for recent in &standing.recent {
            let _ = write!(
                out,
                "<tr><td class=\"when\">{}</td><td>{}</td><td class=\"name\">{} <a href=\"/failure/{}\">{}</a>\
                 <span class=\"line\">{}</span></td></tr>",
                clock(recent.at, zone),
                lately.states.get(&recent.signature).map_or_else(String::new, |state| pill(state, state)),
                pill("kind", &recent.kind),
                part(&recent.signature),
                Html(recent.test.as_deref().unwrap_or("the host itself")),
                Html(recent.what.lines().next().unwrap_or_default())
            );
        }
        out.push_str("</tbody></table></div>");
    }
    if !standing.notes.is_empty() {
        out.push_str("<h2>What happened</h2><div class=\"card\"><ul class=\"plain notes\">");
        for (at, note) in &standing.notes {
            let _ = write!(out, "<li><span class=\"dim\">{}</span> {}</li>", clock(*at, zone), Html(note));
        }
        out.push_str("</ul></div>");
    }
    out
}
