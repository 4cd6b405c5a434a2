//! docs/reference is made of what the code says. After a change of commands, keys, kinds or metrics run
//! `WAYLAY_WRITE_DOCS=1 cargo test -p waylay --test book reference`.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;
use waylay_driver::failure::Kind;
use waylay_history::History;
use waylay_service::board::Standing;

use crate::root;
use crate::support::Workplace;

const MADE: &str = "<!-- Made from the code by tools/waylay/tests/book/reference.rs; a test fails when it is out of date. -->";

/// Compares the page with what is there, or writes it.
fn settle(page: &str, title: &str, text: &str) {
    let whole = format!("# {title}\n\n{MADE}\n\n{}\n", text.trim_end());
    let path = root().join("docs/reference").join(page);
    if std::env::var_os("WAYLAY_WRITE_DOCS").is_some() {
        fs::write(&path, &whole).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let differs = there.lines().zip(whole.lines()).find(|(one, other)| one != other);
    assert!(
        there == whole,
        "docs/reference/{page} is out of date ({differs:?}): \
         WAYLAY_WRITE_DOCS=1 cargo test -p waylay --test book reference"
    );
}

fn help(place: &Workplace, words: &[&str]) -> String {
    let ran = place.waylay(&[words, &["--help"]].concat());
    assert_eq!(ran.code(), Some(0), "{words:?}: {}", ran.stderr);
    ran.stdout
}

/// The names below `Commands:`.
fn commands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    list.take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn write_commands(place: &Workplace, words: &[&str], out: &mut String) {
    let text = help(place, words);
    let _ = write!(out, "## waylay {}\n\n```text\n{}\n```\n\n", words.join(" "), text.trim_end());
    for name in commands(&text) {
        write_commands(place, &[words, &[&name]].concat(), out);
    }
}

#[test]
fn reference_of_commands_is_what_they_say_of_themselves() {
    let place = Workplace::new();
    let whole = help(&place, &[]);
    let mut out = format!("What `--help` says.\n\n## waylay\n\n```text\n{}\n```\n\n", whole.trim_end());
    for name in commands(&whole) {
        write_commands(&place, &[&name], &mut out);
    }
    settle("commands.md", "Commands", &out);
}

#[test]
fn reference_of_kinds_is_what_the_code_knows() {
    let mut out = "| kind | what broke |\n|---|---|\n".to_owned();
    for (place, kind) in Kind::ALL.iter().enumerate() {
        assert_eq!(*kind as usize, place, "all kinds, in their order");
        let _ = writeln!(out, "| `{}` | {} |", kind.word(), kind.meaning());
    }
    out += "\n[Reports](../reports.md#kinds) says how they are told apart.\n";
    settle("kinds.md", "Kinds of failures", &out);
}

#[test]
fn reference_of_metrics_is_what_prometheus_reads() {
    let place = Workplace::new();
    let history = History::open(place.path()).unwrap();
    let text = waylay_service::metrics::text(&history, &Standing::default()).unwrap();
    let mut out =
        "What `waylay serve` answers at `/metrics`.\n\n| name | type | meaning |\n|---|---|---|\n".to_owned();
    for line in text.lines().filter_map(|line| line.strip_prefix("# HELP ")) {
        let (name, meaning) = line.split_once(' ').unwrap();
        let kind = text.lines().find_map(|line| line.strip_prefix(&format!("# TYPE {name} "))).unwrap();
        let _ = writeln!(out, "| `{name}` | {kind} | {meaning} |");
    }
    out += "\n[The nightly service](../service.md#metrics) has the labels.\n";
    settle("metrics.md", "Metrics", &out);
}

/// A schema with references followed.
fn resolved<'s>(schema: &'s Value, whole: &'s Value) -> &'s Value {
    let named = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    match named.and_then(|name| name.strip_prefix('#')) {
        Some(pointer) => whole.pointer(pointer).unwrap(),
        None => schema,
    }
}

/// What can stand there, in a word or two.
fn value(schema: &Value) -> String {
    let named = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(name) = named.and_then(|name| name.strip_prefix("#/definitions/")) {
        return name.to_owned();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let mut all: Vec<String> = options.iter().map(value).collect();
        all.dedup();
        return all.join(" or ");
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", value(&schema["items"])),
        Value::String(kind) if kind == "object" => "table".to_owned(),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}

/// One section per table, in the order of the alphabet, as the schema has them. A table that can contain its own kind is
/// described where it comes first.
fn tables<'s>(
    schema: &'s Value,
    whole: &'s Value,
    (path, heading): (&str, &str),
    known: &mut Vec<&'s Value>,
    out: &mut String,
) {
    let Some(properties) = schema["properties"].as_object() else { return };
    if known.iter().any(|known| std::ptr::eq(*known, schema)) {
        return;
    }
    known.push(schema);
    let _ = write!(out, "### {heading}\n\n| key | value | meaning |\n|---|---|---|\n");
    let mut below = Vec::new();
    for (name, property) in properties {
        let inner = resolved(property, whole);
        let items = resolved(&inner["items"], whole);
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let meaning = property["description"].as_str().or_else(|| inner["description"].as_str());
        let meaning = meaning.unwrap_or_else(|| panic!("no words about {path}")).replace('|', "\\|");
        if inner["properties"].is_object() {
            below.push((inner, path.clone(), format!("`[{path}]`")));
        } else if items["properties"].is_object() {
            below.push((items, path.clone(), format!("`[[{path}]]`")));
        }
        let _ = writeln!(out, "| `{name}` | {} | {meaning} |", value(property).replace('|', "\\|"));
    }
    out.push('\n');
    for (schema, path, heading) in below {
        tables(schema, whole, (&path, &heading), known, out);
    }
}

#[test]
fn reference_of_keys_is_what_the_schema_says() {
    let place = Workplace::new();
    let mut out = "What `waylay config schema` says; `waylay check` says what is wrong with a file, and \
                   [Configuration, explained](../configuration.md) has the defaults.\n\n"
        .to_owned();
    for (title, words) in [
        ("A configuration of `waylay run`", &["config", "schema"][..]),
        ("A configuration of `waylay serve`", &["config", "schema", "--service"]),
    ] {
        let schema: Value = serde_json::from_str(&place.waylay(words).stdout).unwrap();
        let _ = write!(out, "## {title}\n\n");
        tables(&schema, &schema, ("", "The file"), &mut Vec::new(), &mut out);
    }
    settle("keys.md", "Keys of configurations", &out);
}
