//! Turns what was written into what will run: fills defaults in and checks what no key can tell alone.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use waylay_dist::format_duration;

use super::allotment::Length;
use super::bytes::ByteSize;
use super::diagnostic::{Diagnostic, Findings};
use super::dump::DumpFormat;
use super::file::{ConfigFile, EvidenceKeys, LeakKeys, ScenarioTable};
use super::mode::Mode;
use super::pattern::Pattern;
use super::randomizer::{self, RandomizerKeys};
use super::settings::{Config, Evidence, Leaks, Overrides, Scenario, default};
use super::source::{At, Span};
use super::test::{Param, PluginRef, Test};
use super::test_table::{TestKeys, TestTable};

/// More threads of one test than this are a slip of the finger.
const MAX_WORKERS: u32 = 1024;

/// The checked config. It is only to be used when nothing was found: what is wrong has been replaced by
/// defaults so that the rest can be checked in the same pass.
pub(super) fn validate(file: ConfigFile, overrides: &Overrides, findings: &Findings) -> Config {
    positive(file.duration, "a campaign's duration", findings);
    names_differ(&file.scenarios, findings);
    if overrides.duration.is_none() {
        times_fit(&file, findings);
    }
    let tables = file.scenarios.iter().filter_map(|scenario| scenario.randomizer.as_ref());
    tables.chain(&file.randomizer).for_each(|table| table.check(findings));
    let leaks = leaks(file.leaks, findings);
    let evidence = evidence(file.evidence, overrides, findings);
    let scenarios = file
        .scenarios
        .into_iter()
        .map(|scenario| {
            self::scenario(scenario, &file.defaults, file.randomizer.as_ref(), (&leaks, &evidence), findings)
        })
        .collect();
    test_keys(&file.defaults, findings);
    Config {
        seed: overrides.seed.or(value(file.seed)),
        duration: overrides.duration.or(value(file.duration)),
        out: overrides.out.clone().or(value(file.out)).unwrap_or_else(|| PathBuf::from(default::OUT)),
        plugin_path: file.plugin_path,
        scenarios,
        leaks,
        evidence,
    }
}

fn value<T>(at: Option<At<T>>) -> Option<T> {
    at.map(|at| at.value)
}

fn positive(time: Option<At<Duration>>, what: &str, findings: &Findings) {
    if let Some(At { value: Duration::ZERO, span }) = time {
        findings.add(Diagnostic::error(span, format!("{what} must be longer than zero")));
    }
}

fn names_differ(scenarios: &[ScenarioTable], findings: &Findings) {
    let mut known: HashMap<&str, Span> = HashMap::new();
    for scenario in scenarios {
        let Some(name) = &scenario.name else { continue };
        let first = *known.entry(&name.value).or_insert(name.span);
        if name.value.is_empty() {
            findings.add(Diagnostic::error(name.span, "a scenario's name cannot be empty"));
        } else if first != name.span {
            findings.add(
                Diagnostic::error(name.span, format!("two scenarios are named `{}`", name.value))
                    .related(first, "the first is here"),
            );
        }
    }
}

/// Every scenario gets time, and those without an end of their own do not keep others from starting.
fn times_fit(file: &ConfigFile, findings: &Findings) {
    let fixed: Duration = file.scenarios.iter().filter_map(|scenario| value(scenario.duration)).sum();
    let open = || file.scenarios.iter().filter(|scenario| scenario.duration.is_none());
    match file.duration {
        Some(total) if fixed > total.value => findings.add(Diagnostic::error(
            total.span,
            format!("the scenarios last {} together, longer than the campaign", format_duration(fixed)),
        )),
        Some(total) if fixed == total.value && fixed > Duration::ZERO => {
            for scenario in open() {
                findings.add(
                    Diagnostic::error(scenario.span, "no time is left for this scenario")
                        .related(total.span, "the others take all of the campaign"),
                );
            }
        }
        Some(_) => {}
        None => {
            let endless = |scenario: &&ScenarioTable| {
                let counted = |test: &TestTable| {
                    test.keys.iterations.or(scenario.strict.runs).or(file.defaults.iterations).is_some()
                };
                scenario.duration.is_none() && !scenario.tests.iter().all(counted)
            };
            let last = file.scenarios.len().saturating_sub(1);
            for scenario in file.scenarios[..last].iter().filter(endless) {
                findings.add(
                    Diagnostic::error(
                        scenario.span,
                        "this scenario would never end and the next never start",
                    )
                    .help("give it a `duration`, or give the campaign one"),
                );
            }
        }
    }
}

fn scenario(
    table: ScenarioTable,
    defaults: &TestKeys,
    general: Option<&RandomizerKeys>,
    (leaks, evidence): (&Leaks, &Evidence),
    findings: &Findings,
) -> Scenario {
    let mode = table.mode.unwrap_or(At::new(Mode::Free, table.span));
    if let Err(reason) = mode.value.available() {
        findings.add(
            Diagnostic::error(mode.span, format!("mode `{}` cannot run: {reason}", mode.value))
                .help("`free` can"),
        );
    }
    let randomizer = randomizer::wanted(mode, general, table.randomizer.as_ref(), findings);
    positive(table.duration, "a scenario's duration", findings);
    if let Some(share) = table.share {
        if !(share.value > 0.0 && share.value.is_finite()) {
            findings.add(Diagnostic::error(share.span, "a share must be greater than 0"));
        }
        if let Some(duration) = table.duration {
            findings.add(
                Diagnostic::error(share.span, "a scenario has a duration or a share, not both")
                    .related(duration.span, "its duration is here"),
            );
        }
    }
    let strict = match mode.value {
        Mode::Strict => Some(table.strict.check(findings)),
        other => {
            table.strict.refuse(other, findings);
            None
        }
    };
    let tests: Vec<Test> = table
        .tests
        .into_iter()
        .map(|test| {
            if let (Some(leaks), Some(_)) = (test.keys.leaks.filter(|leaks| leaks.value), &strict) {
                findings.add(
                    Diagnostic::error(leaks.span, "leaks are not looked for in strict mode")
                        .help("run the test in a `free` scenario, too"),
                );
            }
            let own = test.keys.iterations.is_some();
            let mut test = self::test(test, defaults, leaks, findings);
            if let Some(strict) = &strict {
                without_leaks(&mut test);
                test.iterations = if own { test.iterations } else { strict.runs.or(test.iterations) };
            }
            test
        })
        .collect();
    let mut known: HashMap<(&PluginRef, &Pattern), Span> = HashMap::new();
    for test in &tests {
        let first = *known.entry((&test.plugin.value, &test.name.value)).or_insert(test.name.span);
        if first != test.name.span {
            findings.add(
                Diagnostic::error(
                    test.name.span,
                    format!("`{}` of `{}` is in this scenario twice", test.name.value, test.plugin.value),
                )
                .related(first, "the first is here"),
            );
        }
    }
    Scenario {
        name: table.name.unwrap_or(At::new(String::new(), table.span)),
        mode: if randomizer.is_some() { Mode::Randomized } else { mode.value },
        randomizer,
        length: match table.duration {
            Some(duration) => Length::Fixed(duration.value),
            None => Length::Share(value(table.share).unwrap_or(default::SHARE)),
        },
        strict,
        dump: value(table.dump).unwrap_or(evidence.dump),
        tests,
    }
}

/// Nobody looks for leaks of the test, nor of those that it contains.
fn without_leaks(test: &mut Test) {
    test.leaks = false;
    for inside in test.pot.iter_mut().flat_map(|pot| &mut pot.contains) {
        without_leaks(&mut inside.test);
    }
}

fn test(table: TestTable, defaults: &TestKeys, leaks: &Leaks, findings: &Findings) -> Test {
    let TestTable { span, plugin, name, keys, params, share: _, pot } = table;
    if let Some(plugin) = plugin.as_ref().filter(|plugin| plugin.value.is_empty()) {
        findings.add(Diagnostic::error(plugin.span, "a plugin's name cannot be empty"));
    }
    test_keys(&keys, findings);
    Test {
        plugin: plugin.unwrap_or(At::new(String::new(), span)).map(|text| PluginRef::new(&text)),
        name: name.unwrap_or(At::new(Pattern::new("*"), span)),
        workers: value(keys.workers.or(defaults.workers)).unwrap_or(default::WORKERS),
        hang_timeout: value(keys.hang_timeout.or(defaults.hang_timeout)).unwrap_or(default::HANG_TIMEOUT),
        start_timeout: value(keys.start_timeout.or(defaults.start_timeout)).unwrap_or(default::START_TIMEOUT),
        cancel_timeout: value(keys.cancel_timeout.or(defaults.cancel_timeout))
            .unwrap_or(default::CANCEL_TIMEOUT),
        iterations: value(keys.iterations.or(defaults.iterations)).and_then(NonZeroU64::new),
        max_failures: NonZeroU64::new(
            value(keys.max_failures.or(defaults.max_failures)).unwrap_or(default::MAX_FAILURES),
        ),
        leaks: value(keys.leaks.or(defaults.leaks)).unwrap_or(leaks.enabled),
        params: params
            .into_iter()
            .filter_map(|(name, placed)| {
                let dist = placed.check(findings)?;
                Some(Param { name, spec: placed.spec, dist })
            })
            .collect(),
        pot: pot.check(&mut |table| test(table, defaults, leaks, findings), findings),
    }
}

fn test_keys(keys: &TestKeys, findings: &Findings) {
    if let Some(workers) = keys.workers {
        if workers.value == 0 {
            findings.add(Diagnostic::error(workers.span, "a test needs at least one worker"));
        } else if workers.value > MAX_WORKERS {
            findings
                .add(Diagnostic::error(workers.span, format!("a test has at most {MAX_WORKERS} workers")));
        }
    }
    positive(keys.hang_timeout, "a timeout", findings);
    positive(keys.start_timeout, "a timeout", findings);
    positive(keys.cancel_timeout, "a timeout", findings);
    if let Some(iterations) = keys.iterations.filter(|iterations| iterations.value == 0) {
        findings.add(
            Diagnostic::error(iterations.span, "a test that stops after 0 iterations never runs")
                .help("leave `iterations` out to run until the scenario ends"),
        );
    }
}

fn leaks(keys: LeakKeys, findings: &Findings) -> Leaks {
    if let Some(At { value: ByteSize(0), span }) = keys.sample_bytes {
        findings.add(
            Diagnostic::error(span, "sample-bytes must be greater than 0").help("\"1B\" samples everything"),
        );
    }
    positive(keys.warm_up, "a warm-up", findings);
    if let Some(rate) = keys.false_alarms_per_hour
        && !(rate.value > 0.0 && rate.value < 1.0)
    {
        findings.add(Diagnostic::error(rate.span, "false-alarms-per-hour must lie between 0 and 1"));
    }
    Leaks {
        enabled: value(keys.enabled).unwrap_or(true),
        sample_bytes: value(keys.sample_bytes).unwrap_or(default::SAMPLE_BYTES),
        warm_up: value(keys.warm_up).unwrap_or(default::LEAK_WARM_UP),
        false_alarms_per_hour: value(keys.false_alarms_per_hour).unwrap_or(default::FALSE_ALARMS_PER_HOUR),
        handles: value(keys.handles).unwrap_or(true),
        threads: value(keys.threads).unwrap_or(true),
    }
}

fn evidence(keys: EvidenceKeys, overrides: &Overrides, findings: &Findings) -> Evidence {
    if let Some(signatures) = keys.max_signatures.filter(|signatures| signatures.value == 0) {
        findings.add(Diagnostic::error(signatures.span, "at least one signature must be kept"));
    }
    if let Some(limit) = keys.log_limit.filter(|limit| limit.value < ByteSize(4096)) {
        findings.add(Diagnostic::error(limit.span, "a log needs at least 4KiB"));
    }
    if let Some(limit) = keys.dump_limit.filter(|limit| limit.value < ByteSize(1 << 20)) {
        findings.add(
            Diagnostic::error(limit.span, "a dump needs at least 1MiB").help("`dump = \"none\"` writes none"),
        );
    }
    let mut dump_format: Vec<DumpFormat> = Vec::new();
    for format in keys.dump_format {
        match dump_format.contains(&format.value) {
            true => findings
                .add(Diagnostic::error(format.span, format!("`{}` is there twice", format.value.name()))),
            false => dump_format.push(format.value),
        }
    }
    if !keys.has_formats {
        dump_format.push(default::DUMP_FORMAT);
    }
    Evidence {
        dump: value(keys.dump).unwrap_or(default::DUMP),
        dump_format,
        dump_limit: value(keys.dump_limit).unwrap_or(default::DUMP_LIMIT),
        dumps_per_signature: value(keys.dumps_per_signature).unwrap_or(default::DUMPS_PER_SIGNATURE),
        max_signatures: value(keys.max_signatures).unwrap_or(default::MAX_SIGNATURES),
        keep_hung: overrides.keep_hung.or(value(keys.keep_hung)).unwrap_or(false),
        log_limit: value(keys.log_limit).unwrap_or(default::LOG_LIMIT),
        mode: value(keys.mode).unwrap_or_default(),
        redact: keys.redact.into_iter().map(|pattern| pattern.value).collect(),
    }
}
