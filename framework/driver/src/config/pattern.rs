//! Which tests of a plugin are meant: a name, or a pattern with `*` and `?`.

use std::fmt;

/// A test's name, in which `*` stands for any letters and `?` for any one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it can only be one name.
    pub fn is_name(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether a test of this name is meant.
    pub fn matches(&self, name: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = name.chars().collect();
        let (mut p, mut n) = (0, 0);
        // Where the last star was, and how much of the name it has taken so far: on a mismatch it takes one
        // more. Earlier stars never need to be tried again, so the time is at most pattern × name.
        let mut star = None;
        while n < name.len() {
            match pattern.get(p) {
                Some('*') => {
                    star = Some((p, n));
                    p += 1;
                }
                Some(&c) if c == '?' || c == name[n] => {
                    p += 1;
                    n += 1;
                }
                _ => {
                    let Some((at, taken)) = star else { return false };
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
            }
        }
        pattern[p..].iter().all(|c| *c == '*')
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching() {
        for (pattern, name, expected) in [
            ("channel", "channel", true),
            ("channel", "channels", false),
            ("channel-*", "channel-mpsc", true),
            ("channel-*", "channel-", true),
            ("channel-*", "channel", false),
            ("*", "", true),
            ("*", "anything", true),
            ("*-mpsc", "channel-mpsc-mpsc", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?at", "cat", true),
            ("?at", "at", false),
            ("ä?", "äö", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_stay_quick() {
        assert!(!Pattern::new("*a".repeat(200) + "b").matches(&"a".repeat(2000)));
    }
}
