//! What becomes of nights in which things break, as a table: shards, senders and merges that are killed, disks that are full, uploads
//! that are cut, bits that are turned, each at a random moment.
//!
//! `cargo bench --profile dev -p waylay-bucket --bench faults [-- FAULTS SEED]` makes 200 and fails when a schedule is lost or counted
//! twice, when a failure that was announced is not there and nobody said that it could not be written, or when a missing shard is not named. It needs `waylay` beside this
//! command's own build (`cargo build -p waylay`), gcc, and for full disks the right to mount.
//!
//! A night has three shards. Two of them are whole; the third is the victim. What is merged right after the fault has to name it
//! unless it is done, and has to hold every failure that it announced. Then it is run again with `--resume`, as engines do, and the
//! merged night has to be that of one process: the same sum of (test, schedule, steps, outcome), the same number of failures.

#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Fault, Network, Server, command};

const RUNS: &str = "3000";
const VICTIM: u64 = 2;
const PROGRAM: &str = "#include <pthread.h>\n#include <stdlib.h>\nstatic int n, m;\n\
    static void *add(void *x) { int k = n; n = k + 1; k = m; m = k + 1; return x; }\n\
    int main(void) { pthread_t t, u; pthread_create(&t, 0, add, 0); pthread_create(&u, 0, add, 0);\n\
    pthread_join(t, 0); pthread_join(u, 0); if (n != 2 && m != 2) abort(); return n != 2 ? 3 : m != 2 ? 4 : 0; }\n";

/// What breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaks {
    Shard,
    ShardWithBucket,
    Sender,
    Merge,
    Disk,
    Upload,
    Bit,
}

impl Breaks {
    const ALL: [Breaks; 7] = [
        Breaks::Shard,
        Breaks::ShardWithBucket,
        Breaks::Sender,
        Breaks::Merge,
        Breaks::Disk,
        Breaks::Upload,
        Breaks::Bit,
    ];

    fn words(self) -> &'static str {
        match self {
            Breaks::Shard => "shard killed, results in a folder",
            Breaks::ShardWithBucket => "shard killed, results in a bucket",
            Breaks::Sender => "sender killed",
            Breaks::Merge => "merge killed",
            Breaks::Disk => "results disk full",
            Breaks::Upload => "upload cut",
            Breaks::Bit => "bit turned on the way",
        }
    }
}

/// What a merged night says.
#[derive(Clone, Debug, PartialEq)]
struct Night {
    outcomes: String,
    iterations: u64,
    failures: u64,
    kinds: Vec<String>,
    missing: Vec<String>,
    code: Option<i32>,
}

struct Place {
    folder: PathBuf,
    waylay: PathBuf,
    server: Server,
    can_mount: bool,
}

impl Place {
    fn command(&self, at: std::net::SocketAddr, words: &[&str]) -> Command {
        let mut made = Command::new(&self.waylay);
        for (name, value) in command(at, support::SECRET, &[]).get_envs() {
            match value {
                Some(value) => made.env(name, value),
                None => made.env_remove(name),
            };
        }
        made.args(words).current_dir(&self.folder).env("TMPDIR", &self.folder).stdin(Stdio::null());
        made
    }

    fn shard<'w>(&self, shard: &'w str, out: &'w str) -> Vec<&'w str> {
        let words = [
            "explore",
            "--runs",
            RUNS,
            "--seed",
            "7",
            "--minimize",
            "off",
            "--resume",
            "--shard",
            shard,
            "--out",
            out,
        ];
        [&words[..], &["--", "./lost"]].concat()
    }

    /// Merges the two whole shards and what the victim left, if anything.
    fn merge(&self, victim: Option<&str>, night: &str) -> Night {
        let mut words = vec!["merge", "whole/1", "whole/3", "-o", night, "--json", "--quiet"];
        words.extend(victim);
        let ran = self.command(self.server.at, &words).output().expect("waylay runs");
        read(&ran, &self.folder.join(night))
    }
}

fn read(ran: &Output, folder: &Path) -> Night {
    let said = String::from_utf8_lossy(&ran.stderr);
    let answer: Value =
        serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("the merge says: {said}"));
    let scenarios = answer["campaign"]["scenarios"].as_array().cloned().unwrap_or_default();
    let tests =
        scenarios.iter().flat_map(|scenario| scenario["tests"].as_array().cloned().unwrap_or_default());
    let mut kinds: Vec<String> = fs::read_dir(folder.join("failures"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    kinds.sort();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Night {
        outcomes: text(&answer["outcomes"]),
        iterations: tests.map(|test| test["iterations"].as_u64().unwrap_or(0)).sum(),
        failures: answer["campaign"]["failures"].as_u64().unwrap_or(0),
        kinds,
        missing: answer["missing"].as_array().into_iter().flatten().map(text).collect(),
        code: ran.status.code(),
    }
}

/// Random numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// What came of faults of one sort.
#[derive(Clone, Copy, Default)]
struct Row {
    faults: u64,
    in_the_middle: u64,
    announced_lost: u64,
    schedules_wrong: u64,
    unnamed: u64,
}

fn kill(pid: u32) {
    let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
}

/// The processes that a process started.
fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn is_sender(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("waylay-bucket"))
}

/// Lines in which failures were announced, as in `run 17: exit: …`.
fn announced(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let is = |line: &&str| line.strip_prefix("waylay: run ").is_some_and(|rest| rest.contains(": "));
    text.lines().filter(is).map(|line| line.rsplit(": run ").next().unwrap_or(line).to_owned()).collect()
}

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let mut number = |or: u64| words.next().and_then(|word| word.parse().ok()).unwrap_or(or);
    let (faults, seed) = (number(200), number(28));
    let waylay = Path::new(env!("CARGO_BIN_EXE_waylay-bucket")).with_file_name("waylay");
    assert!(waylay.is_file(), "there is no {}: build it with the same profile", waylay.display());
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place {
        folder: folder.path().to_owned(),
        waylay,
        server: Server::start(),
        can_mount: can_mount(folder.path()),
    };
    fs::write(folder.path().join("lost.c"), PROGRAM).expect("written");
    let built = Command::new("gcc")
        .args(["-g", "-o", "lost", "lost.c", "-lpthread"])
        .current_dir(folder.path())
        .status();
    assert!(built.is_ok_and(|status| status.success()), "gcc");

    let mut length = Duration::ZERO;
    for shard in 1..=3 {
        let began = Instant::now();
        let ran = place
            .command(place.server.at, &place.shard(&format!("{shard}/3"), &format!("whole/{shard}")))
            .output()
            .expect("waylay runs");
        assert_eq!(ran.status.code(), Some(1), "{}", String::from_utf8_lossy(&ran.stderr));
        length = length.max(began.elapsed());
    }
    let began = Instant::now();
    let whole = place.merge(Some("whole/2"), "night");
    let merging = began.elapsed();
    assert!(whole.missing.is_empty() && whole.kinds.len() > 1, "{whole:?}");
    println!(
        "a night of {} schedules, {} failures, {} different\n",
        whole.iterations,
        whole.failures,
        whole.kinds.len()
    );

    let mut rows = [Row::default(); Breaks::ALL.len()];
    let mut random = Random(seed);
    for number in 0..faults {
        let breaks = Breaks::ALL[random.below(Breaks::ALL.len() as u64) as usize];
        let row = &mut rows[Breaks::ALL.iter().position(|one| *one == breaks).expect("it is one of them")];
        let broken = one(&place, breaks, number, (&whole, length, merging), &mut random);
        row.faults += 1;
        row.in_the_middle += u64::from(broken.in_the_middle);
        row.announced_lost += u64::from(broken.announced_lost);
        row.schedules_wrong += u64::from(broken.schedules_wrong);
        row.unnamed += u64::from(broken.unnamed);
        if let Some(words) = broken.words {
            eprintln!("fault {number} ({}): {words}", breaks.words());
        }
    }
    if !place.can_mount {
        println!("full disks were not tried: this user may not mount");
    }
    println!(
        "| what broke | faults | in the middle | announced and lost | lost or twice | missing and unnamed |"
    );
    println!("|---|---|---|---|---|---|");
    let mut sum = Row::default();
    for (breaks, row) in Breaks::ALL.into_iter().zip(rows) {
        println!("| {} {}", breaks.words(), row.cells());
        sum.faults += row.faults;
        sum.in_the_middle += row.in_the_middle;
        sum.announced_lost += row.announced_lost;
        sum.schedules_wrong += row.schedules_wrong;
        sum.unnamed += row.unnamed;
    }
    println!("| all {}", sum.cells());
    assert_eq!((sum.announced_lost, sum.schedules_wrong, sum.unnamed), (0, 0, 0));
}

impl Row {
    fn cells(&self) -> String {
        let Row { faults, in_the_middle, announced_lost, schedules_wrong, unnamed } = self;
        format!("| {faults} | {in_the_middle} | {announced_lost} | {schedules_wrong} | {unnamed} |")
    }
}

/// What was wrong after a fault.
#[derive(Default)]
struct Broken {
    in_the_middle: bool,
    announced_lost: bool,
    schedules_wrong: bool,
    unnamed: bool,
    words: Option<String>,
}

fn one(
    place: &Place,
    breaks: Breaks,
    number: u64,
    (whole, length, merging): (&Night, Duration, Duration),
    random: &mut Random,
) -> Broken {
    let mut broken = Broken::default();
    let night = format!("night-{number}");
    if breaks == Breaks::Merge {
        // Over one that is there, or where none is.
        if random.below(2) == 0 {
            place.merge(Some("whole/2"), &night);
        }
        let before = fs::read(place.folder.join(&night).join("campaign.json")).ok();
        let words = ["merge", "whole/1", "whole/2", "whole/3", "-o", &night, "--quiet"];
        let mut running =
            place.command(place.server.at, &words).stderr(Stdio::null()).spawn().expect("waylay runs");
        std::thread::sleep(merging.mul_f64(random.below(1000) as f64 / 1000.0));
        broken.in_the_middle = matches!(running.try_wait(), Ok(None));
        kill(running.id());
        let _ = running.wait();
        // For a moment, between two renames, there may be none; never half of one.
        let after = fs::read(place.folder.join(&night).join("campaign.json")).ok();
        let is_whole = |text: &Vec<u8>| serde_json::from_slice::<Value>(text).is_ok();
        broken.announced_lost = !broken.in_the_middle && before.is_some() && after.is_none();
        broken.unnamed = after.as_ref().is_some_and(|text| !is_whole(text));
    }

    let bucket = matches!(breaks, Breaks::ShardWithBucket | Breaks::Sender | Breaks::Upload | Breaks::Bit);
    let out = match bucket {
        true => format!("s3://nights/f{number}"),
        false if breaks == Breaks::Merge => "whole/2".to_owned(),
        false => format!("victim-{number}"),
    };
    let shard = format!("{VICTIM}/3");
    let mut told = Vec::new();
    let mut after = None;
    if breaks != Breaks::Merge {
        let network = Network::to(place.server.at);
        let disk = place.folder.join(&out);
        if breaks == Breaks::Disk && place.can_mount {
            fs::create_dir_all(&disk).expect("made");
            mount(&disk, &format!("size={}k", 16 + random.below(400)));
        }
        match breaks {
            Breaks::Upload => network.after(random.below(300_000), Fault::Cut),
            Breaks::Bit => network.after(random.below(300_000), Fault::Flip),
            _ => {}
        }
        let log = place.folder.join(format!("log-{number}"));
        let errors = fs::File::create(&log).expect("made");
        let words = place.shard(&shard, &out);
        let mut running = place
            .command(network.at, &words)
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .expect("waylay runs");
        let wait = length.mul_f64(random.below(1000) as f64 / 1000.0);
        match breaks {
            Breaks::Shard | Breaks::ShardWithBucket => {
                std::thread::sleep(wait);
                broken.in_the_middle = matches!(running.try_wait(), Ok(None));
                let senders: Vec<u32> =
                    children(running.id()).into_iter().filter(|pid| is_sender(*pid)).collect();
                kill(running.id());
                // It sends what there is before it ends.
                while senders.iter().any(|pid| is_sender(*pid)) {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            Breaks::Sender => {
                std::thread::sleep(wait);
                for pid in children(running.id()).into_iter().filter(|pid| is_sender(*pid)) {
                    kill(pid);
                    broken.in_the_middle = true;
                }
            }
            _ => {}
        }
        let _ = running.wait();
        if matches!(breaks, Breaks::Upload | Breaks::Bit) {
            broken.in_the_middle = network.is_over();
        }
        told = announced(&log);
        let left = match bucket {
            true => place.server.folder(&format!("f{number}")).exists(),
            false => fs::read_dir(&disk).is_ok_and(|mut all| all.next().is_some()),
        };
        let partly = place.merge(left.then_some(out.as_str()), &night);
        if breaks == Breaks::Disk {
            broken.in_the_middle = !partly.missing.is_empty();
        }
        let is_whole = partly.outcomes == whole.outcomes && partly.failures == whole.failures;
        let named = partly.missing.iter().any(|sentence| sentence.starts_with(&format!("shard {shard}")));
        // One that was killed after its last schedule and before it said so is named with nothing that it would have added.
        broken.unnamed |= !is_whole && (!named || partly.code == Some(0));
        after = Some(partly);
        // Two whole shards have all kinds of failures; so it is asked of what the victim itself left.
        // Where nothing could be written, that is said at the end, and the exit code is 3.
        let said = fs::read_to_string(&log).is_ok_and(|text| text.contains("could not be written at all"));
        broken.announced_lost |= !told.is_empty() && !said && !holds_failures(place, &out, number);
        if breaks == Breaks::Disk && place.can_mount {
            mount(&disk, "remount,size=64m");
        }
        // The engine starts it again.
        let again = place.command(place.server.at, &words).output().expect("waylay runs");
        if again.status.code() != Some(1) {
            broken.words = Some(format!("again: {}", String::from_utf8_lossy(&again.stderr)));
        }
    }
    let at_last = place.merge(Some(&out), &night);
    let same = at_last.outcomes == whole.outcomes
        && at_last.failures == whole.failures
        && at_last.iterations == whole.iterations;
    broken.schedules_wrong = !same || at_last.kinds != whole.kinds || !at_last.missing.is_empty();
    if broken.schedules_wrong || broken.unnamed || broken.announced_lost {
        let mut words = broken.words.take().unwrap_or_default();
        let _ = write!(words, " told {told:?}; after it {after:?}; at last {at_last:?}");
        broken.words = Some(words);
    }
    if breaks == Breaks::Disk && place.can_mount {
        let _ = Command::new("umount").arg(place.folder.join(&out)).status();
    }
    for folder in [&night, &out] {
        if !folder.starts_with("whole") && !folder.starts_with("s3:") {
            let _ = fs::remove_dir_all(place.folder.join(folder));
        }
    }
    broken
}

/// Whether what the victim left has failures.
fn holds_failures(place: &Place, out: &str, number: u64) -> bool {
    let here = match out.strip_prefix("s3://nights/") {
        None => place.folder.join(out),
        Some(_) => {
            let back = place.folder.join(format!("back-{number}"));
            let _ = support::run(place.server.at, &["get", out, &back.to_string_lossy()]);
            back
        }
    };
    support::content(&here).keys().any(|name| name.ends_with("/failure.json"))
}

fn mount(folder: &Path, options: &str) {
    let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder).status();
    assert!(done.is_ok_and(|status| status.success()), "mount {options}");
}

fn can_mount(below: &Path) -> bool {
    let folder = below.join("mount");
    fs::create_dir_all(&folder).expect("made");
    let done = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&folder)
        .stderr(Stdio::null())
        .status();
    let can = done.is_ok_and(|status| status.success());
    let _ = Command::new("umount").arg(&folder).stderr(Stdio::null()).status();
    can
}
