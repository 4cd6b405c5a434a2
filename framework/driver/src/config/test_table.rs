//! The tables of a test as they are written, and those of a test that contains others:
//!
//! | table | says |
//! |---|---|
//! | `[[….contains]]` | which tests, with what share of the time |
//! | `[….pot]` | how turns are drawn |
//! | `[[….objects]]` | pools of shared objects |
//! | `[[….hooks]]` | who looks on |

use std::time::Duration;

use waylay_dist::format_duration;

use super::diagnostic::{Diagnostic, Findings};
use super::distribution::PlacedSpec;
use super::pattern::Pattern;
use super::reader::TableReader;
use super::source::{At, Span};
use super::test::{Contained, HooksRef, Objects, PluginRef, Pot, PotRule, Test};

type Optional<T> = Option<At<T>>;

/// One `[[scenario.test]]`.
pub(super) struct TestTable {
    pub(super) span: Span,
    pub(super) plugin: Optional<String>,
    pub(super) name: Optional<Pattern>,
    pub(super) keys: TestKeys,
    pub(super) params: Vec<(At<String>, PlacedSpec)>,
    /// Of a contained test.
    pub(super) share: Optional<f64>,
    pub(super) pot: PotTables,
}

/// The keys that a test and `[defaults]` have in common.
#[derive(Default)]
pub(super) struct TestKeys {
    pub(super) workers: Optional<u32>,
    pub(super) hang_timeout: Optional<Duration>,
    pub(super) start_timeout: Optional<Duration>,
    pub(super) cancel_timeout: Optional<Duration>,
    pub(super) iterations: Optional<u64>,
    pub(super) max_failures: Optional<u64>,
    pub(super) leaks: Optional<bool>,
}

/// What says that a test contains others, and how it runs them.
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

impl TestTable {
    pub(super) fn read(reader: TableReader<'_, '_>) -> Self {
        Self::read_as(reader, false)
    }

    /// A test inside another one: it has a share, and no workers or iterations of its own.
    fn read_contained(reader: TableReader<'_, '_>) -> Self {
        Self::read_as(reader, true)
    }

    fn read_as(mut reader: TableReader<'_, '_>, contained: bool) -> Self {
        let findings = reader.findings();
        let test = Self {
            span: reader.span(),
            plugin: reader.required("plugin"),
            name: reader.optional("name"),
            keys: TestKeys::read(&mut reader, contained),
            params: reader
                .table("params", "params")
                .into_iter()
                .flat_map(TableReader::entries)
                .filter_map(|(name, value)| Some((name, PlacedSpec::read(value, findings)?)))
                .collect(),
            share: if contained { reader.optional("share") } else { None },
            pot: PotTables::read(&mut reader),
        };
        reader.finish();
        test
    }
}

impl TestKeys {
    fn read(reader: &mut TableReader<'_, '_>, contained: bool) -> Self {
        Self {
            workers: if contained { None } else { reader.optional("workers") },
            hang_timeout: reader.optional("hang-timeout"),
            start_timeout: reader.optional("start-timeout"),
            cancel_timeout: reader.optional("cancel-timeout"),
            iterations: if contained { None } else { reader.optional("iterations") },
            max_failures: reader.optional("max-failures"),
            leaks: reader.optional("leaks"),
        }
    }

    pub(super) fn read_alone(mut reader: TableReader<'_, '_>) -> Self {
        let keys = Self::read(&mut reader, false);
        reader.finish();
        keys
    }
}
