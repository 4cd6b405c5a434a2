//! Strategy `idiom`, and how much of what can come in two orders was seen in both.

use serde_json::Value;

use super::aimed::TAKEN;
use crate::support::Workplace;
use crate::support::small::{build, explore, json};

/// Two threads add to a counter, without a lock.
const ADDED: &str = r#"
#include <pthread.h>
static int n;
static void *add(void *x) { int v = n; n = v + 1; return x; }
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, add, 0); pthread_create(&u, 0, add, 0);
    pthread_join(t, 0); pthread_join(u, 0);
    return n == 2 ? 0 : 3;
}"#;

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// One order of two among dozens, in threads of very different length: chance does not bring it (1,000 runs of a random walk with
/// two of three seeds do not), and it is tried as soon as both of its ends were seen.
#[test]
fn idiom_tries_the_order_that_was_not_seen() {
    let place = Workplace::new();
    let program = build(&place, TAKEN, &[]);
    let options = ["--strategy", "idiom", "--runs", "60", "--stop-on-first", "--minimize", "off"];
    let ran = explore(&place, &options, &program);
    let found = json(&ran);
    assert_eq!(
        (&found["kind"], &found["found"][0]["confirmed"]),
        (&"crash".into(), &true.into()),
        "{ran:#?}"
    );
    assert!(ran.stderr.contains("no guarantee: this strategy promises nothing by depth"), "{}", ran.stderr);
    let folder = found["failure_dir"].as_str().unwrap();
    let again = json(&place.waylay(&["replay", folder, "--times", "5", "--json"]));
    assert_eq!((&again["reproduced"], &again["diverged"]), (&5.into(), &0.into()), "{again:#}");
}

/// What is read and written without a lock has three orders: read before write, write before read, write before write.
#[test]
fn every_summary_says_how_many_orders_were_seen() {
    let place = Workplace::new();
    let program = build(&place, ADDED, &[]);
    for (strategy, jobs) in
        [("idiom", "1"), ("idiom", "3"), ("random", "2"), ("portfolio", "1"), ("dfs", "1")]
    {
        let options = ["--strategy", strategy, "--runs", "150", "--jobs", jobs, "--minimize", "off"];
        let ran = explore(&place, &options, &program);
        let orders = json(&ran)["orders"].clone();
        let numbers = (number(&orders["seen"]), number(&orders["predicted"]));
        assert_eq!(numbers, (3, 3), "{strategy}: {ran:#?}");
        assert!(ran.stderr.contains("\n3 of 3 orders of conflicting places were seen in "), "{}", ran.stderr);
    }
}

#[test]
fn the_number_of_jobs_does_not_change_what_idiom_tries() {
    let place = Workplace::new();
    let program = build(&place, TAKEN, &[]);
    let numbers = |jobs: &str| {
        let options = ["--strategy", "idiom", "--runs", "200", "--jobs", jobs, "--minimize", "off"];
        let summary = json(&explore(&place, &options, &program));
        ["runs", "failures", "first_failure_run", "orders"].map(|name| summary[name].clone())
    };
    assert_eq!(numbers("1"), numbers("3"));
}

/// Every run is listened to then, so that the last new order is known exactly.
#[test]
fn it_ends_when_nothing_new_comes() {
    let place = Workplace::new();
    let program = build(&place, ADDED, &[]);
    for jobs in ["1", "2"] {
        let options = ["--runs", "5000", "--stop-after-quiet", "120", "--minimize", "off", "--jobs", jobs];
        let ran = explore(&place, &options, &program);
        let summary = json(&ran);
        let runs = number(&summary["runs"]);
        assert_eq!(summary["quiet"], true, "{ran:#?}");
        assert_eq!(runs, number(&summary["orders"]["last_new"]) + 120, "{ran:#?}");
        assert_eq!(number(&summary["orders"]["runs"]), runs, "{ran:#?}");
        assert!(ran.stderr.contains("no schedule showed a new order"), "{}", ran.stderr);
    }
    let all = json(&explore(&place, &["--runs", "100", "--stop-after-quiet", "120"], &program));
    assert_eq!((&all["quiet"], &all["runs"]), (&false.into(), &100.into()));
    let shard = place.waylay(&["explore", "--shard", "1/2", "--stop-after-quiet", "9", "--", &program]);
    assert_eq!(shard.code(), Some(2), "{shard:#?}");
    assert!(shard.stderr.contains("no shard knows which orders the others saw"), "{}", shard.stderr);
}
