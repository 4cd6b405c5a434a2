//! The causes of the zoo: what the comments of its programs state, what is computed, and whether that is the same, by place.
//!
//! A line `@NAME: a -> b, c -> d` in a comment states the cause of a program; of several lines each is one way to say it. What
//! `a` is says a mark `@a` at the end of a line of code, or in a line of its own below it. A mark belongs to the program whose
//! statement stands above it; where several programs share code, to all of the file.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Folders with the sources of a plugin.
const SOURCES: [(&str, &str); 3] =
    [("waylay_zoo_c", "zoo-c/src"), ("waylay_zoo_cpp", "zoo-cpp/src"), ("waylay_zoo", "zoo/src")];

/// Where an event is: one of these lines.
type Lines = Vec<usize>;

/// The orders of a cause, one way to say it.
type Orders = Vec<(Lines, Lines)>;

/// What a program's comment states.
#[derive(Debug)]
pub(crate) struct Stated {
    /// The file's last name.
    file: String,
    ways: Vec<Orders>,
}

/// What was computed of a failure.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    pub(crate) depth: u64,
    pub(crate) schedules: u64,
    /// It in words, or why there is none.
    pub(crate) sentence: String,
    /// By order, the lines of both events in every file that their stacks go through.
    pub(crate) orders: Vec<[Vec<(String, usize)>; 2]>,
    /// Runs with an order reversed, and those of them that failed.
    pub(crate) flipped: (u64, u64),
}

/// The statement about a program of the zoo.
pub(crate) fn stated(plugin: &str, name: &str) -> Stated {
    let (_, folder) = SOURCES.iter().find(|(of, _)| *of == plugin).expect("a plugin of the zoo");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests-plugins").join(folder);
    let entries = fs::read_dir(&folder).expect("the zoo's sources");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    for path in files {
        let text = fs::read_to_string(&path).expect("a source");
        let ways = ways(&text, name);
        if !ways.is_empty() {
            let file = path.file_name().expect("a file").to_string_lossy().into_owned();
            return Stated { file, ways };
        }
    }
    panic!("{plugin} states nothing about {name}");
}

fn ways(text: &str, name: &str) -> Vec<Orders> {
    let lines: Vec<&str> = text.lines().collect();
    let statement = |line: &str| -> Option<(String, String)> {
        let (name, orders) = line.trim_start_matches(['/', '*', ' ']).strip_prefix('@')?.split_once(": ")?;
        let orders = orders.trim_end_matches(['*', '/', ' ']);
        Some((name.to_owned(), orders.to_owned()))
    };
    let of_name = |line: &str| statement(line).filter(|(of, _)| of == name).map(|(_, orders)| orders);
    let Some(begin) = lines.iter().position(|line| of_name(line).is_some()) else { return Vec::new() };
    // Statements that stand together are about the same code.
    let own = lines[begin..].iter().position(|line| statement(line).is_none()).unwrap_or(0) + begin;
    let next = lines[own..].iter().position(|line| statement(line).is_some());
    let end = next.map_or(lines.len(), |next| own + next);
    let marked = |mark: &str, from: usize, to: usize| -> Lines {
        let has = |line: &str| line.split_whitespace().any(|word| word == format!("@{mark}"));
        let at = (from..to).filter(|&index| has(lines[index]));
        at.map(|index| if lines[index].trim().starts_with("// @") { index } else { index + 1 }).collect()
    };
    let place = |mark: &str| {
        let here = marked(mark, begin, end);
        let lines = if here.is_empty() { marked(mark, 0, lines.len()) } else { here };
        assert!(!lines.is_empty(), "{name}: nothing is marked {mark}");
        lines
    };
    let order = |order: &str| {
        let (first, then) = order.split_once(" -> ").expect("an order");
        (place(first.trim()), place(then.trim()))
    };
    lines.iter().filter_map(|line| of_name(line)).map(|text| text.split(',').map(order).collect()).collect()
}

impl Stated {
    pub(crate) fn depth(&self) -> u64 {
        self.ways[0].len() as u64
    }

    /// Whether these are the orders that one of the ways names: each is matched by one of its own.
    pub(crate) fn names(&self, computed: &Computed) -> bool {
        self.ways.iter().any(|way| way.len() == computed.orders.len() && self.matches(way, &computed.orders))
    }

    fn matches(&self, way: &[(Lines, Lines)], orders: &[[Vec<(String, usize)>; 2]]) -> bool {
        let Some(((first, then), rest)) = way.split_first() else { return true };
        let at = |event: &[(String, usize)], lines: &Lines| {
            event.iter().any(|(file, line)| *file == self.file && lines.contains(line))
        };
        (0..orders.len()).any(|place| {
            let others: Vec<_> = [&orders[..place], &orders[place + 1..]].concat();
            at(&orders[place][0], first) && at(&orders[place][1], then) && self.matches(rest, &others)
        })
    }
}

/// What a `failure.json` says of its cause.
pub(crate) fn computed(failure: &Value) -> Computed {
    let cause = &failure["cause"];
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    if !cause.is_object() {
        let sentence = failure["no_cause"].as_str().unwrap_or("nobody looked for it").to_owned();
        return Computed { sentence, ..Computed::default() };
    }
    let constraints = cause["constraints"].as_array().expect("a list");
    let places = |event: &Value| -> Vec<(String, usize)> {
        let frames = event["stack"].as_array().cloned().unwrap_or_default();
        frames.iter().filter_map(|frame| frame.as_str().and_then(place)).collect()
    };
    let words = |event: &Value| {
        let place = &places(event).first().map_or_else(String::new, |(file, line)| format!("{file}:{line}"));
        format!("{} {} {place}", event["thread"], event["access"].as_str().unwrap_or_default())
    };
    let orders = constraints.iter().map(|order| [places(&order["first"]), places(&order["then"])]);
    let sentence = constraints
        .iter()
        .map(|order| format!("{} -> {}", words(&order["first"]), words(&order["then"])))
        .collect::<Vec<_>>()
        .join(", ");
    Computed {
        depth: number(&cause["depth"]),
        schedules: number(&cause["schedules"]),
        sentence,
        orders: orders.collect(),
        flipped: (number(&cause["flipped"]["runs"]), number(&cause["flipped"]["failures"])),
    }
}

/// The file's last name and the line of `function (file:line)`.
fn place(frame: &str) -> Option<(String, usize)> {
    let (file, line) = frame.rsplit_once('(')?.1.strip_suffix(')')?.rsplit_once(':')?;
    Some((file.rsplit(['/', '\\']).next()?.to_owned(), line.parse().ok()?))
}
