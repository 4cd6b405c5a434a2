//! A failure in a program that was edited and built anew: the orders of its cause are found again and kept, and what is
//! said of them is right.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::small::{explore, json};
use crate::support::{Ran, Workplace};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// A program that fails, in its folder.
struct Edited {
    place: Workplace,
    source: String,
    rust: bool,
    folder: String,
}

impl Edited {
    /// Builds a program and explores it until it fails.
    fn new(file: &str) -> Edited {
        let source = fs::read_to_string(Path::new(PROGRAMS).join(file)).expect("a program");
        let rust = file.ends_with(".rs");
        let mut edited = Edited { place: Workplace::new(), source, rust, folder: String::new() };
        let program = edited.build(&edited.source, &[]);
        let ran = explore(&edited.place, &["--runs", "300", "--seed", "1"], &program);
        let summary = json(&ran);
        assert!(summary["found"][0]["cause"].is_object(), "{ran:#?}");
        edited.folder = summary["failure_dir"].as_str().expect("a folder").to_owned();
        edited
    }

    fn build(&self, source: &str, options: &[&str]) -> String {
        let file = self.place.write(if self.rust { "program.rs" } else { "program.c" }, source);
        let program = self.place.path().join("program");
        let mut command = Command::new(if self.rust { "rustc" } else { "cc" });
        match self.rust {
            true => command.args(["--edition", "2024"]),
            false => command.arg("-pthread"),
        };
        if options.is_empty() {
            command.arg("-g");
        }
        let built = command.args(options).arg("-o").arg(&program).arg(file).output().expect("a compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        program.to_str().expect("a plain path").to_owned()
    }

    /// The program with texts replaced.
    fn with(&self, edits: &[(&str, &str)]) -> String {
        edits.iter().fold(self.source.clone(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        })
    }

    fn replay(&self, source: &str, options: &[&str]) -> (Ran, Value) {
        self.build(source, options);
        let ran = self.place.waylay(&["replay", "--json", "--times", "20", &self.folder]);
        let said = json(&ran);
        (ran, said)
    }

    /// It fails in 20 of 20 runs with the orders of the cause.
    #[track_caller]
    fn still_fails(&self, edit: &str, source: &str, options: &[&str]) {
        let (ran, said) = self.replay(source, options);
        let followed = &said["followed"];
        assert_eq!(followed["answer"], "same-failure", "{edit}: {ran:#?}");
        assert_eq!((&followed["failures"], &followed["runs"]), (&20.into(), &20.into()), "{edit}: {ran:#?}");
        assert_eq!((ran.code(), &said["reproduced"]), (Some(1), &20.into()), "{edit}: {ran:#?}");
        assert!(
            ran.stderr.contains("the same failure: with the orders of its cause kept"),
            "{edit}: {ran:#?}"
        );
    }

    /// It does not, and this is said.
    #[track_caller]
    fn is_answered(&self, edit: &str, source: &str, answer: &str, words: &str) {
        let (ran, said) = self.replay(source, &[]);
        assert_eq!(said["followed"]["answer"], answer, "{edit}: {ran:#?}");
        assert_eq!((ran.code(), &said["followed"]["failures"]), (Some(0), &0.into()), "{edit}: {ran:#?}");
        assert!(ran.stderr.contains(words), "{edit}: {ran:#?}");
    }
}

/// Lines in front of the program's own.
fn moved(source: &str) -> String {
    format!("// A line,\n// and another.\n\n{source}")
}

const FIXED: [(&str, &str); 2] = [
    ("long balance = look(account);", "pthread_mutex_lock(&whole);\n    long balance = look(account);"),
    ("put(account, balance - 10);", "put(account, balance - 10);\n    pthread_mutex_unlock(&whole);"),
];

#[test]
fn a_cause_survives_edits_and_says_when_it_does_not() {
    let account = Edited::new("edits/account.c");
    account.still_fails("lines above", &moved(&account.source), &[]);
    let inline = "static inline __attribute__((always_inline)) ";
    let inlined = [
        ("static long look", &*format!("{inline}long look")),
        ("static void put", &*format!("{inline}void put")),
    ];
    account.still_fails("inlined", &account.with(&inlined), &[]);
    account.still_fails("inlined, without lines", &account.with(&inlined), &["-O0"]);
    let allocates = [
        ("struct account *account = make(1)", "struct account *third = make(3), *account = make(1)"),
        ("put(other,", "put(third, 1);\n    put(other,"),
    ];
    account.still_fails("another allocation", &account.with(&allocates), &[]);
    let renamed = account.source.replace("look", "see").replace("put", "store").replace("balance", "money");
    account.still_fails("renamed", &renamed, &[]);
    account.still_fails("optimised", &account.source, &["-g", "-O2"]);
    account.still_fails("without any name", &account.source, &["-O1", "-s"]);
    let thread = [
        (
            "pthread_create(&one",
            "pthread_t idle;\n    pthread_create(&idle, 0, rest, 0);\n    pthread_join(idle, 0);\n    pthread_create(&one",
        ),
        ("int main", "static void *rest(void *x) { return x; }\nint main"),
    ];
    account.still_fails("one more thread", &account.with(&thread), &[]);

    let gone = "the constrained events no longer happen in this order: thread 1 takes lock A in look";
    account.is_answered("a lock that fixes it", &account.with(&FIXED), "order-gone", gone);
    let passes =
        "they happen in this order and it passes: 20 of 20 runs had the orders of its cause and none failed";
    account.is_answered("no longer wrong", &account.with(&[("== 80", ">= 0")]), "passes", passes);
    let without = account.with(&[
        ("long balance = look(account);", ""),
        ("put(account, balance - 10);", "(void)account;"),
        ("== 80", "== 100"),
    ]);
    account.is_answered(
        "no longer there",
        &without,
        "events-gone",
        "the constrained events no longer happen: thread 1 takes lock A in look (program.c:19)",
    );
}

#[test]
fn a_cause_in_rust_survives_edits() {
    let counter = Edited::new("causes/counter.rs");
    counter.still_fails("lines above", &moved(&counter.source), &[]);
    counter.still_fails(
        "renamed",
        &counter.source.replace("hit()", "count()").replace("(hit)", "(count)"),
        &[],
    );
    counter.still_fails("optimised", &counter.source, &["-g", "-O"]);
    let atomic = counter.with(&[
        ("let before = HITS.load(Ordering::SeqCst); // @load", ""),
        ("HITS.store(before + 1, Ordering::SeqCst);", "HITS.fetch_add(1, Ordering::SeqCst);"),
    ]);
    counter.is_answered("one update", &atomic, "order-gone", "no longer happen in this order");
}

#[test]
fn verify_begins_with_the_cause() {
    let account = Edited::new("edits/account.c");
    account.build(&moved(&account.source), &[]);
    let ran = account.place.waylay(&["verify", &account.folder, "--json"]);
    let said = json(&ran);
    assert_eq!((ran.code(), &said["runs"], &said["times"]), (Some(1), &20.into(), &20.into()), "{ran:#?}");
    assert!(ran.stderr.contains("the same failure: with") && ran.stderr.contains("NOT FIXED"), "{ran:#?}");
    assert!(said["folder"].is_null(), "nothing else had to be run: {ran:#?}");
    account.build(&account.with(&FIXED), &[]);
    let ran = account.place.waylay(&["verify", &account.folder, "--json"]);
    let said = json(&ran);
    assert_eq!((ran.code(), &said["followed"]["answer"]), (Some(0), &"order-gone".into()), "{ran:#?}");
    assert!(said["sure"].as_f64() >= Some(0.95) && said["folder"].is_string(), "{ran:#?}");
}
