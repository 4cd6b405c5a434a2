//! Every command line that the documentation shows is one that this command takes: with these options, these subcommands and
//! enough arguments. What tutorials run is run by `tests/book.rs`; this reads the rest, which needs files that are not there.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::{Arguments, spelled_out};

/// Words that stand for a value of the reader's, where a value of that form is checked.
const STANDS_FOR: [(&str, &str); 6] =
    [("I/N", "1/2"), ("N", "7"), ("TIME", "5s"), ("SHELL", "bash"), ("FILE:LINE", "a.c:3"), ("HOST", "1")];

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The command lines of a page: those of blocks of code, and those between backticks in sentences.
fn written(text: &str) -> Vec<(usize, &str, bool)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            let line = trimmed.strip_prefix("$ ").unwrap_or(trimmed);
            let parts = line.split(" && ").map(str::trim_start);
            found.extend(
                parts.filter(|part| part.starts_with("waylay ")).map(|part| (number + 1, part, true)),
            );
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(
                spans.filter(|span| span.starts_with("waylay ")).map(|span| (number + 1, span, false)),
            );
        }
    }
    found
}

/// Of a line that names several subcommands at once, a line of each.
fn each(line: &str) -> Vec<String> {
    let Some(several) = line.split_whitespace().find(|word| word.contains("\\|")) else {
        return vec![line.to_owned()];
    };
    several.split("\\|").map(|one| line.replacen(several, one, 1)).collect()
}

/// The words of a line, without a comment or what a shell does with the rest.
fn words(line: &str) -> Vec<String> {
    let line = ["  ", " #", " | ", " || ", " > ", " 2>", ";"]
        .iter()
        .fold(line, |line, end| line.split_once(end).map_or(line, |(before, _)| before));
    let mut words = Vec::new();
    for (place, part) in line.split(['\'', '"']).enumerate() {
        match place % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    let real = |word: String| {
        let word = word.trim_matches(['[', ']']).to_owned();
        STANDS_FOR.iter().find(|(stands, _)| *stands == word).map_or(word, |(_, value)| (*value).to_owned())
    };
    words.into_iter().filter(|word| word != "…").map(real).collect()
}

#[test]
fn every_command_line_of_the_documentation_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files =
        ["README.md", "CONTRIBUTING.md", "examples/README.md"].map(|file| root.join(file)).to_vec();
    pages(&root.join("docs"), &mut files);
    let (mut wrong, mut read) = (Vec::new(), 0);
    for file in files {
        // It is made of what the command says of itself.
        if file.ends_with("reference/commands.md") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for (number, line, whole) in written(&text) {
            // The processes of a picture, and what the command hands over unread.
            if line.contains("──") || line.starts_with("waylay host") || line.starts_with("waylay randomizer")
            {
                continue;
            }
            read += 1;
            let understood = |line: &String| {
                Arguments::try_parse_from(spelled_out(words(line).into_iter().map(Into::into)))
            };
            let Some(error) = each(line).iter().find_map(|line| understood(line).err()) else { continue };
            let is_wrong = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => false,
                // A sentence may name an option alone.
                ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => true,
                _ => whole,
            };
            if is_wrong {
                let reason = error.to_string();
                let reason = reason.lines().next().unwrap_or_default();
                wrong.push(format!("{}:{number}: {line}\n    {reason}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {read} are not understood:\n{}", wrong.len(), wrong.join("\n"));
    assert!(read > 100, "only {read} were found: the documentation is written in another way");
}
