//! What a test case said of its failure, read from what its framework printed: the words, the place, the kind. Pure.
//!
//! Every framework has a form of its own, and none is mistaken for another's, so all are tried: a case of a build folder does
//! not say which framework it uses.

use waylay_driver::failure::Kind;
use waylay_driver::last_words::{LastWords, last_words};

/// Lines of a message that are kept: the condition, and the values that it had.
const MOST_LINES: usize = 6;
/// Characters of a message that are kept.
const MOST_CHARACTERS: usize = 400;

/// The first failure that a case told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What broke.
    pub kind: Kind,
    /// The framework's words, in one line, without the place.
    pub text: String,
    /// `file:line`, if it is known.
    pub place: Option<String>,
}

impl Message {
    fn new(kind: Kind, place: Option<String>, lines: &[&str]) -> Message {
        let mut text = String::new();
        for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).take(MOST_LINES) {
            let joint = match text.chars().last() {
                None => "",
                Some(':') => " ",
                Some(_) => ", ",
            };
            text += joint;
            text += line;
        }
        if let Some((end, _)) = text.char_indices().nth(MOST_CHARACTERS) {
            text.truncate(end);
            text.push('…');
        }
        Message { kind, text, place }
    }

    /// The place and the words, for people.
    pub fn line(&self) -> String {
        match &self.place {
            Some(place) if self.text.is_empty() => place.clone(),
            Some(place) => format!("{place}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

/// The first failure that a case told of in its output or its error output.
pub fn message(stdout: &str, stderr: &str) -> Option<Message> {
    let texts = [stderr, stdout];
    let find = |read: fn(&[&str]) -> Option<Message>| {
        texts.iter().find_map(|text| read(&text.lines().collect::<Vec<_>>()))
    };
    find(panic)
        .or_else(|| find(google_test))
        .or_else(|| find(catch2))
        .or_else(|| find(catch2_console))
        .or_else(|| find(doctest))
        .or_else(|| find(boost))
        .or_else(|| words(stderr))
        .or_else(|| find(returned))
        .or_else(|| find(should_panic))
}

/// What C and C++ say without a framework.
fn words(stderr: &str) -> Option<Message> {
    match last_words(stderr)? {
        LastWords::Assertion(text) => {
            // `program: file.c:3: function: Assertion ...`
            let place = text.split(": ").find(|part| is_place(part)).map(str::to_owned);
            Some(Message::new(Kind::Assert, place, &[&text]))
        }
        LastWords::Exception(text) => Some(Message::new(Kind::Exception, None, &[&text])),
        LastWords::Terminated(_) => None,
    }
}

/// `thread 'name' (7) panicked at src/lib.rs:10:9:`, the words below it.
fn panic(lines: &[&str]) -> Option<Message> {
    let at = lines.iter().position(|line| line.contains("' panicked at ") || is_numbered_panic(line))?;
    let (_, rest) = lines[at].split_once("panicked at ")?;
    // Before Rust 1.73 the words stood in front of the place.
    if let Some((words, place)) = rest.rsplit_once(", ").filter(|(words, _)| words.starts_with('\'')) {
        let place = place.trim_end_matches(':');
        return Some(Message::new(Kind::Assert, Some(without_column(place)), &[words.trim_matches('\'')]));
    }
    let place = without_column(rest.trim().trim_end_matches(':'));
    let below = lines[at + 1..].iter();
    let said: Vec<&str> = below
        .copied()
        .take_while(|line| !line.starts_with("note: ") && !line.starts_with("stack backtrace:"))
        .collect();
    let end = said.iter().skip(1).position(|line| !is_value(line)).map_or(said.len(), |end| end + 1);
    Some(Message::new(Kind::Assert, Some(place), &said[..end]))
}

fn is_numbered_panic(line: &str) -> bool {
    line.starts_with("thread '") && line.contains(") panicked at ")
}

/// A value of an assertion, which stands below it.
fn is_value(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("left: ") || line.starts_with("right: ")
}

/// A test that returns an error says so itself.
fn returned(lines: &[&str]) -> Option<Message> {
    let said = lines.iter().find(|line| line.starts_with("Error: "))?;
    Some(Message::new(Kind::Assert, None, &[said]))
}

fn should_panic(lines: &[&str]) -> Option<Message> {
    let said = lines.iter().find_map(|line| line.strip_prefix("note: test did not panic as expected"))?;
    let place = said.strip_prefix(" at ").map(without_column);
    Some(Message::new(Kind::Assert, place, &["test did not panic as expected"]))
}

/// `file.cc:12: Failure`, the words below it until the next mark in brackets.
fn google_test(lines: &[&str]) -> Option<Message> {
    let at =
        lines.iter().position(|line| line.ends_with(": Failure") || line.ends_with(": error: Failure"))?;
    let place = lines[at].trim_end_matches(": Failure").trim_end_matches(": error");
    let below: Vec<&str> = lines[at + 1..]
        .iter()
        .copied()
        .take_while(|line| !line.trim().is_empty() && !line.starts_with('['))
        .collect();
    let thrown = below
        .first()
        .is_some_and(|line| line.contains("C++ exception") || line.contains("Unknown C++ exception"));
    let kind = if thrown { Kind::Exception } else { Kind::Assert };
    Some(Message::new(kind, normal_place(place), &below))
}

/// `file.cpp:12: failed: n == 2 for: 1 == 2`, the compact form.
fn catch2(lines: &[&str]) -> Option<Message> {
    let (place, said) = lines.iter().find_map(|line| {
        let (place, said) = line.split_once(": failed: ")?;
        is_place(place).then_some((place, said))
    })?;
    let kind = if said.starts_with("unexpected exception") { Kind::Exception } else { Kind::Assert };
    Some(Message::new(kind, normal_place(place), &[said]))
}

/// `file.cpp:12: FAILED:`, the condition and its expansion below, the form for people.
fn catch2_console(lines: &[&str]) -> Option<Message> {
    let at = lines.iter().position(|line| line.strip_suffix(": FAILED:").is_some_and(is_place))?;
    let place = lines[at].trim_end_matches(": FAILED:");
    let below: Vec<&str> = lines[at + 1..]
        .iter()
        .copied()
        .take_while(|line| !line.trim().is_empty() && !line.starts_with("====") && !line.starts_with("----"))
        .collect();
    let thrown = below.iter().any(|line| line.starts_with("due to unexpected exception"));
    let kind = if thrown { Kind::Exception } else { Kind::Assert };
    Some(Message::new(kind, normal_place(place), &below))
}

/// `file.cpp:12: ERROR: CHECK( n == 2 ) is NOT correct!`, values below it.
fn doctest(lines: &[&str]) -> Option<Message> {
    let (at, place, said) = lines.iter().enumerate().find_map(|(at, line)| {
        let (place, said) = line.split_once(": ERROR: ").or_else(|| line.split_once(": FATAL ERROR: "))?;
        is_place(place).then_some((at, place, said))
    })?;
    let mut said = vec![said];
    said.extend(lines[at + 1..].iter().copied().take_while(|line| line.starts_with("  ")));
    let kind = if said[0].contains("THREW exception") { Kind::Exception } else { Kind::Assert };
    Some(Message::new(kind, normal_place(place), &said))
}

/// `file.cpp(12): error: in "suite/case": check n == 2 has failed [1 != 2]`.
fn boost(lines: &[&str]) -> Option<Message> {
    let (at, place, said) = lines.iter().enumerate().find_map(|(at, line)| {
        let (place, said) =
            line.split_once(": error: in \"").or_else(|| line.split_once(": fatal error: in \""))?;
        place.ends_with(')').then_some((at, place, said.split_once("\": ")?.1))
    })?;
    if let Some(place) = normal_place(place) {
        return Some(Message::new(Kind::Assert, Some(place), &[said]));
    }
    // An exception has no place of its own; the last check before it has.
    let checkpoint =
        lines[at + 1..].iter().find_map(|line| line.split_once(": last checkpoint")).map(|(place, _)| place);
    Some(Message::new(Kind::Exception, checkpoint.and_then(normal_place), &[said]))
}

/// Whether the text is `name:12` or `name(12)`, with folders or without, and no time of day.
fn is_place(text: &str) -> bool {
    normal_place(text).is_some()
}

/// `file:line`, whichever way the framework writes it.
fn normal_place(text: &str) -> Option<String> {
    let text = text.trim();
    let (file, line) = match text.strip_suffix(')') {
        Some(text) => text.rsplit_once('(')?,
        None => text.rsplit_once(':')?,
    };
    let number: u32 = line.parse().ok()?;
    let unknown = file.ends_with("unknown file") || file.ends_with("unknown location");
    let named = file.contains(char::is_alphabetic) && !unknown;
    (named && number > 0).then(|| format!("{file}:{number}"))
}

/// `file:line:column` without the column.
fn without_column(place: &str) -> String {
    let mut parts = place.trim().rsplitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(column), Some(line), Some(file))
            if column.parse::<u32>().is_ok() && line.parse::<u32>().is_ok() =>
        {
            format!("{file}:{line}")
        }
        _ => place.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stdout: &str, stderr: &str) -> (Kind, String) {
        let message = message(stdout, stderr).expect("a message");
        (message.kind, message.line())
    }

    #[test]
    fn a_panic_is_read_with_its_values() {
        let text = "\nthread 'counter::adds' (21159) panicked at src/counter.rs:38:9:\nassertion `left == right` failed: one \
                    was lost\n  left: 1\n right: 2\nnote: run with `RUST_BACKTRACE=1` environment variable\n";
        let expected =
            "src/counter.rs:38: assertion `left == right` failed: one was lost, left: 1, right: 2".to_owned();
        assert_eq!(read("", text), (Kind::Assert, expected.clone()));
        let caught = format!("---- counter::adds stdout ----\n{text}\n\nfailures:\n    counter::adds\n");
        assert_eq!(read(&caught, ""), (Kind::Assert, expected));
        let old = "thread 'a' panicked at 'it broke, badly', src/lib.rs:3:5\nnote: run\n";
        assert_eq!(read("", old), (Kind::Assert, "src/lib.rs:3: it broke, badly".to_owned()));
        assert_eq!(
            read("", "Error: \"nothing is there\"\n"),
            (Kind::Assert, "Error: \"nothing is there\"".to_owned())
        );
    }

    #[test]
    fn the_first_panic_is_the_cause() {
        let text = "thread '<unnamed>' panicked at src/lib.rs:9:1:\nfull\nnote: run with\n\nthread 'a' panicked at \
                    src/lib.rs:20:30:\ncalled `Result::unwrap()` on an `Err` value: Any { .. }\n";
        assert_eq!(read("", text).1, "src/lib.rs:9: full");
    }

    #[test]
    fn every_framework_of_cpp_is_read() {
        let google = "[ RUN      ] A.B\na/b.cc:8: Failure\nExpected equality of these values:\n  counted()\n    Which is: 1\n  \
                      2\n[  FAILED  ] A.B (0 ms)\n";
        let expected = "a/b.cc:8: Expected equality of these values: counted(), Which is: 1, 2";
        assert_eq!(read(google, ""), (Kind::Assert, expected.to_owned()));
        let thrown = "unknown file: Failure\nC++ exception with description \"empty\" thrown in the test body.\n[  FAILED  ]";
        let expected = "C++ exception with description \"empty\" thrown in the test body.";
        assert_eq!(read(thrown, ""), (Kind::Exception, expected.to_owned()));
        assert_eq!(
            read("/a/b.cpp:9: failed: seen == 2 for: 1 == 2\n", ""),
            (Kind::Assert, "/a/b.cpp:9: seen == 2 for: 1 == 2".to_owned())
        );
        let console = "b.cpp:12: FAILED:\n  REQUIRE( n == 2 )\nwith expansion:\n  1 == 2\n\n====\n";
        assert_eq!(
            read(console, ""),
            (Kind::Assert, "b.cpp:12: REQUIRE( n == 2 ), with expansion: 1 == 2".to_owned())
        );
        let threw =
            "b.cpp:12: failed: unexpected exception with message: 'empty'; expression was: taken() == 7\n";
        assert_eq!(read(threw, "").0, Kind::Exception);
        let doctest =
            "d.cpp:9: FATAL ERROR: REQUIRE( seen == 2 ) is NOT correct!\n  values: REQUIRE( 1 == 2 )\n\n";
        let expected = "d.cpp:9: REQUIRE( seen == 2 ) is NOT correct!, values: REQUIRE( 1 == 2 )";
        assert_eq!(read(doctest, ""), (Kind::Assert, expected.to_owned()));
        let threw = "d.cpp:12: ERROR: CHECK( taken() == 7 ) THREW exception: \"empty\"\n";
        assert_eq!(read(threw, "").0, Kind::Exception);
        let boost = "b.cpp(10): error: in \"shared/counter\": check seen == 2 has failed [1 != 2]\n";
        assert_eq!(
            read(boost, ""),
            (Kind::Assert, "b.cpp:10: check seen == 2 has failed [1 != 2]".to_owned())
        );
        let threw = "unknown location(0): fatal error: in \"shared/box\": std::runtime_error: empty\nb.cpp(13): last \
                     checkpoint\n";
        assert_eq!(read(threw, ""), (Kind::Exception, "b.cpp:13: std::runtime_error: empty".to_owned()));
    }

    #[test]
    fn what_says_nothing_of_a_failure_is_no_message() {
        for text in ["", "all is well\n", "12:30: failed: no place\n", "[  PASSED  ] 1 test.\n"] {
            assert_eq!(message(text, ""), None, "{text}");
        }
        let assertion = "x: x.c:3: main: Assertion `n == 2' failed.\n";
        assert_eq!(message("", assertion).and_then(|one| one.place).as_deref(), Some("x.c:3"));
    }
}
