//! The fields of what `--json` prints about strict mode: the same on every system, because the tests of each ask for these.

use std::collections::BTreeSet;

use serde_json::Value;

/// `waylay explore`.
pub(crate) const EXPLORED: &[&str] = &[
    "accesses",
    "compared",
    "depth",
    "doubtful_races",
    "exhausted",
    "failure_dir",
    "failures",
    "fell_back",
    "first_failure_run",
    "folder",
    "found",
    "guarantee",
    "guarantees",
    "handed_runs",
    "interrupted",
    "kind",
    "level",
    "limit_reached",
    "limited_places",
    "limited_sites",
    "memory",
    "store_buffers",
    "unconfirmed_delays",
    "not_examined",
    "notes",
    "orders",
    "calls_over",
    "overlooked",
    "overlooked_places",
    "partly_controlled",
    "patched",
    "program",
    "quiet",
    "races",
    "races_over",
    "refused",
    "refused_places",
    "replay",
    "restart",
    "restarts",
    "restored",
    "runs",
    "schedules_per_second",
    "seconds",
    "seed",
    "signature",
    "sites",
    "steps",
    "steps_per_second",
    "strategy",
    "threads",
    "unconfirmed_races",
];
/// A failure in it that was confirmed.
pub(crate) const FOUND: &[&str] = &[
    "cause",
    "confirmed",
    "count",
    "failure_dir",
    "first_run",
    "forced",
    "kind",
    "replay",
    "signature",
    "text",
    "what",
    "where",
];
/// Why it fails.
pub(crate) const CAUSE: &[&str] = &["constraints", "depth", "flipped", "flipped_each", "kept", "schedules"];
/// `waylay replay`.
pub(crate) const REPLAYED: &[&str] = &[
    "detail",
    "diverged",
    "first_divergence",
    "other_failures",
    "reproduced",
    "runs",
    "seconds",
    "signature",
    "steps",
    "switches",
];
/// `waylay minimize`.
pub(crate) const MINIMIZED: &[&str] = &["after", "before", "minimal", "runs", "switches"];
/// A switch in it.
pub(crate) const SWITCH: &[&str] = &["from", "from_stack", "step", "to", "to_stack"];
/// The schedules of a test of a campaign.
pub(crate) const STRICT: &[&str] = &[
    "accesses",
    "depth",
    "exhausted",
    "guarantee",
    "guarantees",
    "left_behind",
    "level",
    "limit_reached",
    "limited_sites",
    "looked_at",
    "notes",
    "orders",
    "partly_controlled",
    "patched",
    "quiet",
    "refused",
    "runs",
    "schedules_per_second",
    "seed",
    "sites",
    "steps",
    "steps_per_second",
    "strategy",
    "threads",
    "unconfirmed",
];
/// `strict.json` of a failure of such a test.
pub(crate) const RECORD: &[&str] = &[
    "conditions",
    "confirmed",
    "expected",
    "format",
    "index",
    "key",
    "kind",
    "parameters",
    "partly_controlled",
    "program",
    "run",
    "seed",
    "steps",
    "switches",
    "threads",
];

/// The object has these fields and no others.
pub(crate) fn expect_fields(object: &Value, fields: &[&str]) {
    let object = object.as_object().unwrap_or_else(|| panic!("not an object: {object:#}"));
    let has: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    assert_eq!(has, fields.iter().copied().collect());
}
