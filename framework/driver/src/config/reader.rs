//! Reads TOML tables key by key and collects problems instead of stopping at one.
//!
//! A [`TableReader`] is asked for every key that its table may have. Wrong values are reported where they
//! stand; when it is finished, keys that nobody asked for are reported as unknown, and the keys that were
//! asked for are what a mistyped one is compared with. A required key that was mistyped is not also reported
//! as missing.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, Findings};
use super::source::{At, Span};
use super::suggestion;
use super::value::{FromToml, read_value, wrong_type};

/// Reads one table.
pub struct TableReader<'a, 'i> {
    table: &'a DeTable<'i>,
    /// What to call it in messages, such as "a test".
    name: &'static str,
    span: Span,
    asked: Vec<&'static str>,
    missing: Vec<(&'static str, Diagnostic)>,
    findings: &'a Findings,
}

impl<'a, 'i> TableReader<'a, 'i> {
    /// A reader of that table, which messages call `name`.
    pub fn new(table: &'a DeTable<'i>, span: Span, name: &'static str, findings: &'a Findings) -> Self {
        Self { table, name, span, asked: Vec::new(), missing: Vec::new(), findings }
    }

    /// Where the table begins: its header, or the whole of an inline table.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Where problems go.
    pub fn findings(&self) -> &'a Findings {
        self.findings
    }

    /// Whether the key is there, readable or not.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Names keys that were read before: a mistyped one may have been meant.
    pub(super) fn known_before(&mut self, keys: &[&'static str]) {
        self.asked.extend(keys);
    }

    /// The value of a key as it is written; the key counts as asked for.
    pub(super) fn value(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'i>>> {
        self.asked.push(key);
        self.table.get(key)
    }

    /// The value of a key, if it is there and can be read.
    pub fn optional<T: FromToml>(&mut self, key: &'static str) -> Option<At<T>> {
        let value = self.value(key)?;
        read_value(value, Some(key), self.findings)
    }

    /// The value of a key that once had another name. That one is read when it is there alone, and is nowhere suggested.
    pub fn renamed<T: FromToml>(&mut self, key: &'static str, before: &'static str) -> Option<At<T>> {
        let old = !self.has(key) && self.has(before);
        self.optional(key).or_else(|| if old { self.optional(before) } else { None })
    }

    /// The value of a key that must be there.
    pub fn required<T: FromToml>(&mut self, key: &'static str) -> Option<At<T>> {
        if !self.has(key) {
            self.lack(key, format!("add {}", T::EXPECTED));
        }
        self.optional(key)
    }

    /// The values of a list.
    pub fn list<T: FromToml>(&mut self, key: &'static str) -> Vec<At<T>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(array) = value.get_ref() else {
            self.wrong_type(key, value, "a list");
            return Vec::new();
        };
        array.iter().filter_map(|value| read_value(value, Some(key), self.findings)).collect()
    }

    /// The table of a key.
    pub fn table(&mut self, key: &'static str, name: &'static str) -> Option<TableReader<'a, 'i>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Self::new(table, value.span().into(), name, self.findings)),
            _ => {
                self.wrong_type(key, value, "a table");
                None
            }
        }
    }

    /// The tables of a key, each under its own `[[key]]`.
    pub fn tables(&mut self, key: &'static str, name: &'static str) -> Vec<TableReader<'a, 'i>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(array) = value.get_ref() else {
            self.wrong_type(key, value, "a list of tables, each under its own double-bracketed header");
            return Vec::new();
        };
        let mut readers = Vec::new();
        for value in array.iter() {
            match value.get_ref() {
                DeValue::Table(table) => {
                    readers.push(Self::new(table, value.span().into(), name, self.findings));
                }
                _ => self.wrong_type(key, value, "a table"),
            }
        }
        readers
    }

    /// The tables of a key that needs at least one, each under its own `[[key]]`.
    pub fn required_tables(
        &mut self,
        key: &'static str,
        name: &'static str,
        help: &str,
    ) -> Vec<TableReader<'a, 'i>> {
        let none = match self.table.get(key).map(Spanned::get_ref) {
            None => true,
            Some(DeValue::Array(array)) => array.is_empty(),
            Some(_) => false,
        };
        if none {
            self.lack(key, help);
        }
        self.tables(key, name)
    }

    fn lack(&mut self, key: &'static str, help: impl Into<String>) {
        let message = format!("{} needs a `{key}`", self.name);
        self.missing.push((key, Diagnostic::error(self.span, message).help(help)));
    }

    /// All keys of the table, for one in which the user chooses the names.
    pub fn entries(self) -> impl Iterator<Item = (At<String>, &'a Spanned<DeValue<'i>>)> {
        self.table.iter().map(|(key, value)| (At::new(key.get_ref().to_string(), key.span()), value))
    }

    /// Reports the keys that nobody asked for, and those that are missing.
    pub fn finish(self) {
        let mut meant = Vec::new();
        for key in self.table.keys() {
            let written = key.get_ref().as_ref();
            if !self.asked.contains(&written) {
                meant.extend(suggestion::nearest(written, self.asked.iter().copied()));
                self.findings.add(
                    Diagnostic::error(key.span().into(), format!("unknown key `{written}`"))
                        .help(suggestion::help(written, &self.asked)),
                );
            }
        }
        for (key, diagnostic) in self.missing {
            if !self.findings.is_incomplete() && !meant.contains(&key) {
                self.findings.add(diagnostic);
            }
        }
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'i>>, expected: &str) {
        self.findings.add(wrong_type(Some(key), value, expected));
    }
}
