//! Which processes belong to a campaign, wherever they went: all that carry its mark in their environment.

use std::fs;
use std::time::{Duration, Instant};

/// The variable of the mark. It is not one of Waylay's own, which are taken out of what tests start.
pub(crate) const MARK: &str = "STORM_MARK";

/// A process with the mark.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    pub(crate) pid: i32,
    /// Its name, command line, and the states of its threads.
    pub(crate) about: String,
    role: String,
}

impl Marked {
    /// Whether it runs tests: a host, or a program that is explored.
    pub(crate) fn is_host(&self) -> bool {
        self.role == "host" || self.about.starts_with("racy")
    }

    pub(crate) fn is_randomizer(&self) -> bool {
        self.role == "randomizer"
    }

    /// Whether a test made it and left it behind.
    pub(crate) fn is_left_behind(&self) -> bool {
        self.about.starts_with("left-behind")
    }
}

/// The living processes with that mark.
pub(crate) fn marked(mark: &str) -> Vec<Marked> {
    let wanted = format!("{MARK}={mark}");
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut found = Vec::new();
    for pid in pids {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if !environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            continue;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X'])) {
            continue;
        }
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<String> =
            line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let about =
            format!("{} ({}), threads {}", name.trim(), words.join(" ").trim(), threads(pid).join(""));
        found.push(Marked { pid, about, role: words.get(1).cloned().unwrap_or_default() });
    }
    found
}

/// The state of each thread: a letter.
fn threads(pid: i32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let state = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        Some(stat.rsplit_once(") ")?.1.chars().next()?.to_string())
    };
    tasks.filter_map(state).collect()
}

/// What is left of a campaign when it had that long to go away.
pub(crate) fn left(mark: &str, patience: Duration, spare: impl Fn(&Marked) -> bool) -> Vec<Marked> {
    let end = Instant::now() + patience;
    loop {
        let left: Vec<Marked> = marked(mark).into_iter().filter(|process| !spare(process)).collect();
        if left.is_empty() || Instant::now() >= end {
            return left;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal; what is gone already does not mind.
pub(crate) fn signal(pid: i32, signal: i32) {
    // SAFETY: a plain call.
    unsafe { libc::kill(pid, signal) };
}

/// Ends everything with that mark.
pub(crate) fn end_all(mark: &str) {
    for _ in 0..20 {
        let all = marked(mark);
        if all.is_empty() {
            return;
        }
        all.iter().for_each(|process| signal(process.pid, libc::SIGKILL));
        std::thread::sleep(Duration::from_millis(20));
    }
}
