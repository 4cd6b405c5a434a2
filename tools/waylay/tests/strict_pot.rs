//! Melting pots in strict mode, through the real command: schedule after schedule in one process, what needs two tests is
//! found and attributed, confirmed in a fresh process and run again exactly; tests that do not disturb each other are silent.

#![cfg(target_os = "linux")]

mod support;

use serde_json::Value;
use support::{Workplace, list, number, text};

/// Tests on a shared pair of locks and a balance. `forward` and `backward` take both locks, in opposite orders; `spend` looks
/// at the balance and takes from it under the lock twice, `take` once; `aside` has locks of its own. Each alone is right.
const PLUGIN: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "waylay.h"

typedef struct { pthread_mutex_t left, right; int balance; } pair;
static void *make(void) {
  pair *made = calloc(1, sizeof *made);
  pthread_mutex_init(&made->left, NULL);
  pthread_mutex_init(&made->right, NULL);
  made->balance = 1;
  return made;
}
static const waylay_kind_info kind = {.size = sizeof kind, .name = "pair", .create = make, .destroy = free};
static const waylay_kind_info *const kinds[] = {&kind};

typedef struct { waylay_instance instance; const waylay_services *services; char test[16]; pthread_mutex_t own, other; } state;

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
  pthread_mutex_lock(first);
  pthread_mutex_lock(second);
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}
static int covered(pair *shared, int taken) {
  pthread_mutex_lock(&shared->left);
  int left = shared->balance -= taken;
  pthread_mutex_unlock(&shared->left);
  return left > 0;
}
static int32_t test_main(waylay_instance *instance, waylay_context *worker) {
  state *self = (state *)instance;
  pair *shared = self->services->acquire(worker, "pair");
  if (!strcmp(self->test, "forward")) both(&shared->left, &shared->right);
  if (!strcmp(self->test, "backward")) both(&shared->right, &shared->left);
  if (!strcmp(self->test, "take") && covered(shared, 0)) covered(shared, 1);
  if (!strcmp(self->test, "spend") && covered(shared, 0)) {
    covered(shared, 1);
    if (shared->balance < 0) waylay_fail(self->services, worker, "the balance was spent twice");
  }
  if (!strcmp(self->test, "aside")) both(&self->own, &self->other);
  return WAYLAY_OK;
}
#define TEST(id, text) static const waylay_test_info id = {.size = sizeof id, .name = text, .takes = names, .take_count = 1}
static const char *const names[] = {"pair"};
TEST(forward, "forward"); TEST(backward, "backward"); TEST(take, "take"); TEST(spend, "spend"); TEST(aside, "aside");
static const waylay_test_info *const tests[] = {&forward, &backward, &take, &spend, &aside};
static const waylay_plugin_info plugin = {.size = sizeof plugin, .abi_version = WAYLAY_ABI_VERSION, .name = "pairs",
                                          .tests = tests, .test_count = 5, .kinds = kinds, .kind_count = 1};
const waylay_plugin_info *WaylayPlugin(void) { return &plugin; }
waylay_instance *CreateInstance(const waylay_create_args *args) {
  state *made = calloc(1, sizeof *made);
  made->instance.size = sizeof made->instance;
  made->instance.TestMain = test_main;
  made->services = args->services;
  strncpy(made->test, args->test, sizeof made->test - 1);
  pthread_mutex_init(&made->own, NULL);
  pthread_mutex_init(&made->other, NULL);
  return &made->instance;
}
void DestroyInstance(waylay_instance *instance) { free(instance); }
"#;

/// A strict pot of two workers over these tests, on one object.
fn pot(names: &[&str], keys: &str) -> Workplace {
    let place = Workplace::new();
    let source = place.write("pairs.c", PLUGIN);
    let plugin = place.path().join("libpairs.so");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../framework/abi/include");
    let mut compiler = std::process::Command::new("cc");
    compiler
        .args(["-std=gnu11", "-g", "-shared", "-fPIC", "-pthread", "-I", include, "-o"])
        .args([&plugin, &source]);
    assert!(compiler.status().expect("cc runs").success());
    let file = plugin.display();
    let contains =
        names.iter().map(|name| format!("[[scenario.test.contains]]\nplugin = '{file}'\nname = '{name}'\n"));
    place.write(
        "waylay.toml",
        &format!(
            "seed = '0x5eed'\n[defaults]\nmax-failures = 1\nhang-timeout = '20s'\n[[scenario]]\nname = 'pot'\n\
             mode = 'strict'\nminimize = 'off'\n{keys}\n[[scenario.test]]\nplugin = 'waylay_melting_pot'\nworkers = 2\n\
             [[scenario.test.objects]]\nkind = 'pair'\ncount = 1\n{}",
            contains.collect::<String>()
        ),
    );
    place
}

/// With n = 4 threads, k of at most 60 steps and depth 2, PCT promises 1/(4·60): 3,500 schedules miss a bug with probability
/// e⁻¹⁴·⁵ < 1e-6.
#[test]
fn what_needs_two_tests_is_found_confirmed_and_runs_again_exactly() {
    let cases = [
        (["forward", "backward"], "deadlock", "none can run"),
        (["spend", "take"], "assert", "the balance was spent twice"),
    ];
    for (names, kind, what) in cases {
        let place = pot(&names, "runs = 3500\ndepth = 2");
        let ran = place.run(1, &[]);
        let failures = ran.failures();
        assert_eq!(failures.len(), 1, "{}", ran.stderr);
        let failure = &failures[0];
        assert_eq!(failure.kind(), kind, "{}", failure.what());
        assert!(failure.what().contains(what), "{}", failure.what());
        let record: Value = serde_json::from_str(&failure.file("strict.json")).unwrap();
        assert_eq!(record["confirmed"], true, "{:#}", failure.json);
        assert_eq!(record["partly_controlled"], false);
        if kind == "assert" {
            assert_eq!(text(&failure.json["test"]), "spend", "{:#}", failure.json);
            let running: Vec<&str> = list(&failure.json["occurrences"][0]["workers"])
                .iter()
                .map(|worker| text(&worker["running"]["test"]))
                .collect();
            assert!(running.contains(&"spend") && running.contains(&"take"), "{running:?}");
        }
        let folder = failure.folder.display().to_string();
        let replay = place.waylay(&["replay", &folder, "--times", "5", "--json"]);
        assert_eq!(replay.code(), Some(1), "{}\n{}", replay.stderr, replay.stdout);
        assert_eq!(number(&replay.json()["reproduced"]), 5, "{}", replay.stdout);
    }
}

/// The twin: tests that take the locks in one order are silent, in one process from the first schedule to the last, and
/// the same seed makes the same schedules.
#[test]
fn tests_that_agree_are_silent_and_equal_seeds_make_equal_schedules() {
    let steps = || {
        let place = pot(&["forward", "take", "aside"], "runs = 1800\ndepth = 2");
        let ran = place.run(0, &[]);
        let record = ran.test("waylay_melting_pot", "melting-pot");
        let strict = &record["strict"];
        assert_eq!(number(&strict["runs"]), 1800, "{record:#}");
        assert_eq!(number(&strict["partly_controlled"]), 0);
        assert_eq!(number(&ran.json()["campaign"]["hosts"]), 1, "one process");
        // Two of the three in each schedule, by chance: the middle is 1,200, and 7 deviations are 140.
        for name in ["forward", "take", "aside"] {
            let times = number(&ran.test("pairs", name)["iterations"]);
            assert!((1060..=1340).contains(&times), "{name} had {times} turns");
        }
        (number(&strict["steps"]), strict["threads"].clone())
    };
    assert_eq!(steps(), steps());
}
