//! Bad plugins and bad configurations: a message that names the file and says what to do, the right exit code, and the
//! healthy test beside it runs.

mod support;

use support::{Ran, Workplace, file_of, list, number, text};
#[cfg(target_os = "linux")]
use waylay_broken_plugins::{Broken, make, make_good};

#[cfg(target_os = "linux")]
/// What the message about each broken plugin must say. It also names the file.
fn words(broken: Broken) -> &'static str {
    match broken {
        Broken::Missing => "build the plugin first",
        Broken::Empty => "too short",
        Broken::NotElf => "not an ELF file",
        Broken::Truncated => "SIGBUS",
        Broken::Folder => "cannot be read",
        Broken::WrongClass => "32-bit",
        Broken::WrongMachine => "another processor",
        Broken::UnresolvedLibrary => "libwaylay_ghost.so",
        Broken::UnresolvedSymbol => "nobody_has_this",
        Broken::NoSymbols => "exports no `WaylayPlugin`",
        Broken::NoCreate => "exports no `CreateInstance`",
        Broken::FutureAbi => "version 99",
        Broken::ShortInfo => "8 bytes",
        Broken::NullInfo => "returned null",
        Broken::NoTests => "no tests",
        Broken::TwiceTheName => "two tests named `idle`",
        Broken::NullName => "without a name",
        Broken::BadDefault => "`batch`",
        Broken::CrashingConstructor => "SIGSEGV",
        Broken::ExitingConstructor => "exited with code 0",
        Broken::HangingConstructor => "constructor of the library hangs",
        Broken::NoTestMain => "TestMain",
    }
}

#[cfg(target_os = "linux")]
fn config_of(plugins: &[std::path::PathBuf], good: &std::path::Path) -> String {
    let mut config =
        "[defaults]\nstart-timeout = \"3s\"\n[[scenario]]\nname = \"mixed\"\nduration = \"280s\"\n"
            .to_owned();
    for plugin in plugins.iter().map(|path| path.as_path()).chain([good]) {
        config += &format!("[[scenario.test]]\nplugin = \"{}\"\niterations = 100\n", plugin.display());
    }
    config
}

/// One line that names the file and holds the words.
fn told(ran: &Ran, file: &str, words: &str) {
    let found = ran.stderr.lines().any(|line| line.contains(file) && line.contains(words));
    assert!(found, "no line with {file} and {words}:\n{}", ran.stderr);
    let json = ran.json();
    let problems = list(&json["campaign"]["problems"]);
    assert!(problems.iter().any(|problem| text(problem).contains(file)), "{file}: {problems:#?}");
}

// Compiles what it runs.
#[cfg(target_os = "linux")]
#[test]
fn every_broken_plugin_is_named_and_the_healthy_one_runs() {
    let place = Workplace::new();
    let files: Vec<_> = Broken::ALL.iter().map(|broken| make(*broken, place.path())).collect();
    let good = make_good(place.path());
    place.write("waylay.toml", &config_of(&files, &good));
    let ran = place.run(2, &[]);
    for (broken, file) in Broken::ALL.iter().zip(&files) {
        told(&ran, &file.display().to_string(), words(*broken));
    }
    assert!(number(&ran.test("good", "idle")["iterations"]) > 0);
    assert!(ran.stderr.contains("INCOMPLETE"), "{}", ran.stderr);
    assert_eq!(
        ran.failures().len(),
        0,
        "a plugin that cannot be used is no failure of the tests:\n{}",
        ran.stderr
    );
}

// Compiles what it runs.
#[cfg(target_os = "linux")]
#[test]
fn with_nothing_but_broken_plugins_nothing_ran() {
    let place = Workplace::new();
    let broken = make(Broken::NotElf, place.path());
    place.write("waylay.toml", &config_of(&[], &broken));
    let ran = place.waylay(&["run", "waylay.toml", "--json"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("nothing to run"), "{}", ran.stderr);
    assert!(text(&ran.json()["error"]).contains("nothing to run"));
}

#[test]
fn tests_that_cannot_be_made_or_started_are_named_and_the_others_run() {
    let refused = [
        ("waylay_faults", "create-fails", "CreateInstance failed: nothing to test here"),
        ("waylay_faults", "create-panics", "a test that cannot be made"),
        ("waylay_faults", "start-fails", "OnTestStart failed: the service under test is not there"),
        ("waylay_faults_c", "create-null", "CreateInstance returned null"),
        ("waylay_faults_c", "start-fails", "the device under test is not there"),
        ("waylay_faults_cpp", "create-throws", "a test that cannot be made"),
        ("waylay_faults_cpp", "start-throws", "a test that does not start"),
    ];
    let mut config = "[[scenario]]\nname = \"mixed\"\nduration = \"280s\"\n".to_owned();
    for (plugin, test, _) in refused.iter().chain([&("waylay_faults", "nothing", "")]) {
        config += &format!("[[scenario.test]]\nplugin = \"{plugin}\"\nname = \"{test}\"\niterations = 100\n");
    }
    let place = Workplace::with(&config);
    let ran = place.run(2, &[]);
    for (plugin, test, words) in refused {
        told(&ran, &format!("{}: test {test}", file_of(plugin)), words);
        assert!(text(&ran.test(plugin, test)["retired"]).contains("cannot run"));
    }
    assert!(number(&ran.test("waylay_faults", "nothing")["iterations"]) > 0);
    assert_eq!(number(&ran.json()["campaign"]["hosts"]), 1, "nobody is restarted for a test that cannot run");
}

#[test]
fn a_test_that_does_not_stop_or_fails_at_the_end_is_reported_and_the_campaign_ends() {
    let mut config = "[defaults]\nhang-timeout = \"60s\"\niterations = 20\n".to_owned();
    for (number, (plugin, test, patience)) in [
        ("waylay_faults", "cancel-hangs", "400ms"),
        ("waylay_faults", "end-panics", "60s"),
        ("waylay_faults", "drop-panics", "60s"),
        ("waylay_faults_cpp", "end-throws", "60s"),
    ]
    .iter()
    .enumerate()
    {
        config += &format!(
            "[[scenario]]\nname = \"end-{number}\"\nduration = \"280s\"\n\
             [[scenario.test]]\nplugin = \"{plugin}\"\nname = \"{test}\"\ncancel-timeout = \"{patience}\"\n\
             [[scenario.test]]\nplugin = \"waylay_libraries\"\nname = \"channel\"\n"
        );
    }
    let place = Workplace::with(&config);
    let ran = place.run(1, &[]);
    let hang = ran.failure("waylay_faults", "cancel-hangs");
    assert_eq!(hang.kind(), "deadlock");
    assert!(hang.what().contains("OnTestCancelled has not returned"), "{}", hang.what());
    assert!(hang.first_stack().iter().any(|function| function.contains("on_cancelled")), "{:#}", hang.json);
    for (plugin, test, kind, words) in [
        ("waylay_faults", "end-panics", "assert", "something is left that should not be"),
        ("waylay_faults", "drop-panics", "assert", "a destructor that fails"),
        ("waylay_faults_cpp", "end-throws", "exception", "something is left that should not be"),
    ] {
        let failure = ran.failure(plugin, test);
        assert_eq!(failure.kind(), kind);
        assert!(failure.what().contains(words), "{}", failure.what());
        assert_eq!(failure.count(), 1);
    }
    for scenario in list(&ran.json()["campaign"]["scenarios"]) {
        let channel =
            list(&scenario["tests"]).iter().find(|test| test["name"] == "channel").expect("the healthy one");
        assert!(number(&channel["iterations"]) > 0, "{scenario:#}");
    }
}

/// A plugin that loads where it is described, and not where it is to run.
// Compiles what it runs.
#[cfg(target_os = "linux")]
#[test]
fn a_plugin_that_breaks_only_in_the_host_is_refused_and_the_others_run() {
    let place = Workplace::new();
    let twice = |name: &str, action: &str| {
        let marker = place.path().join(format!("{name}.marker"));
        place.compile(
            name,
            &format!(
                "__attribute__((constructor)) static void begin(void) {{\n\
                   if (access(\"{0}\", F_OK) == 0) {{ {action} }}\n\
                   fclose(fopen(\"{0}\", \"w\"));\n\
                 }}\n\
                 static int32_t iterate(probe *self, waylay_context *worker) {{ (void)self; (void)worker; usleep(100); return WAYLAY_OK; }}",
                marker.display()
            ),
        )
    };
    let crashes = twice("crashes_later", "*(volatile int *)8 = 1;");
    let hangs = twice("hangs_later", "for (;;) pause();");
    let good = make_good(place.path());
    place.write("waylay.toml", &config_of(&[crashes.clone(), hangs.clone()], &good));
    let ran = place.run(1, &[]);
    told(&ran, &crashes.display().to_string(), "died while loading");
    told(&ran, &hangs.display().to_string(), "loading");
    assert!(number(&ran.test("good", "idle")["iterations"]) > 0);
    let failures = ran.failures();
    let crash = failures.iter().find(|failure| failure.kind() == "crash").expect("the crash has evidence");
    assert!(crash.file("stacks.txt").contains("begin"), "{}", crash.file("stacks.txt"));
    let hang = failures.iter().find(|failure| failure.kind() != "crash").expect("the hang has evidence");
    assert!(hang.file("stacks.txt").contains("begin"), "{}", hang.file("stacks.txt"));
}

#[test]
fn all_problems_of_a_config_are_shown_at_once_with_their_places() {
    let place = Workplace::with(
        "duration = \"ten seconds\"\n\
         [defaults]\n\
         worker = 2\n\
         [[scenario]]\n\
         name = \"a\"\n\
         mode = \"fre\"\n\
         [[scenario.test]]\n\
         plugin = \"waylay_faults\"\n\
         hang-timeout = 5\n\
         params = { after = { uniform = { min = 5, max = 1 } } }\n",
    );
    for command in
        [&["check", "waylay.toml"][..], &["run", "waylay.toml"], &["config", "show", "waylay.toml"]]
    {
        let ran = place.waylay(command);
        assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
        for position in [":1:12", ":3:1", ":6:8", ":9:16", ":10:"] {
            assert!(ran.stderr.contains(&format!("waylay.toml{position}")), "{position}:\n{}", ran.stderr);
        }
        for words in ["did you mean `workers`", "did you mean `free`", "^"] {
            assert!(ran.stderr.contains(words), "{words}:\n{}", ran.stderr);
        }
    }
    assert!(place.campaigns("waylay-out").is_empty(), "nothing was begun");
}

#[test]
fn names_that_fit_nothing_are_shown_at_their_place_with_the_nearest() {
    let place = Workplace::with(
        "[[scenario]]\n\
         name = \"a\"\n\
         duration = \"1s\"\n\
         [[scenario.test]]\n\
         plugin = \"waylay_falts\"\n\
         [[scenario.test]]\n\
         plugin = \"waylay_faults\"\n\
         name = \"deadlok\"\n\
         [[scenario.test]]\n\
         plugin = \"waylay_faults\"\n\
         name = \"crash\"\n\
         params = { afer = { uniform = { min = 0, max = 1 } } }\n\
         [[scenario.test]]\n\
         plugin = \"waylay_faults\"\n\
         name = \"crash\"\n",
    );
    let ran = place.waylay(&["check", "waylay.toml"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    let twice = "is in this scenario twice";
    assert!(ran.stderr.contains(twice) && ran.stderr.contains("waylay.toml:15:8"), "{}", ran.stderr);

    let text = std::fs::read_to_string(place.path().join("waylay.toml")).expect("ours");
    let last = text.rfind("[[scenario.test]]").expect("ours");
    place.write("waylay.toml", &text[..last]);
    let ran = place.waylay(&["check", "waylay.toml"]);
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    for words in
        ["waylay_faults`", "deadlock", "after", "waylay.toml:5:10", "waylay.toml:8:8", "waylay.toml:12:12"]
    {
        assert!(ran.stderr.contains(words), "{words}:\n{}", ran.stderr);
    }
}
