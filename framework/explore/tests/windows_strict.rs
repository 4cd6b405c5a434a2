//! Strict mode on Windows from outside: programs are explored, confirmed and replayed; so are plugin tests of a campaign.
//!
//! Under Wine there is no compiler, so the program that is explored is this one: with a body named in its environment it
//! runs that body and says with its exit status whether it went well. It is the host of plugin tests as well.

#[cfg(windows)]
#[allow(dead_code, reason = "the control library's tests use more of it")]
#[path = "../../control-windows/tests/in_process/bodies.rs"]
mod bodies;
#[cfg(windows)]
#[path = "../../control-windows/tests/in_process/listed.rs"]
mod listed;

#[cfg(not(windows))]
fn main() {}

#[cfg(windows)]
fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("host") {
        return match (arguments.next().as_deref(), arguments.next()) {
            (Some("--schedule"), Some(plan)) => waylay_host::run_schedule(&plan),
            _ => waylay_host::main(),
        };
    }
    if let Ok(body) = std::env::var("WAYLAY_BODY") {
        let good = bodies::find(&body)();
        std::process::exit(if good { 0 } else { 3 });
    }
    listed::run(cases::ALL)
}

#[cfg(windows)]
mod cases {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use waylay_control_protocol::{Level, RunConditions};
    use waylay_driver::campaign::{self, Options, Selection};
    use waylay_driver::catalog::Installation;
    use waylay_driver::config::{self, Overrides};
    use waylay_driver::failure::FailureEntry;
    use waylay_driver::report::Silent;
    use waylay_driver::store::{CampaignRecord, Retention};
    use waylay_explore::explorer::{Plan, Progress, State, explore};
    use waylay_explore::oracle::Expected;
    use waylay_explore::plugin_test::Confirmer;
    use waylay_explore::program::{Program, ProgramError};
    use waylay_explore::recording::{self, Conditions};
    use waylay_explore::replay::{Replayed, replay};
    use waylay_explore::restart::Restart;
    use waylay_explore::summary::{Found, Summary};
    use waylay_schedule::Spec;

    pub(crate) const ALL: &[crate::listed::Case] = &[
        ("a_lost_update_is_found_confirmed_and_replayed", lost_update),
        ("a_deadlock_has_every_stack", deadlock),
        ("a_crash_is_held_where_it_happened", crash),
        ("correct_programs_stay_silent", correct),
        ("what_cannot_work_is_refused", refused),
        ("atomics_of_a_program_are_steps", patched),
        ("a_crash_in_moved_code_is_shown_in_its_own_place", patched_crash),
        ("a_program_of_microsofts_tools_is_named_by_its_pdb_file", microsoft),
        ("plugin_tests_are_found_confirmed_and_replayed", plugin_tests),
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

    fn run(out: &Path, body: &str, strategy: &str, runs: u64, stop_on_first: bool) -> Summary {
        let conditions = RunConditions { patch: false, ..RunConditions::of_program(Level::Sync) };
        run_with(conditions, out, body, strategy, runs, stop_on_first)
    }

    fn run_with(
        conditions: RunConditions,
        out: &Path,
        body: &str,
        strategy: &str,
        runs: u64,
        stop_on_first: bool,
    ) -> Summary {
        let command = [this_program().to_str().expect("plain").to_owned()];
        let mut program = Program::new(&command, None).expect("a program");
        program.environment = vec![("WAYLAY_BODY".to_owned(), body.to_owned())];
        run_program(program, conditions, out, strategy, runs, stop_on_first)
    }

    fn run_program(
        program: Program,
        conditions: RunConditions,
        out: &Path,
        strategy: &str,
        runs: u64,
        stop_on_first: bool,
    ) -> Summary {
        let name = program.title();
        let plan = Plan {
            program,
            strategy: Spec::parse(strategy, runs).expect("a strategy"),
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
        explore(&plan, &mut Quiet).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn again(folder: &Path, times: u64) -> Replayed {
        let (record, schedule) = recording::load(folder).expect("a record");
        assert!(record.confirmed && !record.partly_controlled, "{record:#?}");
        replay(&record, &schedule, &library(), times, None, || true).expect("it can be run")
    }

    fn folder(summary: &Summary) -> &Path {
        summary.failure_dir.as_deref().expect("a failure has a folder")
    }

    fn stacks(summary: &Summary) -> String {
        std::fs::read_to_string(folder(summary).join("stacks.txt")).expect("stacks")
    }

    /// Under a random walk 0.546 of the runs lose an update, as on Linux: 24 runs lose none with probability 6e-9, and all
    /// with 5e-7.
    fn lost_update() {
        let out = tempfile::tempdir().expect("a folder");
        let summary = run(out.path(), "lost-update-section", "random", 24, false);
        assert_eq!((summary.runs, summary.threads, summary.partly_controlled), (24, 3, 0));
        assert!((1..24).contains(&summary.failures), "{} of 24", summary.failures);
        assert_eq!(summary.kind.as_deref(), Some("exit"));
        assert!(stacks(&summary).contains("main"), "{}", stacks(&summary));
        let again = again(folder(&summary), 4);
        assert_eq!((again.runs, again.reproduced, again.diverged), (4, 4, 0), "{again:?}");
    }

    /// Depth 2, n = 3, k of at most 12. The seed is fixed, and runs are a function of it alone.
    fn deadlock() {
        let out = tempfile::tempdir().expect("a folder");
        let summary = run(out.path(), "two-sections", "pct:depth=2", 60, true);
        assert_eq!(summary.kind.as_deref(), Some("deadlock"));
        let text = stacks(&summary);
        assert!(text.contains("held by thread 1") && text.contains("held by thread 2"), "{text}");
        assert!(text.matches("take_both").count() >= 2, "{text}");
        assert_eq!(again(folder(&summary), 2).reproduced, 2);
    }

    fn crash() {
        let out = tempfile::tempdir().expect("a folder");
        let summary = run(out.path(), "null", "random", 20, true);
        assert_eq!(summary.kind.as_deref(), Some("crash"));
        let text = stacks(&summary);
        assert!(text.contains("crashed here") && text.contains("write_through"), "{text}");
        assert_eq!(again(folder(&summary), 2).reproduced, 2);
    }

    /// Of all orders of the four critical sections two thirds fail; the seed is fixed. `expect` is inlined.
    fn microsoft() {
        let file = std::env::var("WAYLAY_MICROSOFT_PROGRAM").expect("tools/windows/test.sh makes one");
        let out = tempfile::tempdir().expect("a folder");
        let program = Program::new(&[file], None).expect("a program");
        let summary = run_program(program, atomics(true), out.path(), "random", 20, true);
        assert_eq!((summary.kind.as_deref(), summary.partly_controlled), (Some("crash"), 0));
        let text = stacks(&summary);
        let at = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line} is not in\n{text}"));
        assert!(at("expect") < at("deposit") && text.contains("account.c:2"), "{text}");
        assert!(text.contains("start") && text.contains("crashed here"), "{text}");
        assert_eq!(again(folder(&summary), 2).reproduced, 2);
    }

    fn correct() {
        let out = tempfile::tempdir().expect("a folder");
        for body in ["conditions", "several", "ends-itself", "returns"] {
            let summary = run(out.path(), body, "portfolio", 8, false);
            assert_eq!((summary.runs, summary.failures, summary.partly_controlled), (8, 0, 0), "{body}");
        }
    }

    fn refused() {
        let place = tempfile::tempdir().expect("a folder");
        /// Enough for the headers.
        const HEADERS: usize = 4096;
        let mut narrow = std::fs::read(this_program()).expect("readable");
        narrow.truncate(HEADERS);
        let header = u32::from_le_bytes(narrow[0x3c..0x40].try_into().expect("four bytes")) as usize;
        narrow[header + 4..header + 6].copy_from_slice(&0x14c_u16.to_le_bytes());
        let refusal = |name: &str, bytes: &[u8]| {
            let file = place.path().join(name);
            std::fs::write(&file, bytes).expect("writable");
            Program::new(&[file.to_str().expect("plain").to_owned()], None).expect_err("no program")
        };
        assert!(matches!(refusal("narrow.exe", &narrow), ProgramError::OtherArchitecture(_)));
        assert!(matches!(refusal("text.exe", b"text"), ProgramError::NotElf(_)));
    }

    fn atomics(patch: bool) -> RunConditions {
        RunConditions { patch, ..RunConditions::of_program(Level::Atomics) }
    }

    /// Two threads exchange a sum twice each. The seed is fixed, and runs are a function of it alone; without patching there is
    /// no step between the exchanges, so that no schedule whatever loses one.
    fn patched() {
        let out = tempfile::tempdir().expect("a folder");
        let summary = run_with(atomics(true), out.path(), "rust-lost-update", "random", 10, false);
        assert_eq!((summary.runs, summary.threads, summary.partly_controlled), (10, 3, 0));
        assert!((1..10).contains(&summary.failures), "{} of 10", summary.failures);
        println!(
            "{} of 10, {} sites, {} refused, {:.2} runs a second",
            summary.failures, summary.patched, summary.refused, summary.schedules_per_second
        );
        assert!(summary.patched > 100 && summary.refused * 20 < summary.patched, "{}", summary.refused);
        assert!(stacks(&summary).contains("main"), "{}", stacks(&summary));
        let again = again(folder(&summary), 2);
        assert_eq!((again.runs, again.reproduced, again.diverged), (2, 2, 0), "{again:?}");

        let right = run_with(atomics(true), out.path(), "rust-added", "portfolio", 6, false);
        assert_eq!((right.runs, right.failures, right.partly_controlled), (6, 0, 0));
        let bare = run_with(atomics(false), out.path(), "rust-lost-update", "random", 10, false);
        assert_eq!((bare.runs, bare.failures, bare.patched, bare.refused), (10, 0, 0, 0));
        println!("not patched: {:.2} runs a second", bare.schedules_per_second);
        assert!(bare.steps < summary.steps, "{} and {}", bare.steps, summary.steps);
    }

    fn patched_crash() {
        let out = tempfile::tempdir().expect("a folder");
        let summary = run_with(atomics(true), out.path(), "rust-null", "random", 20, true);
        assert_eq!(summary.kind.as_deref(), Some("crash"));
        let text = stacks(&summary);
        assert!(text.contains("crashed here") && text.contains("add_through"), "{text}");
        assert_eq!(again(folder(&summary), 2).reproduced, 2);
    }

    /// What atomic instructions alone do is found where those are steps, and by no schedule where they are not.
    fn plugin_tests() {
        let fixed = ["ticket-fixed", "exchange-fixed", "answer-fixed"];
        run_plugin_tests(true, &["ticket", "hurried", "exchange", "answer"], &fixed);
        run_plugin_tests(false, &["ticket", "answer"], &["hurried", "exchange", "answer-fixed"]);
    }

    /// With depth 2, n of at most 5 and k of at most 100, PCT promises 1/(5*100) per schedule; the seed is fixed, so that
    /// chance plays no part.
    fn run_plugin_tests(patch: bool, faulty: &[&str], good: &[&str]) {
        let place = tempfile::tempdir().expect("a folder");
        let entry =
            |name: &&str| format!("[[scenario.test]]\nplugin = \"waylay_schedules\"\nname = \"{name}\"\n");
        let tests: String = faulty.iter().chain(good).map(entry).collect();
        let text = format!(
            "seed = '0x5eed'\n[defaults]\nmax-failures = 1\nhang-timeout = '60s'\n[[scenario]]\nname = 's'\n\
             mode = 'strict'\nminimize = 'off'\nruns = 1000\ndepth = 2\nmax-steps = 5000\npatch = {patch}\n{tests}"
        );
        let file = place.path().join("waylay.toml");
        std::fs::write(&file, text).expect("writable");
        let overrides = Overrides { out: Some(place.path().join("out")), ..Overrides::default() };
        let loaded = config::load(&file, &overrides).unwrap_or_else(|error| panic!("{error}"));
        let installation = Installation::at(&this_program());
        let everything = Selection { scenario: None, test: None, plugin: None };
        let mix = campaign::mix(&loaded, &installation, &everything).expect("a mix");
        assert!(mix.problems.is_empty(), "{:?}", mix.problems);
        let options = Options {
            out: loaded.config.out.clone(),
            seed: loaded.config.seed.expect("given"),
            duration: None,
            config: loaded.portable().to_string(),
            dumps: Default::default(),
            retention: Retention { evidence_per_signature: 1, dumps_per_campaign: 50, signatures: 200 },
            log_limit: 1 << 20,
            keep_hung: false,
            heap_sampling: None,
            leaks: campaign::LeakSettings {
                policy: campaign::LeakPolicy::default(),
                handles: false,
                threads: false,
            },
            stop_after_failures: None,
            most_grace: Duration::from_secs(60),
            mode: config::FileMode::default(),
            redact: Vec::new(),
            shard: None,
        };
        let examiner = Box::new(Confirmer::new(this_program(), library()));
        let summary =
            campaign::run(mix.scenarios, mix.problems, &installation, &options, &mut Silent, Some(examiner))
                .unwrap_or_else(|error| panic!("{error}"));
        let found: Vec<_> =
            summary.failures.iter().map(|failure| (failure.test.clone(), failure.what.clone())).collect();
        assert_eq!(found.len(), faulty.len(), "{found:#?}\n{:#?}", summary.campaign);
        for failure in std::fs::read_dir(summary.folder.join("failures")).expect("made").flatten() {
            let again = again(&failure.path(), 2);
            assert_eq!((again.reproduced, again.diverged), (2, 0), "{}: {again:?}", failure.path().display());
        }
        for test in summary.campaign.scenarios.iter().flat_map(|scenario| &scenario.tests) {
            let strict = test.strict.as_ref().expect("numbers");
            println!(
                "{}: {} schedules of {} steps, {:.0}/s",
                test.name, strict.runs, strict.steps, strict.schedules_per_second
            );
            assert_eq!(strict.partly_controlled, 0, "{}", test.name);
        }
    }
}
