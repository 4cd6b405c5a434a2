//! `waylay explore --between` and `--reproduce`: a search that is aimed at pairs of places.

use std::path::Path;

use serde_json::Value;

use crate::support::small::{build, json};
use crate::support::{Ran, Workplace};

/// A pointer is taken away between the look at it and its use, in the middle of much else that conflicts.
pub(crate) const TAKEN: &str = "
#include <pthread.h>
#include <stdlib.h>
static long *volatile shared;
static volatile long sum;
static void *busy(void *x) {
    for (int i = 0; i < 60; i++) sum += i;
    return x;
}
static void *reader(void *x) {
    for (int i = 0; i < 20; i++) sum += 1;
    if (shared)
        sum += *shared;
    return x;
}
static void *writer(void *x) {
    for (int i = 0; i < 40; i++) sum += 1;
    shared = 0;
    return x;
}
int main(void) {
    pthread_t a, b, c;
    shared = malloc(8);
    *shared = 3;
    pthread_create(&a, 0, reader, 0);
    pthread_create(&b, 0, writer, 0);
    pthread_create(&c, 0, busy, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    pthread_join(c, 0);
    return 0;
}";

/// The same with the pointer read once.
fn mended() -> String {
    TAKEN.replace("if (shared)\n        sum += *shared;", "long *mine = shared;\n    if (mine) sum += *mine;")
}

fn aim(place: &Workplace, options: &[&str], program: &str) -> Ran {
    let mut arguments = vec!["explore", "--json", "--seed", "1"];
    arguments.extend(options);
    arguments.extend(["--", program]);
    place.waylay(&arguments)
}

#[test]
fn two_lines_are_enough_to_find_the_schedule_that_breaks() {
    let place = Workplace::new();
    let program = build(&place, TAKEN, &["-O0"]);
    let ran = aim(&place, &["--between", "program.c:12", "--and", "program.c:18"], &program);
    let said = json(&ran);
    assert_eq!((ran.code(), &said["found"][0]["kind"]), (Some(1), &"crash".into()), "{ran:#?}");
    assert_eq!(said["found"][0]["confirmed"], true, "{ran:#?}");
    assert!(said["found"][0]["first_run"].as_u64() <= Some(6 + 4), "each order is tried once: {ran:#?}");
    let folder = said["failure_dir"].as_str().expect("a folder").to_owned();
    let again = json(&place.waylay(&["replay", "--json", "--times", "3", &folder]));
    assert_eq!((&again["reproduced"], &again["diverged"]), (&3.into(), &0.into()), "{again:#}");
    // How often it comes is not known from that.
    let verify = place.waylay(&["verify", &folder]);
    assert!(
        verify.code() == Some(2) && verify.stderr.contains("a search that was aimed at it"),
        "{verify:#?}"
    );

    // A failure of ours is a report, too: of the mended program it says how often each order came.
    let program = build(&place, &mended(), &["-O0"]);
    let ran = aim(&place, &["--between", "program.c:12", "--and", "program.c:18"], &program);
    let said = json(&ran);
    let target = &said["targets"][0];
    assert_eq!((ran.code(), &said["failures"]), (Some(0), &0.into()), "{ran:#?}");
    for order in ["one_first", "other_first"] {
        let runs = target[order]["runs"].as_u64();
        assert!(runs >= Some(20), "{order}: {ran:#?}");
    }
    assert!(ran.stderr.contains("program.c:18 first: ") && ran.stderr.contains("it passed"), "{ran:#?}");
    build(&place, TAKEN, &["-O0"]);
    let ran = aim(&place, &["--reproduce", &folder], &program);
    assert_eq!(ran.code(), Some(1), "{ran:#?}");
}

#[test]
fn a_report_of_another_tool_is_reproduced() {
    let place = Workplace::new();
    let program = build(&place, TAKEN, &["-O0"]);
    let report = "WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 8 at 0x5581 by thread T2:
    #0 writer /home/somebody/program.c:18 (program+0x1)

  Previous read of size 8 at 0x5581 by thread T1:
    #0 reader /home/somebody/program.c:12 (program+0x2)

  Thread T2 (tid=9, running) created by main thread at:
    #0 pthread_create <null> (libtsan.so.2+0x5)
    #1 main /home/somebody/program.c:26 (program+0x3)
";
    let file = place.write("report.txt", report);
    let ran = aim(&place, &["--reproduce", plain(&file)], &program);
    let said: Value = json(&ran);
    assert_eq!((ran.code(), &said["found"][0]["kind"]), (Some(1), &"crash".into()), "{ran:#?}");
    assert_eq!(said["targets"].as_array().map(Vec::len), Some(1), "{ran:#?}");
    let file = place.write("nothing.txt", "all is well\n");
    let ran = aim(&place, &["--reproduce", plain(&file)], &program);
    assert!(ran.code() == Some(2) && ran.stderr.contains("no pair of places"), "{ran:#?}");
    let ran = aim(&place, &["--between", "program.c:12", "--and", "program.c:999"], &program);
    assert!(
        ran.code() == Some(2) && ran.stderr.contains("program.c:999: nothing was seen there"),
        "{ran:#?}"
    );
    let ran = aim(&place, &["--between", "program.c"], &program);
    assert!(ran.code() == Some(2) && ran.stderr.contains("write FILE:LINE"), "{ran:#?}");
}

fn plain(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}
