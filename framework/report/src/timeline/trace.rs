//! A timeline in the JSON format that ui.perfetto.dev and chrome://tracing read.
//!
//! One step is shown as one microsecond, nanoseconds as what they are.

use serde_json::{Value, json};

use super::{Doing, Timeline, Unit};

fn word(doing: Doing) -> &'static str {
    match doing {
        Doing::Running => "running",
        Doing::Ready => "ready",
        Doing::Blocked => "blocked",
        Doing::Suspended => "suspended",
        Doing::Alive => "alive",
    }
}

/// The trace.
pub fn trace(timeline: &Timeline) -> Value {
    let micros = |at: u64| match timeline.unit {
        Unit::Steps => at as f64,
        Unit::Nanoseconds => at as f64 / 1000.0,
    };
    let lasting = |from: u64, to: u64| micros(to.saturating_sub(from));
    let mut events = vec![json!({
        "ph": "M", "pid": 1, "name": "process_name", "args": { "name": timeline.title }
    })];
    for (lane, name) in timeline.lanes.iter().enumerate() {
        events.push(
            json!({ "ph": "M", "pid": 1, "tid": lane, "name": "thread_name", "args": { "name": name } }),
        );
        events.push(json!({ "ph": "M", "pid": 1, "tid": lane, "name": "thread_sort_index", "args": { "sort_index": lane } }));
    }
    for span in timeline.spans.iter().filter(|span| !matches!(span.doing, Doing::Ready | Doing::Alive)) {
        let name = if span.label.is_empty() { word(span.doing) } else { &span.label };
        events.push(json!({
            "ph": "X", "pid": 1, "tid": span.lane, "cat": word(span.doing), "name": name,
            "ts": micros(span.from), "dur": lasting(span.from, span.to),
            "args": { "state": word(span.doing) },
        }));
    }
    // Locks overlap each other and what the thread does, so they are asynchronous slices with lanes of their own.
    for (index, held) in timeline.held.iter().enumerate() {
        let name = timeline.locks.get(held.lock).map_or("lock", String::as_str);
        let holder = timeline.lanes.get(held.lane).map_or("", String::as_str);
        let common = json!({ "pid": 1, "tid": held.lane, "cat": "lock", "id": index, "name": name });
        for (phase, at) in [("b", held.from), ("e", held.to)] {
            let mut event = common.clone();
            event["ph"] = json!(phase);
            event["ts"] = json!(micros(at));
            event["args"] = json!({ "held by": holder });
            events.push(event);
        }
    }
    for switch in timeline.switches.iter().filter(|switch| switch.forced) {
        events.push(json!({
            "ph": "i", "s": "t", "pid": 1, "tid": switch.to, "cat": "switch", "name": "switch", "ts": micros(switch.at),
            "args": { "from": timeline.lanes.get(switch.from) },
        }));
    }
    if let Some(failing) = &timeline.failing {
        events.push(json!({
            "ph": "i", "s": "g", "pid": 1, "tid": failing.lane.unwrap_or(0), "cat": "failure", "name": failing.what,
            "ts": micros(failing.at),
        }));
    }
    let unit = match timeline.unit {
        Unit::Steps => "1 us is one step of the schedule",
        Unit::Nanoseconds => "real time",
    };
    json!({ "traceEvents": events, "displayTimeUnit": "ns", "otherData": { "title": timeline.title, "unit": unit } })
}
