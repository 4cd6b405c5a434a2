//! What a storm rages over: a random campaign of each way to run tests, in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::dice::Dice;

const HOSTILE: &str =
    concat!(include_str!("../../tests/hostile/sly.c"), include_str!("../../tests/hostile/hostile.c"));
const RACY: &str = include_str!("racy.c");
const CLOCK: &str = include_str!("clock.c");

/// Attacks that a test of `hostile.c` and `sly.c` can make on what runs it.
pub(crate) const ATTACKS: &[&str] = &[
    "page-zero",
    "page-ones",
    "page-random",
    "page-always",
    "page-truncated",
    "page-punched",
    "page-unmapped",
    "page-protected",
    "region-zero",
    "region-ones",
    "heap-region-truncated",
    "close-all",
    "close-streams",
    "event-out-of-range",
    "event-of-no-plugin",
    "event-garbage",
    "event-endless",
    "event-flood",
    "event-half",
    "stderr-flood",
    "daemon-in-group",
    "daemon-in-session",
    "many-children",
    "many-threads",
    "odd-names",
    "stop-itself",
    "kill-itself",
    "terminate-parent",
    "interrupt-parent",
    "hang-up-parent",
    "trace-itself",
    "change-folder",
    "tighten-limits",
    "become-another",
    "leave-in-thread",
    "raise-terminate",
    "raise-every-signal",
    "block-and-wait",
    "ignore-everything",
    "overflow-stack",
    "take-memory",
    "timers",
    "page-lies",
    "region-lies",
    "page-shifted",
    "over-all",
    "stop-group",
    "join-driver",
    "not-dumpable",
    "no-calls-thread",
    "no-calls",
    "apart",
    "nowhere",
    "many-descriptors",
    "many-maps",
    "lock-memory",
    "large-environment",
    "own-handlers",
    "fork-bomb",
    "bell",
    "seal-page",
];
/// Processes of these live on when nobody is left to end them.
pub(crate) const LEAVES_PROCESSES: &[&str] =
    &["daemon-in-group", "daemon-in-session", "many-children", "join-driver", "apart", "fork-bomb"];

/// A way to run tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Free,
    Randomized,
    Strict,
    Pot,
    Explore,
    Serve,
}

/// All of them; those with most machinery more often.
pub(crate) const MODES: [Mode; 9] = [
    Mode::Free,
    Mode::Free,
    Mode::Randomized,
    Mode::Randomized,
    Mode::Strict,
    Mode::Strict,
    Mode::Pot,
    Mode::Explore,
    Mode::Serve,
];

/// Plugins and programs that all campaigns of a storm share.
pub(crate) struct Shared {
    folder: tempfile::TempDir,
}

impl Shared {
    pub(crate) fn build() -> Shared {
        let shared = Shared { folder: tempfile::tempdir().expect("a folder") };
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../framework/abi/include");
        shared.compile("libhostile.so", HOSTILE, &["-shared", "-fPIC", "-I", include]);
        shared.compile("libclock.so", CLOCK, &["-shared", "-fPIC"]);
        shared.compile("racy", RACY, &[]);
        shared
    }

    fn compile(&self, name: &str, source: &str, flags: &[&str]) {
        let from = self.folder.path().join(format!("{name}.c"));
        fs::write(&from, source).expect("a source");
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O1", "-g", "-pthread"]).args(flags).arg("-o");
        let output = command.arg(self.path(name)).arg(&from).output().expect("cc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A campaign before it is started.
pub(crate) struct Campaign {
    pub(crate) mode: Mode,
    /// The attack that one of its tests makes.
    pub(crate) attack: Option<&'static str>,
    /// How long it runs when nothing happens.
    pub(crate) length: Duration,
    pub(crate) arguments: Vec<String>,
}

impl Campaign {
    /// Writes its configuration.
    pub(crate) fn draw(dice: &mut Dice, shared: &Shared, folder: &Path) -> Campaign {
        let mode = *dice.one(&MODES);
        let length = Duration::from_millis(600) + dice.time(Duration::from_millis(1400));
        let hosts = !matches!(mode, Mode::Explore | Mode::Pot);
        let attack = (hosts && dice.once_in(2)).then(|| *dice.one(ATTACKS));
        let seed = dice.below(1 << 30).to_string();
        let duration = format!("{}ms", length.as_millis());
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let arguments = match mode {
            Mode::Explore => {
                let racy = shared.path("racy");
                let program = racy.to_str().expect("a plain path");
                words(&[
                    "explore",
                    "--duration",
                    &duration,
                    "--seed",
                    &seed,
                    "--out",
                    "out",
                    "--json",
                    "--",
                    program,
                ])
            }
            Mode::Serve => {
                let mix = config(Mode::Free, attack, dice, shared);
                fs::write(folder.join("a.toml"), mix).expect("a configuration");
                fs::write(folder.join("b.toml"), config(Mode::Randomized, None, dice, shared))
                    .expect("a configuration");
                fs::write(folder.join("storm.toml"), SERVICE).expect("a configuration");
                words(&["serve", "storm.toml", "--listen", "127.0.0.1:0"])
            }
            _ => {
                let text = config(mode, attack, dice, shared);
                fs::write(folder.join("storm.toml"), text).expect("a configuration");
                let run = ["run", "storm.toml", "--duration", &duration, "--seed", &seed, "--out", "out"];
                words(&[&run[..], &["--json-lines"]].concat())
            }
        };
        Campaign { mode, attack, length, arguments }
    }
}

const SERVICE: &str = "out = \"out\"\n[[mix]]\nname = \"a\"\nconfig = \"a.toml\"\nduration = \"700ms\"\n\
    [[mix]]\nname = \"b\"\nconfig = \"b.toml\"\nduration = \"500ms\"\nstop-after-failures = 4\n";

fn config(mode: Mode, attack: Option<&str>, dice: &mut Dice, shared: &Shared) -> String {
    let leaks = dice.once_in(4);
    let mut text = format!(
        "[defaults]\nworkers = {}\nhang-timeout = \"500ms\"\ncancel-timeout = \"500ms\"\nmax-failures = {}\n\
         leaks = {}\n",
        1 + dice.below(3),
        dice.one(&[0, 3, 20]),
        leaks && mode != Mode::Strict,
    );
    text.push_str(&format!("[evidence]\ndumps-per-signature = {}\n", dice.below(3)));
    let word = match mode {
        Mode::Strict => "strict",
        Mode::Randomized => "randomized",
        _ => "free",
    };
    text.push_str(&format!("[[scenario]]\nname = \"storm\"\nmode = \"{word}\"\n"));
    if mode == Mode::Randomized {
        text.push_str(
            "[scenario.randomizer]\nperiod = { uniform = { min = \"0s\", max = \"300us\" } }\n\
             suspend = { uniform = { min = \"0s\", max = \"1ms\" } }\ncount = { uniform = { min = 1, max = 4 } }\n",
        );
    }
    let tests: &[(&str, &str)] = match mode {
        Mode::Strict => &[
            ("waylay_zoo", "lost-update"),
            ("waylay_zoo", "shutdown"),
            ("waylay_zoo", "torn-pair"),
            ("waylay_zoo", "door-fixed"),
        ],
        _ => &[
            ("waylay_faults", "fail-alike"),
            ("waylay_faults", "fail-differently"),
            ("waylay_faults", "crash"),
            ("waylay_faults", "assert"),
            ("waylay_faults", "deadlock"),
            ("waylay_faults", "exit"),
            ("waylay_faults", "nothing"),
        ],
    };
    if mode == Mode::Pot {
        text.push_str("[[scenario.test]]\nplugin = \"waylay_melting_pot\"\nworkers = 2\n");
        text.push_str("[[scenario.test.objects]]\nkind = \"row\"\ncount = 1\nlife = 1000000000\n");
        text.push_str("[[scenario.test.contains]]\nplugin = \"waylay_together\"\nname = \"re*\"\n");
        for test in ["nothing", "fail-differently"] {
            text.push_str(&format!(
                "[[scenario.test.contains]]\nplugin = \"waylay_faults\"\nname = \"{test}\"\n"
            ));
        }
        return text;
    }
    let mut names: Vec<&(&str, &str)> = (0..1 + dice.below(3)).map(|_| dice.one(tests)).collect();
    names.sort();
    names.dedup();
    for (plugin, name) in names {
        text.push_str(&format!("[[scenario.test]]\nplugin = \"{plugin}\"\nname = \"{name}\"\n"));
    }
    if let Some(attack) = attack {
        let plugin = shared.path("libhostile.so");
        for name in ["neighbour", attack] {
            text.push_str(&format!(
                "[[scenario.test]]\nplugin = \"{}\"\nname = \"{name}\"\nworkers = 1\n",
                plugin.display()
            ));
        }
    }
    text
}
