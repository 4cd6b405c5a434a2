//! Runs the tutorials. A fenced block says after its language what it is:
//!
//! - `c,file=till.c`: a file, written into the folder of the page;
//! - `sh,run`, `sh,run,exit=1`, `sh,run,exit=any`: commands, and how the last of them ends;
//! - `sh,serve`: a command that runs until it is asked to end, which it is when it has said what follows;
//! - `text,says`: lines that the block before it printed; `…` stands for anything within a line.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::root;
use crate::support::{Ran, Workplace};

struct Block {
    words: Vec<String>,
    text: String,
}

impl Block {
    fn value(&self, key: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn is(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("```") {
            let text: String = lines
                .by_ref()
                .take_while(|line| !line.starts_with("```"))
                .map(|line| format!("{line}\n"))
                .collect();
            found.push(Block { words: words.split(',').map(str::to_owned).collect(), text });
        }
    }
    found
}

/// A shell that finds the command that was just built, and ends at the first line that fails.
fn shell(place: &Workplace, text: &str) -> Command {
    let built = Path::new(env!("CARGO_BIN_EXE_waylay")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .args(["-ec", text])
        .current_dir(place.path())
        .env("PATH", format!("{}:{path}", built.display()))
        .env("WAYLAY_INCLUDE", root().join("framework/abi/include"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("NO_COLOR");
    command
}

fn lacks<'t>(said: &str, wanted: &'t str) -> Option<&'t str> {
    let holds = |line: &str, wanted: &str| {
        let mut rest = line;
        wanted.split('…').all(|piece| match rest.find(piece.trim()) {
            Some(at) => {
                rest = &rest[at + piece.trim().len()..];
                true
            }
            None => false,
        })
    };
    wanted.lines().find(|wanted| !said.lines().any(|line| holds(line, wanted)))
}

fn serve(place: &Workplace, block: &Block, says: &str) -> Ran {
    let running = place.start_command(shell(place, &format!("exec {}", block.text.trim())));
    running.until("what it says", |running| lacks(&running.stderr(), says).is_none());
    running.ask_to_end();
    running.finish()
}

fn follow(page: &str) {
    follow_in(&Workplace::new(), page);
}

/// The five things that people do first, with the files beside the page.
#[test]
fn examples() {
    let place = Workplace::new();
    copy(&root().join("examples"), place.path());
    follow_in(&place, "../examples/README.md");
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn follow_in(place: &Workplace, page: &str) {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let mut said = String::new();
    let all = blocks(&text);
    for (number, block) in all.iter().enumerate() {
        let whole = &block.text;
        if let Some(file) = block.value("file") {
            let path = place.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            // Several tests at the same time cannot have one port.
            fs::write(path, whole.replace("127.0.0.1:7979", "127.0.0.1:0")).unwrap();
        } else if block.is("run") {
            let ran = place.start_command(shell(place, whole)).finish();
            let wanted = block.value("exit").unwrap_or("0");
            said = format!("{}\n{}", ran.stdout, ran.stderr);
            assert!(wanted == "any" || ran.code() == wanted.parse().ok(), "{page}: {whole}{said}");
        } else if block.is("serve") {
            let says = all.get(number + 1).filter(|next| next.is("says")).map_or("", |next| &next.text);
            let ran = serve(place, block, says);
            assert!(matches!(ran.code(), Some(0 | 1)), "{page}: {whole}{}", ran.stderr);
            said = ran.stderr;
        } else if block.is("says") {
            assert_eq!(lacks(&said, whole), None, "{page} says something else:\n{said}");
        } else {
            panic!("{page}: a block that is not run says nothing about what is true: {:?}", block.words);
        }
    }
    assert!(all.iter().any(|block| block.is("run")), "{page} has commands");
}

macro_rules! pages {
    ($($test:ident: $page:literal),* $(,)?) => {
        $(#[test] fn $test() { follow($page); })*
        const FOLLOWED: &[&str] = &[$($page),*];
    };
}

pages! {
    first_bug: "first-bug.md",
    tutorial_queue: "tutorials/queue.md",
    tutorial_flaky_cargo_test: "tutorials/flaky-cargo-test.md",
    tutorial_deadlock: "tutorials/deadlock.md",
    tutorial_leak: "tutorials/leak.md",
    tutorial_nightly: "tutorials/nightly.md",
    tutorial_fleet: "tutorials/fleet.md",
}

#[test]
fn every_tutorial_is_followed() {
    let written =
        crate::pages().into_iter().filter(|page| page.starts_with("tutorials/") || page == "first-bug.md");
    for page in written {
        assert!(FOLLOWED.contains(&page.as_str()), "{page} is not in the list above");
    }
}
