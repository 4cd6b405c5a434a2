//! `waylay run --json-lines`: what happens, as one JSON object a line on standard output, while it happens.
//!
//! The lines are written by a thread of its own: a reader that stops reading holds up no campaign. What it did not take in
//! time is left out, and a line says how much that was.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use waylay_driver::failure::FailureEntry;
use waylay_driver::report::{Live, RunningNow, Summary, Tick};
use waylay_driver::store::{CampaignRecord, TestRecord};

/// Lines that wait for a reader: minutes of progress, or a burst of failures.
const WAITING: usize = 4096;
/// How often there is a line about progress.
const EVERY: Duration = Duration::from_secs(1);
/// How long a reader has for the last lines when the campaign is over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where lines go.
#[derive(Clone)]
struct Lines {
    /// Nothing ends the thread that writes.
    to: SyncSender<Option<String>>,
    lost: Arc<AtomicU64>,
}

impl Lines {
    fn say(&self, event: &str, mut object: Value) {
        object["event"] = json!(event);
        object["at"] = json!(Timestamp::now());
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 && self.to.try_send(Some(json!({ "event": "lost", "lines": lost }).to_string())).is_err()
        {
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
        if self.to.try_send(Some(object.to_string())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for room, but not for ever.
    fn send(&self, mut line: Option<String>, until: Instant) {
        while let Err(TrySendError::Full(back)) = self.to.try_send(line) {
            line = back;
            if Instant::now() >= until {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The thread that writes.
pub(crate) struct Writer {
    lines: Lines,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Writes to standard output from now on.
    pub(crate) fn start() -> std::io::Result<Writer> {
        let (to, from) = sync_channel(WAITING);
        let write = move || write(&from, &mut std::io::stdout());
        let thread = std::thread::Builder::new().name("waylay-lines".into()).spawn(write)?;
        Ok(Writer { lines: Lines { to, lost: Arc::default() }, thread })
    }

    /// Somebody who is told, and whose news are written.
    pub(crate) fn beside(&self, live: Box<dyn Live>) -> Box<dyn Live> {
        Box::new(Told { live, lines: self.lines.clone(), ticked: None, began: false })
    }

    /// The last line; waits until it is read, but not for ever.
    pub(crate) fn finish(self, summary: &Summary) {
        let until = Instant::now() + PATIENCE;
        let mut object = json!(summary);
        object["event"] = json!("over");
        self.lines.send(Some(object.to_string()), until);
        self.lines.send(None, until);
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Writes until it is told to end. When nobody reads any more, what comes is taken all the same.
fn write(from: &Receiver<Option<String>>, to: &mut dyn Write) {
    while let Ok(Some(line)) = from.recv() {
        let _ = to.write_all(line.as_bytes()).and_then(|()| to.write_all(b"\n")).and_then(|()| to.flush());
    }
}

struct Told {
    live: Box<dyn Live>,
    lines: Lines,
    ticked: Option<Instant>,
    began: bool,
}

impl Live for Told {
    fn note(&mut self, text: &str) {
        self.lines.say("note", json!({ "text": text }));
        self.live.note(text);
    }

    fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        let told = json!({
            "signature": entry.signature.id,
            "kind": entry.kind,
            "test": entry.test,
            "plugin": entry.plugin,
            "what": entry.what,
            "reason": entry.reason,
            "folder": folder,
            "replay": entry.replay,
        });
        self.lines.say("failure", told);
        self.live.failure(entry, folder);
    }

    fn tick(&mut self, tick: &Tick) {
        if self.ticked.is_none_or(|ticked| ticked.elapsed() >= EVERY) {
            self.ticked = Some(Instant::now());
            let told = json!({
                "elapsed_s": tick.elapsed.as_secs_f64(),
                "scenario": tick.scenario,
                "strict": tick.strict,
                "iterations": tick.iterations,
                "failures": tick.failures,
                "signatures": tick.signatures,
                "suspensions": tick.randomizer.as_ref().map(|record| record.counts.suspensions),
                "slowest": tick.slowest.as_ref().map(|(worker, time)| json!({
                    "worker": worker,
                    "for_s": time.as_secs_f64(),
                })),
            });
            self.lines.say("progress", told);
        }
        self.live.tick(tick);
    }

    fn tests(&mut self, tests: &[TestRecord]) {
        self.live.tests(tests);
    }

    fn counted(&mut self, entries: &[&FailureEntry]) {
        for entry in entries {
            self.lines.say("again", json!({ "signature": entry.signature.id, "count": entry.count }));
        }
        self.live.counted(entries);
    }

    fn campaign(&mut self, record: &CampaignRecord, folder: &Path) {
        if !std::mem::replace(&mut self.began, true) {
            let told = json!({
                "campaign": record.name,
                "folder": folder,
                "seed": record.seed,
                "environment": record.environment,
            });
            self.lines.say("began", told);
        }
        self.live.campaign(record, folder);
    }

    fn wants_look(&mut self) -> bool {
        self.live.wants_look()
    }

    fn running(&mut self, now: &RunningNow) {
        self.live.running(now);
    }

    fn enough(&self) -> bool {
        self.live.enough()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_does_not_read_holds_nobody_up_and_is_told_what_it_missed() {
        let (to, from) = sync_channel(3);
        let lines = Lines { to, lost: Arc::default() };
        for number in 0..10 {
            lines.say("note", json!({ "text": number }));
        }
        let begun = Instant::now();
        lines.send(Some("late".into()), begun + Duration::from_millis(20));
        assert!(begun.elapsed() < Duration::from_secs(5));
        for _ in 0..3 {
            from.recv().unwrap();
        }
        lines.say("note", json!({ "text": "again" }));
        lines.send(None, Instant::now() + PATIENCE);
        let mut out = Vec::new();
        write(&from, &mut out);
        let out = String::from_utf8(out).unwrap();
        let read: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&read[0]["event"], &read[0]["lines"]), (&json!("lost"), &json!(7)), "{out}");
        assert_eq!((&read[1]["event"], &read[1]["text"]), (&json!("note"), &json!("again")), "{out}");
        assert_eq!(read.len(), 2);
    }
}
