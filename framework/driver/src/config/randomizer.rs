//! `[randomizer]`, for all scenarios or for one: read with places, checked by the randomizer's own rules.
//!
//! A table may stand at the top of the file and in a scenario. Keys of the scenario win over those at the top, and what
//! neither says is the randomizer's default. Which scenarios are disturbed is decided by [`wanted`].

use waylay_randomizer::{Pattern as ThreadName, RawSettings, SettingsProblem};

use super::diagnostic::{Diagnostic, Findings};
use super::distribution::PlacedSpec;
use super::mode::Mode;
use super::reader::TableReader;
use super::source::{At, Span};

/// One `[randomizer]` table.
pub(super) struct RandomizerKeys {
    span: Span,
    enabled: Option<At<bool>>,
    period: Option<PlacedSpec>,
    suspend: Option<PlacedSpec>,
    count: Option<PlacedSpec>,
    include: Vec<At<String>>,
    exclude: Vec<At<String>>,
}

impl RandomizerKeys {
    pub(super) fn read(mut reader: TableReader<'_, '_>) -> Self {
        let keys = Self {
            span: reader.span(),
            enabled: reader.optional("enabled"),
            period: reader.distribution("period"),
            suspend: reader.distribution("suspend"),
            count: reader.distribution("count"),
            include: reader.list("include"),
            exclude: reader.list("exclude"),
        };
        reader.finish();
        keys
    }

    fn is_off(&self) -> bool {
        self.enabled.is_some_and(|enabled| !enabled.value)
    }

    fn raw(&self) -> RawSettings {
        let spec = |placed: &Option<PlacedSpec>| placed.as_ref().map(|placed| placed.spec.value.clone());
        let names = |list: &[At<String>]| list.iter().map(|name| ThreadName::new(&name.value)).collect();
        RawSettings {
            period: spec(&self.period),
            suspend: spec(&self.suspend),
            count: spec(&self.count),
            include: names(&self.include),
            exclude: names(&self.exclude),
        }
    }

    /// Reports what is wrong with the values, each at its place.
    pub(super) fn check(&self, findings: &Findings) {
        let Err(problems) = self.raw().check() else { return };
        let mut reported: Vec<Span> = Vec::new();
        for problem in problems {
            let span = self.place_of(&problem);
            // Both ends of a plain value are wrong in the same way.
            if !reported.contains(&span) {
                reported.push(span);
                findings.add(Diagnostic::error(span, format!("{}: {}", problem.key, problem.message)));
            }
        }
    }

    fn place_of(&self, problem: &SettingsProblem) -> Span {
        let of_spec =
            |placed: &Option<PlacedSpec>| placed.as_ref().map(|placed| placed.span_of(problem.place));
        let of_name = |list: &[At<String>]| {
            let meant = |name: &&At<String>| problem.message.contains(&format!("`{}`", name.value));
            list.iter().find(meant).map(|name| name.span)
        };
        let found = match problem.key {
            "period" => of_spec(&self.period),
            "suspend" => of_spec(&self.suspend),
            "count" => of_spec(&self.count),
            "include" => of_name(&self.include),
            _ => of_name(&self.exclude),
        };
        found.unwrap_or(self.span)
    }
}

/// The settings with which a scenario is disturbed; none when it is not. `mode` is what the scenario says, and `top` and
/// `own` are the tables of the file and of the scenario.
pub(super) fn wanted(
    mode: At<Mode>,
    top: Option<&RandomizerKeys>,
    own: Option<&RandomizerKeys>,
    findings: &Findings,
) -> Option<RawSettings> {
    let off = own.is_some_and(RandomizerKeys::is_off);
    if let Some(enabled) = own.and_then(|own| own.enabled)
        && !enabled.value
        && mode.value == Mode::Randomized
    {
        findings.add(
            Diagnostic::error(enabled.span, "a randomized scenario cannot do without its randomizer")
                .related(mode.span, "its mode is here")
                .help("write mode = \"free\", or leave `enabled` out"),
        );
    }
    if let Some(own) = own.filter(|_| mode.value == Mode::Strict && !off) {
        findings.add(
            Diagnostic::error(own.span, "strict mode runs one thread at a time: there is nothing to suspend")
                .related(mode.span, "its mode is here"),
        );
    }
    let general = top.is_some_and(|top| !top.is_off());
    if mode.value == Mode::Strict || off || !(own.is_some() || general || mode.value == Mode::Randomized) {
        return None;
    }
    let raw = own.map(RandomizerKeys::raw).unwrap_or_default();
    let raw = raw.or(top.map(RandomizerKeys::raw).unwrap_or_default());
    // What is wrong was reported for each table; the rest can be checked with defaults in its place.
    Some(raw.check().unwrap_or_default().to_raw())
}
