//! The list of failures, by signature, over all nights.

use std::fmt::Write as _;

use axum::extract::{Query, State};
use axum::response::Html as Answer;
use jiff::tz::TimeZone;
use serde::Deserialize;
use waylay_findings::Kind;
use waylay_history::query::{FailureRow, Filter, Order, Totals};
use waylay_report::escape::Html;
use waylay_report::model::FailureState;
use waylay_report::numbers::count;
use waylay_report::page::pill;

use super::shell::{self, date, part};
use super::{PAGE, Shared, Trouble};

/// Counting stops here: the exact number of a hundred thousand helps nobody.
pub(super) const MOST: u64 = 10_001;
const STATES: [FailureState; 4] =
    [FailureState::New, FailureState::Ongoing, FailureState::Rare, FailureState::Resolved];

/// What is asked for. All of it is text that anybody may have written.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Asked {
    #[serde(default)]
    state: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    test: String,
    #[serde(default)]
    q: String,
    #[serde(default)]
    order: String,
    #[serde(default)]
    page: u64,
}

impl Asked {
    fn filter(&self) -> Filter {
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let states = match self.state.as_str() {
            "open" => STATES[..3].to_vec(),
            word => STATES.into_iter().filter(|state| state.word() == word).collect(),
        };
        Filter {
            states,
            kind: some(&self.kind),
            test: some(&self.test),
            campaign: None,
            night: None,
            first_seen_then: false,
            not_suppressed: false,
            text: some(&self.q),
            order: match self.order.as_str() {
                "count" => Order::Count,
                "first" => Order::FirstSeen,
                _ => Order::LastSeen,
            },
            skip: self.page.min(MOST / PAGE) * PAGE,
            limit: PAGE,
        }
    }

    /// The address of this list with one thing changed.
    fn with(&self, name: &str, value: &str) -> String {
        let mut address = "/failures?".to_owned();
        for (key, old) in [
            ("state", &self.state),
            ("kind", &self.kind),
            ("test", &self.test),
            ("q", &self.q),
            ("order", &self.order),
        ] {
            let value = if key == name { value } else { old };
            if !value.is_empty() {
                let _ = write!(address, "{key}={}&", part(value));
            }
        }
        address
    }
}

/// The page.
pub(super) async fn page(
    State(shared): State<Shared>,
    Query(asked): Query<Asked>,
) -> Result<Answer<String>, Trouble> {
    let filter = asked.filter();
    let (rows, all, totals) = shared
        .site
        .ask(move |history| {
            let (rows, all) = history.find(&filter, MOST)?;
            Ok((rows, all, history.totals()?))
        })
        .await?;
    let mut body = filters(&asked, totals);
    body += &match (rows.is_empty(), totals == Totals::default()) {
        (false, _) => table(&rows, &shared.site.zone),
        (true, true) => "<div class=\"card dim\">No failure yet. What campaigns find is listed here, the newest first.</div>".to_owned(),
        (true, false) => "<div class=\"card dim\">Nothing that fits. <a href=\"/failures\">All failures</a></div>".to_owned(),
    };
    let page = asked.page.min(MOST / PAGE);
    body += &shell::turns(&asked.with("", ""), page, rows.len() as u64, all, MOST);
    Ok(shell::page("Failures", "/failures", &body))
}

fn filters(asked: &Asked, totals: Totals) -> String {
    let mut out = String::from("<div class=\"filters\"><nav>");
    let open = totals.new + totals.ongoing + totals.rare;
    for (value, word, number) in [
        ("", "all", open + totals.resolved + totals.suppressed),
        ("open", "open", open),
        ("new", "new", totals.new),
        ("ongoing", "ongoing", totals.ongoing),
        ("rare", "rare", totals.rare),
        ("resolved", "resolved", totals.resolved),
    ] {
        let current = if asked.state == value { " aria-current=\"true\"" } else { "" };
        let _ = write!(
            out,
            "<a href=\"{}\"{current}>{word} <span class=\"dim\">{}</span></a>",
            Html(&asked.with("state", value)),
            count(number)
        );
    }
    if totals.suppressed > 0 {
        let _ = write!(
            out,
            "<a href=\"/suppressions\">suppressed <span class=\"dim\">{}</span></a>",
            count(totals.suppressed)
        );
    }
    out.push_str("</nav><form method=\"get\" action=\"/failures\">");
    let _ = write!(
        out,
        "<input type=\"hidden\" name=\"state\" value=\"{}\"><input type=\"hidden\" name=\"test\" value=\"{}\">\
         <input type=\"search\" name=\"q\" value=\"{}\" placeholder=\"search\" aria-label=\"search\">",
        Html(&asked.state),
        Html(&asked.test),
        Html(&asked.q)
    );
    out += &choice(
        "kind",
        "every kind",
        &asked.kind,
        &Kind::ALL.iter().map(|kind| (kind.word(), kind.word())).collect::<Vec<_>>(),
    );
    out +=
        &choice("order", "last seen", &asked.order, &[("first", "first seen"), ("count", "most frequent")]);
    out.push_str("<button class=\"copy\">Show</button></form></div>");
    if !asked.test.is_empty() {
        let _ = write!(
            out,
            "<p>only of test <b>{}</b> · <a href=\"{}\">of all tests</a></p>",
            Html(&asked.test),
            Html(&asked.with("test", ""))
        );
    }
    out
}

fn choice(name: &str, none: &str, chosen: &str, values: &[(&str, &str)]) -> String {
    let mut out = format!("<select name=\"{name}\" aria-label=\"{name}\"><option value=\"\">{none}</option>");
    for (value, word) in values {
        let selected = if *value == chosen { " selected" } else { "" };
        let _ = write!(out, "<option value=\"{value}\"{selected}>{word}</option>");
    }
    out + "</select>"
}

/// Failures as rows.
pub(super) fn table(rows: &[FailureRow], zone: &TimeZone) -> String {
    if rows.is_empty() {
        return "<div class=\"card dim\">No failure.</div>".to_owned();
    }
    let mut out = String::from(
        "<div class=\"scroll\"><table class=\"list\"><thead><tr><th>state</th><th>failure</th><th class=\"num\">times</th>\
         <th class=\"num\">nights</th><th>first seen</th><th>last seen</th></tr></thead><tbody>",
    );
    for row in rows {
        let state = match row.suppressed {
            Some(_) => pill("", "suppressed"),
            None => pill(row.state.word(), row.state.word()),
        };
        let state = if row.acknowledged { format!("{state} {}", pill("", "acknowledged")) } else { state };
        let test = if row.test.is_empty() { "the host itself" } else { &row.test };
        let _ = write!(
            out,
            "<tr><td>{state}</td><td class=\"name\">{} <a href=\"/failure/{}\">{}</a><span class=\"line\">{}</span>",
            pill("kind", &row.kind),
            part(&row.signature),
            Html(test),
            Html(row.what.lines().next().unwrap_or_default())
        );
        if !row.place.is_empty() {
            let _ = write!(
                out,
                "<span class=\"line dim\" title=\"{}\">{}</span>",
                Html(&row.place),
                Html(last_parts(&row.place))
            );
        }
        let _ = write!(
            out,
            "</td><td class=\"num\" data-unit=\"×\">{}</td><td class=\"num\" data-unit=\"{}\">{}</td>\
             <td class=\"when\" data-word=\"first\">{}</td><td class=\"when\" data-word=\"last\">{}</td></tr>",
            count(row.count),
            if row.nights == 1 { "night" } else { "nights" },
            count(row.nights),
            date(row.first_seen, zone),
            date(row.last_seen, zone)
        );
    }
    out + "</tbody></table></div>"
}

/// The last parts of a path: where on the machine a source lies tells nobody which one it is.
fn last_parts(path: &str) -> &str {
    path.rmatch_indices(['/', '\\']).nth(2).map_or(path, |(at, _)| &path[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_by_its_last_parts() {
        assert_eq!(last_parts("/home/a/tests/map/src/lib.rs:7"), "map/src/lib.rs:7");
        assert_eq!(last_parts("C:\\work\\map\\src\\lib.rs:7"), "map\\src\\lib.rs:7");
        assert_eq!(last_parts("src/lib.rs:7"), "src/lib.rs:7");
    }
}
