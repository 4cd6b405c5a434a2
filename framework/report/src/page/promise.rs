//! What a night guarantees, per test: a sentence, the depths side by side, the formula one click away.

use std::fmt::Write as _;

use super::overview::pill;
use crate::escape::Html;
use crate::guarantee::{self, DepthGuarantee, TestGuarantee, meaning};

/// The guarantees of all tests. Tests about which the same is said stand together.
pub fn guarantees(all: &[TestGuarantee]) -> String {
    if all.is_empty() {
        return "<div class=\"card dim\">Nothing ran, so nothing is guaranteed.</div>".to_owned();
    }
    let (promised, free): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|one| one.depths.iter().any(|depth| depth.found.is_some()) || !one.formula.is_empty());
    let mut out = String::from("<div class=\"card guarantees\">");
    for one in promised {
        out += &promise(one);
    }
    for (sentence, group) in alike(&free) {
        let _ = write!(out, "<section class=\"promise\"><header>{}</header>", names(&group));
        let _ = write!(out, "<p>{}</p></section>", Html(sentence));
    }
    out.push_str("</div>");
    let depths: String =
        [1, 2, 3].map(|depth| format!("<li><b>Depth {depth}</b>: {}</li>", meaning(depth))).concat();
    let _ = write!(
        out,
        "<details class=\"more\"><summary>What is depth, and what do these numbers mean?</summary>\
         <p>The depth of a bug is how many orders of two events it needs at once:</p><ul class=\"plain\">{depths}</ul>\
         <p>The percentages are least probabilities: if the code had a bug of that depth which the test can notice, this \
         night would have found it with at least that probability. They say nothing about bugs that the test cannot \
         notice, and nothing about failures that were found.</p></details>"
    );
    out
}

/// Tests with the same sentence, apart from numbers of their own.
fn alike<'a>(tests: &[&'a TestGuarantee]) -> Vec<(&'a str, Vec<&'a TestGuarantee>)> {
    let mut groups: Vec<(&str, Vec<&TestGuarantee>)> = Vec::new();
    for test in tests {
        let key =
            |text: &'a str| -> String { text.chars().filter(|c| !c.is_ascii_digit() && *c != ',').collect() };
        match groups.iter_mut().find(|(sentence, _)| key(sentence) == key(&test.sentence)) {
            Some((_, group)) => group.push(test),
            None => groups.push((&test.sentence, vec![test])),
        }
    }
    groups
}

fn names(group: &[&TestGuarantee]) -> String {
    /// Names that are listed; a mix may have hundreds of tests.
    const MOST: usize = 12;
    let mut out = String::new();
    let names = guarantee::names(group);
    for name in names.iter().take(MOST) {
        let _ = write!(out, "<b>{}</b>", Html(name));
    }
    if names.len() > MOST {
        let _ = write!(out, "<span class=\"dim\">and {} more</span>", names.len() - MOST);
    }
    out += &pill("", group[0].mode.word());
    out
}

fn promise(one: &TestGuarantee) -> String {
    let mut out = String::from("<section class=\"promise grid\"><div><header>");
    let _ = write!(out, "<b>{}</b><span class=\"dim\">{}</span>", Html(&one.test), Html(&one.scenario));
    out += &pill("", one.mode.word());
    let _ = write!(out, "</header><p class=\"small\">{}</p>", Html(&one.sentence));
    out += &small_print(one);
    out.push_str("</div>");
    for depth in &one.depths {
        let class = match depth {
            DepthGuarantee { found: None, .. } => "none",
            depth if depth.is_sure() && one.broken.is_empty() => "sure",
            _ => "weak",
        };
        let left = match depth.time_text() {
            text if depth.found.is_some() => format!("95 %: {text}"),
            text => text,
        };
        let _ = write!(
            out,
            "<div class=\"depth {class}\">depth {}<b>{}</b>{}</div>",
            depth.depth,
            Html(&together(&depth.found_text())),
            Html(&left)
        );
    }
    out + "</section>"
}

/// A number and its percent sign stay on one line.
fn together(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// What must hold, and why that is so.
fn small_print(one: &TestGuarantee) -> String {
    let mut out = String::new();
    if !one.broken.is_empty() {
        let _ = write!(
            out,
            "<p class=\"small\">{} The numbers are no guarantee here: {}.</p>",
            pill("ongoing", "assumption broken"),
            Html(&one.broken.join("; "))
        );
    }
    let _ = write!(
        out,
        "<details class=\"more\"><summary>Formula and conditions</summary><pre>{}</pre>",
        Html(&one.formula.join("\n"))
    );
    if !one.conditions.is_empty() {
        let items: String = one.conditions.iter().map(|text| format!("<li>{}</li>", Html(text))).collect();
        let _ =
            write!(out, "<p class=\"small\">It holds for a bug if</p><ul class=\"plain small\">{items}</ul>");
    }
    out + "</details>"
}
