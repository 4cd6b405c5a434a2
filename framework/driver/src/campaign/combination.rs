//! What a configuration says about a test that contains others, with names made into files: checked against what the
//! plugins say of themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use waylay_host::plan::PoolPlan;

use crate::catalog::{PluginDescription, TestDescription};
use crate::config::{At, Diagnostic, PluginRef, Pot, Test, suggestion};

/// How a test runs the tests that it contains.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Combination {
    /// The `pot` table, as the plugin reads it.
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// Pools of shared objects, by kind.
    pub pools: BTreeMap<String, PoolPlan>,
    /// Hooks: a plugin's file and their name in it.
    pub hooks: Vec<(PathBuf, String)>,
    /// Plugins that are loaded for the objects that they make.
    pub providers: Vec<PathBuf>,
    /// A replay: what each worker runs again and again.
    pub mix: Vec<MixPart>,
}

/// What one worker of a replay runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixPart {
    /// A contained test, by the file of its plugin and its name; none for a worker that ran nothing.
    pub test: Option<(PathBuf, String)>,
    /// Number of its iteration.
    pub iteration: u64,
}

impl Combination {
    /// The settings as JSON; `position` finds a contained test in the order in which the host gets them. In strict mode a
    /// turn is one iteration, because there is no time that turns could be measured by.
    pub(crate) fn settings_text(
        &self,
        strict: bool,
        position: impl Fn(&Path, &str) -> Option<usize>,
    ) -> String {
        let mut settings = self.settings.clone();
        if strict {
            settings.insert("single-turns".into(), true.into());
        }
        if !self.mix.is_empty() {
            let part = |part: &MixPart| {
                let test = part.test.as_ref().and_then(|(plugin, name)| position(plugin, name));
                json!({ "test": test, "iteration": part.iteration })
            };
            settings.insert("mix".into(), self.mix.iter().map(part).collect());
        }
        serde_json::Value::Object(settings).to_string()
    }
}

/// Finds the file of a plugin and what is inside, if both are known.
pub(crate) trait Plugins {
    fn file(&self, plugin: &PluginRef) -> Option<PathBuf>;
    fn description(&self, file: &Path) -> Option<&PluginDescription>;
}

/// Makes the combination of a pot, or says in `found` what is wrong.
pub(crate) fn combination(pot: &Pot, plugins: &impl Plugins, found: &mut Vec<Diagnostic>) -> Combination {
    let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let settings = json!({
        "rule": pot.rule.name(),
        "barrier": pot.barrier,
        "shortest-turn": nanos(pot.shortest_turn),
        "longest-turn": nanos(pot.longest_turn),
    });
    let serde_json::Value::Object(settings) = settings else { unreachable!("written as an object") };
    let mut made = Combination { settings, ..Combination::default() };
    for objects in &pot.objects {
        let default = PoolPlan::default();
        let plan = PoolPlan {
            count: objects.count.as_ref().map_or(default.count, |at| at.value.clone()),
            life: objects.life.as_ref().map_or(default.life, |at| at.value.clone()),
        };
        made.pools.insert(objects.kind.value.clone(), plan);
        made.providers.extend(objects.plugin.as_ref().and_then(|plugin| plugins.file(&plugin.value)));
    }
    for hooks in &pot.hooks {
        let Some(file) = plugins.file(&hooks.plugin.value) else { continue };
        let Some(description) = plugins.description(&file) else { continue };
        if description.hooks.iter().any(|known| known.name == hooks.name.value) {
            made.hooks.push((file, hooks.name.value.clone()));
        } else {
            let names: Vec<&str> = description.hooks.iter().map(|known| known.name.as_str()).collect();
            let message = format!("{} has no hooks `{}`", file.display(), hooks.name.value);
            let help = if names.is_empty() {
                "it has none: list them under `hooks` in export! (Rust) or with waylay::hooks (C++)"
                    .to_owned()
            } else {
                suggestion::help(&hooks.name.value, &names)
            };
            found.push(Diagnostic::error(hooks.name.span, message).help(help));
        }
    }
    made
}

/// A test that contains others and says which, or does not contain any and is none that could: else a diagnostic.
pub(crate) fn is_sound(
    entry: &Test,
    test: &TestDescription,
    outer: bool,
    found: &mut Vec<Diagnostic>,
) -> bool {
    let name = &test.name;
    let (message, help) = match (&entry.pot, test.combines) {
        (Some(pot), true) if pot.contains.is_empty() => {
            (format!("`{name}` contains no tests"), "name them under [[scenario.test.contains]]".to_owned())
        }
        (None, true) if outer => {
            (format!("`{name}` contains no tests"), "name them under [[scenario.test.contains]]".to_owned())
        }
        (None, true) => (
            format!("this pot would contain itself: `{}` fits `{name}`, which runs the tests of a pot", entry.name.value),
            "name the tests themselves, or give the inner pot a `contains` of its own".to_owned(),
        ),
        (Some(_), false) => (
            format!("test `{name}` runs no other tests"),
            "`contains`, `pot`, `objects` and `hooks` belong to a melting pot: plugin = \"waylay_melting_pot\"".to_owned(),
        ),
        (None, false) | (Some(_), true) => return true,
    };
    // A pattern that means many tests is wrong once.
    if !found.iter().any(|known| known.span == entry.name.span) {
        found.push(Diagnostic::error(entry.name.span, message).help(help));
    }
    false
}

/// Checks a pot with its contained tests: enough tests for its threads, and every shared kind has a provider.
pub(crate) fn check_whole(
    entry: &Test,
    outer: bool,
    contained: &[(&str, &[String])],
    provided: &[String],
    found: &mut Vec<Diagnostic>,
) {
    let workers = entry.workers as usize;
    if outer && !contained.is_empty() && workers > contained.len() {
        let message = format!(
            "this pot has {workers} workers and {} to run: a round needs a test for each",
            if contained.len() == 1 { "1 test".to_owned() } else { format!("{} tests", contained.len()) }
        );
        let help = format!("set `workers` to at most {}, or let it contain more tests", contained.len());
        found.push(Diagnostic::error(entry.name.span, message).help(help));
    }
    let nobody = |at: At<String>, what: String| {
        let help = if provided.is_empty() {
            "no plugin here provides any: name one that does with `plugin` under [[scenario.test.objects]]"
                .to_owned()
        } else {
            suggestion::help(&at.value, &provided.iter().map(String::as_str).collect::<Vec<_>>())
        };
        Diagnostic::error(at.span, what).help(help)
    };
    let Some(pot) = &entry.pot else { return };
    for objects in pot.objects.iter().filter(|objects| !provided.contains(&objects.kind.value)) {
        let message = format!("no plugin of this scenario provides objects of kind `{}`", objects.kind.value);
        found.push(nobody(objects.kind.clone(), message));
    }
    for (test, takes) in contained {
        for kind in takes.iter().filter(|kind| !provided.contains(kind)) {
            let message = format!(
                "test `{test}` takes objects of kind `{kind}`, which no plugin of this scenario provides"
            );
            found.push(nobody(At::new(kind.clone(), entry.name.span), message));
        }
    }
}
