//! What can break. This table is all that has to be said about a kind of failure; reports, SARIF, the order of lists, the
//! configuration of the service and what a page unfolds come from it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How bad a kind is for who reads a list of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something is wrong.
    Error,
    /// Something took longer than it may, and may be right all the same.
    Warning,
}

/// What has to be seen to understand a failure of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The stack of the thread that noticed it, which stands there only because it is looked at.
    Noticed,
    /// One stack: where it broke, or where what leaks was allocated. What other threads did is seldom of use.
    Place,
    /// The stack of the thread that is late or to blame, beside the others that run code of the test.
    OneOfMany,
    /// The stacks of several threads: none of them explains it alone.
    SeveralThreads,
}

macro_rules! kinds {
    ($($(#[$meta:meta])+ $name:ident = $word:literal, $severity:ident, $evidence:ident, $meaning:literal;)+) => {
        /// What broke; from the worst on.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Kind {
            $($(#[$meta])+ $name,)+
        }

        impl Kind {
            /// All kinds, the worst first.
            pub const ALL: &[Kind] = &[$(Kind::$name),+];
            /// The words of all kinds, the worst first.
            pub const WORDS: &[&str] = &[$($word),+];

            /// The word that people read and write.
            pub fn word(self) -> &'static str {
                match self {
                    $(Kind::$name => $word,)+
                }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self {
                    $(Kind::$name => Severity::$severity,)+
                }
            }

            /// What has to be seen to understand it.
            pub fn evidence(self) -> Evidence {
                match self {
                    $(Kind::$name => Evidence::$evidence,)+
                }
            }

            /// What broke, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Kind::$name => $meaning,)+
                }
            }
        }
    };
}

kinds! {
    /// A fatal signal, an abort, a process that vanished. Also what an empty record has: nothing better is known of it.
    #[default]
    Crash = "crash", Error, Place, "A fatal signal, an abort, or a process that vanished.";
    /// The test wrote over memory or descriptors that belong to Waylay.
    Corrupted = "corrupted", Error, OneOfMany, "The test wrote over memory or descriptors that belong to Waylay.";
    /// The test, or an assertion in the code under test, noticed something wrong; a panic.
    Assert = "assert", Error, Noticed, "A test reported it, an assertion in the code under test failed, or Rust panicked.";
    /// A C++ exception that nobody caught.
    Exception = "exception", Error, Noticed, "A C++ exception that nobody caught, or that left a test.";
    /// An exit status that is not good, or a test that ended its whole process.
    Exit = "exit", Error, Noticed, "An exit status that is not good, or a test that ended its whole process.";
    /// Threads wait for each other and use no processor time.
    Deadlock = "deadlock", Error, SeveralThreads, "Threads wait for each other and use no processor time.";
    /// Two accesses to the same memory, one of them writing, that nothing orders.
    Race = "race", Error, SeveralThreads, "Two accesses to the same memory, one of them writing, that nothing orders.";
    /// Threads use processor time and get nowhere.
    Livelock = "livelock", Error, SeveralThreads, "Threads use processor time and get nowhere.";
    /// One worker gets nowhere while others of its test do.
    Starvation = "starvation", Warning, OneOfMany, "One worker gets nowhere while others of its test do.";
    /// Memory, descriptors or threads that are not given back.
    Leak = "leak", Error, Place, "Memory, descriptors or threads that are not given back.";
    /// It came back, but later than it may.
    Slow = "slow", Warning, OneOfMany, "An iteration came back, but later than it may.";
}

impl Kind {
    /// Whether it consists in not getting on: what the threads do then says more than where one of them is.
    pub fn is_hang(self) -> bool {
        matches!(self, Kind::Deadlock | Kind::Livelock | Kind::Starvation)
    }

    /// The kind of that word.
    pub fn from_word(word: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of campaigns and reports hold the word, whoever writes it.
    #[test]
    fn a_kind_is_written_as_its_word() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
            assert_eq!(Kind::from_word(kind.word()), Some(*kind));
            assert!(kind.meaning().ends_with('.'), "{}", kind.meaning());
        }
        assert_eq!(Kind::from_word("hang"), None);
        let hangs: Vec<&str> =
            Kind::ALL.iter().filter(|kind| kind.is_hang()).map(|kind| kind.word()).collect();
        assert_eq!(hangs, ["deadlock", "livelock", "starvation"]);
        assert!(Kind::ALL.is_sorted(), "the order of the kinds is that of the list");
    }

    #[test]
    fn people_can_read_about_every_kind() {
        let reports = include_str!("../../../docs/reports.md");
        let (_, table) = reports.split_once("## Kinds").expect("a table of the kinds");
        let first_cells = table.lines().skip(1).take_while(|line| !line.starts_with("## "));
        let named: Vec<&str> = first_cells
            .filter_map(|line| line.split('|').nth(1))
            .flat_map(|cell| cell.split(','))
            .map(str::trim)
            .collect();
        for word in Kind::WORDS {
            assert!(named.contains(word), "docs/reports.md says nothing about `{word}`");
        }
    }
}
