//! What tests leave behind is found, with the place where it came from.

use crate::in_turn;
use crate::place::{Failure, Place};

fn leak_of(failures: &[Failure], plugin: &str) -> Failure {
    let found = failures.iter().find(|failure| failure.text("plugin").ends_with(&format!("{plugin}.dll")));
    let seen: Vec<_> = failures.iter().map(|failure| failure.text("what")).collect();
    let found = found.unwrap_or_else(|| panic!("nothing of {plugin}: {seen:?}"));
    assert_eq!(found.text("kind"), "leak", "{:#}", found.json);
    Failure { folder: found.folder.clone(), json: found.json.clone() }
}

#[test]
fn memory_is_found_with_the_stack_that_allocated_it() {
    let _turn = in_turn();
    let mut config = "duration = \"120s\"\n[leaks]\nwarm-up = \"1s\"\nsample-bytes = \"4KiB\"\n\
         [[scenario]]\nname = \"leaks\"\n"
        .to_owned();
    let guilty = [
        ("waylay_faults", "forgets"),
        ("waylay_faults_c", "leaks_a_block"),
        ("waylay_faults_cpp", "Forgotten"),
    ];
    for (plugin, _) in guilty {
        config +=
            &format!("[[scenario.test]]\nplugin = \"{plugin}\"\nname = \"memory-leak\"\nmax-failures = 1\n");
    }
    let place = Place::with(&config);
    let failures = place.failures();
    for (plugin, frame) in guilty {
        let found = leak_of(&failures, plugin);
        assert!(found.text("what").contains("memory grows"), "{}", found.text("what"));
        assert!(found.stacks().contains(frame), "no {frame} in\n{}", found.stacks());
    }
}

#[test]
fn threads_are_found_and_belong_to_the_test_that_started_them() {
    let test = |plugin: &str| format!("[[scenario.test]]\nplugin = \"{plugin}\"\nname = \"thread-leak\"\n");
    let place = Place::with(&format!(
        "[defaults]\niterations = 200\n[[scenario]]\nname = \"leaks\"\nduration = \"60s\"\n{}{}",
        test("waylay_faults"),
        test("waylay_faults_c")
    ));
    let failures = place.failures();
    for plugin in ["waylay_faults", "waylay_faults_c"] {
        let found = leak_of(&failures, plugin);
        assert!(found.text("what").contains("still there after OnTestEnd"), "{}", found.text("what"));
        assert!(found.stacks().contains("waits_for_ever"), "{}", found.stacks());
    }
}

#[test]
fn healthy_libraries_stay_silent_and_nothing_is_left_behind() {
    let place = Place::with(
        "[[scenario]]\nname = \"s\"\nduration = \"3s\"\n[[scenario.test]]\nplugin = \"waylay_libraries\"\n",
    );
    let output = place.waylay(&["run", "waylay.toml", "--json", "--quiet"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", place.host_log());
}
