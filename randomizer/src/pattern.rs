//! Thread names, or patterns of them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A thread's name, in which `*` stands for any letters and `?` for any one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern with this text.
    pub fn new(text: impl Into<String>) -> Pattern {
        Pattern(text.into())
    }

    /// Whether a thread of this name is meant.
    pub fn matches(&self, name: &str) -> bool {
        // `reached[i]`: the first i letters of the name are matched by the pattern so far. One pass per letter of
        // the pattern, so stars cannot make it slow.
        let letters: Vec<char> = name.chars().collect();
        let mut reached = vec![false; letters.len() + 1];
        reached[0] = true;
        for part in self.0.chars() {
            if part == '*' {
                for i in 0..letters.len() {
                    reached[i + 1] |= reached[i];
                }
            } else {
                for i in (0..letters.len()).rev() {
                    reached[i + 1] = reached[i] && (part == '?' || part == letters[i]);
                }
                reached[0] = false;
            }
        }
        reached[letters.len()]
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching() {
        for (pattern, name, expected) in [
            ("worker", "worker", true),
            ("worker", "workers", false),
            ("worker-*", "worker-3", true),
            ("worker-*", "worker-", true),
            ("worker-*", "worker", false),
            ("*", "", true),
            ("?", "", false),
            ("*-3", "worker-3-3", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("w?rker", "wörker", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }
}
