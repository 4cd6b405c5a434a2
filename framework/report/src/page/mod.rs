//! Pages and their pieces: the same in a report that is a file and in a dashboard that is alive.
//!
//! Every piece is a function from data to HTML; all text of programs under test goes through [`Html`]. A page needs nothing
//! from outside, and a policy in its head forbids any script but [`SCRIPT`]: should a piece ever forget to escape, what
//! gets through is still not run.

mod failure;
mod files;
mod overview;
mod promise;
mod stacks;
mod tests_table;

use crate::escape::Html;

pub use failure::{failure_card, failure_details};
pub use files::FileLinks;
pub use overview::{environment, overview_tiles, pill, problems, tile, verdict_banner, verdict_words};
pub use promise::guarantees;
pub use tests_table::{tests_now, tests_table};

/// How pages look; light and dark.
pub const CSS: &str = include_str!("style.css");
/// What copies a line and opens what a link points to. Pages are whole without it.
pub const SCRIPT: &str = include_str!("script.js");
/// The only script that may run.
pub const SCRIPT_HASH: &str = "sha256-kkVj+no9DdxNQO+rGo56V3mnK6c3i27//Vt/GZMNpjA=";

/// A whole page: `body` is HTML.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         img-src data:; script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{}</title>\n<style>\n{CSS}</style></head>\n<body>\n\
         {body}\n<script>{SCRIPT}</script>\n</body></html>\n",
        Html(title)
    )
}

/// The bar at the top: `links` are addresses and words.
pub fn bar(title: &str, links: &[(&str, &str)]) -> String {
    let links: String =
        links.iter().map(|(to, word)| format!("<a href=\"{}\">{}</a>", Html(to), Html(word))).collect();
    format!(
        "<div class=\"bar\"><div><span class=\"mark\">Waylay</span><h1>{}</h1><nav>{links}</nav></div></div>",
        Html(title)
    )
}

/// A command with a button that copies it.
pub fn command(line: &str) -> String {
    format!(
        "<div class=\"run\"><pre>{}</pre><button class=\"copy\" type=\"button\">Copy</button></div>",
        Html(line)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_script() {
        use sha2::Digest;
        let hash = crate::escape::base64(&sha2::Sha256::digest(SCRIPT.as_bytes()));
        assert_eq!(SCRIPT_HASH, format!("sha256-{hash}"), "the script was changed: so must its hash");
    }

    #[test]
    fn a_page_needs_nothing_from_outside() {
        let page = document("x", "");
        for outside in ["http://", "https://", "//cdn", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
