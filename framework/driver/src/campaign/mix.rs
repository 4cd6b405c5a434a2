//! Configuration and catalog become scenarios: names become files, patterns become tests, parameters are checked.
//!
//! What is wrong with the configuration itself (no such plugin, no test fits, no such parameter) is a diagnostic that
//! points at its line. What is wrong with a plugin file is a problem of that file: the other tests still run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::combination::{Plugins, check_whole, combination, is_sound};
use super::disturbance::Randomization;
use super::scenario::{Inside, Scenario, ScenarioTest};
use crate::catalog::{Installation, PluginDescription};
use crate::config::{At, Config, Diagnostic, Diagnostics, Loaded, Pattern, PluginRef, Test, suggestion};

/// What can run, and what cannot.
#[derive(Debug)]
pub struct Mix {
    /// The scenarios, each with at least one test.
    pub scenarios: Vec<Scenario>,
    /// Plugin files that cannot be used, in words that name the file.
    pub problems: Vec<String>,
    /// What is inside the plugins that can.
    pub plugins: BTreeMap<PathBuf, PluginDescription>,
}

/// Which part of a configuration to run.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Scenarios whose name fits.
    pub scenario: Option<Pattern>,
    /// Tests whose name fits.
    pub test: Option<Pattern>,
    /// Tests of that plugin file.
    pub plugin: Option<PathBuf>,
}

/// Makes the mix. Loads every plugin once, in a process of its own.
pub fn mix(loaded: &Loaded, installation: &Installation, selection: &Selection) -> Result<Mix, Diagnostics> {
    let config = &loaded.config;
    let extra = loaded.plugin_folders();
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    let tests = || config.scenarios.iter().flat_map(|scenario| &scenario.tests);
    for plugin in tests().flat_map(Test::plugins) {
        let name = plugin.value.to_string();
        if files.contains_key(&name) {
            continue;
        }
        match locate(&plugin.value, installation, &loaded.folder, &extra) {
            Ok(path) => {
                files.insert(name, path);
            }
            Err(error) => found.push(Diagnostic::error(plugin.span, error)),
        }
    }
    // Tests that start slowly are in plugins that load slowly.
    let mut limits: BTreeMap<&Path, std::time::Duration> = BTreeMap::new();
    for test in tests() {
        for plugin in test.plugins() {
            let Some(path) = files.get(&plugin.value.to_string()) else { continue };
            let limit = limits.entry(path).or_default();
            *limit = test.start_timeout.max(*limit);
        }
    }
    let described: BTreeMap<PathBuf, Result<PluginDescription, String>> = limits
        .into_iter()
        .map(|(path, limit)| (path.to_owned(), installation.describe_within(path, limit)))
        .collect();
    let mut builder = Builder { files, described: &described, found };
    let scenarios = builder.scenarios(config, selection);
    let problems = described.values().filter_map(|result| result.as_ref().err().cloned()).collect();
    let plugins = described
        .iter()
        .filter_map(|(path, result)| Some((path.clone(), result.as_ref().ok()?.clone())))
        .collect();
    let diagnostics = Diagnostics::new(loaded.source.clone(), builder.found);
    if diagnostics.has_errors() { Err(diagnostics) } else { Ok(Mix { scenarios, problems, plugins }) }
}

fn locate(
    plugin: &PluginRef,
    installation: &Installation,
    folder: &Path,
    extra: &[PathBuf],
) -> Result<PathBuf, String> {
    installation.find_plugin(&plugin.to_string(), folder, extra).map_err(|error| error.to_string())
}

struct Builder<'a> {
    files: BTreeMap<String, PathBuf>,
    described: &'a BTreeMap<PathBuf, Result<PluginDescription, String>>,
    found: Vec<Diagnostic>,
}

impl Builder<'_> {
    fn scenarios(&mut self, config: &Config, selection: &Selection) -> Vec<Scenario> {
        let mut made = Vec::new();
        for (scenario, duration) in config.scenarios.iter().zip(config.allotments()) {
            if selection.scenario.as_ref().is_some_and(|pattern| !pattern.matches(&scenario.name.value)) {
                continue;
            }
            let provided = self.provided(&scenario.tests);
            let mut tests: Vec<ScenarioTest> = Vec::new();
            for entry in &scenario.tests {
                for test in self.expand(entry) {
                    if selection.test.as_ref().is_some_and(|pattern| !pattern.matches(&test.name))
                        || selection.plugin.as_ref().is_some_and(|plugin| *plugin != test.plugin)
                    {
                        continue;
                    }
                    self.add(&mut tests, entry, test, &provided);
                }
            }
            if !tests.is_empty() {
                let randomizer = scenario.randomizer.clone().and_then(|settings| settings.check().ok());
                made.push(Scenario {
                    name: scenario.name.value.clone(),
                    duration,
                    randomizer: randomizer.map(|settings| Randomization { settings, seed: None }),
                    strict: scenario.strict.clone(),
                    dump: scenario.dump,
                    tests,
                });
            }
        }
        made
    }

    /// Adds a test of an entry, and the tests that it contains, unless it is there already.
    fn add(&mut self, tests: &mut Vec<ScenarioTest>, entry: &Test, test: ScenarioTest, provided: &[String]) {
        let container = |test: &ScenarioTest| test.inside.as_ref().map(|inside| inside.container);
        let same = |known: &ScenarioTest| {
            known.plugin == test.plugin && known.name == test.name && container(known) == container(&test)
        };
        if tests.iter().any(same) {
            // A pattern that meets a test named before leaves it as it was written first.
            if entry.name.value.is_name() {
                let place = if test.inside.is_some() { "pot" } else { "scenario" };
                let message = format!("test `{}` of this plugin is in the {place} already", test.name);
                let help = "write the single test before the pattern that also fits it, or rename";
                self.found.push(Diagnostic::error(entry.name.span, message).help(help));
            }
            return;
        }
        let outer = test.inside.is_none();
        let Some(described) = self.described_test(&test) else { return };
        if !is_sound(entry, &described, outer, &mut self.found) {
            return;
        }
        let place = tests.len();
        tests.push(test);
        let Some(pot) = &entry.pot else { return };
        for contained in &pot.contains {
            for mut test in self.expand(&contained.test) {
                test.inside = Some(Inside { container: place, share: contained.share });
                test.workers = 0;
                test.iterations = None;
                self.add(tests, &contained.test, test, provided);
            }
        }
        let inside: Vec<(&ScenarioTest, Vec<String>)> = tests
            .iter()
            .filter(|test| container(test) == Some(place))
            .map(|test| (test, self.described_test(test).map(|test| test.takes).unwrap_or_default()))
            .collect();
        let inside: Vec<(&str, &[String])> =
            inside.iter().map(|(test, takes)| (test.name.as_str(), &takes[..])).collect();
        check_whole(entry, outer, &inside, provided, &mut self.found);
    }

    fn described_test(&self, test: &ScenarioTest) -> Option<crate::catalog::TestDescription> {
        let description = self.description(&test.plugin)?;
        description.tests.iter().find(|known| known.name == test.name).cloned()
    }

    /// Kinds of shared objects that the plugins of a scenario can make.
    fn provided(&self, tests: &[Test]) -> Vec<String> {
        let files = tests.iter().flat_map(Test::plugins).filter_map(|plugin| self.file(&plugin.value));
        let mut kinds: Vec<String> = files
            .filter_map(|file| self.description(&file))
            .flat_map(|plugin| plugin.kinds.iter().map(|kind| kind.name.clone()))
            .collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// The tests that one entry stands for.
    fn expand(&mut self, entry: &Test) -> Vec<ScenarioTest> {
        let Some(path) = self.files.get(&entry.plugin.value.to_string()).cloned() else { return Vec::new() };
        let described = self.described;
        let Some(Ok(description)) = described.get(&path) else { return Vec::new() };
        let fitting: Vec<_> =
            description.tests.iter().filter(|test| entry.name.value.matches(&test.name)).collect();
        if fitting.is_empty() {
            let names: Vec<String> = description.tests.iter().map(|test| test.name.clone()).collect();
            self.found.push(no_test(&entry.name, &path, &names));
        }
        for param in &entry.params {
            let known = |test: &&crate::catalog::TestDescription| {
                test.params.iter().any(|declared| declared.name == param.name.value)
            };
            if !fitting.is_empty() && !fitting.iter().any(known) {
                let names: Vec<String> = fitting
                    .iter()
                    .flat_map(|test| test.params.iter().map(|declared| declared.name.clone()))
                    .collect();
                self.found.push(no_param(&param.name, &entry.name.value, &names));
            }
        }
        let combination = entry.pot.as_ref().map(|pot| {
            let plugins = Lookup { files: &self.files, described: self.described };
            Box::new(combination(pot, &plugins, &mut self.found))
        });
        fitting
            .into_iter()
            .map(|test| ScenarioTest {
                plugin: path.clone(),
                name: test.name.clone(),
                workers: entry.workers,
                hang_timeout: entry.hang_timeout,
                start_timeout: entry.start_timeout,
                cancel_timeout: entry.cancel_timeout,
                iterations: entry.iterations.map(Into::into),
                max_failures: entry.max_failures.map_or(0, Into::into),
                leaks: entry.leaks,
                params: entry
                    .params
                    .iter()
                    .filter(|param| test.params.iter().any(|declared| declared.name == param.name.value))
                    .map(|param| (param.name.value.clone(), param.spec.value.clone()))
                    .collect(),
                repeat: None,
                inside: None,
                combination: combination.clone().filter(|_| test.combines),
                known_average_ns: 0.0,
            })
            .collect()
    }
}

/// What is known of plugins, apart from what was found wrong.
struct Lookup<'a> {
    files: &'a BTreeMap<String, PathBuf>,
    described: &'a BTreeMap<PathBuf, Result<PluginDescription, String>>,
}

impl Plugins for Lookup<'_> {
    fn file(&self, plugin: &PluginRef) -> Option<PathBuf> {
        self.files.get(&plugin.to_string()).cloned()
    }

    fn description(&self, file: &Path) -> Option<&PluginDescription> {
        self.described.get(file)?.as_ref().ok()
    }
}

impl Plugins for Builder<'_> {
    fn file(&self, plugin: &PluginRef) -> Option<PathBuf> {
        self.files.get(&plugin.to_string()).cloned()
    }

    fn description(&self, file: &Path) -> Option<&PluginDescription> {
        self.described.get(file)?.as_ref().ok()
    }
}

fn no_test(name: &At<Pattern>, path: &Path, names: &[String]) -> Diagnostic {
    let written = name.value.as_str();
    let message = format!("no test of {} fits `{written}`", path.display());
    let help = suggestion::help(written, &names.iter().map(String::as_str).collect::<Vec<_>>());
    Diagnostic::error(name.span, message).help(help)
}

fn no_param(name: &At<String>, test: &Pattern, names: &[String]) -> Diagnostic {
    let message = format!("test `{}` draws from no parameter `{}`", test.as_str(), name.value);
    let help = match names {
        [] => "it has none".to_owned(),
        _ => suggestion::help(&name.value, &names.iter().map(String::as_str).collect::<Vec<_>>()),
    };
    Diagnostic::error(name.span, message).help(help)
}
