//! The config file: TOML → placed keys → [`Config`].
//!
//! ```text
//! texts ──layers──> one table with spans ──file──> keys, typed and placed ──validate──> Config
//!                       \___________________ problems ______________________/──> Diagnostics
//! ```
//!
//! Every problem of a file is found in one pass and shown with file, line, column and a caret, and with the
//! name that was probably meant. Nothing here touches the operating system, except that [`load`] reads the
//! file and those that it includes, and that texts may name environment variables. What can only be checked with plugins at hand (is there such a plugin, a test, a parameter?) is
//! checked elsewhere, with the spans that [`Config`] keeps and the same [`Diagnostics`].

mod allotment;
mod bytes;
mod diagnostic;
mod diagnostics;
mod distribution;
mod dump;
mod environment;
mod file;
mod layers;
mod merge;
mod mode;
mod origin;
mod pattern;
mod print;
mod randomizer;
mod reader;
mod render;
mod schema;
mod settings;
mod source;
mod strict;
pub mod suggestion;
mod test;
mod test_table;
mod validate;
mod value;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::de::DeTable;

pub use allotment::Length;
pub use bytes::{ByteSize, ByteSizeError};
pub use diagnostic::{Diagnostic, Severity};
pub use diagnostics::Diagnostics;
pub use dump::DumpFormat;
pub use mode::{FileMode, Mode};
pub use pattern::Pattern;
pub use schema::schema;
pub use settings::{Config, Evidence, Leaks, Overrides, Scenario};
pub use source::{At, Position, Source, Span};
pub use strict::{Minimizing, STEP_LEVEL, STORES_CAN_WAIT, Strict};
pub use test::{Contained, HooksRef, Objects, Param, PluginRef, Pot, PotRule, Test};

use diagnostic::Findings;
use file::ConfigFile;
use layers::Layers;

/// Reading of other files in the same way, with the same messages.
pub mod reading {
    pub use super::diagnostic::Findings;
    pub use super::reader::TableReader;
    pub use super::value::{FromToml, Refusal};
    pub use toml::de::DeValue;
}

/// A checked config and the text it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What will run.
    pub config: Config,
    /// The text that the config's spans point into.
    pub source: Arc<Source>,
    /// The folder that plugin paths are relative to; empty for the current one.
    pub folder: PathBuf,
}

impl Loaded {
    /// The folders that the config adds to those where plugins are looked for.
    pub fn plugin_folders(&self) -> Vec<PathBuf> {
        let named = self.config.plugin_path.iter().map(|path| self.folder.join(&path.value));
        // Plugins lie beside the file that names them, also when that is an included one.
        named.chain(self.source.folders().skip(1).map(Path::to_owned)).collect()
    }

    /// The config with every path written out, so that it says the same when it is read from another folder.
    pub fn portable(&self) -> Config {
        let absolute = |path: &Path| {
            let joined = Path::new(".").join(&self.folder).join(path);
            std::path::absolute(&joined).unwrap_or(joined)
        };
        let mut config = self.config.clone();
        config.out = std::path::absolute(&config.out).unwrap_or(config.out);
        for folder in &mut config.plugin_path {
            folder.value = absolute(&folder.value);
        }
        // Plugins that are only named are looked for beside the config, too.
        config.plugin_path.push(At::new(absolute(Path::new(".")), Span::default()));
        for folder in self.source.folders().skip(1).filter(|folder| *folder != self.folder) {
            let folder = std::path::absolute(Path::new(".").join(folder)).unwrap_or(folder.to_owned());
            config.plugin_path.push(At::new(folder, Span::default()));
        }
        let write_out = |plugin: &mut At<PluginRef>| {
            if let PluginRef::Path(path) = &mut plugin.value {
                let here = absolute(path);
                *path = if here.exists() { here } else { std::path::absolute(&*path).unwrap_or(here) };
            }
        };
        for test in config.scenarios.iter_mut().flat_map(|scenario| &mut scenario.tests) {
            test.each_plugin_mut(&write_out);
        }
        config
    }

    /// Problems that were found later, at spans that the config kept.
    pub fn diagnostics(&self, list: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics::new(Arc::clone(&self.source), list)
    }
}

/// Why a config could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read the config {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        error: std::io::Error,
    },
    /// The file is not text.
    #[error("the config {} is not UTF-8 text: byte {valid} is the first that is not", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// How many bytes are.
        valid: usize,
    },
    /// The file is text of two bytes a letter.
    #[error("the config {} is UTF-16 text, as PowerShell writes it with `>`: save it as UTF-8", path.display())]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// The file has problems.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}

/// Reads and checks a config file, with what it includes.
///
/// # Errors
/// When it cannot be read, or with every problem it has.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Loaded, LoadError> {
    Ok(parse(source_of(path)?, overrides)?)
}

/// The text of a file.
///
/// # Errors
/// When it cannot be read or is not text.
pub fn source_of(path: &Path) -> Result<Source, LoadError> {
    let mut source = Source::new(path.display().to_string(), text_of(path)?);
    source.set_folder(path.parent().map(Path::to_owned).unwrap_or_default());
    Ok(source)
}

fn text_of(path: &Path) -> Result<String, LoadError> {
    let bytes = std::fs::read(path).map_err(|error| LoadError::Read { path: path.to_owned(), error })?;
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(LoadError::Utf16 { path: path.to_owned() });
    }
    String::from_utf8(bytes).map_err(|error| LoadError::NotText {
        path: path.to_owned(),
        valid: error.utf8_error().valid_up_to(),
    })
}

/// Checks a config that is already in memory, such as the embedded one.
///
/// # Errors
/// Every problem it has.
pub fn parse(source: Source, overrides: &Overrides) -> Result<Loaded, Diagnostics> {
    Ok(parse_with(source, overrides, |_| ())?.0)
}

/// The effective config as TOML text: every default filled in, and behind each value where it comes from.
///
/// # Errors
/// Every problem it has.
pub fn explain(source: Source, overrides: &Overrides) -> Result<String, Diagnostics> {
    let (loaded, places) = parse_with(source, overrides, origin::places)?;
    Ok(origin::annotate(&loaded.config.to_string(), &places, &loaded.source))
}

/// Checks a config, and has somebody look at the merged document.
fn parse_with<T>(
    source: Source,
    overrides: &Overrides,
    look: impl FnOnce(&DeTable<'_>) -> T,
) -> Result<(Loaded, T), Diagnostics> {
    let folder = source.folder_at(0).to_owned();
    let layers = Layers::gather(source, &overrides.set, variable);
    let document = layers.document(overrides.profile.as_deref());
    let findings = Findings::new(!document.syntax.is_empty());
    document.problems.into_iter().for_each(|problem| findings.add(problem));
    // A slip in a profile is found before the night that needs it.
    for other in &document.others {
        validate::validate(ConfigFile::read(other, &findings), overrides, &findings);
    }
    let mut config = validate::validate(ConfigFile::read(&document.table, &findings), overrides, &findings);
    let looked = look(&document.table);
    let syntax = document.syntax;
    let problems = judged(&layers.source, findings, syntax);
    let source = Arc::new(layers.source);
    if !problems.is_empty() {
        return Err(Diagnostics::new(source, problems));
    }
    place_plugins(&mut config, &source);
    Ok((Loaded { config, source, folder }, looked))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Paths of plugins in included files are relative to these.
fn place_plugins(config: &mut Config, source: &Source) {
    let first = source.folder_at(0).to_owned();
    let place = |plugin: &mut At<PluginRef>| {
        let folder = source.folder_at(plugin.span.start);
        if let PluginRef::Path(path) = &mut plugin.value
            && folder != first
            && folder.join(&*path).exists()
        {
            let here = folder.join(&*path);
            *path = std::path::absolute(&here).unwrap_or(here);
        }
    };
    for test in config.scenarios.iter_mut().flat_map(|scenario| &mut scenario.tests) {
        test.each_plugin_mut(&place);
    }
    for listed in &mut config.plugin_path {
        let folder = source.folder_at(listed.span.start);
        if folder != first {
            let here = folder.join(&listed.value);
            listed.value = std::path::absolute(&here).unwrap_or(here);
        }
    }
}

/// Reads a file of tables with `take`, which reports what is wrong as it goes.
///
/// # Errors
/// Every problem it has.
pub fn read<T>(
    source: Source,
    take: impl FnOnce(&DeTable<'_>, &Findings) -> T,
) -> Result<(T, Arc<Source>), Diagnostics> {
    let (document, errors) = DeTable::parse_recoverable(source.text());
    let syntax: Vec<_> = errors.iter().map(|error| syntax_error(source.text(), error, 0)).collect();
    let findings = Findings::new(!syntax.is_empty());
    let mut table = document.into_inner();
    let mut unset = Vec::new();
    environment::expand_table(&mut table, &variable, &mut unset);
    unset.into_iter().for_each(|problem| findings.add(problem));
    let taken = take(&table, &findings);
    let problems = judged(&source, findings, syntax);
    let source = Arc::new(source);
    if problems.is_empty() { Ok((taken, source)) } else { Err(Diagnostics::new(source, problems)) }
}

/// All problems, without those that only come from others, each once.
fn judged(source: &Source, findings: Findings, syntax: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut problems = findings.into_list();
    let hidden = Hidden::by(source, &syntax);
    problems.retain(|problem| !hidden.contains(source.line_of(problem.span.start)));
    problems.extend(syntax);
    // What stands under several profiles is looked at once for each.
    problems.sort_by(|a, b| (a.span, &a.message).cmp(&(b.span, &b.message)));
    problems.dedup();
    problems
}

/// Lines whose problems may only come from what the parser made of a broken line: the broken line itself, or, when that is a
/// table's header, the keys below, which then landed in another table.
struct Hidden {
    /// Where ranges of lines begin, in order, and how far those that have begun by then reach.
    ranges: Vec<(usize, usize)>,
}

impl Hidden {
    fn by(source: &Source, syntax: &[Diagnostic]) -> Self {
        let is_header = |line: &str| line.trim_start().starts_with('[');
        let numbered = source.text().lines().zip(1..);
        let headers: Vec<usize> =
            numbered.filter(|(line, _)| is_header(line)).map(|(_, number)| number).collect();
        let mut ranges: Vec<(usize, usize)> = syntax
            .iter()
            .map(|error| {
                let broken = source.line_of(error.span.start);
                let next = headers.partition_point(|header| *header <= broken);
                match is_header(source.line(broken)) {
                    true => (broken, headers.get(next).copied().unwrap_or(usize::MAX)),
                    false => (broken, broken + 1),
                }
            })
            .collect();
        ranges.sort_unstable();
        let mut reach = 0;
        for (_, end) in &mut ranges {
            reach = reach.max(*end);
            *end = reach;
        }
        Self { ranges }
    }

    fn contains(&self, line: usize) -> bool {
        let begun = self.ranges.partition_point(|(start, _)| *start <= line);
        begun > 0 && line < self.ranges[begun - 1].1
    }
}

/// What the parser says of a text that stands at that place.
fn syntax_error(text: &str, error: &toml::de::Error, at: usize) -> Diagnostic {
    let end = text.len();
    let span = error.span().unwrap_or(end..end);
    let diagnostic = Diagnostic::error(Span { start: at + span.start, end: at + span.end }, error.message());
    // The complaint is about what follows the backslash, or follows `\x`.
    let before = text.get(..span.start).unwrap_or_default();
    match before.chars().rev().take(2).any(|letter| letter == '\\') {
        true => diagnostic.help("between \" a backslash means something: write paths with /, or between '"),
        false => diagnostic,
    }
}
