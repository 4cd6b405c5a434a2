//! What is wrong with a config file, with its place: the one shape for every check, here and later.
//!
//! Reading the file finds most problems. Some can only be found once plugins are loaded (no such plugin, no
//! test of that name): the spans that [`Config`](super::Config) keeps let the same diagnostics be made then.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::render;
use super::source::{Position, Source, Span};

/// Whether a campaign can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, perhaps not as meant.
    Warning,
}

/// One problem and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether a campaign can go on.
    pub severity: Severity,
    /// What is wrong: a lower-case fragment.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What to do about it.
    pub help: Option<String>,
    /// Another place that has to do with it, and how.
    pub related: Option<(Span, String)>,
}

/// All problems found in one config, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    source: Arc<Source>,
    list: Vec<Diagnostic>,
}

impl Diagnostic {
    /// A problem that the campaign cannot go on with.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, message: message.into(), span, help: None, related: None }
    }

    /// A problem that the campaign can go on with.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// Says what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names another place.
    pub fn related(mut self, span: Span, message: impl Into<String>) -> Self {
        self.related = Some((span, message.into()));
        self
    }
}

impl Diagnostics {
    /// Problems of one file, put in the order of their places.
    pub fn new(source: Arc<Source>, mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|diagnostic| diagnostic.span.start);
        Self { source, list }
    }

    /// The file.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The problems in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether there is one that the campaign cannot go on with.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The text for people, with the lines in question and carets under them; in colour for a terminal.
    pub fn render(&self, colour: bool) -> String {
        render::text(&self.source, &self.list, colour)
    }
}

/// The text for people, without colour.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// One object per problem, with places as numbers instead of spans.
impl Serialize for Diagnostics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Record<'a> {
            severity: Severity,
            message: &'a str,
            file: &'a str,
            #[serde(flatten)]
            start: Position,
            end: Position,
            #[serde(skip_serializing_if = "Option::is_none")]
            help: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            related: Option<Related<'a>>,
        }

        #[derive(Serialize)]
        struct Related<'a> {
            message: &'a str,
            file: &'a str,
            #[serde(flatten)]
            start: Position,
        }

        let mut list = serializer.serialize_seq(Some(self.list.len()))?;
        for diagnostic in &self.list {
            list.serialize_element(&Record {
                severity: diagnostic.severity,
                message: &diagnostic.message,
                file: self.source.name_at(diagnostic.span.start),
                start: self.source.position(diagnostic.span.start),
                end: self.source.position(diagnostic.span.end),
                help: diagnostic.help.as_deref(),
                related: diagnostic.related.as_ref().map(|(span, message)| Related {
                    message,
                    file: self.source.name_at(span.start),
                    start: self.source.position(span.start),
                }),
            })?;
        }
        list.end()
    }
}
