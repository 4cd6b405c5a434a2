//! The JSON schema of the service's configuration, for editors that complete and check TOML.

use serde_json::{Value, json};

/// The schema.
pub fn schema() -> Value {
    let duration = |words: &str| described("duration", words);
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Waylay service",
        "type": "object",
        "additionalProperties": false,
        "required": ["mix"],
        "properties": {
            "out": text("Folder for campaigns and their history; relative to where the service is started."),
            "time-zone": text("Whose clock windows, nights and suppressions go by; the machine's when absent."),
            "log-limit": described("size", "Size of serve.log; the file before it is kept."),
            "window": tables("When campaigns run; always when there is none.", &["from", "to"], json!({
                "from": described("time", "When it begins, on the clock on the wall."),
                "to": described("time", "When it ends; on the next day when that is earlier."),
                "days": { "type": "array", "items": { "type": "string" },
                          "description": "Days on which it begins: mon to sun; every day when absent." },
            })),
            "mix": tables("What runs, in turn.", &["name", "config"], json!({
                "name": text("Its name, which no other one has."),
                "config": text("A configuration as for `waylay run`, relative to this file."),
                "profile": text("The profile of that configuration which is used."),
                "share": { "type": "number", "exclusiveMinimum": 0, "description": "Its part of the time, over all nights." },
                "duration": duration("How long one turn lasts."),
                "stop-after-failures": whole("Different failures that end a turn."),
                "stop-after-quiet": duration("A turn ends when nothing new came for so long."),
            })),
            "fleet": table("Who runs the mixes, if not this machine alone.", &["on", "shards"], json!({
                "on": { "enum": ["local", "slurm"], "description": "The engine." },
                "shards": { "type": "integer", "minimum": 1, "description": "How many shards a night has." },
                "at-most": { "type": "integer", "minimum": 1, "description": "How many of them at the same time." },
                "bucket": { "type": "string", "pattern": "^s3://", "description": "Where shards leave results that share no folder." },
                "time": text("Longest time of a shard, as Slurm takes it."),
                "partition": text("Partition of Slurm."),
                "sbatch": { "type": "array", "items": { "type": "string" }, "description": "Further options for sbatch." },
            })),
            "dashboard": table("Where the pages are, and who may see them.", &[], json!({
                "enabled": { "type": "boolean", "description": "Whether pages are served at all." },
                "listen": text("Address and port, 127.0.0.1:7979 when absent."),
                "token-file": text("File with the token that has to be shown; needed for any address but the loopback."),
                "hosts": { "type": "array", "items": { "type": "string" },
                           "description": "Further names that the dashboard is reached by." },
                "url": { "type": "string", "pattern": "^https?://",
                         "description": "The address that messages link to; where it listens when absent." },
            })),
            "webhook": table("Who is told of new failures.", &["url"], json!({
                "url": { "type": "string", "pattern": "^https?://", "description": "Where to post." },
                "every": duration("At most one message in this time."),
            })),
            "retention": table("How much evidence is kept.", &[], json!({
                "campaigns": whole("Campaigns."),
                "bytes": described("size", "Bytes of all campaigns together."),
                "age": duration("Time since a campaign began."),
            })),
            "suppression": tables("What nobody wants to hear of.", &["reason", "until"], json!({
                "reason": text("Why."),
                "until": { "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "description": "The last day." },
                "signature": text("Signatures, a name or a pattern."),
                "test": text("Tests, a name or a pattern."),
                "kind": { "enum": waylay_findings::Kind::WORDS, "description": "What broke." },
            })),
        },
        "definitions": {
            "duration": { "type": "string", "pattern": "^[0-9.]+ ?(ns|us|µs|ms|s|m|min|h|d)( ?[0-9.]+ ?(ns|us|µs|ms|s|m|min|h|d))*$" },
            "size": { "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 0 }] },
            "time": { "type": "string", "pattern": "^[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?$" },
        },
    })
}

fn text(words: &str) -> Value {
    json!({ "type": "string", "description": words })
}

fn whole(words: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": words })
}

/// A reference with words of its own: beside a plain one they would be ignored.
fn described(name: &str, words: &str) -> Value {
    json!({ "allOf": [{ "$ref": format!("#/definitions/{name}") }], "description": words })
}

fn table(words: &str, required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "additionalProperties": false, "description": words, "required": required,
            "properties": properties })
}

fn tables(words: &str, required: &[&str], properties: Value) -> Value {
    json!({ "type": "array", "description": words, "items": table("", required, properties) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use waylay_driver::config::Source;

    use super::*;
    use crate::config::{DEFAULT, parse};

    const MIX: &str = "[[mix]]\nname = \"a\"\nconfig = \"a.toml\"\n";

    /// The keys that the reader of that table asks for, told by its complaint about a key that nothing resembles.
    fn asked(config: &str) -> BTreeSet<String> {
        let problems = parse(Source::new("x.toml", config), Path::new("x.toml"), Path::new(""));
        let text = problems.expect_err("a strange key was accepted").render(false);
        let known = text.lines().find_map(|line| line.split_once("known here: ")).expect(&text).1;
        known.split(", ").map(|key| key.trim().to_owned()).collect()
    }

    #[test]
    fn the_schema_has_the_keys_that_are_read_and_no_others() {
        let schema = schema();
        let strange = "qqqqqqqqqqqqqqqq = 1\n";
        let top = &schema["properties"];
        let cases = [
            (format!("{strange}{MIX}"), &schema),
            (format!("{MIX}{strange}"), &top["mix"]["items"]),
            (
                format!("{MIX}[[window]]\nfrom = \"22:00\"\nto = \"06:00\"\n{strange}"),
                &top["window"]["items"],
            ),
            (format!("{MIX}[dashboard]\n{strange}"), &top["dashboard"]),
            (format!("{MIX}[fleet]\non = \"local\"\nshards = 2\n{strange}"), &top["fleet"]),
            (format!("{MIX}[webhook]\nurl = \"http://x\"\n{strange}"), &top["webhook"]),
            (format!("{MIX}[retention]\n{strange}"), &top["retention"]),
            (
                format!(
                    "{MIX}[[suppression]]\nreason = \"r\"\nuntil = \"2027-01-31\"\ntest = \"t\"\n{strange}"
                ),
                &top["suppression"]["items"],
            ),
        ];
        for (config, table) in cases {
            let keys: BTreeSet<String> = table["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(asked(&config), keys, "{config}");
        }
    }

    #[test]
    fn the_commented_configuration_is_right_also_with_its_comments_taken_away() {
        let read = |text: &str| {
            let source = Source::new("nightly.toml", text);
            parse(source, Path::new("nightly.toml"), Path::new("")).map_err(|problems| problems.render(false))
        };
        let plain = read(DEFAULT).unwrap();
        assert!(plain.webhook.is_none() && !plain.windows.list.is_empty());
        // Lines that are examples, not sentences: a table, or a key and its value.
        let example = |line: &&str| line.starts_with('[') || line.contains(" = ");
        let whole: String = DEFAULT
            .lines()
            .map(|line| line.strip_prefix("# ").filter(example).unwrap_or(line))
            .map(|line| format!("{line}\n"))
            .collect();
        let whole = read(&whole).unwrap();
        assert!(whole.webhook.is_some() && whole.suppressions.list().len() == 1);
        assert!(whole.mixes[0].stop.failures.is_some() && whole.dashboard.unwrap().token_file.is_some());
    }
}
