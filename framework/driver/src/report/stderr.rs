//! Standard error, written by a thread of its own: a terminal that was halted, or a pipe whose reader stands still, holds up
//! neither tests nor their supervision.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Messages that may wait for a reader; what comes then is counted instead.
const MOST_WAITING: usize = 1000;
/// How long the last messages may take at the end.
const LAST_MESSAGES: Duration = Duration::from_secs(2);

/// Messages on their way to a writer of their own.
struct Sink {
    to: Mutex<Option<SyncSender<Vec<u8>>>>,
    sent: AtomicU64,
    written: AtomicU64,
    lost: AtomicU64,
}

impl Sink {
    const fn new(to: Option<SyncSender<Vec<u8>>>) -> Sink {
        Sink {
            to: Mutex::new(to),
            sent: AtomicU64::new(0),
            written: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// False when there is nobody who would write it.
    fn send(&self, text: &str) -> bool {
        let to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        match to.as_ref().map(|to| to.try_send(text.as_bytes().to_vec())) {
            Some(Ok(())) => {
                self.sent.fetch_add(1, Ordering::Release);
                true
            }
            Some(Err(TrySendError::Full(_))) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                true
            }
            Some(Err(TrySendError::Disconnected(_))) | None => false,
        }
    }

    fn work(&self, messages: &Receiver<Vec<u8>>, out: &mut dyn Write) {
        for message in messages {
            // A closed terminal is no reason to stop a campaign.
            let _ = out.write_all(&message);
            let lost = self.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                let _ =
                    out.write_all(format!("   {lost} messages were left out: nobody read them\n").as_bytes());
            }
            self.written.fetch_add(1, Ordering::Release);
        }
    }

    fn settle(&self, limit: Duration) {
        let began = Instant::now();
        while self.written.load(Ordering::Acquire) < self.sent.load(Ordering::Acquire)
            && began.elapsed() < limit
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

static SINK: Sink = Sink::new(None);

/// Who writes past a line of progress that is on the terminal.
static PAST: OnceLock<fn(&mut dyn FnMut())> = OnceLock::new();

/// From now on messages are written within `past`, which takes a line of progress away first and lets it be drawn again.
pub fn write_past(past: fn(&mut dyn FnMut())) {
    let _ = PAST.set(past);
}

/// Standard error below a line of progress, if there is one.
struct Below;

impl Write for Below {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let mut written = Ok(text.len());
        let mut write = || written = std::io::stderr().write_all(text).map(|()| text.len());
        match PAST.get() {
            Some(past) => past(&mut write),
            None => write(),
        }
        written
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// Writes a message, soon.
pub(super) fn write(text: &str) {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let (to, messages) = sync_channel(MOST_WAITING);
        let work = move || SINK.work(&messages, &mut Below);
        if std::thread::Builder::new().name("waylay-stderr".into()).spawn(work).is_ok() {
            *SINK.to.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
        }
    });
    if !SINK.send(text) {
        let _ = Below.write_all(text.as_bytes());
    }
}

/// Waits until everything is written that was said so far, but not for ever.
pub(crate) fn settle() {
    SINK.settle(LAST_MESSAGES);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_stands_still_holds_up_nothing_and_is_told_what_it_missed() {
        let (to, messages) = sync_channel(2);
        let sink = Sink::new(Some(to));
        for _ in 0..5 {
            assert!(sink.send("x\n"));
        }
        sink.settle(Duration::from_millis(1));
        sink.to.lock().unwrap().take();
        let mut seen = Vec::new();
        sink.work(&messages, &mut seen);
        assert_eq!(String::from_utf8(seen).unwrap(), "x\n   3 messages were left out: nobody read them\nx\n");
        assert!(!sink.send("x"), "nobody would write it");
    }
}
