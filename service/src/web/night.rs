//! One night: what was new in it, what else it had, what it guarantees. And the same in short, for the page that people
//! open in the morning.

use std::collections::HashMap;
use std::fmt::Write as _;

use axum::extract::{Path, State};
use axum::response::Html as Answer;
use waylay_history::query::{CampaignRow, FailureRow, Filter, Order, Totals};
use waylay_history::{History, HistoryError};
use waylay_report::escape::Html;
use waylay_report::guarantee::{self, TestGuarantee};
use waylay_report::model::NightPoint;
use waylay_report::numbers::{compact, count, long_span, plural};
use waylay_report::page::{guarantees, pill, tile};

use super::shell::{self, part};
use super::{Shared, Site, Trouble, campaigns, failures};

/// Failures of a night that are listed.
const LISTED: u64 = 50;
/// New failures in short.
const IN_SHORT: u64 = 8;
/// New failures of a night that are counted one by one. Of more, the sum that campaigns wrote down is told, suppressed
/// ones included.
const MOST_COUNTED: u64 = 10_000;
/// Campaigns of a night: one every five minutes.
const CAMPAIGNS: u64 = 300;

/// What changes slowly of the live page: asked for seldom.
#[derive(Clone, Debug, Default)]
pub(super) struct Lately {
    pub(super) totals: Totals,
    night: Option<NightPoint>,
    new: Vec<FailureRow>,
    /// How many these are in all, and how many more would be, had nobody suppressed them.
    counted: (u64, u64),
    campaigns: u64,
    /// How failures of the campaign that runs stand, by signature.
    pub(super) states: HashMap<String, &'static str>,
}

impl Lately {
    pub(super) fn ask(history: &History, recent: &[String]) -> Result<Lately, HistoryError> {
        let night = history.nights(1)?.pop();
        let mut lately = Lately { totals: history.totals()?, ..Lately::default() };
        if let Some(night) = &night {
            lately.new = history.failures(&new_of(&night.campaign, IN_SHORT))?;
            lately.counted = counted(history, &night.campaign, night.new_signatures)?;
            lately.campaigns = history.campaigns_of(&night.campaign, CAMPAIGNS)?.len() as u64;
        }
        for signature in recent {
            if let Some(row) = history.failure(signature)? {
                let word = if row.suppressed.is_some() { "suppressed" } else { row.state.word() };
                lately.states.insert(signature.clone(), word);
            }
        }
        lately.night = night;
        Ok(lately)
    }

    /// Whether nothing was ever run.
    pub(super) fn is_empty(&self) -> bool {
        self.night.is_none()
    }

    /// The last night in a few lines: what is new first.
    pub(super) fn html(&self, running: bool, site_zone: &jiff::tz::TimeZone) -> String {
        let Some(night) = &self.night else { return String::new() };
        let (new, quiet) = self.counted;
        let (class, word) = match (new, night.signatures, night.iterations) {
            (1.., ..) => ("failed", plural(new, "new failure")),
            (0, _, 0) => ("nothing-ran", "Nothing ran".to_owned()),
            (0, 1.., _) => ("", "Nothing new".to_owned()),
            (0, 0, _) => ("clean", "No failure".to_owned()),
        };
        let when = if running { "this night so far" } else { "last night" };
        let quiet = match quiet {
            0 => String::new(),
            n => format!(" (<a href=\"/suppressions\">{} more suppressed</a>)", count(n)),
        };
        let mut out = format!(
            "<div class=\"verdict {class}\"><b>{word}</b><span>{when}: {}{quiet} in {}, {} of tests in {}</span>\
             <span class=\"to-the-right\"><a href=\"/night/{}\">night of {}</a></span></div>",
            plural(night.signatures, "different failure"),
            iterations(night.iterations),
            long_span(night.seconds),
            plural(self.campaigns, "campaign"),
            part(&night.campaign),
            Html(&night.campaign)
        );
        if !self.new.is_empty() {
            out += &failures::table(&self.new, site_zone);
            if new > self.new.len() as u64 {
                let _ = write!(out, "<p class=\"dim\">the first {} of {}</p>", self.new.len(), count(new));
            }
        }
        out
    }
}

fn iterations(number: u64) -> String {
    match number {
        1 => "1 iteration".to_owned(),
        number => format!("{} iterations", compact(number as f64)),
    }
}

fn new_of(night: &str, limit: u64) -> Filter {
    Filter {
        night: Some(night.to_owned()),
        first_seen_then: true,
        not_suppressed: true,
        limit,
        order: Order::Count,
        ..Filter::default()
    }
}

/// How many failures no night before had: those that people hear of, and the suppressed ones.
fn counted(history: &History, night: &str, sum: u64) -> Result<(u64, u64), HistoryError> {
    if sum >= MOST_COUNTED {
        return Ok((sum, 0));
    }
    let heard = new_of(night, 0);
    let all = Filter { not_suppressed: false, ..heard.clone() };
    let new = history.count_failures(&heard, MOST_COUNTED)?;
    Ok((new, history.count_failures(&all, MOST_COUNTED)?.saturating_sub(new)))
}

/// What a night's page is made from.
struct Told {
    campaigns: Vec<CampaignRow>,
    new: Vec<FailureRow>,
    counted: (u64, u64),
    all: Vec<FailureRow>,
    guarantees: Vec<TestGuarantee>,
}

fn told(history: &History, night: &str) -> Result<Option<Told>, HistoryError> {
    let campaigns = history.campaigns_of(night, CAMPAIGNS)?;
    if campaigns.is_empty() {
        return Ok(None);
    }
    let mut scenarios = Vec::new();
    for campaign in &campaigns {
        scenarios
            .extend(history.known_campaign(&campaign.name)?.into_iter().flat_map(|known| known.scenarios));
    }
    let seen = Filter { first_seen_then: false, not_suppressed: false, ..new_of(night, LISTED) };
    Ok(Some(Told {
        new: history.failures(&new_of(night, LISTED))?,
        counted: counted(history, night, campaigns.iter().map(|row| row.new_signatures).sum())?,
        all: history.failures(&seen)?,
        guarantees: guarantee::of_all(&guarantee::together(scenarios)),
        campaigns,
    }))
}

/// The page.
pub(super) async fn page(
    State(shared): State<Shared>,
    Path(night): Path<String>,
) -> Result<Answer<String>, Trouble> {
    let asked = night.clone();
    let told = shared.site.ask(move |history| told(history, &asked)).await?;
    let Some(told) = told else { return Err(Trouble::Nothing("Nothing ran in that night.")) };
    Ok(shell::page(&format!("Night of {night}"), "/trends", &body(&told, &shared.site)))
}

fn body(told: &Told, site: &Site) -> String {
    let sum = |number: fn(&CampaignRow) -> u64| told.campaigns.iter().map(number).sum::<u64>();
    let seconds: f64 =
        told.campaigns.iter().map(|row| row.updated.duration_since(row.started).as_secs_f64().max(0.0)).sum();
    let ran = sum(|row| row.iterations);
    let rate = if seconds > 0.0 { ran as f64 / seconds } else { 0.0 };
    let (new, quiet) = told.counted;
    let (suppressed, known): (Vec<FailureRow>, Vec<FailureRow>) = told
        .all
        .iter()
        .filter(|row| !told.new.iter().any(|one| one.signature == row.signature))
        .cloned()
        .partition(|row| row.suppressed.is_some());
    let mut out = String::from("<div class=\"tiles first\">");
    out += &tile(
        "New failures",
        &count(new),
        &match quiet {
            0 => format!("{} in all, known ones too", plural(sum(|row| row.failures), "failure")),
            n => format!("{} more suppressed", count(n)),
        },
    );
    out += &tile("Iterations", &compact(ran as f64), &format!("{} per second", compact(rate)));
    out += &tile("Ran for", &long_span(seconds), &plural(told.campaigns.len() as u64, "campaign"));
    out.push_str("</div>");
    match sum(|row| row.problems) {
        0 => {}
        number => {
            let _ = write!(
                out,
                "<p>{} Not everything could run: see the campaigns below.</p>",
                pill("ongoing", &plural(number, "problem"))
            );
        }
    }
    out.push_str("<h2>New</h2>");
    out += &match told.new.is_empty() {
        true => "<div class=\"card dim\">No failure that no night before had.</div>".to_owned(),
        false => failures::table(&told.new, &site.zone),
    };
    if !known.is_empty() {
        out.push_str("<h2>Known before</h2>");
        out += &failures::table(&known, &site.zone);
    }
    if !suppressed.is_empty() {
        out.push_str("<h2>Suppressed</h2>");
        out += &failures::table(&suppressed, &site.zone);
    }
    if told.all.len() as u64 >= LISTED {
        let _ = write!(out, "<p class=\"dim\">the {LISTED} most frequent of each</p>");
    }
    out.push_str("<h2>What this night guarantees</h2>");
    out += &guarantees(&told.guarantees);
    out.push_str("<h2>Campaigns</h2>");
    out + &campaigns::table(&told.campaigns, site)
}
