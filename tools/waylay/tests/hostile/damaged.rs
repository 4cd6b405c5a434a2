//! Records that are damaged: every command that needs one says so in a sentence and ends with 2; those that do not need it work.

use std::fs;
use std::path::Path;

use crate::support::{Ran, Workplace};

const FAILS: &str = "static int32_t iterate(probe *self, waylay_context *worker) {\n\
    waylay_fail(self->services, worker, \"as ever\");\n\
    return WAYLAY_FAILED;\n\
  }";

/// What is left of a file: its beginning, nothing, other bytes, or values of other types.
fn damages(whole: &[u8]) -> [Vec<u8>; 4] {
    let cut = whole[..whole.len() / 3].to_vec();
    [cut, Vec::new(), vec![0xff; 3000], b"{\"format\": \"x\", \"scenarios\": 7, \"kind\": []}".to_vec()]
}

fn is_told(ran: &Ran, file: &str, command: &[&str]) {
    assert_eq!(ran.code(), Some(2), "{command:?}: {}", ran.stderr);
    assert!(ran.stderr.contains(file) && !ran.stderr.contains("panicked"), "{command:?}: {}", ran.stderr);
}

#[test]
fn damaged_records_are_told_by_every_command() {
    let place = Workplace::new();
    place.compile("probe", FAILS);
    place.write(
        "waylay.toml",
        "[defaults]\nworkers = 1\nleaks = false\n[[scenario]]\nname = \"s\"\nmode = \"strict\"\n[[scenario.test]]\n\
         plugin = \"probe\"\niterations = 2\n",
    );
    let ran = place.run(1, &[]);
    let folder = ran.failures().remove(0).folder;
    let failure = folder.to_str().expect("plain");
    let record = ran.folder().join("campaign.json");
    let whole = fs::read(&record).expect("written");
    for damaged in damages(&whole) {
        fs::write(&record, damaged).expect("ours");
        let needs: [&[&str]; 4] =
            [&["report"], &["report", "--html", "r.html"], &["failures"], &["verify", failure]];
        for command in needs {
            is_told(&place.waylay(command), "campaign.json", command);
        }
        let zip = place.path().join("sent.zip");
        let _ = fs::remove_file(&zip);
        let does_without: [(&[&str], i32); 2] =
            [(&["show", failure], 0), (&["export", failure, "--to", "sent.zip"], 0)];
        for (command, code) in does_without {
            let ran = place.waylay(command);
            assert_eq!(ran.code(), Some(code), "{command:?}: {}", ran.stderr);
        }
        assert!(zip.exists());
    }
    // Running it again needs nothing but the failure itself.
    assert_eq!(place.waylay(&["replay", failure]).code(), Some(1));
    assert_eq!(place.waylay(&["minimize", failure]).code(), Some(0));
    fs::write(&record, whole).expect("ours");
    damaged_failures_are_told(&place, &folder);
}

fn damaged_failures_are_told(place: &Workplace, folder: &Path) {
    let failure = folder.to_str().expect("plain");
    let record = folder.join("failure.json");
    for damaged in damages(&fs::read(&record).expect("written")) {
        fs::write(&record, damaged).expect("ours");
        for command in ["show", "verify"] {
            is_told(&place.waylay(&[command, failure]), "failure.json", &[command, failure]);
        }
        // The schedule is in files of its own, and enough.
        for (command, code) in [("replay", 1), ("minimize", 0)] {
            let ran = place.waylay(&[command, failure]);
            let good = ran.code() == Some(code) || (ran.code() == Some(2) && !ran.stderr.is_empty());
            assert!(good && !ran.stderr.contains("panicked"), "{command}: {}", ran.stderr);
        }
    }
}
