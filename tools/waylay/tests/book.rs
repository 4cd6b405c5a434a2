//! The book in docs/: its links resolve, docs/SUMMARY.md names every page, the reference is what the code says, and every
//! command, file and answer in its tutorials is real.

#![cfg(target_os = "linux")]

#[path = "book/links.rs"]
mod links;
#[path = "book/reference.rs"]
mod reference;
mod support;
#[path = "book/tutorials.rs"]
mod tutorials;
#[path = "book/written.rs"]
mod written;

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page below docs/, relative to it.
fn pages() -> Vec<String> {
    let docs = root().join("docs");
    let (mut folders, mut found) = (vec![docs.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path.strip_prefix(&docs).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}
