//! All problems of one config together, with its text: as text for people, and as data.

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::diagnostic::{Diagnostic, Severity};
use super::render;
use super::source::{Position, Source};

/// All problems found in one config, in the order of their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    source: Arc<Source>,
    list: Vec<Diagnostic>,
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
