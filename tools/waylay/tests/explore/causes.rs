//! The cause of a failure: programs whose first lines say which orders of events they need, in C, C++ and Rust. What is
//! computed names exactly these places.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::Workplace;
use crate::support::small::{explore, json};

/// Line numbers of two events that come in this order.
type Lines = (u64, u64);

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/causes");

fn compile(place: &Workplace, source: &str) -> String {
    compile_with(place, source, if source.ends_with(".rs") { &["-g"] } else { &["-g", "-O0"] })
}

fn compile_with(place: &Workplace, source: &str, options: &[&str]) -> String {
    let file = Path::new(PROGRAMS).join(source);
    let program = place.path().join(source.replace('.', "_"));
    let mut command = match file.extension().and_then(|name| name.to_str()) {
        Some("rs") => Command::new("rustc"),
        Some("cpp") => Command::new("c++"),
        _ => Command::new("cc"),
    };
    match source.ends_with(".rs") {
        true => command.args(["--edition", "2024"]),
        false => command.arg("-pthread"),
    };
    let ended = command.args(options).arg(&file).arg("-o").arg(&program).output().expect("a compiler");
    assert!(ended.status.success(), "{source}: {}", String::from_utf8_lossy(&ended.stderr));
    program.to_str().expect("a plain path").to_owned()
}

/// What a program says about itself: every cause that it has.
fn stated(source: &str) -> Vec<Vec<Lines>> {
    let text = std::fs::read_to_string(Path::new(PROGRAMS).join(source)).expect("a program");
    let line_of = |tag: &str| {
        let mark = format!("// @{tag}");
        let line = text.lines().position(|line| line.ends_with(&mark));
        line.unwrap_or_else(|| panic!("{source}: nothing is marked {tag}")) as u64 + 1
    };
    let causes = text.lines().filter_map(|line| line.strip_prefix("// depth ")?.split_once(": "));
    causes
        .map(|(depth, orders)| {
            let order = |order: &str| {
                let (first, then) = order.split_once(" < ").expect("an order");
                (line_of(first), line_of(then))
            };
            let mut orders: Vec<Lines> = orders.split(", ").map(order).collect();
            assert_eq!(depth.parse(), Ok(orders.len()), "{source}");
            orders.sort_unstable();
            orders
        })
        .collect()
}

/// What was computed.
fn computed(cause: &Value) -> Vec<Lines> {
    let line = |event: &Value| event["line"].as_u64().unwrap_or(0);
    let constraints = cause["constraints"].as_array().cloned().unwrap_or_default();
    let mut all: Vec<Lines> =
        constraints.iter().map(|order| (line(&order["first"]), line(&order["then"]))).collect();
    all.sort_unstable();
    all
}

/// The causes of what is found, each proved.
fn causes(source: &str) -> Vec<Vec<Lines>> {
    let place = Workplace::new();
    let program = compile(&place, source);
    let ran = explore(&place, &["--runs", "300", "--seed", "1"], &program);
    assert_eq!(ran.status.code(), Some(1), "{source}: {ran:#?}");
    let summary = json(&ran);
    let found = summary["found"].as_array().expect("a list");
    let mut all: Vec<Vec<Lines>> = found
        .iter()
        .map(|found| {
            let cause = &found["cause"];
            assert!(cause.is_object(), "{source}: {}", found["no_cause"]);
            let orders = computed(cause);
            assert_eq!(cause["depth"], orders.len(), "{source}");
            assert_eq!(cause["flipped"]["failures"], 0, "{source}: {cause:#}");
            assert_eq!(cause["flipped"]["runs"], 20 * orders.len(), "{source}: {cause:#}");
            assert_eq!(cause["kept"]["failures"], cause["kept"]["runs"], "{source}: {cause:#}");
            assert!(cause["schedules"].as_u64().unwrap() <= 2000, "{source}: {cause:#}");
            orders
        })
        .collect();
    all.sort_unstable();
    // One cause may show at several places: who notices a deadlock first is a matter of chance.
    all.dedup();
    all
}

fn agrees(sources: &[&str]) {
    for source in sources {
        let mut expected = stated(source);
        expected.sort_unstable();
        assert_eq!(causes(source), expected, "{source}");
    }
}

#[test]
fn of_c_programs_the_cause_is_what_their_comment_says() {
    agrees(&["lost_update.c", "use_before_set.c", "check_then_use.c", "deadlock.c", "lost_wakeup.c"]);
    agrees(&["flag_outside_lock.c", "two_sections.c", "use_after_free.c", "philosophers.c", "early_flag.c"]);
}

#[test]
fn of_programs_in_cpp_and_rust_the_cause_is_what_their_comment_says() {
    agrees(&["lazy.cpp", "accounts.cpp", "counter.rs", "crossed.rs", "taken.rs"]);
}

#[test]
fn two_bugs_have_two_causes() {
    agrees(&["two_bugs.c"]);
}

#[test]
fn places_without_lines_are_told_by_function_and_offset() {
    let place = Workplace::new();
    let cause = |source: &str, options: &[&str]| {
        let program = compile_with(&place, source, options);
        json(&explore(&place, &["--runs", "300", "--seed", "1"], &program))["found"][0]["cause"].clone()
    };
    let lost = cause("lost_update.c", &["-O0"]);
    let event = &lost["constraints"][0]["first"];
    assert_eq!((&event["function"], &event["line"]), (&"sell".into(), &0.into()), "{lost:#}");
    assert!(event["offset"].as_u64() > Some(0), "{lost:#}");
    // What was put into a function of the runtime has its name, and a part of a variable that of the variable.
    let counter = cause("counter.rs", &["-O"]);
    let order = &counter["constraints"][0];
    assert_eq!(order["object"], "`HITS`", "{counter:#}");
    assert!(order["first"]["function"].as_str().is_some_and(|name| !name.is_empty()), "{counter:#}");
}

#[test]
fn the_block_begins_with_the_cause_and_what_is_kept_is_minimised() {
    let place = Workplace::new();
    let program = compile(&place, "lost_update.c");
    let ran = explore(&place, &["--runs", "300", "--seed", "1"], &program);
    let text = &ran.stderr;
    let mut block = text.lines().skip_while(|line| !line.starts_with("━━ "));
    assert!(block.next().is_some_and(|line| line.contains("assert in")), "{text}");
    assert!(block.next().is_some_and(|line| line.starts_with("   cause   depth 2: threads ")), "{text}");
    assert!(text.contains("With either order reversed"), "{text}");
    let summary = json(&ran);
    let folder = Path::new(summary["failure_dir"].as_str().unwrap()).to_owned();
    let read =
        |name: &str| std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(read("schedule.bin"), read("minimized.bin"));
    assert_ne!(read("schedule.bin"), read("found.bin"));
    let record: Value = serde_json::from_slice(&read("strict.json")).unwrap();
    let minimized: Value = serde_json::from_slice(&read("minimized.json")).unwrap();
    assert_eq!(minimized["after"], 1, "{minimized:#}");
    assert!(record["switches"].as_u64() <= minimized["before"].as_u64(), "{record:#}");
    let timeline: Value = serde_json::from_slice(&read("timeline.json")).unwrap();
    assert_eq!(timeline["arrows"].as_array().map(Vec::len), Some(2), "{timeline:#}");
    let entry: Value = serde_json::from_slice(&read("failure.json")).unwrap();
    assert_eq!(entry["cause"], summary["found"][0]["cause"]);
    // Nobody has to wait for it.
    let ran = explore(&place, &["--runs", "300", "--seed", "1", "--minimize", "off"], &program);
    let summary = json(&ran);
    assert!(
        summary["found"][0]["cause"].is_null() && summary["found"][0]["no_cause"].is_null(),
        "{summary:#}"
    );
    assert!(!Path::new(summary["failure_dir"].as_str().unwrap()).join("found.bin").exists());
}
