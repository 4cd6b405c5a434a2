//! Configurations that pages show beside the tutorials have only keys and values that are read. They are parts, so that a plugin or
//! a file that is not there is no mistake.

use std::fs;
use std::path::Path;

use waylay_driver::config::{self, Overrides, Source};

use crate::{pages, root};

/// Words of complaints that are about what is written, not about what is missing.
const STRANGE: [&str; 4] = ["unknown key", "unknown field", "invalid", "expected"];

/// The blocks of TOML that no tutorial runs, with the lines that they begin at: fenced ones, and indented ones that begin with a
/// table.
fn configurations(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut fence: Option<bool> = None;
    let mut indented = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(words) = line.strip_prefix("```") {
            fence = match fence {
                None => Some(words == "toml"),
                Some(_) => None,
            };
            if fence == Some(true) {
                found.push((number + 2, String::new()));
            }
            continue;
        }
        let code = line.strip_prefix("    ").filter(|_| fence.is_none());
        // A table, and no time of day in a line of a log.
        let begins = |line: &str| {
            line.strip_prefix('[')
                .is_some_and(|rest| rest.starts_with(|c: char| c == '[' || c.is_ascii_lowercase()))
        };
        if let Some(code) = code.filter(|code| !indented && begins(code)) {
            indented = true;
            found.push((number + 1, format!("{code}\n")));
        } else if let (true, Some(code), Some(last)) = (indented, code, found.last_mut()) {
            last.1 += &format!("{code}\n");
        } else if fence == Some(true) {
            found.last_mut().unwrap().1 += &format!("{line}\n");
        } else {
            indented = false;
        }
    }
    found
}

/// What a reader of that page's configurations does not know.
fn unknown(page: &str, text: &str) -> Option<String> {
    let source = || Source::new(page, text);
    let folder = Path::new("");
    let of_service = ["[[mix]]", "[[window]]", "[dashboard]", "[webhook]", "[fleet]", "[[suppression]]"];
    let complaint = match page {
        "compare.md" => waylay_compare::config::Config::parse(text).err().map(|error| error.to_string()),
        _ if of_service.iter().any(|table| text.contains(table)) => {
            let problems = waylay_service::config::parse(source(), folder, folder).err();
            problems.map(|problems| problems.render(false))
        }
        _ => {
            let problems = config::parse(source(), &Overrides::default()).err();
            problems.map(|problems| problems.render(false))
        }
    };
    complaint.filter(|text| STRANGE.iter().any(|word| text.contains(word)))
}

#[test]
fn configurations_of_every_page_have_keys_that_are_read() {
    let (mut wrong, mut read) = (Vec::new(), 0);
    for page in pages().into_iter().filter(|page| !page.starts_with("tutorials/")) {
        let text = fs::read_to_string(root().join("docs").join(&page)).unwrap();
        for (line, block) in configurations(&text) {
            read += 1;
            wrong.extend(unknown(&page, &block).map(|why| format!("docs/{page}:{line}:\n{why}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read >= 5, "only {read} were found: the documentation is written in another way");
    let strange = "[[scenario]]\nname = \"s\"\nduratoin = \"1s\"\n";
    assert!(unknown("x.md", strange).is_some(), "a key that nobody reads is noticed");
}
