//! Reading `KEY=VALUE` lists strictly, with errors that name the nearest right word.

use std::str::FromStr;

use thiserror::Error;

use crate::spec::NAMES;

/// Why a text is not a strategy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// No strategy has this name.
    #[error("unknown strategy {name:?}{}; known are {}", did_you_mean(hint.as_deref()), NAMES.join(", "))]
    UnknownStrategy {
        /// The name given.
        name: String,
        /// The nearest known one.
        hint: Option<String>,
    },
    /// The strategy has no such option.
    #[error("strategy {strategy} has no option {key:?}{}{}", did_you_mean(hint.as_deref()), list(known))]
    UnknownKey {
        /// The strategy.
        strategy: String,
        /// The key given.
        key: String,
        /// The nearest known one.
        hint: Option<String>,
        /// All of them.
        known: Vec<String>,
    },
    /// A value cannot be read.
    #[error("{strategy}: {key}={value:?} is not {expected}")]
    BadValue {
        /// The strategy.
        strategy: String,
        /// The key.
        key: String,
        /// The value given.
        value: String,
        /// What it should be.
        expected: String,
    },
    /// Something is not of the form key=value.
    #[error("{strategy}: {text:?} is not of the form key=value")]
    NotAField {
        /// The strategy.
        strategy: String,
        /// The text given.
        text: String,
    },
    /// An option is given twice.
    #[error("{strategy}: {key} is given twice")]
    Repeated {
        /// The strategy.
        strategy: String,
        /// The key.
        key: String,
    },
    /// Two options exclude each other.
    #[error("{strategy}: {key} cannot be combined with {other}")]
    Clash {
        /// The strategy.
        strategy: String,
        /// One option.
        key: String,
        /// The other.
        other: String,
    },
    /// A portfolio is a member of a portfolio.
    #[error("a portfolio cannot be a member of a portfolio: name its members instead")]
    NestedPortfolio,
    /// A member's weight cannot be read.
    #[error(
        "{0:?} is no weight of a member of a portfolio: a whole number from 1 to 1000, as in portfolio:pct*2+pos"
    )]
    Weight(String),
}

fn did_you_mean(hint: Option<&str>) -> String {
    hint.map_or(String::new(), |hint| format!(", did you mean {hint:?}?"))
}

fn list(known: &[String]) -> String {
    if known.is_empty() { "; it has none".to_owned() } else { format!("; it has {}", known.join(", ")) }
}

/// The known word nearest to the given one, if any is near: at most a third of its letters differ, or two.
pub(crate) fn nearest(given: &str, known: &[&str]) -> Option<String> {
    let limit = (given.chars().count() / 3).max(2);
    let distances = known.iter().map(|word| (edit_distance(given, word), *word));
    // A word of which nothing is left is not near, however short it is.
    let near = distances.filter(|&(distance, word)| distance <= limit && distance < word.chars().count());
    near.min_by_key(|&(distance, _)| distance).map(|(_, word)| word.to_owned())
}

/// Insertions, deletions and replacements between two words.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The options of one strategy, taken one by one; what is left at the end is an error.
pub(crate) struct Fields<'a> {
    strategy: &'a str,
    fields: Vec<(&'a str, &'a str)>,
    known: Vec<String>,
}

impl<'a> Fields<'a> {
    pub(crate) fn parse(strategy: &'a str, text: &'a str) -> Result<Fields<'a>, SpecError> {
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let field = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            let (key, value) = field.ok_or_else(|| SpecError::NotAField {
                strategy: strategy.to_owned(),
                text: part.to_owned(),
            })?;
            if fields.iter().any(|&(other, _)| other == key) {
                return Err(SpecError::Repeated { strategy: strategy.to_owned(), key: key.to_owned() });
            }
            fields.push((key, value));
        }
        Ok(Fields { strategy, fields, known: Vec::new() })
    }

    /// The value of a key, if it is given.
    pub(crate) fn take(&mut self, key: &str) -> Result<Option<&'a str>, SpecError> {
        self.known.push(key.to_owned());
        let place = self.fields.iter().position(|&(other, _)| other == key);
        Ok(place.map(|place| self.fields.swap_remove(place).1))
    }

    /// A whole number not below `least`.
    pub(crate) fn number<T: FromStr + PartialOrd + From<u8>>(
        &mut self,
        key: &str,
        least: u8,
    ) -> Result<Option<T>, SpecError> {
        let Some(text) = self.take(key)? else { return Ok(None) };
        match text.replace('_', "").parse::<T>() {
            Ok(number) if number >= T::from(least) => Ok(Some(number)),
            _ => Err(self.bad(key, text, &format!("a whole number from {least}"))),
        }
    }

    /// A number between 0 and 1, neither included.
    pub(crate) fn fraction(&mut self, key: &str) -> Result<Option<f64>, SpecError> {
        let Some(text) = self.take(key)? else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if number > 0.0 && number < 1.0 => Ok(Some(number)),
            _ => Err(self.bad(key, text, "a number between 0 and 1, such as 0.95")),
        }
    }

    /// One of several words.
    pub(crate) fn one_of<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, SpecError> {
        let Some(text) = self.take(key)? else { return Ok(None) };
        match words.iter().find(|(word, _)| *word == text) {
            Some(&(_, value)) => Ok(Some(value)),
            None => {
                let names: Vec<&str> = words.iter().map(|&(word, _)| word).collect();
                Err(self.bad(key, text, &format!("one of {}", names.join(", "))))
            }
        }
    }

    pub(crate) fn bad(&self, key: &str, value: &str, expected: &str) -> SpecError {
        SpecError::BadValue {
            strategy: self.strategy.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        }
    }

    pub(crate) fn clash(&self, key: &str, other: &str) -> SpecError {
        SpecError::Clash { strategy: self.strategy.to_owned(), key: key.to_owned(), other: other.to_owned() }
    }

    /// Fails when something was given that nobody took.
    pub(crate) fn end(self) -> Result<(), SpecError> {
        let Some(&(key, _)) = self.fields.first() else { return Ok(()) };
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        Err(SpecError::UnknownKey {
            strategy: self.strategy.to_owned(),
            key: key.to_owned(),
            hint: nearest(key, &known),
            known: self.known,
        })
    }
}
