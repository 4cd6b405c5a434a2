//! The config that is in effect, as TOML: every key of every test, defaults included.
//!
//! What is printed reads back as the same [`Config`].

use std::fmt;

use waylay_dist::{Spec, format_duration};
use waylay_randomizer::RawSettings;

use super::allotment::Length;
use super::settings::{Config, Scenario};
use super::test::{Contained, Pot, Test};

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seed) = self.seed {
            writeln!(f, "seed = \"{seed}\"")?;
        }
        if let Some(duration) = self.duration {
            writeln!(f, "duration = \"{}\"", format_duration(duration))?;
        }
        writeln!(f, "out = {}", quoted(self.out.display()))?;
        let folders: Vec<_> = self.plugin_path.iter().map(|folder| quoted(folder.value.display())).collect();
        writeln!(f, "plugin-path = [{}]", folders.join(", "))?;
        for scenario in &self.scenarios {
            write_scenario(f, scenario)?;
        }

        let leaks = &self.leaks;
        writeln!(f, "\n[leaks]")?;
        writeln!(f, "enabled = {}", leaks.enabled)?;
        writeln!(f, "sample-bytes = \"{}\"", leaks.sample_bytes)?;
        writeln!(f, "warm-up = \"{}\"", format_duration(leaks.warm_up))?;
        writeln!(f, "false-alarms-per-hour = {}", toml::Value::from(leaks.false_alarms_per_hour))?;
        writeln!(f, "handles = {}", leaks.handles)?;
        writeln!(f, "threads = {}", leaks.threads)?;

        let evidence = &self.evidence;
        writeln!(f, "\n[evidence]")?;
        writeln!(f, "dump = \"{}\"", evidence.dump.name())?;
        let formats: Vec<_> = evidence.dump_format.iter().map(|format| quoted(format.name())).collect();
        writeln!(f, "dump-format = [{}]", formats.join(", "))?;
        writeln!(f, "dump-limit = \"{}\"", evidence.dump_limit)?;
        writeln!(f, "dumps-per-signature = {}", evidence.dumps_per_signature)?;
        writeln!(f, "max-signatures = {}", evidence.max_signatures)?;
        writeln!(f, "keep-hung = {}", evidence.keep_hung)?;
        writeln!(f, "log-limit = \"{}\"", evidence.log_limit)?;
        writeln!(f, "mode = \"{}\"", evidence.mode)?;
        let names: Vec<_> = evidence.redact.iter().map(quoted).collect();
        writeln!(f, "redact = [{}]", names.join(", "))
    }
}

fn write_scenario(f: &mut fmt::Formatter<'_>, scenario: &Scenario) -> fmt::Result {
    writeln!(f, "\n[[scenario]]")?;
    writeln!(f, "name = {}", quoted(&scenario.name.value))?;
    writeln!(f, "mode = \"{}\"", scenario.mode)?;
    match scenario.length {
        Length::Fixed(duration) => writeln!(f, "duration = \"{}\"", format_duration(duration))?,
        Length::Share(share) => writeln!(f, "share = {}", toml::Value::from(share))?,
    }
    writeln!(f, "dump = \"{}\"", scenario.dump.name())?;
    if let Some(strict) = &scenario.strict {
        writeln!(f, "strategy = {}", quoted(&strict.strategy))?;
        if let Some(runs) = strict.runs {
            writeln!(f, "runs = {runs}")?;
        }
        if let Some(quiet) = strict.stop_after_quiet {
            writeln!(f, "stop-after-quiet = {quiet}")?;
        }
        let conditions = &strict.conditions;
        writeln!(f, "max-steps = {}", conditions.max_steps)?;
        writeln!(f, "limit-is-failure = {}", strict.limit_is_failure)?;
        writeln!(f, "idle-timeouts = {}", conditions.idle_timeouts)?;
        if !conditions.memory.is_sequential() {
            writeln!(f, "memory = \"{}\"", conditions.memory.name())?;
        }
        writeln!(f, "level = \"{}\"", conditions.level.name())?;
        let patches: Vec<_> = conditions.patches().iter().map(|patch| quoted(patch.to_string())).collect();
        writeln!(f, "patch = [{}]", patches.join(", "))?;
        writeln!(f, "minimize = \"{}\"", strict.minimize)?;
    }
    if let Some(settings) = &scenario.randomizer {
        write_randomizer(f, settings)?;
    }
    scenario.tests.iter().try_for_each(|test| write_test(f, test, "scenario.test", None))
}

fn write_randomizer(f: &mut fmt::Formatter<'_>, settings: &RawSettings) -> fmt::Result {
    writeln!(f, "\n  [scenario.randomizer]")?;
    let RawSettings { period, suspend, count, include, exclude } = settings;
    let mut line = |key: &str, spec: &Option<Spec>| match spec {
        Some(spec) => writeln!(f, "  {key} = {spec}"),
        None => Ok(()),
    };
    line("period", period)?;
    line("suspend", suspend)?;
    line("count", count)?;
    for (key, names) in [("include", include), ("exclude", exclude)] {
        if !names.is_empty() {
            let names: Vec<_> = names.iter().map(quoted).collect();
            writeln!(f, "  {key} = [{}]", names.join(", "))?;
        }
    }
    Ok(())
}

/// Writes a test at that path; one with a share is contained in another.
fn write_test(f: &mut fmt::Formatter<'_>, test: &Test, path: &str, share: Option<f64>) -> fmt::Result {
    writeln!(f, "\n  [[{path}]]")?;
    writeln!(f, "  plugin = {}", quoted(&test.plugin.value))?;
    writeln!(f, "  name = {}", quoted(&test.name.value))?;
    match share {
        Some(share) => writeln!(f, "  share = {}", toml::Value::from(share))?,
        None => writeln!(f, "  workers = {}", test.workers)?,
    }
    writeln!(f, "  hang-timeout = \"{}\"", format_duration(test.hang_timeout))?;
    writeln!(f, "  start-timeout = \"{}\"", format_duration(test.start_timeout))?;
    writeln!(f, "  cancel-timeout = \"{}\"", format_duration(test.cancel_timeout))?;
    if let Some(iterations) = test.iterations.filter(|_| share.is_none()) {
        writeln!(f, "  iterations = {iterations}")?;
    }
    writeln!(f, "  max-failures = {}", test.max_failures.map_or(0, u64::from))?;
    writeln!(f, "  leaks = {}", test.leaks)?;
    if !test.params.is_empty() {
        writeln!(f, "    [{path}.params]")?;
    }
    for param in &test.params {
        writeln!(f, "    {} = {}", key(&param.name.value), param.spec.value)?;
    }
    match &test.pot {
        Some(pot) => write_pot(f, pot, path, &|f, contained, path| {
            write_test(f, &contained.test, path, Some(contained.share))
        }),
        None => Ok(()),
    }
}

/// A key: bare where TOML allows it.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { basic(name) }
}

/// Writes the tables of a pot at that path, such as `scenario.test`. `test` writes a contained test's own keys.
fn write_pot(
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

/// A text as a value. What looks like a variable is meant as it stands: it was replaced when it was read.
fn quoted(text: impl fmt::Display) -> String {
    basic(&text.to_string().replace("${", "$${"))
}

/// A basic string on one line, which can stand for a value and for a key.
fn basic(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
