//! Plain accesses of unmodified programs on Windows: which are steps, what they show, and which race.
//!
//! Under Wine there is no compiler: what is explored is `plain.c`, which the build script compiles.

#[cfg(windows)]
#[path = "../../../control-windows/tests/in_process/listed.rs"]
mod listed;

#[cfg(not(windows))]
fn main() {}

#[cfg(windows)]
fn main() {
    listed::run(cases::ALL)
}

#[cfg(windows)]
mod cases {
    use std::path::{Path, PathBuf};

    use waylay_control_protocol::{Level, RunConditions};
    use waylay_driver::catalog::Installation;
    use waylay_driver::failure::FailureEntry;
    use waylay_driver::store::CampaignRecord;
    use waylay_explore::explorer::{ExploreError, Plan, Progress, State, explore};
    use waylay_explore::oracle::Expected;
    use waylay_explore::program::Program;
    use waylay_explore::recording::{self, Conditions};
    use waylay_explore::replay::replay;
    use waylay_explore::restart::Restart;
    use waylay_explore::server::RunError;
    use waylay_explore::summary::{Found, Summary};
    use waylay_schedule::Spec;

    pub(crate) const ALL: &[crate::listed::Case] = &[
        ("a_lost_update_is_no_step_away_where_accesses_are_none", not_seen),
        ("a_lost_update_is_found_at_auto_and_replayed", auto),
        ("a_lost_update_is_found_at_memory_and_replayed", memory),
        ("what_is_ordered_stays_silent", ordered),
        ("what_is_not_shared_is_no_step", not_shared),
        ("a_fault_in_an_access_that_was_moved_is_shown_in_its_own_place", fault),
        ("a_race_is_told_with_both_stacks", race),
        ("what_is_ordered_does_not_race", no_race),
    ];

    /// In each of these ways the two threads of the program are ordered.
    const ORDERED: [&str; 17] = [
        "mutex",
        "published",
        "condition",
        "semaphore",
        "rwlock",
        "barrier",
        "once",
        "spin",
        "section",
        "slim",
        "event",
        "win32-mutex",
        "win32-semaphore",
        "win32-condition",
        "address",
        "init-once",
        "several",
    ];

    /// Says nothing and goes on.
    struct Quiet;

    impl Progress for Quiet {
        fn tick(&mut self, _: &State) -> bool {
            true
        }
        fn found(&mut self, _: &Found) {}
        fn campaign(&mut self, _: &CampaignRecord, _: &Path, _: &[&FailureEntry]) {}
    }

    fn this_program() -> PathBuf {
        std::env::current_exe().expect("a path")
    }

    fn library() -> PathBuf {
        Installation::at(&this_program()).control_library().expect("built with this")
    }

    fn steps(level: Level, races: bool) -> RunConditions {
        RunConditions { races, ..RunConditions::of_program(level) }
    }

    fn run(conditions: RunConditions, out: &Path, body: &str, runs: u64, stop_on_first: bool) -> Summary {
        let command = [format!("Z:{}/plain.exe", env!("WAYLAY_TEST_PROGRAMS")), body.to_owned()];
        let program = Program::new(&command, None).expect("a program");
        let plan = Plan {
            program,
            strategy: Spec::parse("random", runs).expect("a strategy"),
            seed: 7,
            runs: Some(runs),
            duration: None,
            stop_on_first,
            stop_after_quiet: None,
            own_threads: 1,
            jobs: 1,
            restart: Restart::Fork,
            conditions: Conditions { patience_ms: 60_000, run: conditions, ..Conditions::default() },
            expected: Expected::default(),
            out: out.to_owned(),
            library: library(),
            minimize: None,
            share: None,
        };
        let summary = match explore(&plan, &mut Quiet) {
            // Wine's server now and then drops a program that is just starting: nothing of it ran.
            Err(ExploreError::Run(RunError::NoMain { .. })) => explore(&plan, &mut Quiet),
            made => made,
        };
        let summary = summary.unwrap_or_else(|error| panic!("{body}: {error}"));
        println!(
            "{body} at {}: {} of {} failed, {} steps, {} sites of {} accesses, {} patched, {} refused, {:.2} runs a second",
            summary.level,
            summary.failures,
            summary.runs,
            summary.steps,
            summary.sites,
            summary.accesses,
            summary.patched,
            summary.refused,
            summary.schedules_per_second
        );
        summary
    }

    fn folder(summary: &Summary) -> &Path {
        summary.failure_dir.as_deref().expect("a failure has a folder")
    }

    fn stacks(summary: &Summary) -> String {
        std::fs::read_to_string(folder(summary).join("stacks.txt")).expect("stacks")
    }

    fn check_replay(summary: &Summary) {
        let (record, schedule) = recording::load(folder(summary)).expect("a record");
        assert!(record.confirmed && !record.partly_controlled, "{record:#?}");
        let again = replay(&record, &schedule, &library(), 2, None, || true).expect("it can be run");
        assert_eq!((again.runs, again.reproduced, again.diverged), (2, 2, 0), "{again:?}");
    }

    /// Without a step between the two accesses no schedule whatever loses one.
    fn not_seen() {
        let out = tempfile::tempdir().expect("a folder");
        for level in [Level::Sync, Level::Atomics] {
            let summary = run(steps(level, false), out.path(), "plain", 6, false);
            assert_eq!((summary.runs, summary.failures), (6, 0), "{level}");
        }
    }

    /// On Linux 641 of 2,000 runs of this program lose an update under a random walk, 0.32. Of 40 runs, at most the first
    /// cannot: none loses one with probability 3e-7, and 30 or more do with 3e-8.
    fn auto() {
        let out = tempfile::tempdir().expect("a folder");
        let summary = run(steps(Level::Auto, false), out.path(), "plain", 40, false);
        assert_eq!((summary.runs, summary.threads, summary.partly_controlled), (40, 3, 0));
        assert!((1..30).contains(&summary.failures), "{} of 40", summary.failures);
        assert_eq!(summary.sites, 1, "one instruction adds");
        check_replay(&summary);
    }

    /// As at `auto`; the seed is fixed, and runs are a function of it alone.
    fn memory() {
        let out = tempfile::tempdir().expect("a folder");
        let summary = run(steps(Level::Memory, false), out.path(), "plain", 20, true);
        assert_eq!((summary.failures, summary.partly_controlled), (1, 0));
        check_replay(&summary);
    }

    /// What is ordered is right in every schedule, and needs no step where a lock protects it.
    fn ordered() {
        let out = tempfile::tempdir().expect("a folder");
        for body in ORDERED {
            let summary = run(steps(Level::Auto, false), out.path(), body, 4, false);
            assert_eq!((summary.runs, summary.failures, summary.partly_controlled), (4, 0, 0), "{body}");
            let protected = ["mutex", "rwlock", "spin", "section", "slim", "win32-mutex"].contains(&body);
            assert!(!protected || summary.sites == 0, "{body}");
        }
        let summary = run(steps(Level::Memory, false), out.path(), "mutex", 4, false);
        assert!((summary.failures, summary.sites) == (0, 1), "there they are steps all the same");
    }

    /// Two threads make 400 accesses and more each to memory of their own, which they get from one heap, or to their stacks, of
    /// which one may become that of the other.
    fn not_shared() {
        let out = tempfile::tempdir().expect("a folder");
        for body in ["local", "stack"] {
            let summary = run(steps(Level::Auto, false), out.path(), body, 6, false);
            assert_eq!((summary.runs, summary.failures, summary.sites), (6, 0, 0), "{body}");
            assert!(summary.accesses >= 800 && summary.steps < 20, "{body}: {}", summary.steps);
        }
    }

    /// Where the moved instruction faults, its own place is told.
    fn fault() {
        let out = tempfile::tempdir().expect("a folder");
        let summary = run(steps(Level::Auto, false), out.path(), "fault", 20, true);
        assert_eq!(summary.kind.as_deref(), Some("crash"));
        let text = stacks(&summary);
        assert!(text.contains("crashed here") && text.contains("nowhere"), "{text}");
        check_replay(&summary);
    }

    fn race() {
        let out = tempfile::tempdir().expect("a folder");
        let summary = run(steps(Level::Auto, true), out.path(), "plain", 4, true);
        assert_eq!((summary.failures, summary.kind.as_deref()), (1, Some("race")));
        let text = stacks(&summary);
        assert!(text.starts_with("data race on sum: update in add_plainly (plain.c:"), "{text}");
        assert!(text.contains("nothing orders the two (no lock held)"), "{text}");
        assert!(text.matches("    unprotected (plain.c:").count() == 2, "{text}");
        check_replay(&summary);
        let summary = run(steps(Level::Auto, true), out.path(), "two-locks", 4, true);
        assert_eq!((summary.failures, summary.kind.as_deref()), (1, Some("race")));
        let text = stacks(&summary);
        assert!(text.contains("holding mutex") && text.contains("holding other_mutex"), "{text}");
    }

    /// Nothing is told of what locks, events, atomics, the beginning and the end of threads order, nor of memory that is used
    /// again.
    fn no_race() {
        let out = tempfile::tempdir().expect("a folder");
        for body in ORDERED.iter().chain(&["reused", "local", "stack"]) {
            let summary = run(steps(Level::Auto, true), out.path(), body, 4, false);
            assert_eq!((summary.runs, summary.failures, summary.partly_controlled), (4, 0, 0), "{body}");
            assert_eq!((summary.doubtful_races, summary.races_over), (0, 0), "{body}");
        }
    }
}
