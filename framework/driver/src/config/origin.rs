//! Where each value of the effective config comes from, as a comment behind it: a line of a file, `--set`, `[defaults]`, or a
//! default of Waylay. Pure.

use std::collections::HashMap;
use std::fmt::Write;

use toml::de::{DeTable, DeValue};

use super::source::{Source, Span};

/// Where the values of a document stand, by their paths, such as `scenario[0].test[1].workers`.
pub(super) type Places = HashMap<String, Span>;

/// The places of a document.
pub(super) fn places(document: &DeTable<'_>) -> Places {
    let mut places = Places::new();
    add_table("", document, &mut places);
    places
}

fn add_table(path: &str, table: &DeTable<'_>, places: &mut Places) {
    for (key, value) in table.iter() {
        let path = joined(path, key.get_ref());
        places.insert(path.clone(), key.span().into());
        match value.get_ref() {
            DeValue::Table(table) => add_table(&path, table, places),
            DeValue::Array(array) => {
                for (index, element) in array.iter().enumerate() {
                    if let DeValue::Table(table) = element.get_ref() {
                        add_table(&format!("{path}[{index}]"), table, places);
                    }
                }
            }
            _ => {}
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The printed config with an origin behind each value. What is printed is regular: a header or `key = value` on each line.
pub(super) fn annotate(printed: &str, places: &Places, source: &Source) -> String {
    let mut text = String::with_capacity(printed.len() * 2);
    let mut tables = Tables::default();
    let width = printed
        .lines()
        .filter(|line| line.contains(" = "))
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    // A single long list must not push every comment out of sight.
    let width = width.min(60);
    for line in printed.lines() {
        let trimmed = line.trim_start();
        text.push_str(line);
        if let Some(header) = trimmed.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]")) {
            tables.enter(header, true);
        } else if let Some(header) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            tables.enter(header, false);
        } else if let Some((key, _)) = trimmed.split_once(" = ") {
            let origin = origin(&tables.here, key.trim_matches('"'), places, source);
            let pad = width.saturating_sub(line.chars().count());
            // Writing to a string does not fail.
            let _ = write!(text, "{:pad$}  # {origin}", "");
        }
        text.push('\n');
    }
    text
}

fn origin(table: &str, key: &str, places: &Places, source: &Source) -> String {
    let place = |path: &str| {
        let at = places.get(path)?.start;
        let name = source.name_at(at);
        Some(match name.starts_with("--set ") {
            true => name.to_owned(),
            false => format!("{name}:{}", source.position(at).line),
        })
    };
    let inherited = || {
        let (outer, inner) = table.rsplit_once('.')?;
        match (inner, outer) {
            ("randomizer", _) => place(&joined("randomizer", key)),
            _ if inner.starts_with("test[") || inner.starts_with("contains[") => {
                place(&joined("defaults", key))
            }
            _ => None,
        }
    };
    place(&joined(table, key)).or_else(inherited).unwrap_or_else(|| "default".to_owned())
}

/// The table that printed lines belong to.
#[derive(Default)]
struct Tables {
    /// Its path with the numbers of list members.
    here: String,
    /// Members of each list so far, by the list's path.
    members: HashMap<String, usize>,
}

impl Tables {
    /// A header, such as `scenario.test`: the members that were entered last are meant.
    fn enter(&mut self, header: &str, member: bool) {
        let mut path = String::new();
        let mut segments = header.split('.').peekable();
        while let Some(segment) = segments.next() {
            path = joined(&path, segment);
            let last = segments.peek().is_none();
            if last && member {
                let count = self.members.entry(path.clone()).or_default();
                *count += 1;
            }
            if (!last || member)
                && let Some(count) = self.members.get(&path)
            {
                path = format!("{path}[{}]", count - 1);
            }
        }
        self.here = path;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_traced_to_their_lines() {
        let text = "[defaults]\nworkers = 2\n[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = 'p'\n[[scenario]]\nname = 'b'\n\
                    [[scenario.test]]\nplugin = 'q'\nworkers = 3\n";
        let source = Source::new("n.toml", text);
        let document = DeTable::parse(text).expect("fine");
        let printed = "[[scenario]]\nname = \"a\"\n  [[scenario.test]]\n  workers = 2\n  leaks = true\n\
                       [[scenario]]\nname = \"b\"\n  [[scenario.test]]\n  workers = 3\n";
        let annotated = annotate(printed, &places(document.get_ref()), &source);
        let origins: Vec<_> = annotated.lines().filter_map(|line| line.split_once("  # ")).collect();
        let origins: Vec<_> = origins.into_iter().map(|(value, origin)| (value.trim(), origin)).collect();
        assert_eq!(
            origins,
            [
                ("name = \"a\"", "n.toml:4"),
                ("workers = 2", "n.toml:2"),
                ("leaks = true", "default"),
                ("name = \"b\"", "n.toml:8"),
                ("workers = 3", "n.toml:11"),
            ]
        );
    }
}
