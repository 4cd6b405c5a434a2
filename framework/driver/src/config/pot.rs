//! A test that contains other tests: its tables as they are written, checked, and printed again.
//!
//! | table | says |
//! |---|---|
//! | `[[….contains]]` | which tests, with what share of the time |
//! | `[….pot]` | how turns are drawn |
//! | `[[….objects]]` | pools of shared objects |
//! | `[[….hooks]]` | who looks on |

use std::fmt;
use std::time::Duration;

use waylay_dist::{Spec, format_duration};

use super::diagnostic::Diagnostic;
use super::distribution::PlacedSpec;
use super::file::TestTable;
use super::print::quoted;
use super::reader::{Findings, TableReader};
use super::settings::{PluginRef, Test};
use super::source::{At, Span};
use super::value::{FromToml, Refusal};

/// What a test contains, and how it runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pot {
    /// The contained tests.
    pub contains: Vec<Contained>,
    /// Which rule draws the next tests.
    pub rule: PotRule,
    /// Whether a round ends when its last turn does.
    pub barrier: bool,
    /// How long a turn lasts at least, by repeating short tests.
    pub shortest_turn: Duration,
    /// How long a turn of repeated tests lasts at most.
    pub longest_turn: Duration,
    /// Pools of shared objects.
    pub objects: Vec<Objects>,
    /// Hooks of plugins.
    pub hooks: Vec<HooksRef>,
}

/// One entry of `contains`.
#[derive(Debug, Clone, PartialEq)]
pub struct Contained {
    /// The test, or all that fit its pattern.
    pub test: Test,
    /// Share of the time, relative to the other tests of the pot.
    pub share: f64,
}

/// One entry of `objects`.
#[derive(Debug, Clone, PartialEq)]
pub struct Objects {
    /// The kind.
    pub kind: At<String>,
    /// A plugin that provides it, when no test's plugin does.
    pub plugin: Option<At<PluginRef>>,
    /// How many objects there are.
    pub count: Option<At<Spec>>,
    /// How often one is lent before it is replaced.
    pub life: Option<At<Spec>>,
}

/// One entry of `hooks`.
#[derive(Debug, Clone, PartialEq)]
pub struct HooksRef {
    /// The plugin that has them.
    pub plugin: At<PluginRef>,
    /// Their name.
    pub name: At<String>,
}

/// How a pot draws its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PotRule {
    /// Every test gets its share of the time.
    Fair,
    /// As the paper's text says, for comparison.
    Literal,
}

impl PotRule {
    const ALL: [Self; 2] = [Self::Fair, Self::Literal];

    /// The rule's name in TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fair => "fair",
            Self::Literal => "literal",
        }
    }
}

impl FromToml for PotRule {
    const EXPECTED: &'static str = "a rule: \"fair\" or \"literal\"";

    fn from_toml(value: &toml::de::DeValue<'_>) -> Result<Self, Refusal> {
        let text = value.as_str().ok_or(Refusal::Type)?;
        let unknown = || {
            let names = Self::ALL.map(Self::name);
            Refusal::Help(format!("unknown rule `{text}`"), super::suggestion::help(text, &names))
        };
        Self::ALL.into_iter().find(|rule| rule.name() == text).ok_or_else(unknown)
    }
}

/// The tables as written.
#[derive(Default)]
pub(super) struct PotTables {
    pub(super) contains: Vec<TestTable>,
    rule: Option<At<PotRule>>,
    barrier: Option<At<bool>>,
    shortest_turn: Option<At<Duration>>,
    longest_turn: Option<At<Duration>>,
    objects: Vec<ObjectsTable>,
    hooks: Vec<HooksTable>,
    written: bool,
}

struct ObjectsTable {
    span: Span,
    kind: Option<At<String>>,
    plugin: Option<At<String>>,
    count: Option<PlacedSpec>,
    life: Option<PlacedSpec>,
}

struct HooksTable {
    span: Span,
    plugin: Option<At<String>>,
    name: Option<At<String>>,
}

impl PotTables {
    pub(super) fn read(reader: &mut TableReader<'_, '_>) -> Self {
        let written = ["contains", "pot", "objects", "hooks"].iter().any(|key| reader.has(key));
        let contains = reader.tables("contains", "a contained test");
        let mut tables = Self {
            contains: contains.into_iter().map(TestTable::read_contained).collect(),
            objects: reader.tables("objects", "objects").into_iter().map(ObjectsTable::read).collect(),
            hooks: reader.tables("hooks", "hooks").into_iter().map(HooksTable::read).collect(),
            written,
            ..Self::default()
        };
        if let Some(mut pot) = reader.table("pot", "a pot") {
            tables.rule = pot.optional("rule");
            tables.barrier = pot.optional("barrier");
            tables.shortest_turn = pot.optional("shortest-turn");
            tables.longest_turn = pot.optional("longest-turn");
            pot.finish();
        }
        tables
    }

    /// The checked tables; none when there are none. `test` checks a contained test.
    pub(super) fn check(
        self,
        test: &mut dyn FnMut(TestTable) -> Test,
        findings: &Findings,
    ) -> Option<Box<Pot>> {
        if !self.written {
            return None;
        }
        let shortest = self.shortest_turn.as_ref().map_or(Duration::from_millis(10), |at| at.value);
        let longest = self.longest_turn.as_ref().map_or(Duration::from_secs(1).max(shortest), |at| at.value);
        if let Some(at) = self.shortest_turn.as_ref().filter(|at| at.value.is_zero()) {
            findings.add(Diagnostic::error(at.span, "a turn must be longer than zero"));
        }
        if let Some(at) = self.longest_turn.as_ref().filter(|at| at.value < shortest) {
            let message =
                format!("the longest turn is shorter than the shortest, {}", format_duration(shortest));
            findings.add(Diagnostic::error(at.span, message));
        }
        let contained = |table: TestTable, test: &mut dyn FnMut(TestTable) -> Test| {
            let share = table.share.as_ref().map_or(1.0, |at| at.value);
            if let Some(at) = table.share.as_ref().filter(|at| !(at.value > 0.0 && at.value.is_finite())) {
                findings.add(Diagnostic::error(at.span, "a share must be greater than 0"));
            }
            Contained { test: test(table), share }
        };
        let mut kinds: Vec<At<String>> = Vec::new();
        for table in &self.objects {
            if let Some(kind) = &table.kind {
                if let Some(first) = kinds.iter().find(|known| *known == kind) {
                    findings.add(
                        Diagnostic::error(kind.span, format!("two pools of kind `{}`", kind.value))
                            .related(first.span, "the first is here"),
                    );
                }
                kinds.push(kind.clone());
            }
        }
        Some(Box::new(Pot {
            contains: self.contains.into_iter().map(|table| contained(table, test)).collect(),
            rule: self.rule.map_or(PotRule::Fair, |at| at.value),
            barrier: self.barrier.is_none_or(|at| at.value),
            shortest_turn: shortest,
            longest_turn: longest,
            objects: self.objects.into_iter().map(|table| table.check(findings)).collect(),
            hooks: self.hooks.into_iter().map(HooksTable::check).collect(),
        }))
    }
}

impl ObjectsTable {
    fn read(mut reader: TableReader<'_, '_>) -> Self {
        let table = Self {
            span: reader.span(),
            kind: reader.required("kind"),
            plugin: reader.optional("plugin"),
            count: reader.distribution("count"),
            life: reader.distribution("life"),
        };
        reader.finish();
        table
    }

    fn check(self, findings: &Findings) -> Objects {
        let check = |placed: Option<PlacedSpec>| {
            let placed = placed?;
            placed.check(findings)?;
            Some(placed.spec)
        };
        Objects {
            kind: self.kind.unwrap_or(At::new(String::new(), self.span)),
            plugin: self.plugin.map(|at| at.map(|text| PluginRef::new(&text))),
            count: check(self.count),
            life: check(self.life),
        }
    }
}

impl HooksTable {
    fn read(mut reader: TableReader<'_, '_>) -> Self {
        let table =
            Self { span: reader.span(), plugin: reader.required("plugin"), name: reader.required("name") };
        reader.finish();
        table
    }

    fn check(self) -> HooksRef {
        let missing = || At::new(String::new(), self.span);
        HooksRef {
            plugin: self.plugin.unwrap_or_else(missing).map(|text| PluginRef::new(&text)),
            name: self.name.unwrap_or_else(missing),
        }
    }
}

/// Writes the tables of a pot at that path, such as `scenario.test`. `test` writes a contained test's own keys.
pub(super) fn write_pot(
    f: &mut fmt::Formatter<'_>,
    pot: &Pot,
    path: &str,
    test: &dyn Fn(&mut fmt::Formatter<'_>, &Contained, &str) -> fmt::Result,
) -> fmt::Result {
    writeln!(f, "    [{path}.pot]")?;
    writeln!(f, "    rule = \"{}\"", pot.rule.name())?;
    writeln!(f, "    barrier = {}", pot.barrier)?;
    writeln!(f, "    shortest-turn = \"{}\"", format_duration(pot.shortest_turn))?;
    writeln!(f, "    longest-turn = \"{}\"", format_duration(pot.longest_turn))?;
    for objects in &pot.objects {
        writeln!(f, "    [[{path}.objects]]")?;
        writeln!(f, "    kind = {}", quoted(&objects.kind.value))?;
        if let Some(plugin) = &objects.plugin {
            writeln!(f, "    plugin = {}", quoted(&plugin.value))?;
        }
        if let Some(count) = &objects.count {
            writeln!(f, "    count = {}", count.value)?;
        }
        if let Some(life) = &objects.life {
            writeln!(f, "    life = {}", life.value)?;
        }
    }
    for hooks in &pot.hooks {
        writeln!(f, "    [[{path}.hooks]]")?;
        writeln!(f, "    plugin = {}", quoted(&hooks.plugin.value))?;
        writeln!(f, "    name = {}", quoted(&hooks.name.value))?;
    }
    pot.contains.iter().try_for_each(|contained| test(f, contained, &format!("{path}.contains")))
}
