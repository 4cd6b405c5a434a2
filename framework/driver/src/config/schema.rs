//! The JSON schema of configurations, for editors that complete and check TOML.
//!
//! What a schema can say is said here; what needs the whole file, or a plugin, is what `waylay check` is for.

use serde_json::{Value, json};
use waylay_evidence::DumpSize;

use super::dump::DumpFormat;
use super::mode::Mode;

/// The schema.
pub fn schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Waylay configuration",
        "type": "object",
        "additionalProperties": false,
        "anyOf": [{ "required": ["scenario"] }, { "required": ["include"] }],
        "properties": {
            "seed": { "description": "The seed that every random choice comes from; fresh when absent.",
                      "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 0 }] },
            "duration": described("duration", "How long the whole campaign runs."),
            "out": { "type": "string", "description": "Folder for the results." },
            "plugin-path": { "type": "array", "items": { "type": "string" }, "description": "Where plugins are looked for." },
            "defaults": { "type": "object", "additionalProperties": false, "properties": test_keys(false),
                          "description": "What tests leave open." },
            "scenario": { "type": "array", "minItems": 1, "items": { "$ref": "#/definitions/scenario" },
                          "description": "Tests that run together, in one host; at least one." },
            "randomizer": described("randomizer", "Threads are suspended in every scenario that is not strict."),
            "leaks": told("Which growth is a leak.", leaks()),
            "evidence": told("What is kept of failures.", evidence()),
            "include": list("Other configurations, relative to this one; this one is laid over them."),
            "profile": { "type": "object", "description": "Keys that are laid over the rest, by the name given to --profile.",
                         "additionalProperties": { "type": "object" } },
        },
        "definitions": {
            "duration": { "type": "string", "pattern": "^[0-9.]+ ?(ns|us|µs|ms|s|m|min|h|d)( ?[0-9.]+ ?(ns|us|µs|ms|s|m|min|h|d))*$",
                          "description": "A duration such as 30s, 10m, 8h." },
            "size": { "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 0 }],
                      "description": "A size such as 512KiB." },
            "value": { "type": ["integer", "number", "string"] },
            "distribution": distribution(),
            "randomizer": randomizer(),
            "scenario": scenario(),
            "test": test(false),
            "contained": test(true),
        },
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{name}") })
}

/// A reference with words of its own: beside a plain one they would be ignored.
fn described(name: &str, words: &str) -> Value {
    json!({ "allOf": [reference(name)], "description": words })
}

fn boolean(words: &str) -> Value {
    json!({ "type": "boolean", "description": words })
}

fn whole(least: u64, words: &str) -> Value {
    json!({ "type": "integer", "minimum": least, "description": words })
}

fn text(words: &str) -> Value {
    json!({ "type": "string", "description": words })
}

fn list(words: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": words })
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

/// A table with words of its own.
fn told(words: &str, mut object: Value) -> Value {
    object["description"] = words.into();
    object
}

fn distribution() -> Value {
    let value = || reference("value");
    let ends = object(&["min", "max"], json!({ "min": value(), "max": value() }));
    let bell = json!({ "mean": value(), "sigma": value(), "min": value(), "max": value() });
    let decreasing = json!({ "min": value(), "max": value(), "mean": value(), "rate": value() });
    let interval = json!({ "min": value(), "max": value(), "p": { "type": "number" } });
    json!({
        "description": "A plain value, or a distribution such as { uniform = { min = 1, max = 64 } }.",
        "anyOf": [
            value(),
            object(&["uniform"], json!({ "uniform": ends })),
            object(&["gaussian"], json!({ "gaussian": object(&["mean", "sigma"], bell) })),
            object(&["exponential"], json!({ "exponential": object(&["min", "max"], decreasing) })),
            object(&["weighted"], json!({
                "weighted": { "type": "array", "items": object(&["min", "max", "p"], interval) }
            })),
        ],
    })
}

fn scenario() -> Value {
    object(
        &["name", "test"],
        json!({
            "name": text("The scenario's name."),
            "mode": { "enum": Mode::ALL.map(Mode::name), "description": "Who decides which thread runs." },
            "duration": described("duration", "How long it runs."),
            "share": { "type": "number", "exclusiveMinimum": 0, "description": "Its part of the campaign's time." },
            "randomizer": described("randomizer", "Threads are suspended in this scenario."),
            "strategy": text("Of strict mode: who decides which thread runs, such as pct."),
            "depth": whole(1, "Of strict mode: the depth of the bugs that are looked for."),
            "runs": whole(1, "Of strict mode: schedules per test."),
            "stop-after-quiet": whole(1, "Of strict mode: schedules in a row without a new order of conflicting places that end a test."),
            "max-steps": whole(1, "Of strict mode: steps after which a schedule is stopped and not judged."),
            "limit-is-failure": boolean("Of strict mode: whether a schedule that reaches max-steps has failed."),
            "idle-timeouts": boolean("Of strict mode: whether sleeps and timeouts end only when nothing else can run."),
            "memory": { "enum": ["sc", "tso"], "description": "Of strict mode: when others see a store." },
            "level": {
                "enum": ["sync", "atomics", "auto", "memory"],
                "description": "Of strict mode: what is a step in plugins beside calls."
            },
            "patch": {
                "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
                "description": "Of strict mode: what of code that was not compiled for it is patched: none, or memory=LIBRARY for every access of a library, too."
            },
            "minimize": text("Of strict mode: processor time for minimising each failure and finding its cause, such as 5s; off: neither."),
            "dump": dump_size("How much memory its dumps hold."),
            "test": { "type": "array", "minItems": 1, "items": reference("test"), "description": "What runs in it; at least one." },
        }),
    )
}

/// Keys that a test and the defaults have in common.
fn test_keys(contained: bool) -> Value {
    let mut keys = json!({
        "hang-timeout": described("duration", "An iteration that takes longer is looked at."),
        "start-timeout": described("duration", "How long creating and starting may take."),
        "cancel-timeout": described("duration", "How long cancelling and ending may take."),
        "max-failures": whole(0, "The test is retired after so many failures; 0 is never."),
        "leaks": boolean("Whether leaks are looked for."),
    });
    if !contained {
        keys["workers"] = whole(1, "Threads that run the test.");
        keys["iterations"] = whole(1, "The test is done after so many iterations.");
    }
    keys
}

fn test(contained: bool) -> Value {
    let mut keys = test_keys(contained);
    keys["plugin"] = text("A plugin's name or file.");
    keys["name"] = text("A test's name, or a pattern such as channel-*.");
    keys["params"] = json!({
        "type": "object",
        "additionalProperties": reference("distribution"),
        "description": "Distributions that the test draws from, by name.",
    });
    if contained {
        keys["share"] =
            json!({ "type": "number", "exclusiveMinimum": 0, "description": "Its part of the pot's time." });
    }
    keys["contains"] =
        json!({ "type": "array", "items": reference("contained"), "description": "The tests of a pot." });
    let turns = object(
        &[],
        json!({
            "rule": { "enum": ["fair", "literal"], "description": "How the next tests are drawn." },
            "barrier": boolean("Whether a round ends when its last turn does."),
            "shortest-turn": described("duration", "How long a turn lasts at least."),
            "longest-turn": described("duration", "How long a turn of repeated tests lasts at most."),
        }),
    );
    keys["pot"] = told("How the tests of a pot take turns.", turns);
    keys["objects"] = json!({ "type": "array", "description": "Pools of shared objects.", "items": object(&["kind"], json!({
        "kind": text("The kind."),
        "plugin": text("A plugin that provides it, when no test's plugin does."),
        "count": described("distribution", "How many objects there are."),
        "life": described("distribution", "How often one is lent before it is replaced."),
    })) });
    keys["hooks"] = json!({ "type": "array", "description": "Who looks on.", "items": object(&["plugin", "name"], json!({
        "plugin": text("The plugin that has them."),
        "name": text("Their name."),
    })) });
    object(&["plugin"], keys)
}

fn randomizer() -> Value {
    object(
        &[],
        json!({
            "enabled": boolean("Whether threads are suspended."),
            "period": described("distribution", "Rest between two windows."),
            "suspend": described("distribution", "How long a thread is suspended."),
            "count": described("distribution", "How many threads are suspended at once."),
            "include": list("Names of threads that may be suspended; all when absent."),
            "exclude": list("Names of threads that may not."),
        }),
    )
}

fn leaks() -> Value {
    object(
        &[],
        json!({
            "enabled": boolean("Whether leaks are looked for."),
            "sample-bytes": described("size", "Average distance between sampled allocations."),
            "warm-up": described("duration", "Growth until then is no leak."),
            "false-alarms-per-hour": { "type": "number", "exclusiveMinimum": 0, "description": "Accepted per test." },
            "handles": boolean("Whether descriptors are counted."),
            "threads": boolean("Whether threads are counted."),
        }),
    )
}

fn dump_size(words: &str) -> Value {
    json!({ "enum": DumpSize::ALL.map(DumpSize::name), "description": words })
}

fn evidence() -> Value {
    object(
        &[],
        json!({
            "dump": dump_size("How much memory dumps hold, in scenarios that do not say."),
            "dump-format": { "type": "array", "items": { "enum": DumpFormat::ALL.map(DumpFormat::name) },
                             "description": "In which formats dumps are written." },
            "dump-limit": described("size", "Most bytes of memory in one core."),
            "dumps-per-signature": whole(0, "Occurrences of one signature whose evidence is kept in full."),
            "max-signatures": whole(1, "Different failures that get a folder."),
            "keep-hung": boolean("Leave a hung process for a debugger."),
            "log-limit": described("size", "Bytes of the hosts' output that are kept."),
            "mode": text("Permissions of files, such as 0640; folders can be entered by those who may read."),
            "redact": { "type": "array", "items": { "type": "string" },
                        "description": "Names of variables whose values are not written down." },
        }),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{Overrides, Source, parse};

    const START: &str = "[[scenario]]\nname = \"s\"\n[[scenario.test]]\nplugin = \"p\"\n";

    /// The keys that the reader of that table asks for, told by its complaint about a key that nothing resembles.
    fn asked(config: &str) -> BTreeSet<String> {
        let text = match parse(Source::new("x.toml", config), &Overrides::default()) {
            Ok(_) => panic!("a strange key was accepted: {config}"),
            Err(problems) => problems.render(false),
        };
        let known = text.lines().find_map(|line| line.split_once("known here: ")).expect(&text).1;
        known.split(", ").map(|key| key.trim().to_owned()).collect()
    }

    fn properties(at: &Value) -> BTreeSet<String> {
        at["properties"].as_object().expect("an object").keys().cloned().collect()
    }

    #[test]
    fn the_schema_has_the_keys_that_are_read_and_no_others() {
        let schema = schema();
        let strange = "qqqqqqqqqqqqqqqq = 1\n";
        let (top, inside) = (&schema["properties"], &schema["definitions"]);
        let pot = &inside["test"]["properties"];
        let cases = [
            (format!("{strange}{START}"), &schema),
            (format!("[defaults]\n{strange}{START}"), &top["defaults"]),
            (format!("[leaks]\n{strange}{START}"), &top["leaks"]),
            (format!("[evidence]\n{strange}{START}"), &top["evidence"]),
            (format!("[randomizer]\n{strange}{START}"), &inside["randomizer"]),
            (START.replace("[[scenario.test]]", &format!("{strange}[[scenario.test]]")), &inside["scenario"]),
            (format!("{START}{strange}"), &inside["test"]),
            (format!("{START}[[scenario.test.contains]]\nplugin = \"q\"\n{strange}"), &inside["contained"]),
            (format!("{START}[scenario.test.pot]\n{strange}"), &pot["pot"]),
            (format!("{START}[[scenario.test.objects]]\nkind = \"k\"\n{strange}"), &pot["objects"]["items"]),
            (
                format!("{START}[[scenario.test.hooks]]\nplugin = \"q\"\nname = \"n\"\n{strange}"),
                &pot["hooks"]["items"],
            ),
        ];
        let kinds = inside["distribution"]["anyOf"].as_array().expect("kinds of distributions");
        let of_kind = |name: &str| {
            let kind = kinds.iter().find_map(|kind| kind["properties"].get(name)).expect(name);
            kind.get("items").unwrap_or(kind).clone()
        };
        let distributions = [
            ("uniform", "{ qqqqqqqqqqqqqqqq = 1, min = 1, max = 2 }"),
            ("gaussian", "{ qqqqqqqqqqqqqqqq = 1, mean = 1, sigma = 2 }"),
            ("exponential", "{ qqqqqqqqqqqqqqqq = 1, min = 1, max = 2 }"),
            ("weighted", "[{ qqqqqqqqqqqqqqqq = 1, min = 1, max = 2, p = 1 }]"),
        ];
        for (name, body) in distributions {
            let config = format!("{START}[scenario.test.params]\nx = {{ {name} = {body} }}\n");
            assert_eq!(asked(&config), properties(&of_kind(name)), "{config}");
        }
        for (config, table) in cases {
            assert_eq!(asked(&config), properties(table), "{config}");
        }
    }
}
