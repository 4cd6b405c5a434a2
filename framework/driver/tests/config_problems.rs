//! What a user sees when a config file is wrong: exact texts.

use waylay_driver::config::{Diagnostic, LoadError, Overrides, Source, load, parse};

/// A config that is fine, to which each test adds one thing that is not.
const FINE: &str = r#"[[scenario]]
name = "libraries"

  [[scenario.test]]
  plugin = "waylay_libraries"
"#;

fn problems(text: &str) -> String {
    match parse(Source::new("nightly.toml", text), &Overrides::default()) {
        Ok(_) => String::new(),
        Err(diagnostics) => diagnostics.to_string(),
    }
}

/// Messages and helps only, one line each.
fn messages(text: &str) -> Vec<String> {
    match parse(Source::new("nightly.toml", text), &Overrides::default()) {
        Ok(_) => Vec::new(),
        Err(diagnostics) => diagnostics
            .iter()
            .map(|diagnostic| {
                let line = diagnostics.source().position(diagnostic.span.start).line;
                let help = diagnostic.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
                format!("{line}: {}{help}", diagnostic.message)
            })
            .collect(),
    }
}

#[track_caller]
fn assert_text(found: &str, expected: &str) {
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

#[test]
fn nothing_is_wrong_with_a_fine_config() {
    assert_text(&problems(FINE), "");
}

#[test]
fn every_problem_is_shown_in_one_pass() {
    let text = r#"duration = 30
colour = true

[[scenario]]
name = "libraries"
mode = "fre"

  [[scenario.test]]
  plugin = "waylay_libraries"
  hang_timout = "2s"
  workers = 0
    [scenario.test.params]
    batch = { unifrom = { min = 1, max = 64 } }
    size = { uniform = { min = 10, max = 5 } }
"#;
    let expected = r#"error: 30 has no unit
 --> nightly.toml:1:12
  |
1 | duration = 30
  |            ^^ did you mean "30s"?

error: unknown key `colour`
 --> nightly.toml:2:1
  |
2 | colour = true
  | ^^^^^^ known here: seed, duration, out, plugin-path, defaults, scenario, randomizer, leaks, evidence, include, profile

error: unknown mode `fre`
 --> nightly.toml:6:8
  |
6 | mode = "fre"
  |        ^^^^^ did you mean `free`?

error: unknown key `hang_timout`
  --> nightly.toml:10:3
   |
10 |   hang_timout = "2s"
   |   ^^^^^^^^^^^ did you mean `hang-timeout`?

error: a test needs at least one worker
  --> nightly.toml:11:13
   |
11 |   workers = 0
   |             ^

error: unknown distribution `unifrom`
  --> nightly.toml:13:15
   |
13 |     batch = { unifrom = { min = 1, max = 64 } }
   |               ^^^^^^^ did you mean `uniform`?

error: min 10 is greater than max 5
  --> nightly.toml:14:32
   |
14 |     size = { uniform = { min = 10, max = 5 } }
   |                                ^^

"#;
    assert_text(&problems(text), expected);
}

#[test]
fn another_place_is_named() {
    let text = format!("{FINE}\n{FINE}");
    let expected = r#"error: this scenario would never end and the next never start
 --> nightly.toml:1:1
  |
1 | [[scenario]]
  | ^^^^^^^^^^^^ give it a `duration`, or give the campaign one

error: two scenarios are named `libraries`
 --> nightly.toml:8:8
  |
8 | name = "libraries"
  |        ^^^^^^^^^^^
  = the first is here: nightly.toml:2:8

"#;
    assert_text(&problems(&text), expected);
}

#[test]
fn tabs_and_letters_beyond_ascii_keep_the_caret_in_place() {
    let text = format!("{FINE}\t\"größe\" = \"ü\"\n");
    let expected = "error: unknown key `größe`\n \
                    --> nightly.toml:6:2\n  \
                    |\n\
                    6 | \t\"größe\" = \"ü\"\n  \
                    | \t^^^^^^^ known here: plugin, name, workers, hang-timeout, start-timeout, cancel-timeout, \
                    iterations, max-failures, leaks, params, contains, objects, hooks, pot\n\n";
    assert_text(&problems(&text), expected);
}

#[test]
fn windows_line_ends_do_not_matter() {
    let text = FINE.replace('\n', "\r\n") + "  wokers = 2\r\n";
    let expected = r#"error: unknown key `wokers`
 --> nightly.toml:6:3
  |
6 |   wokers = 2
  |   ^^^^^^ did you mean `workers`?

"#;
    assert_text(&problems(&text), expected);
}

#[test]
fn colours_are_only_added() {
    let diagnostics = parse(Source::new("nightly.toml", "sed = 1"), &Overrides::default()).unwrap_err();
    let coloured = diagnostics.render(true);
    assert!(coloured.contains("\x1b[1;31merror\x1b[0m"));
    let mut plain = String::new();
    for (i, part) in coloured.split('\x1b').enumerate() {
        plain.push_str(if i == 0 { part } else { part.split_once('m').expect("an escape").1 });
    }
    assert_text(&plain, &diagnostics.render(false));
}

#[test]
fn syntax_errors_come_with_the_rest() {
    let text =
        "seed = \n[[scenario]]\nname = \"abc\n  [[scenario.test]]\n  plugn = \"x\"\n[leaks\nenabled = 3";
    let expected = r#"error: string values must be quoted, expected literal string
 --> nightly.toml:1:8
  |
1 | seed = 
  |        ^

error: invalid basic string, expected `"`
 --> nightly.toml:3:12
  |
3 | name = "abc
  |            ^

error: unknown key `plugn`
 --> nightly.toml:5:3
  |
5 |   plugn = "x"
  |   ^^^^^ did you mean `plugin`?

error: unclosed table, expected `]`
 --> nightly.toml:6:7
  |
6 | [leaks
  |       ^

"#;
    assert_text(&problems(text), expected);
    assert_eq!(messages(&format!("out = 'a'\nout = 'b'\n{FINE}")), ["2: duplicate key"]);
}

#[test]
fn what_is_missing() {
    assert_eq!(
        messages(""),
        ["1: a config needs a `scenario` (add a [[scenario]] with a [[scenario.test]])"]
    );
    assert_eq!(
        messages("[[scenario]]"),
        [
            "1: a scenario needs a `name` (add a text)",
            "1: a scenario needs a `test` (add a [[scenario.test]])"
        ]
    );
    assert_eq!(
        messages("[[scenario]]\nname = 'a'\n[[scenario.test]]\nname = 'x'"),
        ["3: a test needs a `plugin` (add a text)"]
    );
    assert_eq!(
        messages("scenario = []")[0],
        "1: a config needs a `scenario` (add a [[scenario]] with a [[scenario.test]])"
    );
    // Mistyped is not also missing.
    assert_eq!(messages("[[scenarios]]"), ["1: unknown key `scenarios` (did you mean `scenario`?)"]);
    assert_eq!(
        messages("[scenario]"),
        ["1: `scenario` must be a list of tables, each under its own double-bracketed header, not a table"]
    );
}

#[test]
fn wrong_types() {
    for (line, expected) in [
        ("seed = true", "`seed` must be a seed such as \"0x5eed\", not true or false"),
        ("seed = -1", "-1 is too small"),
        ("seed = 18446744073709551616", "18446744073709551616 is too large"),
        (
            "seed = '5eed'",
            "`5eed` is not a seed: write up to sixteen hexadecimal digits after 0x, or a decimal number below 2^64",
        ),
        ("duration = 1.5", "`duration` must be a duration such as \"30s\", not a number with a fraction"),
        ("duration = 1979-05-27", "`duration` must be a duration such as \"30s\", not a date"),
        ("duration = '0s'", "a campaign's duration must be longer than zero"),
        ("out = []", "`out` must be a path, not a list"),
        ("out = ''", "a path cannot be empty"),
        ("plugin-path = 'plugins'", "`plugin-path` must be a list, not a text"),
        ("plugin-path = ['a', 1]", "`plugin-path` must be a path, not a whole number"),
        ("defaults = 1", "`defaults` must be a table, not a whole number"),
        ("leaks = { sample-bytes = 512 }", "512 has no unit (did you mean \"512B\"?)"),
        (
            "leaks = { sample-bytes = '0B' }",
            "sample-bytes must be greater than 0 (\"1B\" samples everything)",
        ),
        (
            "leaks = { sample-bytes = '1 furlong' }",
            "`furlong` is not a unit of size: use B, KiB, MiB, GiB, TiB, KB, MB, GB or TB",
        ),
        ("leaks = { false-alarms-per-hour = 1.0 }", "false-alarms-per-hour must lie between 0 and 1"),
        ("leaks = { false-alarms-per-hour = nan }", "false-alarms-per-hour must lie between 0 and 1"),
        ("leaks = { warm-up = '0s' }", "a warm-up must be longer than zero"),
        ("leaks = { enabled = 'yes' }", "`enabled` must be true or false, not a text"),
        ("evidence = { max-signatures = 0 }", "at least one signature must be kept"),
        ("evidence = { log-limit = '1B' }", "a log needs at least 4KiB"),
        ("evidence = { keep-hang = true }", "unknown key `keep-hang` (did you mean `keep-hung`?)"),
        ("defaults = { workers = 2000 }", "a test has at most 1024 workers"),
        (
            "evidence = { dump-format = ['minidumb'] }",
            "unknown format of dumps `minidumb` (did you mean `minidump`?)",
        ),
        ("evidence = { dump-limit = '1KiB' }", "a dump needs at least 1MiB (`dump = \"none\"` writes none)"),
        (
            "defaults = { plugin = 'x' }",
            "unknown key `plugin` (known here: workers, hang-timeout, start-timeout, cancel-timeout, iterations, max-failures, leaks)",
        ),
    ] {
        assert_eq!(messages(&format!("{line}\n{FINE}")), [format!("1: {expected}")], "{line}");
    }
}

#[test]
fn keys_of_scenarios_and_tests() {
    let fine: Vec<&str> = FINE.lines().collect();
    for (at, line, expected) in [
        (
            2,
            "strategy = 'pct'",
            "`strategy` has no meaning in mode `free` (set mode = \"strict\", or leave it out)",
        ),
        (2, "runs = 10", "`runs` has no meaning in mode `free` (set mode = \"strict\", or leave it out)"),
        (2, "mode = 'chaos'", "unknown mode `chaos` (known here: free, randomized, strict)"),
        (2, "dump = 'huge'", "unknown size of dumps `huge` (known here: none, mini, heap, full)"),
        (2, "share = 0", "a share must be greater than 0"),
        (2, "share = inf", "a share must be greater than 0"),
        (2, "duration = '0s'", "a scenario's duration must be longer than zero"),
        (5, "name = ''", "a name cannot be empty (`*` is every test)"),
        (5, "workers = 1.0", "`workers` must be a whole number, not a number with a fraction"),
        (5, "workers = 4294967296", "4294967296 is too large"),
        (5, "hang-timeout = '0ms'", "a timeout must be longer than zero"),
        (5, "start-timeout = '1x'", "`x` is not a unit of time: use ns, us, ms, s, m, h or d"),
        (5, "cancel-timeout = '0s'", "a timeout must be longer than zero"),
        (
            5,
            "iterations = 0",
            "a test that stops after 0 iterations never runs (leave `iterations` out to run until the scenario ends)",
        ),
        (5, "params = 1", "`params` must be a table, not a whole number"),
    ] {
        let mut lines = fine.clone();
        lines.insert(at, line);
        assert_eq!(messages(&lines.join("\n")), [format!("{}: {expected}", at + 1)], "{line}");
    }
}

#[test]
fn a_test_stands_once_in_a_scenario() {
    let test = |name: &str| format!("[[scenario.test]]\nplugin = 'p'\nname = '{name}'\n");
    let text = format!("[[scenario]]\nname = 'a'\n{}{}{}", test("x"), test("y"), test("x"));
    assert_eq!(messages(&text), ["11: `x` of `p` is in this scenario twice"]);
    assert_eq!(messages(&format!("{FINE}{}", test("*").replace("'p'", "'waylay_libraries'"))).len(), 1);
}

#[test]
fn times_must_fit() {
    let scenario = |name: &str, more: &str| {
        format!("[[scenario]]\nname = '{name}'\n{more}\n[[scenario.test]]\nplugin = 'p'\n")
    };
    let (a, b) = (scenario("a", "duration = '20s'"), scenario("b", "duration = '15s'"));
    assert_eq!(
        messages(&format!("duration = '30s'\n{a}{b}")),
        ["1: the scenarios last 35s together, longer than the campaign"]
    );
    assert_eq!(
        messages(&format!("duration = '20s'\n{a}{}", scenario("c", ""))),
        ["7: no time is left for this scenario"]
    );
    assert_eq!(
        messages(&scenario("c", "duration = '1s'\nshare = 2")),
        ["4: a scenario has a duration or a share, not both"]
    );
    let counted = scenario("c", "") + "iterations = 5\n";
    assert!(messages(&format!("{counted}{a}")).is_empty());
    assert!(messages(&format!("{a}{}", scenario("c", ""))).is_empty());

    // The command line's duration settles all of this.
    let overrides = Overrides { duration: Some(std::time::Duration::from_secs(7)), ..Overrides::default() };
    assert!(parse(Source::new("x", format!("duration = '30s'\n{a}{b}")), &overrides).is_ok());
}

#[test]
fn distributions_point_at_the_key() {
    let param = |value: &str| {
        let text = format!("{FINE}    [scenario.test.params]\n    x = {value}\n");
        let Err(diagnostics) = parse(Source::new("n", text.clone()), &Overrides::default()) else {
            return Vec::new();
        };
        diagnostics
            .iter()
            .map(|d| {
                (
                    text[d.span.start..d.span.end].to_owned(),
                    d.message.clone(),
                    d.help.clone().unwrap_or_default(),
                )
            })
            .collect()
    };
    let one = |value: &str, at: &str, message: &str, help: &str| {
        assert_eq!(param(value), [(at.to_owned(), message.to_owned(), help.to_owned())], "{value}");
    };
    assert_eq!(param("5"), []);
    assert_eq!(param("'5ms'"), []);
    one("'5 ms'", "'5 ms'", "`5 ms` has no unit: write ns, us, ms, s, m, h or d after the number", "");
    one("nan", "nan", "NaN is not a finite number", "");
    one("1e400", "1e400", "inf is not a finite number", "");
    one("99999999999999999999", "99999999999999999999", "99999999999999999999 is too large", "");
    one(
        "true",
        "true",
        "this must be a distribution or a plain value, not true or false",
        "such as { uniform = { min = 1, max = 64 } }",
    );
    one("{}", "{}", "a distribution has one name", "one of uniform, gaussian, exponential, weighted");
    one(
        "{ normal = {} }",
        "normal",
        "unknown distribution `normal`",
        "known here: uniform, gaussian, exponential, weighted",
    );
    one("{ uniform = 3 }", "3", "`uniform` must be a table, not a whole number", "");
    one(
        "{ uniform = { min = 1 } }",
        "{ min = 1 }",
        "uniform needs a `max`",
        "add a number or a duration such as \"5ms\"",
    );
    one("{ uniform = { min = 1, mx = 2 } }", "mx", "unknown key `mx`", "did you mean `max`?");
    one(
        "{ uniform = { min = '5ms', max = 10 } }",
        "10",
        "a number among durations: a distribution is all numbers or all durations",
        "",
    );
    one("{ gaussian = { mean = 0, sigma = -2 } }", "-2", "sigma -2 must be greater than 0", "");
    one(
        "{ gaussian = { mean = 0, sigma = 1, min = [] } }",
        "[]",
        "`min` must be a number or a duration such as \"5ms\", not a list",
        "",
    );
    one("{ exponential = { min = 0, max = 1, rate = 0 } }", "0", "rate 0 must be greater than 0", "");
    one(
        "{ exponential = { min = 0, max = 1, mean = 0.7 } }",
        "0.7",
        "mean 0.7 cannot be reached: a decreasing curve has it above min and below the middle, 0.5",
        "",
    );
    one(
        "{ weighted = 1 }",
        "1",
        "`weighted` must be a list of intervals, not a whole number",
        "such as [{ min = 0, max = 3, p = 1.0 }]",
    );
    one("{ weighted = [] }", "[]", "a weighted distribution needs at least one interval", "");
    one("{ weighted = [7] }", "7", "`interval` must be a table, not a whole number", "");
    one(
        "{ weighted = [{ min = 0, max = 1, p = 0.9 }] }",
        "[{ min = 0, max = 1, p = 0.9 }]",
        "the probabilities sum to 0.9, they must sum to 1",
        "",
    );
    assert_eq!(
        param("{ weighted = [{ min = 0, max = 1, p = 1 }, { min = 3, max = 2, p = -0.5 }] }").len(),
        2
    );
}

#[test]
fn problems_as_json() {
    let diagnostics =
        parse(Source::new("n.toml", format!("sed = 1\n{FINE}")), &Overrides::default()).unwrap_err();
    assert_eq!(
        serde_json::to_value(&diagnostics).expect("json"),
        serde_json::json!([{
            "severity": "error",
            "message": "unknown key `sed`",
            "file": "n.toml",
            "line": 1,
            "column": 1,
            "end": { "line": 1, "column": 4 },
            "help": "did you mean `seed`?",
        }])
    );
}

#[test]
fn later_checks_use_the_same_shape() {
    let loaded = parse(Source::new("nightly.toml", FINE), &Overrides::default()).expect("fine");
    let plugin = &loaded.config.scenarios[0].tests[0].plugin;
    let found = loaded
        .diagnostics(vec![Diagnostic::warning(plugin.span, "no such plugin").help("looked in target/")]);
    assert!(!found.has_errors() && !found.is_empty());
    let expected = r#"warning: no such plugin
 --> nightly.toml:5:12
  |
5 |   plugin = "waylay_libraries"
  |            ^^^^^^^^^^^^^^^^^^ looked in target/

"#;
    assert_text(&found.to_string(), expected);
}

#[test]
fn paths_of_windows_between_the_wrong_marks() {
    let text = FINE.replace("\"waylay_libraries\"", r#""C:\mine\x.dll""#);
    let found = problems(&text);
    assert!(found.to_string().contains("write paths with /, or between '"), "{found}");
    assert!(
        parse(
            Source::new("a.toml", text.replace(r#""C:\mine\x.dll""#, r"'C:\mine\x.dll'")),
            &Overrides::default()
        )
        .is_ok()
    );
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("missing.toml");
    assert!(matches!(load(&path, &Overrides::default()), Err(LoadError::Read { .. })));
    std::fs::write(&path, b"out = '\xff'").expect("written");
    assert!(matches!(load(&path, &Overrides::default()), Err(LoadError::NotText { valid: 7, .. })));
    let wide: Vec<u8> = "\u{feff}out = 'x'".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&path, wide).expect("written");
    let error = load(&path, &Overrides::default()).expect_err("two bytes a letter");
    assert!(
        error.to_string().contains("UTF-16") && error.to_string().contains("save it as UTF-8"),
        "{error}"
    );
    std::fs::write(&path, FINE.to_owned() + "plugin-path = 1").expect("written");
    let Err(error @ LoadError::Invalid(_)) = load(&path, &Overrides::default()) else { panic!("accepted") };
    assert!(error.to_string().contains("missing.toml:6:1"), "{error}");
}

#[test]
fn the_randomizer_of_all_and_of_one_scenario() {
    let top = |keys: &str| messages(&format!("{FINE}\n[randomizer]\n{keys}\n"));
    for (keys, expected) in [
        ("perod = '1ms'", "8: unknown key `perod` (did you mean `period`?)"),
        ("period = 5", "8: period: a number without a unit: write a duration, such as \"2ms\""),
        ("period = '-5ms'", "8: period: `-5ms`"),
        ("period = { uniform = { min = -5, max = 3 } }", "8: period: can be -5, but time is never negative"),
        (
            "suspend = { uniform = { min = '2ms', max = '1ms' } }",
            "8: suspend: min \"2ms\" is greater than max",
        ),
        ("count = 0", "8: count: can be 0: each window suspends at least 1 thread"),
        (
            "count = { uniform = { min = 0, max = 4 } }",
            "8: count: can be 0: each window suspends at least 1 thread",
        ),
        ("count = { gaussian = { mean = 3, sigma = 1 } }", "8: count: can be 0 or negative"),
        ("count = '2ms'", "8: count: a duration: write a number of threads, such as 2"),
        ("include = 'w*'", "8: `include` must be a list, not a text"),
        (
            "exclude = ['gc', 'a-name-that-is-too-long']",
            "8: exclude: `a-name-that-is-too-long` can match no thread",
        ),
        ("enabled = 1", "8: `enabled` must be true or false, not a whole number"),
    ] {
        // Windows keeps names as they are.
        if cfg!(windows) && expected.contains("can match no thread") {
            continue;
        }
        let found = top(keys);
        assert_eq!(found.len(), 1, "{keys}: {found:?}");
        assert!(found[0].starts_with(expected), "{keys}: {found:?}");
    }
    // Each problem is told once, at its place, however many scenarios there are.
    let text =
        problems(&format!("{FINE}{}[randomizer]\ncount = {{ uniform = {{ min = 0, max = 4 }} }}\n", {
            FINE.replace("libraries\"\n", "others\"\n")
        }));
    assert!(text.contains("nightly.toml:12:29") && text.matches("can be 0").count() == 1, "{text}");
    for (lines, expected) in [
        (
            "  [scenario.randomizer]\n  count = 0",
            "4: count: can be 0: each window suspends at least 1 thread",
        ),
        (
            "mode = 'randomized'\n  [scenario.randomizer]\n  enabled = false",
            "5: a randomized scenario cannot do without its randomizer (write mode = \"free\", or leave `enabled` out)",
        ),
    ] {
        let text = FINE.replacen("libraries\"\n", &format!("libraries\"\n{lines}\n"), 1);
        assert_eq!(messages(&text), [expected], "{lines}");
    }
    let strict = FINE.replacen("libraries\"\n", "libraries\"\nmode = 'strict'\n  [scenario.randomizer]\n", 1);
    let found = messages(&strict);
    assert!(
        found.iter().any(|problem| problem.starts_with("4: strict mode runs one thread at a time")),
        "{found:?}"
    );
}

#[test]
fn keys_of_strict_scenarios() {
    let fine: Vec<&str> = FINE.lines().collect();
    let known = "random, pct, rpro";
    for (line, expected) in [
        ("strategy = 'pcd'", "unknown strategy \"pcd\", did you mean \"pct\"?"),
        ("strategy = 'pct:dept=3'", "strategy pct has no option \"dept\", did you mean \"depth\"?"),
        ("strategy = 'random'\ndepth = 3", "strategy random has no option \"depth\""),
        ("depth = 'three'", "`depth` must be a whole number, not a text"),
        ("runs = 0", "0 schedules run nothing"),
        ("max-steps = 0", "0 steps run nothing"),
        ("limit-is-failure = 'yes'", "`limit-is-failure` must be true or false, not a text"),
        ("timeouts = 'idel'", "unknown rule `idel` (did you mean `idle`?)"),
        ("level = 'atomic'", "unknown level `atomic` (did you mean `atomics`?)"),
        ("idle-timeouts = 7", "`idle-timeouts` must be true or false, not a whole number"),
        ("patch = 'nothing'", "unknown `nothing`: say `none` or `memory=LIBRARY`"),
        ("patch = ['none', 7]", "`patch` must be"),
        ("max-step = 5", "unknown key `max-step` (did you mean `max-steps`?)"),
    ] {
        let mut lines = fine.clone();
        let text = format!("mode = 'strict'\n{line}");
        lines.insert(2, &text);
        let found = messages(&lines.join("\n"));
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        let at = 3 + line.lines().count();
        assert!(found[0].starts_with(&format!("{at}: {expected}")), "{line}: {found:?} {known}");
    }
}

/// What files said before keys and options had the same names.
#[test]
fn keys_of_strict_scenarios_are_read_by_their_names_of_old() {
    let config = |lines: &str| {
        let text =
            format!("[[scenario]]\nname = 'a'\nmode = 'strict'\n{lines}\n[[scenario.test]]\nplugin = 'p'\n");
        parse(Source::new("old.toml", &text), &Overrides::default()).expect("valid").config.to_string()
    };
    for (old, new) in [
        ("timeouts = 'idle'", "idle-timeouts = true"),
        ("timeouts = 'choice'", "idle-timeouts = false"),
        ("patch = false", "patch = 'none'"),
        ("patch = true", "patch = []"),
    ] {
        assert_eq!(config(old), config(new), "{old}");
    }
    assert_ne!(config("patch = 'none'"), config("patch = []"));
    assert_ne!(config("idle-timeouts = true"), config("idle-timeouts = false"));
    assert_eq!(config("patch = ['memory=libz.so.1']"), config("patch = 'memory=libz.so.1'"));
}

#[test]
fn leaks_are_not_looked_for_in_strict_mode() {
    let mut lines: Vec<&str> = FINE.lines().collect();
    lines.insert(5, "leaks = true");
    lines.insert(2, "mode = 'strict'");
    let found = messages(&lines.join("\n"));
    assert!(found.len() == 1 && found[0].contains("leaks are not looked for in strict mode"), "{found:?}");
}

/// CPU time of this thread: what others do on the machine does not count.
#[cfg(target_os = "linux")]
fn own_time(work: impl FnOnce()) -> std::time::Duration {
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the clock exists on every Linux, and the pointer is to a value of this frame.
        assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) }, 0);
        std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let before = now();
    work();
    now() - before
}

/// Ten times as many scenarios take about ten times as long, whatever is wrong with each of them; a look at the whole file for
/// each problem made that a hundred times.
#[cfg(target_os = "linux")]
#[test]
fn time_grows_with_the_file_and_not_with_its_square() {
    type Scenario = fn(usize) -> String;
    let kinds: [(&str, Scenario); 6] = [
        ("fine", |i| format!("name = \"s{i}\"\nduration = \"1s\"\n[[scenario.test]]\nplugin = \"p\"\n")),
        ("names", |_| "name = \"s\"\nduration = \"1s\"\n[[scenario.test]]\nplugin = \"p\"\n".to_owned()),
        ("keys", |i| format!("name = \"s{i}\"\nnmae = 3\n[[scenario.test]]\nplugin = \"p\"\n")),
        ("syntax", |i| format!("name = s{i}\n[[scenario.test]]\nplugin = 3\n")),
        ("headers", |i| format!("name = \"s{i}\"\n[[scenario.test]\nplugin = 3\n")),
        ("endless", |i| format!("name = \"s{i}\"\n[[scenario.test]]\nplugin = \"p\"\n")),
    ];
    for (kind, scenario) in kinds {
        let time = |count: usize| {
            let text: String = (0..count).map(|i| format!("[[scenario]]\n{}", scenario(i))).collect();
            let mut told = 0;
            let time = own_time(|| told = problems(&text).matches("error").count());
            assert_eq!(told + 1 >= count, kind != "fine", "{kind}: {told} problems of {count} scenarios");
            time
        };
        time(100);
        let (small, large) = (time(1_000), time(10_000));
        assert!(large < 40 * small, "{kind}: {small:?} for 1,000 scenarios, {large:?} for 10,000");
    }
}
