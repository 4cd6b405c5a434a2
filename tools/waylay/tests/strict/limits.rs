//! A schedule of a plugin test that reaches `max-steps` is not judged: it is told and counted, is no failure unless that is
//! asked for, and is not clean by itself. A livelock is claimed only when nothing changes any more.

use super::probe;
use super::support::{list, number};

/// Both workers change something in every round, for ever.
const COUNTS: &str = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic unsigned long long n;\n\
    static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker;\n\
      for (int done = 0; !done;) { pthread_mutex_lock(&m); n++; done = n == 0; pthread_mutex_unlock(&m); }\n\
      return 0; }";

#[test]
fn a_test_that_only_reaches_the_limit_has_not_failed_and_is_not_clean() {
    let place = probe(COUNTS, "runs = 1000\nmax-steps = 5000", "");
    let ran = place.run(2, &[]);
    let test = ran.test("probing", "probe");
    let strict = &test["strict"];
    assert_eq!((number(&test["failures"]), number(&test["iterations"])), (0, 0), "{test:#}");
    // Each of them costs a host, so after ten the rest is not tried.
    assert_eq!((number(&strict["runs"]), number(&strict["limit_reached"])), (10, 10), "{strict:#}");
    assert_eq!(test["retired"], "no schedule came to its end", "{test:#}");
    assert!(strict["guarantee"].is_null(), "nothing behind the limit was seen: {strict:#}");
    let problem = "scenario s: test probe: each of its 10 schedules reached the limit of 5,000 steps";
    let json = ran.json();
    let problems = list(&json["campaign"]["problems"]);
    assert!(problems.len() == 1 && problems[0].as_str().unwrap().starts_with(problem), "{problems:?}");
    assert!(
        ran.stderr.contains("10 schedules reached the limit of steps or of time and were not judged"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_limit_is_a_failure_if_that_is_asked_for() {
    let place = probe(COUNTS, "runs = 1000\nmax-steps = 5000\nlimit-is-failure = true", "");
    let ran = place.run(1, &[]);
    let failure = ran.failure("probing", "probe");
    assert_eq!((failure.kind(), failure.what()), ("livelock", "no end after 5,000 steps: limit reached"));
    let record: serde_json::Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
    assert_eq!(record["confirmed"], true, "{:#}", failure.json);
    assert_eq!(number(&ran.test("probing", "probe")["strict"]["limit_reached"]), 0);
    let again = place.waylay(&["replay", failure.folder.to_str().unwrap(), "--times", "3", "--json"]);
    assert_eq!((again.code(), number(&again.json()["reproduced"])), (Some(1), 3), "{}", again.stderr);
}

/// Who comes first decides whether the schedule is long. The others are judged, and clean.
#[test]
fn schedules_that_reach_the_limit_are_told_beside_those_that_end() {
    let source = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic int first = -1, here;\n\
        static int32_t iterate(probe *self, waylay_context *worker) { (void)worker;\n\
          pthread_mutex_lock(&m); int me = here++ % 2; if (me == 0) first = -1; pthread_mutex_unlock(&m);\n\
          sched_yield();\n\
          pthread_mutex_lock(&m); if (first < 0) first = me; int longer = first; pthread_mutex_unlock(&m);\n\
          for (int i = 0; longer && i < 4000; i++) { pthread_mutex_lock(&m); self->context = (void *)(size_t)i; pthread_mutex_unlock(&m); }\n\
          return 0; }";
    let place = probe(
        &format!("#include <sched.h>\n{source}"),
        "runs = 40\nmax-steps = 5000\nstrategy = 'random'",
        "",
    );
    let ran = place.run(0, &[]);
    let test = ran.test("probing", "probe");
    let reached = number(&test["strict"]["limit_reached"]);
    assert!((1..40).contains(&reached), "{test:#}");
    assert_eq!(
        (number(&test["strict"]["runs"]), number(&test["iterations"])),
        (40, 40 - reached),
        "{test:#}"
    );
    assert!(test["retired"].is_null(), "{test:#}");
}

/// With 100,000 steps in which nothing changes it is a livelock, whatever the limit is.
#[test]
fn a_test_in_which_nothing_changes_is_a_livelock() {
    let source = "#include <sched.h>\nstatic _Atomic int flag, here;\n\
        static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker;\n\
          here++; while (!flag) sched_yield();\n\
          return 0; }";
    let place = probe(source, "runs = 200", "");
    let ran = place.run(1, &[]);
    let failure = ran.failure("probing", "probe");
    assert_eq!(failure.kind(), "livelock", "{}", failure.what());
    let why = "threads only wait for each other, nothing changed in 100";
    assert!(failure.what().contains(why), "{}", failure.what());
    let record: serde_json::Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
    assert_eq!(record["confirmed"], true, "{:#}", failure.json);
    assert_eq!(number(&ran.test("probing", "probe")["strict"]["limit_reached"]), 0);
}

/// The thread sleeps some thousand times for real before the child has written: steps that do not count.
#[test]
fn who_only_sleeps_while_the_world_is_awaited_reaches_no_limit() {
    let source = "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic int done;\n\
        static void *maintains(void *x) {\n\
          for (int over = 0; !over; usleep(100)) { pthread_mutex_lock(&m); over = done; pthread_mutex_unlock(&m); }\n\
          return x; }\n\
        static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker;\n\
          done = 0; pthread_t t; pthread_create(&t, 0, maintains, 0);\n\
          FILE *child = popen(\"sleep 0.2; echo ready\", \"r\");\n\
          char text[8]; ssize_t length = read(fileno(child), text, sizeof text);\n\
          pthread_mutex_lock(&m); done = 1; pthread_mutex_unlock(&m);\n\
          pthread_join(t, 0);\n\
          return length == 6 && pclose(child) == 0 ? 0 : WAYLAY_FAILED; }";
    for idle in [false, true] {
        let keys = format!("runs = 4\nmax-steps = 2000\nidle-timeouts = {idle}");
        let ran = probe(source, &keys, "workers = 1").run(0, &[]);
        let strict = &ran.test("probing", "probe")["strict"];
        assert_eq!((number(&strict["runs"]), number(&strict["limit_reached"])), (4, 0), "{strict:#}");
    }
}

/// Nobody comes to the socket while the test may run: what is awaited is not under control, and may come later.
#[test]
fn who_is_late_because_the_world_is_slow_is_at_a_limit() {
    let source = "#include <netinet/in.h>\n#include <sys/socket.h>\n\
        static int32_t iterate(probe *self, waylay_context *worker) { (void)self; (void)worker;\n\
          struct sockaddr_in any = {.sin_family = AF_INET}; int fd = socket(AF_INET, SOCK_STREAM, 0);\n\
          if (bind(fd, (struct sockaddr *)&any, sizeof any) || listen(fd, 1)) return WAYLAY_FAILED;\n\
          return accept(fd, 0, 0) < 0 ? WAYLAY_FAILED : 0; }";
    let ran = probe(source, "runs = 2", "workers = 1\nhang-timeout = '300ms'").run(2, &[]);
    let test = ran.test("probing", "probe");
    assert_eq!((number(&test["failures"]), number(&test["strict"]["limit_reached"])), (0, 2), "{test:#}");
    let place = probe(source, "runs = 2\nlimit-is-failure = true", "workers = 1\nhang-timeout = '300ms'");
    let failure = place.run(1, &[]).failure("probing", "probe");
    assert_eq!(failure.kind(), "livelock", "{}", failure.what());
    let record: serde_json::Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
    assert_eq!(record["confirmed"], true, "{:#}", failure.json);
}
