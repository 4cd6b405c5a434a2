//! What `waylay run` and `waylay explore` leave in the history.

mod support;

use support::Workplace;
use waylay_history::History;
use waylay_history::query::Filter;
use waylay_report::model::FailureState;

const CONFIG: &str = "seed = 3\n[[scenario]]\nname = \"many\"\nduration = \"280s\"\n\
    [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"fail-alike\"\nmax-failures = 0\niterations = 50\n";

fn history(place: &Workplace) -> History {
    History::open_to_read(&place.path().join("waylay-out")).unwrap()
}

#[test]
fn runs_go_into_the_history_as_they_go() {
    let place = Workplace::with(CONFIG);
    let first = place.run(1, &["--quiet"]);
    let id = first.failures()[0].folder.file_name().unwrap().to_str().unwrap().to_owned();
    place.run(1, &["--quiet"]);
    let history = history(&place);
    let campaigns = history.campaigns(0, 10).unwrap();
    assert_eq!(campaigns.len(), 2);
    for campaign in &campaigns {
        assert_eq!((campaign.state.as_str(), campaign.failures, campaign.signatures), ("finished", 50, 1));
        assert!(!history.series(&campaign.name).unwrap().is_empty());
    }
    assert_eq!(campaigns.iter().map(|campaign| campaign.new_signatures).sum::<u64>(), 1);
    let failure = history.known_failure(&id).unwrap().unwrap();
    assert_eq!((failure.failure.count_ever, failure.sightings.len()), (100, 2));
    assert_eq!(failure.failure.test.as_deref(), Some("fail-alike"));
    assert!(!failure.failure.stacks.is_empty());
}

#[test]
fn a_driver_that_is_killed_is_made_up_for_by_the_next_start() {
    let place = Workplace::with(&CONFIG.replace("iterations = 50", "iterations = 1000000"));
    let mut running = place.start(&["run", "waylay.toml", "--quiet"]);
    let mut killed = None;
    running.until("some failures on the disk", |_| {
        killed = place.campaigns("waylay-out").into_iter().find(|folder| {
            let failures = folder.join("failures");
            let mut folders = std::fs::read_dir(failures).into_iter().flatten().flatten();
            folders.any(|failure| failure.path().join("failure.json").exists())
        });
        killed.is_some()
    });
    running.child.kill().unwrap();
    running.finish();
    let name = killed.unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    place.write("waylay.toml", CONFIG);
    place.run(1, &["--quiet"]);
    let history = history(&place);
    assert_eq!(history.campaign(&name).unwrap().unwrap().state, "interrupted");
    let rows = history.failures(&Filter { limit: 10, ..Filter::default() }).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].state, FailureState::New);
    let counted: Vec<u64> =
        history.sightings(&rows[0].signature, 10).unwrap().iter().map(|one| one.count).collect();
    assert_eq!(counted.len(), 2);
    assert_eq!((counted[0], rows[0].count), (50, counted.iter().sum()));
}

/// Each host lives for a moment only; what is on the disk is a second old all the same.
// Compiles what it runs.
#[cfg(target_os = "linux")]
#[test]
fn counters_are_written_while_hosts_die_one_after_the_other() {
    let place = Workplace::new();
    place.compile(
        "dies",
        "static int32_t iterate(probe *self, waylay_context *worker) {\n\
           (void)self; (void)worker; static int calls; usleep(1000); if (++calls > 3) *(volatile int *)8 = 1; return WAYLAY_OK;\n\
         }",
    );
    place.write(
        "waylay.toml",
        "[[scenario]]\nname = \"s\"\nduration = \"280s\"\n[[scenario.test]]\nplugin = \"dies\"\nworkers = 1\nmax-failures = 0\n",
    );
    let mut running = place.start(&["run", "waylay.toml", "--quiet"]);
    running.until("failures that are counted on the disk", |_| {
        place.campaigns("waylay-out").iter().any(|folder| {
            let text = std::fs::read_to_string(folder.join("campaign.json")).unwrap_or_default();
            let record: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            record["failures"].as_u64() > Some(1) && record["state"] == "running"
        })
    });
    running.child.kill().unwrap();
    running.finish();
}

// Compiles what it runs.
#[cfg(target_os = "linux")]
#[test]
fn an_exploration_is_a_campaign_too() {
    let place = Workplace::new();
    let program = place.write(
        "deadlock.c",
        "#include <pthread.h>\n\
         static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;\n\
         static void* one(void* x) { pthread_mutex_lock(&a); pthread_mutex_lock(&b);\n\
             pthread_mutex_unlock(&b); pthread_mutex_unlock(&a); return x; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, one, 0); pthread_mutex_lock(&b);\n\
             pthread_mutex_lock(&a); pthread_mutex_unlock(&a); pthread_mutex_unlock(&b);\n\
             pthread_join(t, 0); return 0; }\n",
    );
    let executable = place.path().join("deadlock");
    let compiled = std::process::Command::new("cc")
        .args(["-g", "-pthread", "-o"])
        .arg(&executable)
        .arg(&program)
        .status()
        .unwrap();
    assert!(compiled.success());
    let command = ["explore", "--runs", "60", "--seed", "1", "--quiet", "--", executable.to_str().unwrap()];
    let ran = place.start(&command).finish();
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let history = history(&place);
    let campaigns = history.campaigns(0, 10).unwrap();
    assert_eq!(campaigns.len(), 1);
    assert_eq!((campaigns[0].iterations, campaigns[0].state.as_str()), (60, "finished"));
    let rows = history.failures(&Filter { limit: 10, ..Filter::default() }).unwrap();
    assert!(rows.iter().any(|row| row.kind == "deadlock" && row.test.contains("deadlock")), "{rows:?}");
}
