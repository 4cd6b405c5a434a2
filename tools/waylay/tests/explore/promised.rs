//! What an exploration promises is kept by its own runs, and nothing is promised where nothing was scheduled.

use serde_json::Value;

use crate::support::Workplace;
use crate::support::small::{build, explore, json};

/// The main thread returns without joining, and what runs at exit relies on the other thread.
const LEAVES: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static atomic_int half;
static void *other(void *x) { half = 1; half = 2; return x; }
static void at_exit(void) { if (half == 1) abort(); }
int main(void) {
    pthread_t t;
    atexit(at_exit);
    pthread_create(&t, 0, other, 0);
    pthread_detach(t);
    return 0;
}
"#;

/// A thread is registered while it waits; the other has seen it and relies on it. The wait expires in between.
const EXPIRES: &str = r#"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
static atomic_int registered;
static sem_t never;
static void *waiter(void *x) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    registered = 1;
    sem_timedwait(&never, &until);
    registered = 0;
    return x;
}
int main(void) {
    pthread_t t;
    sem_init(&never, 0, 0);
    pthread_create(&t, 0, waiter, 0);
    if (registered && !registered) abort();
    pthread_join(t, 0);
    return 0;
}
"#;

/// 20,000 steps of one thread while the other could run.
const LONG: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
static atomic_int count, seen;
static void *works(void *x) { for (int i = 0; i < 20000; i++) count++; return x; }
static void *looks(void *x) { seen = count; return x; }
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, works, 0);
    pthread_create(&b, 0, looks, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
"#;

/// Whoever sees that an update was lost does much more before the program fails, as a panic does that unwinds.
const UNWINDS: &str = r#"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int n, made;
static void *add(void *x) {
    pthread_mutex_lock(&m); int v = n; pthread_mutex_unlock(&m);
    pthread_mutex_lock(&m); n = v + 1; int lost = ++made != n; pthread_mutex_unlock(&m);
    for (int i = 0; lost && i < 300; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
    return x;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, add, 0); pthread_create(&u, 0, add, 0);
    pthread_mutex_lock(&m); pthread_mutex_unlock(&m);
    pthread_join(t, 0); pthread_join(u, 0);
    return n == 2 ? 0 : 3;
}
"#;

const BEFORE_MAIN: &str = r#"
#include <pthread.h>
static pthread_t t;
static void *other(void *x) { return x; }
__attribute__((constructor)) static void start(void) { pthread_create(&t, 0, other, 0); }
int main(void) { return 0; }
"#;

/// Whoever comes first decides how long the run is.
const CUT: &str = r#"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int first;
static void *goes(void *me) {
    pthread_mutex_lock(&m); if (!first) first = (int)(long)me; int longer = first == 2; pthread_mutex_unlock(&m);
    for (int i = 0; longer && i < 2000; i++) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
    return me;
}
int main(void) {
    pthread_t t, u;
    pthread_create(&t, 0, goes, (void *)1); pthread_create(&u, 0, goes, (void *)2);
    pthread_join(t, 0); pthread_join(u, 0);
    return 0;
}
"#;

/// More calls that synchronise nothing than are steps.
const CALLS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static void *works(void *x) {
    for (int i = 0; i < 510000; i++) { char *volatile p = malloc(8); free(p); }
    return x;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, works, 0);
    return pthread_join(t, 0);
}
"#;

/// The probability of at most `found` successes in `runs` runs with probability `chance` each.
fn at_most(found: u64, runs: u64, chance: f64) -> f64 {
    let odds = chance / (1.0 - chance);
    let mut term = (1.0 - chance).powf(runs as f64);
    let mut sum = term;
    for i in 0..found.min(runs) {
        term *= (runs - i) as f64 / (i + 1) as f64 * odds;
        sum += term;
    }
    sum
}

/// A promise is broken when finding the bug so rarely has a probability below 10⁻⁸.
fn keeps(summary: &Value, depth: u64) {
    let promises = summary["guarantees"].as_array().expect("a list");
    let promise = promises.iter().find(|promise| promise["depth"] == depth).expect("it is promised");
    let (runs, per_run) = (promise["runs"].as_u64().unwrap(), promise["per_run"].as_f64().unwrap());
    assert_eq!(promise["conditions"].as_array().map(Vec::len), Some(0), "{promise}");
    let found = promise["failures"].as_u64().expect("of the runs that count");
    assert!(found <= summary["failures"].as_u64().unwrap(), "{summary:#}");
    assert!(at_most(found, runs, per_run) > 1e-8, "{found} found, promised {promise:#}");
    assert!(runs as f64 * per_run > 10.0 && found > 0, "{found} found, promised {promise:#}");
}

#[test]
fn a_bug_that_needs_the_main_thread_to_leave_early_is_found() {
    let place = Workplace::new();
    let program = build(&place, LEAVES, &[]);
    keeps(&json(&explore(&place, &["--strategy", "pct:depth=2", "--runs", "2000"], &program)), 2);
}

/// The waiter before the other thread, that before the expiry, and a change point: 1/(6·k) with k of about 20 in every other
/// run, so 2,000 runs miss it with probability e⁻⁸, and the seed is fixed.
#[test]
fn a_wait_that_expires_in_a_window_is_found() {
    let place = Workplace::new();
    let program = build(&place, EXPIRES, &[]);
    let ran = explore(&place, &["--strategy", "pct:depth=2", "--runs", "4000", "--stop-on-first"], &program);
    assert_eq!(json(&ran)["kind"], "crash", "{ran:#?}");
}

#[test]
fn long_runs_are_learned_as_they_are() {
    let place = Workplace::new();
    let program = build(&place, LONG, &[]);
    for seed in ["1", "2", "3"] {
        let summary =
            json(&explore(&place, &["--strategy", "pct", "--runs", "20", "--seed", seed], &program));
        let steps = summary["steps"].as_u64().unwrap();
        assert!((20_000..30_000).contains(&steps), "k = {steps}");
    }
}

/// Failing runs are many times as long as others. Every run that aims at a depth counts all the same but for those of the first
/// batches, when k was learned; before, each that came late took away all before it.
#[test]
fn a_run_that_fails_and_is_long_takes_nothing_away() {
    let place = Workplace::new();
    let program = build(&place, UNWINDS, &[]);
    for seed in ["1", "2", "3"] {
        let options = [
            "--strategy",
            "pct:depth=2,phases=none,final-wait=off,starvation=off",
            "--runs",
            "600",
            "--seed",
            seed,
        ];
        let summary = json(&explore(&place, &options, &program));
        assert!(summary["failures"].as_u64() > Some(0), "{summary:#}");
        assert!(summary["steps"].as_u64() < Some(100), "{summary:#}");
        assert!(summary["guarantee"]["runs"].as_u64() > Some(500), "{summary:#}");
    }
}

/// What a run would have shown behind its limit is not known, whichever limit it is.
#[test]
fn a_guarantee_says_how_many_runs_were_cut_off_and_does_not_count_them() {
    let place = Workplace::new();
    let program = build(&place, CUT, &[]);
    let options = ["--strategy", "pct:depth=2", "--runs", "400", "--max-steps", "1000"];
    let ran = explore(&place, &options, &program);
    let summary = json(&ran);
    let (runs, cut) = (summary["runs"].as_u64().unwrap(), summary["limit_reached"].as_u64().unwrap());
    // Each of the two may come first: that one of them does so in fewer than 80 runs has a probability below 10⁻³⁰.
    assert!(runs == 400 && (80..=320).contains(&cut), "{summary:#}");
    let promises = summary["guarantees"].as_array().expect("a list");
    let counted: u64 = promises.iter().map(|promise| promise["runs"].as_u64().unwrap()).sum();
    assert!(counted > 0 && counted <= runs - cut, "{summary:#}");
    let left_out = summary["guarantee"]["leaves_out"].as_array().expect("a list");
    let limit = left_out.iter().find(|one| one["reason"] == "limit").expect("it is said");
    assert_eq!(limit["count"].as_u64(), Some(cut), "{summary:#}");
    let sentence =
        ran.stderr.lines().find(|line| line.contains("would have been found")).expect("a sentence");
    assert!(sentence.contains(&format!("behind the limit that {cut} runs reached")), "{sentence}");
}

#[test]
fn a_guarantee_says_that_there_were_too_many_calls() {
    let place = Workplace::new();
    let program = build(&place, CALLS, &[]);
    let options = ["--strategy", "pct:depth=1,phases=none,final-wait=off,starvation=off", "--level", "sync"];
    let ran = explore(&place, &[&options[..], &["--runs", "2"]].concat(), &program);
    let summary = json(&ran);
    let left_out = summary["guarantee"]["leaves_out"].as_array().expect("a list");
    assert!(left_out.iter().any(|one| one["reason"] == "call-limit"), "{summary:#}");
    assert_eq!(summary["calls_over"], true, "{summary:#}");
}

#[test]
fn nothing_is_promised_where_nothing_was_scheduled() {
    let place = Workplace::new();
    let alone = build(&place, "#include <stdlib.h>\nint main(void) { abort(); }", &[]);
    let summary = json(&explore(&place, &["--runs", "40"], &alone));
    assert_eq!((&summary["kind"], &summary["guarantee"]), (&"crash".into(), &Value::Null), "{summary:#}");
    let beside = build(&place, BEFORE_MAIN, &[]);
    let ran = explore(&place, &[], &beside);
    assert_eq!(ran.status.code(), Some(2), "{ran:#?}");
    assert!(
        ran.stderr.contains("before main") && !ran.stderr.contains("one thread in every run"),
        "{ran:#?}"
    );
}
