//! What is wrong with a config file, with its place: the one shape for every check, here and later.
//!
//! Reading the file finds most problems. Some can only be found once plugins are loaded (no such plugin, no
//! test of that name): the spans that [`Config`](super::Config) keeps let the same diagnostics be made then.

use std::cell::RefCell;

use serde::Serialize;

use super::source::Span;

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

/// Collects problems from all readers of one file.
pub struct Findings {
    list: RefCell<Vec<Diagnostic>>,
    incomplete: bool,
}

impl Findings {
    /// `incomplete` when the text has syntax errors: what they hide must not be reported as missing.
    pub fn new(incomplete: bool) -> Self {
        Self { list: RefCell::default(), incomplete }
    }

    /// Adds one.
    pub fn add(&self, diagnostic: Diagnostic) {
        self.list.borrow_mut().push(diagnostic);
    }

    /// Whether something may be hidden by syntax errors.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// All of them.
    pub fn into_list(self) -> Vec<Diagnostic> {
        self.list.into_inner()
    }
}
