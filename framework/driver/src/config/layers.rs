//! One document out of several: the files that a config includes, the config itself, one of its profiles, and what the command
//! line sets, each laid over the ones before.
//!
//! ```text
//! include = [...]  <  the file  <  [profile.NAME]  <  --set KEY=VALUE
//! ```
//!
//! All texts become pieces of one [`Source`], so that a problem is shown in the file in which it stands.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::diagnostic::Diagnostic;
use super::environment;
use super::merge::lay_over;
use super::source::{Source, Span};
use super::{LoadError, suggestion, syntax_error, text_of, value};

/// The pieces of a config and how they lie over each other.
pub(super) struct Layers {
    pub(super) source: Source,
    /// By piece, for files: the pieces that it includes, lowest first.
    includes: Vec<Vec<usize>>,
    /// Problems with pieces that are not there.
    problems: Vec<Diagnostic>,
    variables: fn(&str) -> Option<String>,
}

/// The merged document, and what was found on the way.
pub(super) struct Document<'s> {
    /// Without `include` and `profile`.
    pub(super) table: DeTable<'s>,
    /// What each profile that was not chosen would make of it.
    pub(super) others: Vec<DeTable<'s>>,
    pub(super) syntax: Vec<Diagnostic>,
    pub(super) problems: Vec<Diagnostic>,
}

impl Layers {
    /// Reads every file that the config includes, and takes in what the command line sets.
    pub(super) fn gather(source: Source, set: &[String], variables: fn(&str) -> Option<String>) -> Self {
        let mut layers = Self { source, includes: vec![Vec::new()], problems: Vec::new(), variables };
        let root = PathBuf::from(layers.source.name());
        layers.include(0, &mut vec![identity(&root)], &mut Vec::new());
        for set in set {
            let text = assignment(set);
            layers.source.append(format!("--set {set}"), PathBuf::new(), &text);
        }
        layers
    }

    /// Takes in what a piece includes. `open` are the files that lead here, `known` those that were taken in already.
    fn include(&mut self, piece: usize, open: &mut Vec<PathBuf>, known: &mut Vec<(PathBuf, usize)>) {
        let range = self.source.range(piece);
        let text = self.source.text()[range.clone()].to_owned();
        // Most configs include nothing, and large ones take a while to parse.
        if !text.contains("include") {
            return;
        }
        let mut document = DeTable::parse_recoverable(&text).0.into_inner();
        let Some(mut list) = document.remove("include") else { return };
        // Told once, when the document is made.
        let mut unset = Vec::new();
        environment::expand_value(&mut list, &self.variables, &mut unset);
        let DeValue::Array(list) = list.into_inner() else { return };
        let folder = self.source.folder_at(range.start).to_owned();
        for entry in list {
            let span = shifted(entry.span(), range.start);
            let Some(name) = entry.get_ref().as_str() else { continue };
            let path = folder.join(name);
            let identity = identity(&path);
            if open.contains(&identity) {
                let message = format!("`{name}` includes itself");
                self.problems.push(Diagnostic::error(Span::from(span), message));
            } else if let Some((_, piece_of)) = known.iter().find(|(file, _)| *file == identity) {
                let piece_of = *piece_of;
                self.includes[piece].push(piece_of);
            } else {
                match text_of(&path) {
                    Ok(text) => {
                        let beside = path.parent().map(Path::to_owned).unwrap_or_default();
                        let taken = self.source.append(path.display().to_string(), beside, &text);
                        self.includes.push(Vec::new());
                        self.includes[piece].push(taken);
                        known.push((identity.clone(), taken));
                        open.push(identity);
                        self.include(taken, open, known);
                        open.pop();
                    }
                    Err(error) => {
                        let message = match error {
                            LoadError::Read { error, .. } => format!("cannot read `{name}`: {error}"),
                            other => other.to_string(),
                        };
                        self.problems.push(Diagnostic::error(Span::from(span), message));
                    }
                }
            }
        }
    }

    /// The document with that profile.
    pub(super) fn document(&self, profile: Option<&str>) -> Document<'_> {
        let mut syntax = Vec::new();
        let mut problems = self.problems.clone();
        let files = self.includes.len();
        let mut table = self.merged(0, &mut syntax, &mut problems);
        let sets: Vec<DeTable<'_>> = (files..self.source.pieces())
            .map(|piece| self.parsed(piece, &mut syntax, &mut problems))
            .collect();

        let mut profiles = self.profiles(&mut table, &mut problems);
        let chosen = profile.and_then(|name| {
            let chosen = profiles.iter().position(|(key, _)| key.get_ref() == name);
            if chosen.is_none() {
                let known: Vec<&str> = profiles.iter().map(|(key, _)| key.get_ref().as_ref()).collect();
                let problem = Diagnostic::error(Span::default(), format!("there is no profile `{name}`"));
                problems.push(match known.is_empty() {
                    true => problem.help(format!("add a [profile.{name}]")),
                    false => problem.help(suggestion::help(name, &known)),
                });
            }
            Some(profiles.swap_remove(chosen?).1)
        });
        let others = profiles.into_iter().map(|(_, over)| {
            let mut other = table.clone();
            lay_over(&mut other, over, &mut problems);
            other
        });
        let others = others.collect();
        chosen.into_iter().chain(sets).for_each(|over| lay_over(&mut table, over, &mut problems));
        Document { table, others, syntax, problems }
    }

    /// A file over what it includes.
    fn merged<'s>(
        &'s self,
        piece: usize,
        syntax: &mut Vec<Diagnostic>,
        problems: &mut Vec<Diagnostic>,
    ) -> DeTable<'s> {
        let mut own = self.parsed(piece, syntax, problems);
        if let Some(include) = own.remove("include") {
            check_include(&include, problems);
        }
        let mut below = self.includes[piece].iter().map(|&included| self.merged(included, syntax, problems));
        let Some(mut base) = below.next() else { return own };
        let above: Vec<DeTable<'s>> = below.chain([own]).collect();
        above.into_iter().for_each(|over| lay_over(&mut base, over, problems));
        base
    }

    /// A piece alone, at its place among the others.
    fn parsed<'s>(
        &'s self,
        piece: usize,
        syntax: &mut Vec<Diagnostic>,
        problems: &mut Vec<Diagnostic>,
    ) -> DeTable<'s> {
        let range = self.source.range(piece);
        let text = &self.source.text()[range.clone()];
        let (document, errors) = DeTable::parse_recoverable(text);
        syntax.extend(errors.iter().map(|error| syntax_error(text, error, range.start)));
        let mut table = document.into_inner();
        if range.start > 0 {
            table = shifted_table(table, range.start);
        }
        environment::expand_table(&mut table, &self.variables, problems);
        table
    }

    /// Takes the profiles out of a document.
    fn profiles<'s>(
        &self,
        table: &mut DeTable<'s>,
        problems: &mut Vec<Diagnostic>,
    ) -> Vec<(Spanned<toml::de::DeString<'s>>, DeTable<'s>)> {
        let Some(profiles) = table.remove("profile") else { return Vec::new() };
        let span = profiles.span();
        let DeValue::Table(profiles) = profiles.into_inner() else {
            let message = "`profile` must be a table: write [profile.NAME]";
            problems.push(Diagnostic::error(span.into(), message));
            return Vec::new();
        };
        let mut found = Vec::new();
        for (key, over) in profiles {
            match over.into_inner() {
                DeValue::Table(mut over) => {
                    for nested in ["include", "profile"] {
                        if let Some((at, _)) = over.remove_entry(nested) {
                            let message = format!("a profile cannot have `{nested}`");
                            problems.push(Diagnostic::error(at.span().into(), message));
                        }
                    }
                    found.push((key, over));
                }
                _ => {
                    let message = format!("`profile.{}` must be a table", key.get_ref());
                    problems.push(Diagnostic::error(key.span().into(), message));
                }
            }
        }
        found
    }
}

fn check_include(include: &Spanned<DeValue<'_>>, problems: &mut Vec<Diagnostic>) {
    let DeValue::Array(list) = include.get_ref() else {
        return problems.push(value::wrong_type(Some("include"), include, "a list of files"));
    };
    let others = list.iter().filter(|entry| !entry.get_ref().is_str());
    problems.extend(others.map(|entry| value::wrong_type(Some("include"), entry, "the name of a file")));
}

/// The text of `KEY=VALUE` as TOML. A value that is none is taken as a text, so that nobody has to quote twice.
fn assignment(set: &str) -> String {
    let Some((key, value)) = set.split_once('=') else { return set.to_owned() };
    let plain = format!("{key} = {value}");
    match DeTable::parse(&plain) {
        Ok(_) => plain,
        Err(_) => format!("{key} = {}", toml::Value::from(value)),
    }
}

/// What a file is the same file by.
fn identity(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn shifted(span: std::ops::Range<usize>, by: usize) -> std::ops::Range<usize> {
    span.start + by..span.end + by
}

fn shifted_table<'i>(table: DeTable<'i>, by: usize) -> DeTable<'i> {
    let entries = table.into_iter().map(|(key, value)| {
        let span = shifted(key.span(), by);
        (Spanned::new(span, key.into_inner()), shifted_value(value, by))
    });
    entries.collect()
}

fn shifted_value<'i>(value: Spanned<DeValue<'i>>, by: usize) -> Spanned<DeValue<'i>> {
    let span = shifted(value.span(), by);
    let inner = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(shifted_table(table, by)),
        DeValue::Array(array) => {
            DeValue::Array(array.into_iter().map(|value| shifted_value(value, by)).collect::<DeArray<'i>>())
        }
        other => other,
    };
    Spanned::new(span, inner)
}
