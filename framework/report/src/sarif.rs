//! SARIF 2.1.0: failures as results with code locations, for tools that show findings beside the code.

use serde_json::{Map, Value, json};
use waylay_findings::{Kind, Severity};

use crate::cause::{Constraint, EventPlace};
use crate::escape::Plain;
use crate::model::{Failure, FailureState, Frame, Night, Origin, Stack, side_by_side};

/// Threads whose stacks a result carries.
const MOST_STACKS: usize = 4;
/// Frames of a stack.
const MOST_FRAMES: usize = 40;
const SOURCE_ROOT: &str = "SRCROOT";

/// The report. Files below `root` are named relative to it, as code hosts want them.
pub fn report(night: &Night, root: Option<&str>) -> Value {
    let campaign = &night.campaign;
    let rule = |kind: &Kind| {
        json!({
            "id": kind.word(),
            "name": title(kind.word()),
            "shortDescription": words(kind.meaning()),
            "defaultConfiguration": { "level": level(*kind) },
        })
    };
    let rules: Vec<Value> = Kind::ALL.iter().map(rule).collect();
    let notes: Vec<Value> = campaign
        .problems
        .iter()
        .map(|problem| json!({ "level": "error", "message": words(problem) }))
        .collect();
    let mut run = json!({
        "tool": { "driver": { "name": "Waylay", "semanticVersion": campaign.environment.waylay, "rules": rules } },
        "automationDetails": { "id": format!("waylay/{}", campaign.name) },
        "invocations": [{
            // Said of the tool, not of the code: failures are what it is for.
            "executionSuccessful": campaign.problems.is_empty() && campaign.iterations() > 0,
            "startTimeUtc": campaign.started.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string(),
            "endTimeUtc": campaign.updated.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string(),
            "toolExecutionNotifications": notes,
        }],
        "columnKind": "utf16CodeUnits",
        "results": night.failures.iter().map(|failure| result(failure, root)).collect::<Vec<_>>(),
    });
    if let Some(root) = root {
        let uri = format!("{}/", uri_of(root.trim_end_matches(['/', '\\'])));
        run["originalUriBaseIds"] = json!({ SOURCE_ROOT: { "uri": uri } });
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    })
}

/// A message for people: what a test has in its texts must not change how others are seen.
fn words(text: &str) -> Value {
    json!({ "text": Plain(text).to_string() })
}

fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn level(kind: Kind) -> &'static str {
    match kind.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn result(failure: &Failure, root: Option<&str>) -> Value {
    let text = format!(
        "{} in {}: {}{}{}{}\nRun it again: {}",
        failure.kind,
        failure.subject(),
        failure.what,
        failure.why.cause.as_ref().map_or_else(String::new, |cause| format!("\n{}", cause.sentence())),
        failure.reason.as_ref().map_or_else(String::new, |reason| format!("\n{reason}")),
        side_by_side(&failure.rates).map_or_else(String::new, |rates| format!("\nHow often: {rates}")),
        failure.replay
    );
    let mut location = Map::new();
    match said_place(&failure.what) {
        Some((file, line)) => {
            let place = json!({ "artifactLocation": artifact(file, root), "region": { "startLine": line } });
            location.insert("physicalLocation".into(), place);
        }
        None => location.extend(failure.place().and_then(|frame| physical(frame, root))),
    }
    location.insert(
        "logicalLocations".into(),
        json!([{ "name": Plain(failure.subject()).to_string(), "kind": "function" }]),
    );
    let mut result = json!({
        "ruleId": failure.kind.word(),
        "level": level(failure.kind),
        "message": words(&text),
        "locations": [location],
        "partialFingerprints": { "waylaySignature/v1": failure.id },
        "occurrenceCount": failure.count.max(1),
        "stacks": failure.stacks.iter().filter(|stack| !stack.frames.is_empty()).take(MOST_STACKS)
            .map(|stack| stack_of(stack, root)).collect::<Vec<_>>(),
        "properties": {
            "signature": failure.signature,
            "replay": failure.replay,
            "folder": failure.folder,
            "nights": failure.nights,
        },
    });
    if !failure.rates.is_empty() {
        result["properties"]["rates"] = json!(failure.rates);
    }
    let related = related(failure, root);
    if !related.is_empty() {
        result["relatedLocations"] = json!(related);
    }
    if let Some(index) = Kind::ALL.iter().position(|kind| *kind == failure.kind) {
        result["ruleIndex"] = json!(index);
    }
    let baseline = match failure.state {
        FailureState::New | FailureState::Rare => Some("new"),
        FailureState::Ongoing | FailureState::Open => Some("unchanged"),
        FailureState::Resolved => Some("absent"),
        FailureState::Unknown => None,
    };
    if let Some(baseline) = baseline {
        result["baselineState"] = json!(baseline);
    }
    if let Some(why) = &failure.suppressed {
        result["suppressions"] = json!([{ "kind": "external", "justification": why }]);
    }
    result
}

/// The place of the assertion that a test case begins its message with, `file:line: `: where its framework ended the process
/// says nothing.
fn said_place(what: &str) -> Option<(&str, u32)> {
    let (file, line) = what.lines().next()?.split_once(": ")?.0.rsplit_once(':')?;
    let line = line.parse().ok().filter(|line| *line > 0)?;
    (!file.is_empty() && !file.contains(' ')).then_some((file, line))
}

/// Both events of every order that the failure needs, each at its place.
pub(crate) fn related(failure: &Failure, root: Option<&str>) -> Vec<Value> {
    let constraints = failure.why.cause.iter().flat_map(|cause| &cause.constraints);
    let events = constraints.flat_map(|Constraint { first, then, object, .. }| {
        [
            (first, format!("first: {} of {object}{}", first.access, first.details())),
            (then, format!("then: {} of {object}{}", then.access, then.details())),
        ]
    });
    events
        .filter(|(event, _)| !event.file.is_empty())
        .enumerate()
        .map(|(id, (event, what))| {
            let mut place = json!({ "artifactLocation": artifact(&event.file, root) });
            if event.line > 0 {
                place["region"] = json!({ "startLine": event.line });
            }
            if event.line > 0 && !event.source.is_empty() {
                place["contextRegion"] = context(event);
            }
            let callers: Vec<&str> = event.stack.iter().skip(1).map(String::as_str).collect();
            let called = if callers.is_empty() {
                String::new()
            } else {
                format!(", called by {}", callers.join(", "))
            };
            let text = format!("{what}, thread {}, in {}{called}", event.thread, event.function);
            json!({ "id": id, "physicalLocation": place, "message": words(&text) })
        })
        .collect()
}

/// The lines of source code around an event.
fn context(event: &EventPlace) -> Value {
    let lines = event.source_lines();
    let (first, last) =
        (lines.first().map_or(event.line, |line| line.0), lines.last().map_or(event.line, |line| line.0));
    let text = lines.iter().map(|(_, text)| format!("{}\n", Plain(text))).collect::<String>();
    json!({ "startLine": first, "endLine": last, "snippet": { "text": text } })
}

fn stack_of(stack: &Stack, root: Option<&str>) -> Value {
    let frames: Vec<Value> =
        stack.frames.iter().take(MOST_FRAMES).map(|frame| frame_of(frame, stack, root)).collect();
    json!({
        "message": words(&format!("{} {}", stack.title(), stack.doing)),
        "frames": frames,
    })
}

fn frame_of(frame: &Frame, stack: &Stack, root: Option<&str>) -> Value {
    let mut location = Map::new();
    location.extend(physical(frame, root));
    if let Some(function) = &frame.function {
        location.insert(
            "logicalLocations".into(),
            json!([{ "fullyQualifiedName": function, "kind": "function" }]),
        );
    }
    let mut value = json!({ "threadId": stack.thread });
    if !location.is_empty() {
        value["location"] = Value::Object(location);
    }
    if let Some(module) = &frame.module {
        value["module"] = json!(module);
    }
    if frame.origin != Origin::Own {
        value["properties"] = json!({ "origin": frame.origin });
    }
    value
}

fn physical(frame: &Frame, root: Option<&str>) -> Option<(String, Value)> {
    let file = frame.file.as_ref()?;
    let mut place = json!({ "artifactLocation": artifact(file, root) });
    if let Some(line) = frame.line.filter(|line| *line > 0) {
        place["region"] = json!({ "startLine": line });
    }
    Some(("physicalLocation".into(), place))
}

fn artifact(file: &str, root: Option<&str>) -> Value {
    let below = root.and_then(|root| {
        let rest = file.strip_prefix(root.trim_end_matches(['/', '\\']))?;
        rest.strip_prefix(['/', '\\'])
    });
    match below {
        Some(below) => json!({ "uri": encode(&below.replace('\\', "/")), "uriBaseId": SOURCE_ROOT }),
        None => json!({ "uri": uri_of(file) }),
    }
}

/// A path as an address: absolute ones name this machine's files.
fn uri_of(path: &str) -> String {
    let path = path.replace('\\', "/");
    let drive = path.as_bytes().get(1) == Some(&b':');
    match (path.starts_with('/'), drive) {
        (true, _) => format!("file://{}", encode(&path)),
        (_, true) => format!("file:///{}", encode(&path).replacen("%3A", ":", 1)),
        _ => encode(&path),
    }
}

fn encode(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~+@=,".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_assertion_is_read_from_its_message() {
        assert_eq!(said_place("src/lib.rs:10: assertion failed: left: 1"), Some(("src/lib.rs", 10)));
        for what in ["killed by SIGSEGV", "deadlock: 2 threads", "exited with status 1: x", "a b.c:3: x", ""]
        {
            assert_eq!(said_place(what), None, "{what}");
        }
    }

    #[test]
    fn paths_become_addresses() {
        assert_eq!(uri_of("/home/a b/c#.rs"), "file:///home/a%20b/c%23.rs");
        assert_eq!(uri_of("C:\\src\\a.cpp"), "file:///C:/src/a.cpp");
        assert_eq!(uri_of("src/lib.rs"), "src/lib.rs");
        let relative = artifact("/w/src/a.rs", Some("/w/"));
        assert_eq!(relative, json!({ "uri": "src/a.rs", "uriBaseId": "SRCROOT" }));
        assert_eq!(artifact("/wx/a.rs", Some("/w")), json!({ "uri": "file:///wx/a.rs" }));
    }

    #[test]
    fn every_form_of_a_report_has_the_cause() {
        use crate::cause::{Cause, EventPlace, Trials, WIDTH, Why};
        use crate::timeline::{Timeline, Unit, svg};
        let event = |thread, access: &str, line| EventPlace {
            file: "/src/stock.cpp".to_owned(),
            line,
            thread,
            access: access.to_owned(),
            occurrence: 1,
            step: Some(3),
            ..EventPlace::default()
        };
        let then = EventPlace { step: None, ..event(1, "write", 29) };
        let cause = Cause {
            depth: 1,
            constraints: vec![Constraint {
                first: event(0, "read", 27),
                then,
                object: "`sold`".to_owned(),
                allocated: None,
            }],
            flipped: Trials { runs: 20, failures: 0, other_failures: 0 },
            flipped_each: 20,
            kept: Trials { runs: 20, failures: 20, other_failures: 0 },
            near: false,
            schedules: 90,
        };
        let why = Why { cause: Some(cause), no_cause: None };
        let failure = Failure { what: "it broke".to_owned(), why: why.clone(), ..Failure::default() };
        let text = crate::text::failure(&failure, false);
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("   cause     depth 1: ")), "{text}");
        let related = related(&failure, Some("/src"));
        let lines: Vec<_> =
            related.iter().map(|place| &place["physicalLocation"]["region"]["startLine"]).collect();
        assert_eq!(lines, [27, 29]);
        let mut timeline = Timeline::new("x", Unit::Steps);
        (timeline.end, timeline.lanes) = (9, vec!["thread 0".to_owned(), "thread 1".to_owned()]);
        timeline.explain(&why);
        assert_eq!(timeline.arrows.len(), 1);
        assert!(svg::picture(&timeline).contains("class=\"decides\" x1="));
        let none = Why { cause: None, no_cause: Some("too long".to_owned()) };
        assert_eq!(none.lines(WIDTH), ["none was found: too long"]);
        assert!(Why::default().lines(WIDTH).is_empty());
    }
}
