//! What must hold after a storm, whatever was done: nobody is left, nothing stands still, nothing that was announced is lost,
//! the exit code is right, nobody panicked, and the results can be read.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use waylay_history::History;
use waylay_history::write::Context;

use super::campaigns::Mode;
use super::processes;
use super::scene::{Ended, LIMIT, Scene};
use super::tap::{Announced, announced};

/// Processes end with their driver at once; a loaded machine may need longer to say so.
const ENDING: Duration = Duration::from_secs(30);

/// Looks at what is left of a campaign; gives every rule that does not hold, in words.
pub(crate) fn judge(scene: &mut Scene, ended: Option<Ended>) -> Vec<String> {
    let mut broken = Vec::new();
    nobody_is_left(scene, ended.is_none(), &mut broken);
    let lines = scene.tap.finish();
    let stderr = read(&scene.folder.join("stderr.txt"));
    let told = announced(&lines);
    nobody_panicked(scene, &stderr, &mut broken);
    if let Some(ended) = ended {
        exit_is_right(scene, ended, &stderr, &told, &mut broken);
    }
    if !scene.done.lossy {
        nothing_is_lost(scene, &told, &mut broken);
    }
    results_can_be_read(scene, &told, &mut broken);
    broken
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

fn nobody_is_left(scene: &Scene, hangs: bool, broken: &mut Vec<String>) {
    if hangs {
        let all = processes::marked(&scene.mark);
        let about: Vec<&str> = all.iter().map(|process| process.about.as_str()).collect();
        broken.push(format!("it does not end in {} s: {about:?}", LIMIT.as_secs()));
    } else {
        let may_stay = scene.leaves_processes();
        let left = processes::left(&scene.mark, ENDING, |process| may_stay && process.is_left_behind());
        for process in left {
            broken.push(format!("process {} is left: {}", process.pid, process.about));
        }
    }
    processes::end_all(&scene.mark);
}

fn nobody_panicked(scene: &Scene, stderr: &str, broken: &mut Vec<String>) {
    let logs = campaigns(scene).into_iter().map(|folder| read(&folder.join("host.log")));
    for text in logs.chain([stderr.to_owned()]) {
        for word in ["panicked at", "FAULT OF WAYLAY", "fatal runtime error"] {
            if let Some(line) = text.lines().find(|line| line.contains(word)) {
                broken.push(format!("somebody panicked: {line}"));
            }
        }
    }
}

fn campaigns(scene: &Scene) -> Vec<PathBuf> {
    waylay_driver::archive::campaigns(&scene.folder.join("out"))
}

fn record_of(folder: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(folder.join("campaign.json")).ok()?).ok()
}

/// The exit code of a driver that was asked to end a second time, as of a program that SIGINT ended.
const AT_ONCE: i32 = 128 + libc::SIGINT;

fn exit_is_right(scene: &Scene, ended: Ended, stderr: &str, told: &[Announced], broken: &mut Vec<String>) {
    let mut wrong = |why: &str| {
        let last = stderr.lines().rev().take(3).collect::<Vec<_>>();
        broken.push(format!("{why}: {ended:?} after {:?}, last words {last:?}", scene.done));
    };
    let records = campaigns(scene);
    let begun = !records.is_empty();
    let Some(code) = ended.code else {
        let by_us = scene.done.killed && ended.signal == Some(libc::SIGKILL);
        // A signal that comes before anybody listens does what it does to every program.
        let at_once = scene.done.asked && !begun;
        if !by_us && !at_once {
            wrong("it died");
        }
        return;
    };
    let weak = scene.done.strained || scene.done.lossy;
    let served = scene.campaign.mode == Mode::Serve;
    match code {
        0 if !told.is_empty() => wrong("failures were announced, and it says that it is clean"),
        0 => {}
        1 if served => wrong("a service has no failures of its own"),
        1 => {
            let known = records.iter().filter_map(|folder| record_of(folder));
            let counted = known.filter_map(|record| record["failures"].as_u64()).sum::<u64>();
            if !weak && !scene.done.unread && told.is_empty() && counted == 0 {
                wrong("no failure was announced or kept");
            }
        }
        2 => {
            let ran = |record: Value| record.to_string().contains("\"iterations\":0") || record["hosts"] == 0;
            let nothing = records.iter().all(|folder| record_of(folder).is_none_or(ran));
            if !weak && !nothing && !scene.done.asked {
                wrong("it says that nothing ran");
            }
        }
        3 if weak => {
            if stderr.trim().is_empty() && !scene.done.unread {
                wrong("it says nothing");
            }
        }
        AT_ONCE if scene.done.asked_again => {}
        _ => wrong("this exit code says that Waylay itself failed"),
    }
}

/// Every failure that was announced is on the disk and in the history.
fn nothing_is_lost(scene: &Scene, told: &[Announced], broken: &mut Vec<String>) {
    let out = scene.folder.join("out");
    for failure in told {
        let path = scene.folder.join(&failure.folder).join("failure.json");
        match fs::read(&path).map(|bytes| serde_json::from_slice::<Value>(&bytes)) {
            Ok(Ok(entry)) if entry["signature"]["id"] == failure.signature.as_str() => {}
            Ok(Ok(_)) => broken.push(format!("{} is another failure", path.display())),
            Ok(Err(error)) => broken.push(format!("{} is damaged: {error}", path.display())),
            Err(error) => broken.push(format!("{} was announced: {error}", path.display())),
        }
    }
    if told.is_empty() {
        return;
    }
    let known = History::open(&out).and_then(|mut history| {
        history.import(&Context::default())?;
        told.iter().map(|failure| history.failure(&failure.signature)).collect::<Result<Vec<_>, _>>()
    });
    match known {
        Err(error) => broken.push(format!("the history cannot be read: {error}")),
        Ok(known) => {
            for (failure, row) in told.iter().zip(known) {
                if row.is_none() {
                    broken.push(format!("{} was announced and is not in the history", failure.signature));
                }
            }
        }
    }
}

/// `report`, `failures` and `show` say what there is, or in a sentence why not.
fn results_can_be_read(scene: &Scene, told: &[Announced], broken: &mut Vec<String>) {
    let begun = !campaigns(scene).is_empty();
    let mut asked = vec![vec!["report"], vec!["failures"]];
    asked.extend(told.first().map(|failure| vec!["show", failure.signature.as_str()]));
    for arguments in asked {
        let (code, stderr) = run(scene, &arguments);
        let must_work = begun && !scene.done.lossy;
        let good = code == Some(0) || (!must_work && code == Some(2) && !stderr.trim().is_empty());
        if !good || stderr.contains("panicked") {
            broken.push(format!("`{}` ends with {code:?}: {}", arguments.join(" "), stderr.trim()));
        }
    }
}

fn run(scene: &Scene, arguments: &[&str]) -> (Option<i32>, String) {
    let path = scene.folder.join("asked.txt");
    let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
    command.args(arguments).args(["--out", "out"]).current_dir(&scene.folder);
    command.env(processes::MARK, &scene.mark).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(&path).expect("a file"));
    let mut child = command.spawn().expect("the command starts");
    let end = Instant::now() + LIMIT;
    let code = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.code(),
            _ if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    (code, read(&path))
}
