//! `${NAME}` and `${NAME:-default}` in the texts of a config: values from the environment. Pure but for the look-up.
//!
//! A variable that is not set and has no default is an error: a night that runs with an empty path is worse than one that
//! does not begin. `$${` stands for `${` itself.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::Diagnostic;

/// The value of a variable.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Replaces variables in every text of a table, at any depth.
pub(super) fn expand_table(table: &mut DeTable<'_>, look_up: Lookup<'_>, problems: &mut Vec<Diagnostic>) {
    for (_, value) in table.iter_mut() {
        expand_value(value, look_up, problems);
    }
}

/// Replaces variables in a value, at any depth.
pub(super) fn expand_value(
    value: &mut Spanned<DeValue<'_>>,
    look_up: Lookup<'_>,
    problems: &mut Vec<Diagnostic>,
) {
    let span = value.span();
    match value.get_mut() {
        DeValue::String(text) if text.contains("${") => match expand(text, look_up) {
            Ok(expanded) => *text = Cow::Owned(expanded),
            Err(problem) => problems.push(problem.at(span)),
        },
        DeValue::Array(array) => array.iter_mut().for_each(|value| expand_value(value, look_up, problems)),
        DeValue::Table(table) => expand_table(table, look_up, problems),
        _ => {}
    }
}

/// What is wrong with a text.
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    Unset(String),
    Unclosed,
    Name(String),
}

impl Problem {
    fn at(self, span: std::ops::Range<usize>) -> Diagnostic {
        let (message, help) = match self {
            Self::Unset(name) => (
                format!("the environment variable `{name}` is not set"),
                format!("set it, or write ${{{name}:-DEFAULT}}"),
            ),
            Self::Unclosed => {
                ("`${` without `}`".to_owned(), "write $${ for the letters themselves".to_owned())
            }
            Self::Name(name) => (
                format!("`{name}` cannot be a variable's name"),
                "letters, digits and _, no digit first".to_owned(),
            ),
        };
        Diagnostic::error(span.into(), message).help(help)
    }
}

fn expand(text: &str, look_up: Lookup<'_>) -> Result<String, Problem> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            expanded.push_str(&rest[..at - 1]);
            expanded.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        expanded.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let end = inside.find('}').ok_or(Problem::Unclosed)?;
        let (name, default) = match inside[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inside[..end], None),
        };
        let letters = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !letters || name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) {
            return Err(Problem::Name(name.to_owned()));
        }
        // As in shells, `:-` also stands in for a variable that is set to nothing.
        let value = look_up(name).filter(|value| default.is_none() || !value.is_empty());
        match value.or(default.map(str::to_owned)) {
            Some(value) => expanded.push_str(&value),
            None => return Err(Problem::Unset(name.to_owned())),
        }
        rest = &inside[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, Problem> {
        expand(text, &|name| match name {
            "HOME" => Some("/home/me".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_are_replaced_and_defaults_stand_in() {
        assert_eq!(expanded("${HOME}/x").as_deref(), Ok("/home/me/x"));
        assert_eq!(expanded("a${HOME}b${HOME}").as_deref(), Ok("a/home/meb/home/me"));
        assert_eq!(expanded("${NONE:-8h}").as_deref(), Ok("8h"));
        assert_eq!(expanded("${NONE:-}").as_deref(), Ok(""));
        assert_eq!(expanded("${EMPTY:-8h}").as_deref(), Ok("8h"));
        assert_eq!(expanded("${EMPTY}").as_deref(), Ok(""));
        assert_eq!(expanded("$HOME $$ $${HOME}").as_deref(), Ok("$HOME $$ ${HOME}"));
    }

    #[test]
    fn what_cannot_be_replaced_is_a_problem() {
        assert_eq!(expanded("${NONE}"), Err(Problem::Unset("NONE".to_owned())));
        assert_eq!(expanded("${HOME"), Err(Problem::Unclosed));
        assert_eq!(expanded("${}"), Err(Problem::Name(String::new())));
        assert_eq!(expanded("${1A}"), Err(Problem::Name("1A".to_owned())));
    }
}
