//! One entry of a scenario: a test, or many that fit a pattern, with its settings and the tests that it contains.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use waylay_dist::{Dist, Spec};

use super::pattern::Pattern;
use super::source::At;
use super::value::{FromToml, Refusal};

/// One test of a plugin, or all whose names fit a pattern, with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The plugin that holds it.
    pub plugin: At<PluginRef>,
    /// Its name, or a pattern of names.
    pub name: At<Pattern>,
    /// How many threads run it at the same time; at least one.
    pub workers: u32,
    /// How long an iteration may take before it counts as hung.
    pub hang_timeout: Duration,
    /// How long creating and starting it may take.
    pub start_timeout: Duration,
    /// How long it may take to return after it was cancelled.
    pub cancel_timeout: Duration,
    /// After how many iterations it is done, if ever.
    pub iterations: Option<NonZeroU64>,
    /// After how many failures it is retired from the scenario, if ever.
    pub max_failures: Option<NonZeroU64>,
    /// Whether leaks are looked for.
    pub leaks: bool,
    /// Its random choices, by name.
    pub params: Vec<Param>,
    /// The tests that it contains, when it is one that runs others.
    pub pot: Option<Box<Pot>>,
}

/// A named random choice of a test, and how it is distributed.
#[derive(Debug, Clone)]
pub struct Param {
    /// The name that the test knows it by.
    pub name: At<String>,
    /// The distribution as written.
    pub spec: At<Spec>,
    /// The distribution, ready to draw from.
    pub dist: Dist,
}

/// A plugin as the config names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PluginRef {
    /// A name to look for in the plugin folders.
    Name(String),
    /// A file, relative to the config file.
    Path(PathBuf),
}

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

impl Test {
    /// Every plugin that it names: its own, its contained tests', those of its objects and hooks.
    pub fn plugins(&self) -> Vec<&At<PluginRef>> {
        let mut all = vec![&self.plugin];
        if let Some(pot) = &self.pot {
            all.extend(pot.contains.iter().flat_map(|contained| contained.test.plugins()));
            all.extend(pot.objects.iter().filter_map(|objects| objects.plugin.as_ref()));
            all.extend(pot.hooks.iter().map(|hooks| &hooks.plugin));
        }
        all
    }

    /// Changes every plugin that it names, its own first.
    pub fn each_plugin_mut(&mut self, change: &dyn Fn(&mut At<PluginRef>)) {
        change(&mut self.plugin);
        if let Some(pot) = &mut self.pot {
            pot.contains.iter_mut().for_each(|contained| contained.test.each_plugin_mut(change));
            pot.objects.iter_mut().filter_map(|objects| objects.plugin.as_mut()).for_each(change);
            pot.hooks.iter_mut().for_each(|hooks| change(&mut hooks.plugin));
        }
    }
}

impl PluginRef {
    /// A text with a folder separator or a library's ending is a path, any other a name.
    pub fn new(text: &str) -> Self {
        let ending = Path::new(text).extension().and_then(|ending| ending.to_str());
        if text.contains(['/', '\\']) || matches!(ending, Some("so" | "dll" | "dylib")) {
            Self::Path(PathBuf::from(text))
        } else {
            Self::Name(text.to_owned())
        }
    }
}

impl std::fmt::Display for PluginRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// The distribution that is drawn from is a function of the one written, so that is all to compare.
impl PartialEq for Param {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.spec == other.spec
    }
}
