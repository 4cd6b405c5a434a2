//! The files of a failure's folder: what can be looked at, and everything as one.

use std::fmt::Write as _;

use crate::escape::Html;
use crate::model::{EvidenceFile, Failure};
use crate::numbers::bytes;

/// Where the files of a failure can be had.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileLinks<'a> {
    /// What comes before a file's name in its address; none when files cannot be had through the page.
    pub base: Option<&'a str>,
    /// The address of everything in one file.
    pub bundle: Option<&'a str>,
}

/// The folder, its files, and below them those of the times that it came again.
pub(super) fn files(failure: &Failure, links: FileLinks<'_>) -> String {
    // An empty file tells nothing that its absence would not.
    let told: Vec<&EvidenceFile> = failure.files.iter().filter(|file| file.bytes > 0).collect();
    if told.is_empty() && links.bundle.is_none() {
        return String::new();
    }
    let mut out = format!("<h3>Files</h3><p class=\"mono small\">{}</p>", Html(&failure.folder));
    if let Some(bundle) = links.bundle {
        let _ = write!(out, "<p><a href=\"{}\"><b>Download everything as one zip</b></a></p>", Html(bundle));
    }
    let (again, first): (Vec<&EvidenceFile>, Vec<&EvidenceFile>) =
        told.into_iter().partition(|file| file.name.contains('/'));
    out += &list(&first, links);
    if !again.is_empty() {
        let _ = write!(
            out,
            "<details class=\"more\"><summary>Files of later times</summary>{}</details>",
            list(&again, links)
        );
    }
    out
}

fn list(files: &[&EvidenceFile], links: FileLinks<'_>) -> String {
    let mut out = String::from("<ul class=\"files small\">");
    for file in files {
        let name = match links.base {
            Some(base) => format!("<a href=\"{}{}\">{}</a>", Html(base), Html(&file.name), Html(&file.name)),
            None => format!("{}", Html(&file.name)),
        };
        let _ = write!(out, "<li>{name} <span class=\"dim\">{}</span></li>", bytes(file.bytes));
    }
    out + "</ul>"
}
