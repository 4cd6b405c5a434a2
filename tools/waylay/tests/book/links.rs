//! Links between pages, and the order of the book.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::{pages, root};

/// Where links of a text lead, without those in code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced || line.starts_with("    ") {
            continue;
        }
        // What is between backticks is no link.
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        let mut rest = plain.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            found.push(rest[..end].split(' ').next().unwrap_or_default().to_owned());
        }
    }
    found
}

/// The anchor that a heading gets, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let heading = line.trim_start_matches('#');
        if !fenced && heading.len() < line.len() && heading.starts_with(' ') {
            found.insert(anchor(heading));
        }
    }
    found
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let files = pages().into_iter().map(|page| format!("docs/{page}"));
    for file in files.chain(["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned)) {
        let path = root().join(&file);
        let text = fs::read_to_string(&path).unwrap();
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (target, wanted) = link.split_once('#').unwrap_or((&link, ""));
            let target = if target.is_empty() { path.clone() } else { path.parent().unwrap().join(target) };
            let there = target.exists();
            let is_page = target.extension().is_some_and(|extension| extension == "md");
            let has_anchor = wanted.is_empty()
                || (there && is_page && anchors(&fs::read_to_string(&target).unwrap()).contains(wanted));
            // A page is read in the book and in packages, too, which have nothing but docs/; there is no README there, either.
            let leaves = file.starts_with("docs/") && {
                let docs = root().join("docs").canonicalize().unwrap();
                target.canonicalize().is_ok_and(|target| !target.starts_with(docs))
            };
            if !there || !has_anchor || leaves || (file.starts_with("docs/") && target.ends_with("README.md"))
            {
                broken.push(format!("{file}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn the_summary_names_every_page_once() {
    let text = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let named = links(&text);
    let all: BTreeSet<String> = pages().into_iter().filter(|page| page != "SUMMARY.md").collect();
    let once: BTreeSet<String> = named.iter().cloned().collect();
    assert_eq!(once.len(), named.len(), "a page is named twice: {named:?}");
    assert_eq!(once, all, "docs/SUMMARY.md is the order of the book: every page has its place there");
    let settings = fs::read_to_string(root().join("book.toml")).unwrap();
    assert!(settings.contains("src = \"docs\"") && Path::new("docs").is_relative());
}

#[test]
fn the_readme_is_two_screens() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 110, "README.md has {lines} lines; what is more belongs into the book");
}
