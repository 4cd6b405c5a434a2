//! What a program wrote about itself before it ended: a failed assertion, of the C library or of macros of its own, a panic, or
//! an exception that nobody caught. Pure.

/// What it was, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastWords {
    /// A condition did not hold, or a Rust panic.
    Assertion(String),
    /// A C++ exception was not caught.
    Exception(String),
    /// The C++ runtime gave up for another reason: a thread that was neither joined nor detached, for example.
    Terminated(String),
}

impl LastWords {
    /// The words.
    pub fn text(&self) -> &str {
        match self {
            LastWords::Assertion(text) | LastWords::Exception(text) | LastWords::Terminated(text) => text,
        }
    }
}

/// The first of these in an error output. Assertions are those of libraries and languages, whose form is known.
pub fn last_words(stderr: &str) -> Option<LastWords> {
    let mut lines = stderr.lines();
    while let Some(line) = lines.next() {
        if line.contains("Assertion") && line.contains("failed") {
            return Some(LastWords::Assertion(line.trim().to_owned()));
        }
        if let Some((_, place)) = line.split_once("panicked at") {
            let place = place.trim().trim_end_matches(':');
            let message = lines.next().unwrap_or_default().trim();
            return Some(LastWords::Assertion(format!("panicked at {place}: {message}")));
        }
        if line.starts_with("terminate called") {
            let detail = lines.next().unwrap_or_default().trim();
            let text = format!("{} {detail}", line.trim()).trim_end().to_owned();
            let thrown = line.contains("after throwing");
            return Some(if thrown { LastWords::Exception(text) } else { LastWords::Terminated(text) });
        }
        if line.contains("uncaught exception") {
            return Some(LastWords::Exception(line.trim().to_owned()));
        }
    }
    None
}

/// What a program that aborted said of a condition that did not hold, in whatever words its own macros have: the last line
/// that speaks of an assertion, or says with a place in the source that a check failed.
pub fn own_assertion(stderr: &str) -> Option<String> {
    stderr.lines().map(str::trim).rfind(|line| speaks_of_an_assertion(line)).map(str::to_owned)
}

fn speaks_of_an_assertion(line: &str) -> bool {
    /// What does not hold when it is said to have failed.
    const CONDITIONS: [&str; 10] = [
        "check",
        "condition",
        "contract",
        "ensure",
        "expect",
        "invariant",
        "precondition",
        "postcondition",
        "require",
        "verify",
    ];
    let line = line.to_lowercase();
    let failed = ["fail", "violat", "not hold", "broken"].iter().any(|word| line.contains(word));
    let condition = CONDITIONS.iter().any(|word| line.contains(word));
    // A word of its own: `reassert` and `assertive` are none.
    let mut words = line.split(|c: char| !c.is_ascii_alphabetic());
    let assertion = words.any(|word| matches!(word, "assert" | "asserts" | "asserted" | "assertion"));
    assertion && (failed || names_a_place(&line) || line.contains(['(', ':']))
        || condition && failed && (names_a_place(&line) || line.contains("failed"))
}

/// Whether the line has `name.ending:12` or `name.ending(12)` in it.
fn names_a_place(line: &str) -> bool {
    let bytes = line.as_bytes();
    let is_place = |at: &usize| {
        let mark = matches!(bytes[*at], b':' | b'(') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        let name = bytes[..*at].rsplit(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'.')).next();
        mark && name.is_some_and(|name| name.contains(&b'.'))
    };
    (0..bytes.len()).any(|at| is_place(&at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_languages_say_what_it_was() {
        let said = |text: &str| last_words(text);
        let assertion = |text: &str| Some(LastWords::Assertion(text.to_owned()));
        let glibc = "x: x.c:3: main: Assertion `n == 2' failed.";
        assert_eq!(said(&format!("hello\n{glibc}\n")), assertion(glibc));
        assert_eq!(
            said("\nthread 'main' panicked at src/main.rs:3:5:\nindex out of bounds\nnote: run with"),
            assertion("panicked at src/main.rs:3:5: index out of bounds")
        );
        let thrown = "terminate called after throwing an instance of 'std::runtime_error'\n  what():  full\n";
        assert!(matches!(said(thrown), Some(LastWords::Exception(text)) if text.ends_with("what():  full")));
        let other = "libc++abi: terminating due to uncaught exception of type int\n";
        assert!(matches!(said(other), Some(LastWords::Exception(_))));
        let thread = "terminate called without an active exception\n";
        assert!(matches!(said(thread), Some(LastWords::Terminated(_))));
        assert_eq!(said("all is well\n"), None);
    }

    #[test]
    fn macros_of_a_program_speak_for_themselves() {
        for line in [
            "ASSERT(queue->head != NULL) at queue.c:17",
            "queue.c:17: assertion failed: head != NULL",
            "Check failed: size <= capacity",
            "F0101 12:00:00 store.cc:211] Check failed: it != end",
            "MY_ASSERT: n == 2 (program.c:9)",
            "invariant violated in list.cpp(40): next->prev == this",
            "precondition failed: lock is held",
        ] {
            assert_eq!(own_assertion(&format!("begin\n{line}\n")).as_deref(), Some(line));
        }
        for line in [
            "free(): invalid pointer",
            "out of memory in pool.c:12",
            "reasserting the lease: failed",
            "check ok",
        ] {
            assert_eq!(own_assertion(line), None, "{line}");
        }
    }
}
