//! What a config file means: defaults, overrides, and that the effective config reads back.

#[path = "config_reading/layers.rs"]
mod layers;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use waylay_control_protocol::{Level, RunConditions};
use waylay_dist::{Dist, Seed, Spec};
use waylay_driver::config::{
    At, ByteSize, Config, Contained, DumpFormat, Evidence, FileMode, HooksRef, Leaks, Length, Loaded, Mode,
    Objects, Overrides, Param, Pattern, PluginRef, Pot, PotRule, Scenario, Source, Span, Strict, Test, load,
    parse,
};
use waylay_evidence::DumpSize;

fn read(text: &str) -> Loaded {
    parse(Source::new("test.toml", text), &Overrides::default())
        .unwrap_or_else(|problems| panic!("{problems}"))
}

/// As editors on Windows save it.
#[test]
fn a_mark_at_the_beginning_and_long_line_ends_are_no_part_of_the_text() {
    let text = "\u{feff}out = \"elsewhere\"\r\n[[scenario]]\r\nname = \"s\"\r\n\
                [[scenario.test]]\r\nplugin = \"a/b/c.dll\"\r\n";
    let loaded = read(text);
    assert_eq!(loaded.config.out, std::path::Path::new("elsewhere"));
    assert_eq!(loaded.config.scenarios.len(), 1);
}

#[test]
fn every_key_is_read() {
    let config = read(
        r#"
seed = "0x5eed"
duration = "30s"
out = "elsewhere"
plugin-path = ["plugins", "more"]

[defaults]
workers = 4
hang-timeout = "5s"
max-failures = 3

[[scenario]]
name = "libraries"
mode = "free"
duration = "20s"

  [[scenario.test]]
  plugin = "waylay_libraries"
  name = "channel-*"
  workers = 8
  start-timeout = "1s"
  cancel-timeout = "2s"
  iterations = 100000
  leaks = false
    [scenario.test.params]
    batch = { uniform = { min = 1, max = 64 } }
    pause = "5ms"

  [[scenario.test]]
  plugin = "./build/libother.so"
  max-failures = 0

[[scenario]]
name = "rest"
share = 2
  [[scenario.test]]
  plugin = "p"
  name = "one"

[leaks]
enabled = false
sample-bytes = "64KiB"
warm-up = "250ms"
false-alarms-per-hour = 0.01
handles = false
threads = false

[evidence]
dump = "heap"
dump-format = ["minidump"]
dump-limit = "64MiB"
dumps-per-signature = 0
max-signatures = 5
keep-hung = true
log-limit = "1MiB"
mode = "0640"
redact = ["INTERNAL_*"]
"#,
    )
    .config;
    assert_eq!(config.seed, Some(Seed::new(0x5eed)));
    assert_eq!(config.duration, Some(Duration::from_secs(30)));
    assert_eq!(config.out, Path::new("elsewhere"));
    assert_eq!(config.plugin_path[1].value, Path::new("more"));
    assert_eq!(config.allotments(), [20, 10].map(|s| Some(Duration::from_secs(s))));
    assert_eq!(
        config.leaks,
        Leaks {
            enabled: false,
            sample_bytes: ByteSize(64 << 10),
            warm_up: Duration::from_millis(250),
            false_alarms_per_hour: 0.01,
            handles: false,
            threads: false
        }
    );
    assert_eq!(
        config.evidence,
        Evidence {
            dump: DumpSize::Heap,
            dump_format: vec![DumpFormat::Minidump],
            dump_limit: ByteSize(64 << 20),
            dumps_per_signature: 0,
            max_signatures: 5,
            keep_hung: true,
            log_limit: ByteSize(1 << 20),
            mode: FileMode(0o640),
            redact: vec![Pattern::new("INTERNAL_*")],
        }
    );

    let [libraries, rest] = &config.scenarios[..] else { panic!("two scenarios") };
    assert_eq!((libraries.name.value.as_str(), libraries.mode), ("libraries", Mode::Free));
    assert_eq!(libraries.length, Length::Fixed(Duration::from_secs(20)));
    assert_eq!(rest.length, Length::Share(2.0));
    let [first, second] = &libraries.tests[..] else { panic!("two tests") };
    assert_eq!(first.plugin.value, PluginRef::Name("waylay_libraries".to_owned()));
    assert!(first.name.value.matches("channel-mpsc"));
    assert_eq!(first.workers, 8);
    assert_eq!(first.hang_timeout, Duration::from_secs(5));
    assert_eq!(first.start_timeout, Duration::from_secs(1));
    assert_eq!(first.cancel_timeout, Duration::from_secs(2));
    assert_eq!(first.iterations, NonZeroU64::new(100_000));
    assert_eq!(first.max_failures, NonZeroU64::new(3));
    assert!(!first.leaks);
    let names: Vec<_> = first.params.iter().map(|param| param.name.value.as_str()).collect();
    assert_eq!(names, ["batch", "pause"]);
    let draw = first.params[1].dist.sample_duration(&mut Seed::new(1).component("x"));
    assert_eq!(draw, Duration::from_millis(5));
    assert_eq!(second.plugin.value, PluginRef::Path("./build/libother.so".into()));
    assert_eq!((second.workers, second.max_failures), (4, None));
    assert_eq!(second.name.value, Pattern::new("*"));
}

#[test]
fn the_effective_config_shows_every_default() {
    let text = read("[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = 'p'\n").config.to_string();
    let expected = r#"out = "waylay-out"
plugin-path = []

[[scenario]]
name = "a"
mode = "free"
share = 1.0
dump = "mini"

  [[scenario.test]]
  plugin = "p"
  name = "*"
  workers = 2
  hang-timeout = "10s"
  start-timeout = "30s"
  cancel-timeout = "5s"
  max-failures = 10
  leaks = true

[leaks]
enabled = true
sample-bytes = "512KiB"
warm-up = "8s"
false-alarms-per-hour = 0.000001
handles = true
threads = true

[evidence]
dump = "mini"
dump-format = ["minidump"]
dump-limit = "1GiB"
dumps-per-signature = 3
max-signatures = 1000
keep-hung = false
log-limit = "10MiB"
mode = "0600"
redact = []
"#;
    assert!(text == expected, "{text}");
}

#[test]
fn tests_follow_the_leaks_table_unless_they_say() {
    let text = |more: &str| {
        format!(
            "leaks = {{ enabled = false }}\n[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = 'p'\n{more}"
        )
    };
    assert!(!read(&text("")).config.scenarios[0].tests[0].leaks);
    assert!(read(&text("leaks = true")).config.scenarios[0].tests[0].leaks);
}

#[test]
fn the_command_line_goes_before_the_file() {
    let text =
        "seed = 1\nduration = '1m'\nout = 'a'\n[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = 'p'\n";
    let overrides = Overrides {
        seed: Some(Seed::new(2)),
        duration: Some(Duration::from_secs(3)),
        out: Some(PathBuf::from("b")),
        keep_hung: Some(true),
        ..Overrides::default()
    };
    let config = parse(Source::new("x", text), &overrides).expect("fine").config;
    assert_eq!(config.seed, overrides.seed);
    assert_eq!(config.allotments(), [overrides.duration]);
    assert_eq!(config.out, Path::new("b"));
    assert!(config.evidence.keep_hung);
}

#[test]
fn paths_are_relative_to_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.toml");
    let text = "plugin-path = ['plugins']\n[[scenario]]\nname = 'a'\n[[scenario.test]]\nplugin = 'p'\n";
    std::fs::write(&path, text).expect("written");
    let loaded = load(&path, &Overrides::default()).expect("fine");
    assert_eq!(loaded.plugin_folders(), [folder.path().join("plugins")]);
    assert_eq!(loaded.source.name(), path.display().to_string());
}

#[test]
fn plugins_by_name_and_by_path() {
    for name in ["waylay_libraries", "p", "my.plugin"] {
        assert_eq!(PluginRef::new(name), PluginRef::Name(name.to_owned()));
    }
    for path in ["./p", "a/b", "libp.so", "p.dll", "C:\\p.dll", "libp.dylib"] {
        assert_eq!(PluginRef::new(path), PluginRef::Path(path.into()));
    }
}

fn at<T>(value: T) -> At<T> {
    At::new(value, Span::default())
}

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![1_u64..1000, 1_u64..10_000_000_000, 1_u64..1_000_000_000_000_000]
        .prop_map(Duration::from_nanos)
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z][a-z0-9-]{0,12}", "\\PC{1,8}", Just("quote \" back \\ tab \t line \n".to_owned())]
}

fn param() -> impl Strategy<Value = Param> {
    let spec = prop_oneof![
        any::<i64>().prop_map(|n| format!("{n}")),
        (-1e9..1e9_f64).prop_map(|x| format!("{x:?}")),
        Just("'5ms'".to_owned()),
        (any::<i32>(), any::<u16>()).prop_map(|(a, n)| format!(
            "{{ uniform = {{ min = {a}, max = {} }} }}",
            i64::from(a) + i64::from(n)
        )),
        (-1e9..1e9_f64, 1e-9..1e9_f64)
            .prop_map(|(m, s)| format!("{{ gaussian = {{ mean = {m:?}, sigma = {s:?}, min = -3 }} }}")),
        (1..1000_u32)
            .prop_map(|n| format!("{{ exponential = {{ min = '0s', max = '{n}us', rate = 5.0 }} }}")),
        (0.0..=1.0_f64).prop_map(|p| format!(
            "{{ weighted = [{{ min = 0, max = 1, p = {p:?} }}, {{ min = 2, max = 2, p = {:?} }}] }}",
            1.0 - p
        )),
    ];
    (name(), spec).prop_map(|(name, spec)| {
        let spec: Spec = spec.parse().expect("a spec");
        Param { name: at(name), dist: Dist::new(&spec).expect("a distribution"), spec: at(spec) }
    })
}

/// A test that may contain others.
fn test() -> impl Strategy<Value = Test> {
    let contained = proptest::collection::vec((simple_test(), 1e-3..1e3_f64), 0..3);
    let objects = proptest::collection::vec((name(), param()), 0..3);
    let pot = (contained, objects, time(), time(), any::<bool>(), any::<bool>());
    (simple_test(), proptest::option::of(pot)).prop_map(|(mut test, pot)| {
        test.pot = pot.map(|(contains, objects, one, other, barrier, literal)| {
            let contains = contains.into_iter().map(|(test, share)| Contained { test: inside(test), share });
            let objects = objects.into_iter().enumerate().map(|(i, (plugin, param))| Objects {
                kind: at(format!("kind{i}")),
                plugin: (i == 0).then(|| at(PluginRef::new(&plugin))),
                count: Some(param.spec.clone()),
                life: (i == 1).then_some(param.spec),
            });
            Box::new(Pot {
                contains: contains.collect(),
                rule: if literal { PotRule::Literal } else { PotRule::Fair },
                barrier,
                shortest_turn: one.min(other),
                longest_turn: one.max(other),
                objects: objects.collect(),
                hooks: vec![HooksRef { plugin: at(PluginRef::new("looker")), name: at("looks".to_owned()) }],
            })
        });
        test
    })
}

/// A contained test has no workers and no iterations of its own: it reads back with the defaults.
fn inside(test: Test) -> Test {
    Test { workers: 2, iterations: None, ..test }
}

fn simple_test() -> impl Strategy<Value = Test> {
    let timing = (time(), time(), time());
    let counts = (1..=1024_u32, any::<u64>(), any::<u64>());
    let params = proptest::collection::vec(param(), 0..4);
    (name(), name(), timing, counts, any::<bool>(), params).prop_map(
        |(plugin, pattern, (hang_timeout, start_timeout, cancel_timeout), counts, leaks, mut params)| {
            // A table has its keys once and in order.
            params.sort_by(|a, b| a.name.value.cmp(&b.name.value));
            params.dedup_by(|a, b| a.name == b.name);
            Test {
                plugin: at(PluginRef::new(&plugin)),
                name: at(Pattern::new(pattern)),
                workers: counts.0,
                hang_timeout,
                start_timeout,
                cancel_timeout,
                iterations: NonZeroU64::new(counts.1 % 3),
                max_failures: NonZeroU64::new(counts.2),
                leaks,
                params,
                pot: None,
            }
        },
    )
}

fn scenarios() -> impl Strategy<Value = Vec<Scenario>> {
    let length = prop_oneof![time().prop_map(Length::Fixed), (1e-6..1e6_f64).prop_map(Length::Share)];
    let tests = proptest::collection::vec(test(), 1..4);
    let strict = (
        0..4_usize,
        proptest::option::of(1_u64..1_000_000),
        1_u64..1_000_000,
        any::<[bool; 3]>(),
        0..4_usize,
    );
    let strict =
        proptest::option::of(strict.prop_map(|(strategy, runs, steps, [idle, patch, limit], level)| {
            Strict {
                strategy: ["pct:depth=2", "random", "pb:bound=3", "portfolio:pct:depth=3+pos"][strategy]
                    .parse()
                    .unwrap(),
                runs: runs.and_then(NonZeroU64::new),
                stop_after_quiet: NonZeroU64::new(steps).filter(|_| limit),
                limit_is_failure: limit,
                conditions: RunConditions {
                    max_steps: steps,
                    idle_timeouts: idle,
                    patch,
                    memory_modules: if limit { vec!["libz.so.1".to_owned()] } else { Vec::new() },
                    ..RunConditions::of_test(Level::ALL[level])
                },
                minimize: waylay_driver::config::Minimizing(patch.then_some(Duration::from_secs(7))),
            }
        }));
    proptest::collection::vec((name(), length, tests, strict), 1..4).prop_map(|list| {
        let mut scenarios: Vec<Scenario> = Vec::new();
        for (i, (name, length, tests, strict)) in list.into_iter().enumerate() {
            let mut unlike: Vec<Test> = Vec::new();
            for mut test in tests {
                if let Some(strict) = &strict {
                    test.leaks = false;
                    test.pot = None;
                    test.iterations = test.iterations.or(strict.runs);
                }
                if !unlike.iter().any(|other| other.plugin == test.plugin && other.name == test.name) {
                    unlike.push(test);
                }
            }
            let name = at(format!("{i}{name}"));
            let mode = if strict.is_some() { Mode::Strict } else { Mode::Free };
            scenarios.push(Scenario {
                name,
                mode,
                randomizer: None,
                length,
                strict,
                dump: DumpSize::ALL[i % 4],
                tests: unlike,
            });
        }
        scenarios
    })
}

fn config() -> impl Strategy<Value = Config> {
    let leaks = (any::<bool>(), 1_u64.., time(), 1e-12..0.9_f64, any::<bool>(), any::<bool>()).prop_map(
        |(enabled, bytes, warm_up, false_alarms_per_hour, handles, threads)| Leaks {
            enabled,
            sample_bytes: ByteSize(bytes),
            warm_up,
            false_alarms_per_hour,
            handles,
            threads,
        },
    );
    let evidence = (any::<u32>(), 1_u32.., any::<bool>(), 4096_u64..).prop_map(
        |(dumps_per_signature, max_signatures, keep_hung, limit)| Evidence {
            dump: DumpSize::ALL[max_signatures as usize % 4],
            dump_format: if keep_hung { vec![DumpFormat::Minidump] } else { Vec::new() },
            dump_limit: ByteSize(limit | 1 << 20),
            dumps_per_signature,
            max_signatures,
            keep_hung,
            log_limit: ByteSize(limit),
            mode: FileMode(if keep_hung { 0o644 } else { 0o600 }),
            redact: vec![Pattern::new("A?*")],
        },
    );
    let paths = proptest::collection::vec(name(), 0..3);
    (proptest::option::of(any::<u64>()), name(), paths, scenarios(), leaks, evidence).prop_map(
        |(seed, out, paths, scenarios, leaks, evidence)| Config {
            seed: seed.map(Seed::new),
            // Long enough for every fixed length, and something over for the shares.
            duration: Some(Duration::from_secs(10_000_000)),
            out: PathBuf::from(out),
            plugin_path: paths.into_iter().map(|path| at(PathBuf::from(path))).collect(),
            scenarios,
            leaks,
            evidence,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_effective_config_reads_back(config in config()) {
        let text = config.to_string();
        match parse(Source::new("effective.toml", text.clone()), &Overrides::default()) {
            Ok(loaded) => prop_assert_eq!(loaded.config, config),
            Err(problems) => prop_assert!(false, "{}\n{}", problems, text),
        }
    }

    /// Whatever the text, reading it ends in a config or in problems that can be shown.
    #[test]
    fn no_text_breaks_the_reader(lines in proptest::collection::vec(line(), 0..12)) {
        let text = lines.join("\n");
        if let Err(problems) = parse(Source::new("x", text), &Overrides::default()) {
            prop_assert!(problems.has_errors());
            prop_assert!(problems.render(true).contains("x:"));
        }
    }
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,20}",
        Just("[[scenario]]".to_owned()),
        Just("  [[scenario.test]]".to_owned()),
        Just("[scenario.test.params]".to_owned()),
        Just("[leaks]".to_owned()),
        Just("x = { uniform = { min = 1, max = \"2\" } }".to_owned()),
        ("[a-z-]{1,9}", "\\PC{0,9}").prop_map(|(key, value)| format!("{key} = {value}")),
        ("(name|mode|seed|share|workers|plugin|duration)", "([0-9]{1,25}|'[a-z]*'|\\[\\]|\\{\\}|nan|tru)")
            .prop_map(|(key, value)| format!("{key} = {value}")),
    ]
}

#[test]
fn who_is_randomized_and_how() {
    let read = |text: &str| {
        let loaded =
            parse(Source::new("x", text), &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        let again = parse(Source::new("y", loaded.config.to_string()), &Overrides::default());
        assert_eq!(again.expect("reads back").config, loaded.config, "{}", loaded.config);
        loaded.config
    };
    let scenario = |name: &str, more: &str| {
        format!("[[scenario]]\nname = '{name}'\nduration = '1s'\n{more}\n[[scenario.test]]\nplugin = 'p'\n")
    };
    let plain = [
        scenario("a", ""),
        scenario("b", "mode = 'free'"),
        scenario("c", "mode = 'randomized'"),
        scenario("d", "[scenario.randomizer]\ncount = 3\ninclude = ['w*', 'x\"y']"),
        scenario("e", "[scenario.randomizer]\nenabled = false"),
    ]
    .concat();
    let modes = |config: &Config| -> String {
        let letter = |scenario: &Scenario| match (scenario.mode, &scenario.randomizer) {
            (Mode::Free, None) => 'f',
            (Mode::Randomized, Some(_)) => 'r',
            other => panic!("{other:?}"),
        };
        config.scenarios.iter().map(letter).collect()
    };
    assert_eq!(modes(&read(&plain)), "ffrrf");
    let general = "[randomizer]\nsuspend = '3ms'\ncount = 2\n";
    let config = read(&format!("{plain}{general}"));
    assert_eq!(modes(&config), "rrrrf");
    assert_eq!(modes(&read(&format!("{plain}{general}enabled = false\n"))), "ffrrf");
    let text = |index: usize, key: fn(&waylay_randomizer::RawSettings) -> &Option<Spec>| {
        let settings = config.scenarios[index].randomizer.as_ref().expect("randomized");
        key(settings).as_ref().expect("filled in").to_string()
    };
    // The scenario's own keys win over those at the top, and those over the defaults.
    assert_eq!(text(0, |s| &s.count), "{ uniform = { min = 2, max = 2 } }");
    assert_eq!(text(3, |s| &s.count), "{ uniform = { min = 3, max = 3 } }");
    assert_eq!(text(3, |s| &s.suspend), "{ uniform = { min = \"3ms\", max = \"3ms\" } }");
    assert_eq!(text(3, |s| &s.period), "{ uniform = { min = \"0s\", max = \"2ms\" } }");
}
