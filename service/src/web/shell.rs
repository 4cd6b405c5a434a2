//! What all pages share: the bar, the style, the script.

use axum::response::Html as Answer;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use waylay_report::escape::Html;
use waylay_report::page;

/// The pages that the bar leads to.
const LINKS: [(&str, &str); 4] =
    [("/", "Live"), ("/failures", "Failures"), ("/campaigns", "Campaigns"), ("/trends", "Trends")];

/// A wave that is held up.
pub(super) const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\">\
    <rect width=\"32\" height=\"32\" rx=\"7\" fill=\"#1d5fb4\"/><path d=\"M6 10h12M6 16h6m4 0h10M6 22h9m4 0h3\" \
    stroke=\"#fff\" stroke-width=\"3\" stroke-linecap=\"round\"/></svg>\n";

/// A page; `here` is its address in the bar, `body` is HTML.
pub(super) fn page(title: &str, here: &str, body: &str) -> Answer<String> {
    let links: String = LINKS
        .iter()
        .map(|(to, word)| {
            let current = if *to == here { " aria-current=\"page\"" } else { "" };
            format!("<a href=\"{to}\"{current}>{word}</a>")
        })
        .collect();
    document(
        title,
        &format!(
            "<div class=\"bar\"><div><a class=\"mark\" href=\"/\">Waylay</a><h1>{}</h1><nav>{links}</nav></div></div>\n\
             <main>{body}</main>",
            Html(title)
        ),
    )
}

fn document(title: &str, body: &str) -> Answer<String> {
    Answer(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{} · Waylay</title>\n\
         <link rel=\"icon\" href=\"/favicon.svg\"><link rel=\"stylesheet\" href=\"/style.css\">\
         <script src=\"/script.js\" defer></script></head>\n<body>\n{body}\n</body></html>\n",
        Html(title)
    ))
}

/// Asks for the token.
pub(super) fn sign_in(problem: &str) -> Answer<String> {
    let problem = if problem.is_empty() { String::new() } else { format!("<p>{}</p>", Html(problem)) };
    document(
        "Sign in",
        &format!(
            "<main><form class=\"card sign-in\" method=\"post\" action=\"/login\"><h2>Waylay</h2>{problem}\
             <label>Token <input type=\"password\" name=\"token\" autocomplete=\"current-password\" autofocus></label>\
             <button class=\"copy\">Sign in</button></form></main>"
        ),
    )
}

/// The style of reports, and what only the dashboard has.
pub(super) fn css() -> String {
    format!("{}{}", page::CSS, include_str!("dashboard.css"))
}

/// The script of reports, and what only the dashboard has.
pub(super) fn script() -> String {
    format!("{}{}", page::SCRIPT, include_str!("dashboard.js"))
}

/// A text as a part of an address.
pub(crate) fn part(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// Leaves before and after a part of a list.
pub(super) fn turns(base: &str, page: u64, shown: u64, all: u64, most: u64) -> String {
    let first = page * super::PAGE + 1;
    let of = if all >= most {
        format!("more than {}", waylay_report::numbers::count(most - 1))
    } else {
        waylay_report::numbers::count(all)
    };
    let range = match shown {
        0 => "nothing".to_owned(),
        _ => format!("{first} to {} of {of}", first + shown - 1),
    };
    let link = |to: u64, word: &str| format!("<a href=\"{}page={to}\">{word}</a>", Html(base));
    let back = if page > 0 { link(page - 1, "← newer") } else { String::new() };
    let on = if first + shown <= all { link(page + 1, "older →") } else { String::new() };
    format!("<p class=\"turns\">{back}<span class=\"dim\">{range}</span>{on}</p>")
}

/// A moment as tables show it.
pub(super) fn date(at: Timestamp, zone: &TimeZone) -> String {
    zone.to_datetime(at).strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_address_has_nothing_that_means_something_there() {
        assert_eq!(part("../a?b#c d\"'<ä"), "..%2Fa%3Fb%23c%20d%22%27%3C%C3%A4");
    }

    #[test]
    fn there_is_a_way_on_only_when_there_is_more() {
        assert!(!turns("/x?", 0, 50, 50, 1000).contains("older"));
        let middle = turns("/x?", 1, 50, 120, 1000);
        assert!(
            middle.contains("page=0") && middle.contains("page=2") && middle.contains("51 to 100 of 120")
        );
        assert!(turns("/x?", 0, 0, 0, 1000).contains("nothing"));
    }
}
