//! One failure: everything that its evidence tells, and the nights that had it.

use std::fmt::Write as _;

use axum::extract::{Path, State};
use axum::response::Html as Answer;
use waylay_history::gather::KnownFailure;
use waylay_history::state::Sightings;
use waylay_report::escape::Html;
use waylay_report::model::FailureState;
use waylay_report::numbers::{count, plural};
use waylay_report::page::{FileLinks, failure_details, pill};

use super::shell::{self, date, part};
use super::{Shared, Site, Trouble, remarks};

/// Campaigns that are listed.
const LISTED: usize = 30;

/// The page.
pub(super) async fn page(
    State(shared): State<Shared>,
    Path(signature): Path<String>,
) -> Result<Answer<String>, Trouble> {
    let (known, reasons, remark) = shared
        .site
        .ask(move |history| {
            let known = history.known_failure(&signature)?;
            Ok((known, history.reasons(&signature)?, history.remark(&signature)?))
        })
        .await?;
    let Some(known) = known else { return Err(Trouble::Nothing("There is no such failure.")) };
    let failure = &known.failure;
    let title = format!("{} in {}", failure.kind, failure.subject());
    let state = match &failure.suppressed {
        Some(_) => pill("", "suppressed"),
        None => pill(failure.state.word(), failure.state.word()),
    };
    let mut body =
        format!("<div class=\"state\">{state}<span>{}</span></div>", Html(&words(failure.state, reasons)));
    body += &remarks::section(&failure.id, remark.as_ref(), shared.guard.has_token());
    let base =
        known.campaign.as_ref().map(|campaign| format!("/files/{}/{}/", part(campaign), part(&failure.id)));
    let bundle = base.as_ref().map(|base| format!("{base}{}", super::download::BUNDLE));
    let links = FileLinks { base: base.as_deref(), bundle: bundle.as_deref() };
    let _ = write!(body, "<div class=\"card evidence\">{}</div>", failure_details(failure, links));
    body += &nights(&known, &shared.site);
    Ok(shell::page(&title, "/failures", &body))
}

/// Why it stands so.
fn words(state: FailureState, reasons: Option<Sightings>) -> String {
    let Some(reasons) = reasons else { return String::new() };
    let seen = format!(
        "seen in {} of {} in which its test ran",
        count(u64::from(reasons.seen)),
        plural(u64::from(reasons.span + reasons.clean), "night")
    );
    let clean = plural(u64::from(reasons.clean), "clean night");
    match state {
        FailureState::New => "the last night was the first that had it".to_owned(),
        FailureState::Resolved => match reasons.runs {
            Some(runs) => format!("{seen}; {clean} since with {} without it", plural(runs.clean, "run")),
            None => format!("{seen}; {clean} since would be chance with {:.1} %", reasons.chance() * 100.0),
        },
        _ if reasons.clean > 0 => {
            format!("{seen}; {clean} so far, {} would make it resolved", missing(reasons))
        }
        _ => seen,
    }
}

/// What has to come before it is resolved.
fn missing(reasons: Sightings) -> String {
    let runs = reasons.runs_to_resolve();
    let runs = (runs > 0).then(|| format!("{} more {}", count(runs), if runs == 1 { "run" } else { "runs" }));
    let nights = Some(reasons.nights_to_resolve()).filter(|nights| *nights > 0);
    match (nights.map(|nights| format!("{nights} more")), runs) {
        (Some(nights), Some(runs)) => format!("{nights} and {runs}"),
        (nights, runs) => nights.or(runs).unwrap_or_default(),
    }
}

fn nights(known: &KnownFailure, site: &Site) -> String {
    let mut out = String::from(
        "<h2>Campaigns that had it</h2><div class=\"scroll\"><table class=\"list\"><thead><tr><th>night</th><th>campaign</th>\
         <th class=\"num\">times</th><th>last seen</th><th>evidence</th></tr></thead><tbody>",
    );
    for one in known.sightings.iter().take(LISTED) {
        let _ = write!(
            out,
            "<tr><td class=\"when\"><a href=\"/night/{}\">{}</a></td><td class=\"name\"><a href=\"/campaign/{}\">{}</a></td>\
             <td class=\"num\" data-unit=\"×\">{}</td><td class=\"when\" data-word=\"last\">{}</td>\
             <td class=\"when\">{}</td></tr>",
            part(&one.night),
            Html(&one.night),
            part(&one.campaign),
            Html(&one.campaign),
            count(one.count),
            date(one.last_seen, &site.zone),
            if one.evidence { "kept" } else { "gone" }
        );
    }
    out += "</tbody></table></div>";
    if known.sightings.len() > LISTED {
        let _ = write!(out, "<p class=\"dim\">and {} before</p>", known.sightings.len() - LISTED);
    }
    out
}

#[cfg(test)]
mod tests {
    use waylay_history::state::Runs;

    use super::*;

    #[test]
    fn what_is_missing_is_said_in_nights_and_in_runs() {
        let away = |clean, runs| Sightings {
            seen: 1,
            span: 1,
            clean,
            runs: Some(Runs { failed: 1, span: 45, clean: runs }),
        };
        let told = |reasons: Sightings| words(reasons.state(), Some(reasons));
        assert_eq!(
            told(away(1, 13)),
            "seen in 1 of 2 nights in which its test ran; 1 clean night so far, 2 more and 1,442 more runs would make it \
             resolved"
        );
        assert!(told(away(9, 1454)).ends_with("9 clean nights so far, 1 more run would make it resolved"));
        assert!(told(away(2, 2000)).ends_with("2 clean nights so far, 1 more would make it resolved"));
        assert!(told(away(3, 1455)).ends_with("3 clean nights since with 1,455 runs without it"));
        let of_no_test = Sightings { runs: None, ..away(3, 0) };
        assert!(told(of_no_test).contains("3 clean nights since would be chance with"));
    }
}
