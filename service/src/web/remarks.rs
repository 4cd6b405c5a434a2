//! What people say about a failure on its page, and how that is taken: acknowledged, a ticket, not to be heard of until a day.
//!
//! Only those who show the token may say something, and only from a page of this dashboard ([`super::guard`]).

use std::fmt::Write as _;

use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use jiff::civil::Date;
use waylay_history::remark::Remark;
use waylay_history::{History, HistoryError};
use waylay_report::escape::Html;

use super::guard::decode;
use super::shell::{self, part};
use super::{BODY_PATIENCE, LARGEST_BODY, Shared, Trouble};

/// Longer ones are no address, and no reason that somebody reads.
const LONGEST: usize = 500;
/// Nobody should forget a failure for longer.
const MOST_DAYS: i32 = 366;

/// What is known, and a form to change it for those who may.
pub(super) fn section(signature: &str, remark: Option<&Remark>, may_change: bool) -> String {
    let nothing = Remark::default();
    let remark = remark.unwrap_or(&nothing);
    let mut said = Vec::new();
    if remark.acknowledged {
        said.push("acknowledged".to_owned());
    }
    if let Some(ticket) = &remark.ticket {
        let ticket = Html(ticket);
        said.push(format!("ticket <a href=\"{ticket}\" rel=\"noopener noreferrer\">{ticket}</a>"));
    }
    if let Some(until) = remark.quiet_until {
        said.push(format!(
            "suppressed until {until}: {}",
            Html(remark.reason.as_deref().unwrap_or_default())
        ));
    }
    let mut out = String::from("<div class=\"card remark\">");
    let words =
        if said.is_empty() { "Nobody has said anything about it yet.".to_owned() } else { said.join(" · ") };
    let _ = write!(out, "<p class=\"said\">{words}</p>");
    if !may_change {
        out += "<p class=\"dim\">With a token (<code>token-file</code>) it can be acknowledged, suppressed and given a ticket \
                here.</p></div>";
        return out;
    }
    let _ = write!(
        out,
        "<form method=\"post\" action=\"/failure/{}/remark\">\
         <label><input type=\"checkbox\" name=\"acknowledged\"{}> acknowledged</label> \
         <label>ticket <input name=\"ticket\" type=\"url\" maxlength=\"{LONGEST}\" value=\"{}\"></label> \
         <label>suppress until <input name=\"until\" type=\"date\" value=\"{}\"></label> \
         <label>because <input name=\"reason\" maxlength=\"{LONGEST}\" value=\"{}\"></label> \
         <button>Save</button></form></div>",
        part(signature),
        if remark.acknowledged { " checked" } else { "" },
        Html(remark.ticket.as_deref().unwrap_or_default()),
        remark.quiet_until.map(|until| until.to_string()).unwrap_or_default(),
        Html(remark.reason.as_deref().unwrap_or_default()),
    );
    out
}

/// Takes what a form sent.
pub(super) async fn take(
    State(shared): State<Shared>,
    Path(signature): Path<String>,
    request: Request,
) -> Result<Response, Trouble> {
    let body = axum::body::to_bytes(request.into_body(), LARGEST_BODY);
    let body = match tokio::time::timeout(BODY_PATIENCE, body).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return Ok((StatusCode::PAYLOAD_TOO_LARGE, "too large\n").into_response()),
        Err(_) => {
            let close = [(header::CONNECTION, "close")];
            return Ok((StatusCode::REQUEST_TIMEOUT, close, "too slow\n").into_response());
        }
    };
    let now = Timestamp::now();
    let today = shared.site.zone.to_datetime(now).date();
    let remark = match read(&String::from_utf8_lossy(&body), now, today) {
        Ok(remark) => remark,
        Err(words) => {
            let body = format!("<div class=\"card\">{}</div>", Html(words));
            return Ok(
                (StatusCode::BAD_REQUEST, shell::page("Not saved", "/failures", &body)).into_response()
            );
        }
    };
    let (site, known) = (shared.site.clone(), signature.clone());
    let write = move || -> Result<bool, HistoryError> {
        let mut history = History::open(&site.out)?;
        let written = history.put_remark(&known, &remark)?;
        history.apply(&site.suppressions, now)?;
        Ok(written)
    };
    let written =
        tokio::task::spawn_blocking(write).await.map_err(|error| Trouble::Own(error.to_string()))?;
    match written.map_err(|error| Trouble::Own(error.to_string()))? {
        true => Ok(Redirect::to(&format!("/failure/{}", part(&signature))).into_response()),
        false => Err(Trouble::Nothing("There is no such failure.")),
    }
}

/// What a form says, or why it is not taken.
fn read(form: &str, now: Timestamp, today: Date) -> Result<Remark, &'static str> {
    let field = |name: &str| {
        let value = form.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).map(decode);
        value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let (ticket, reason, until) = (field("ticket"), field("reason"), field("until"));
    if [&ticket, &reason].into_iter().flatten().any(|text| text.chars().count() > LONGEST) {
        return Err("A ticket and a reason have at most 500 characters.");
    }
    if ticket.as_ref().is_some_and(|ticket| !ticket.starts_with("https://") && !ticket.starts_with("http://"))
    {
        return Err("A ticket is an address that begins with https:// or http://.");
    }
    let quiet_until = match until {
        None => None,
        Some(until) => Some(until.parse::<Date>().map_err(|_| "The day is not a date such as 2027-01-31.")?),
    };
    if let Some(until) = quiet_until {
        let days = (until - today).get_days();
        if !(0..=MOST_DAYS).contains(&days) {
            return Err("A failure is suppressed until a day of the next twelve months.");
        }
        if reason.is_none() {
            return Err("Say why it is suppressed: others will ask.");
        }
    }
    let reason = reason.filter(|_| quiet_until.is_some());
    Ok(Remark { acknowledged: field("acknowledged").is_some(), ticket, quiet_until, reason, at: now })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_taken_whole_or_not_at_all() {
        let today = jiff::civil::date(2026, 11, 18);
        let read = |form: &str| read(form, Timestamp::UNIX_EPOCH, today);
        let taken = read(
            "acknowledged=on&ticket=https%3A%2F%2Ftickets.example%2F7&until=2027-01-31&reason=known%2C+being+fixed",
        )
        .unwrap();
        assert!(taken.acknowledged);
        assert_eq!(taken.ticket.as_deref(), Some("https://tickets.example/7"));
        assert_eq!(taken.quiet_until, Some(jiff::civil::date(2027, 1, 31)));
        assert_eq!(taken.reason.as_deref(), Some("known, being fixed"));
        assert_eq!(read("ticket=&until=&reason=").unwrap(), Remark::default());
        let long = format!("reason={}&until=2026-12-01", "x".repeat(501));
        for bad in [
            "ticket=javascript:alert(1)",
            "until=soon&reason=x",
            "until=2026-12-01",
            "until=2026-11-17&reason=x",
            "until=2028-01-01&reason=x",
            &long,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
