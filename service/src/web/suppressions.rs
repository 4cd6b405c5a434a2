//! What nobody wants to hear of, until when, and what that kept quiet.

use std::fmt::Write as _;

use axum::extract::State;
use axum::response::Html as Answer;
use jiff::Timestamp;
use waylay_history::remark::Remark;
use waylay_history::suppression::{Hit, Suppression};
use waylay_report::escape::Html;
use waylay_report::numbers::count;
use waylay_report::page::pill;

use super::shell::{self, date, part};
use super::{Shared, Site, Trouble};

/// The page.
pub(super) async fn page(State(shared): State<Shared>) -> Result<Answer<String>, Trouble> {
    let (hits, said) = shared.site.ask(|history| Ok((history.hits()?, history.quiet_remarks()?))).await?;
    let mut body = String::from("<h2>Suppressions</h2>");
    body += &list(&shared.site);
    if !said.is_empty() {
        body.push_str("<h2>Suppressed on their pages</h2>");
        body += &on_pages(&said, &shared.site);
    }
    body.push_str("<h2>What they kept quiet</h2>");
    body += &kept_quiet(&hits, &shared.site);
    Ok(shell::page("Suppressions", "/failures", &body))
}

fn list(site: &Site) -> String {
    let all = site.suppressions.list();
    if all.is_empty() {
        return "<div class=\"card dim\">None in the configuration: <code>[[suppression]]</code> there keeps a kind, a test or a \
                signature quiet; one failure can be suppressed on its page.</div>"
            .to_owned();
    }
    let today = site.zone.to_datetime(Timestamp::now()).date();
    let mut out = String::from(
        "<div class=\"scroll\"><table><thead><tr><th>until</th><th>reason</th><th>of</th></tr></thead><tbody>",
    );
    for one in all {
        let over = if today > one.until { format!(" {}", pill("ongoing", "over")) } else { String::new() };
        let _ = write!(
            out,
            "<tr><td class=\"when\">{}{over}</td><td>{}</td><td>{}</td></tr>",
            one.until,
            Html(&one.reason),
            Html(&fits(one))
        );
    }
    out + "</tbody></table></div>"
}

fn on_pages(said: &[(String, Remark)], site: &Site) -> String {
    let today = site.zone.to_datetime(Timestamp::now()).date();
    let mut out = String::from(
        "<div class=\"scroll\"><table><thead><tr><th>until</th><th>reason</th><th>failure</th></tr></thead><tbody>",
    );
    for (signature, remark) in said {
        let Some(until) = remark.quiet_until else { continue };
        let over = if today > until { format!(" {}", pill("ongoing", "over")) } else { String::new() };
        let _ = write!(
            out,
            "<tr><td class=\"when\">{until}{over}</td><td>{}</td><td class=\"name\"><a href=\"/failure/{}\">{}</a></td></tr>",
            Html(remark.reason.as_deref().unwrap_or_default()),
            part(signature),
            Html(signature)
        );
    }
    out + "</tbody></table></div>"
}

fn fits(one: &Suppression) -> String {
    let words = [
        Some(one.kind.clone().map_or_else(|| "every failure".to_owned(), |kind| format!("every {kind}"))),
        one.test.as_ref().map(|test| format!("in {}", test.as_str())),
        one.signature.as_ref().map(|signature| format!("with signature {}", signature.as_str())),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn kept_quiet(hits: &[Hit], site: &Site) -> String {
    if hits.is_empty() {
        return "<div class=\"card dim\">Nothing yet. What a suppression keeps quiet is counted and listed here.</div>".to_owned();
    }
    let mut out = String::from(
        "<div class=\"scroll\"><table><thead><tr><th>failure</th><th>reason</th><th class=\"num\">times</th>\
         <th>last</th></tr></thead><tbody>",
    );
    for hit in hits {
        let _ = write!(
            out,
            "<tr><td class=\"name\"><a href=\"/failure/{}\">{}</a></td><td>{}</td><td class=\"num\">{}</td>\
             <td class=\"when\">{}</td></tr>",
            part(&hit.signature),
            Html(&hit.signature),
            Html(&hit.reason),
            count(hit.count),
            date(hit.last, &site.zone)
        );
    }
    out + "</tbody></table></div>"
}
