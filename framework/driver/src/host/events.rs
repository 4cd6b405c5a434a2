//! What a host reports on its pipe: read on a thread of its own, in lines of limited length, of which a limited number
//! wait to be taken.
//!
//! A test can write to descriptors that it does not own. What is no event is remembered as a contradiction.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use waylay_host::event::Event;

use super::witness::Contradiction;

/// Longest line: the description of a plugin with some ten thousand tests.
const LONGEST_LINE: u64 = 16 << 20;
/// Bytes of lines that may wait to be taken; then the pipe is not read, and a host that goes on writing waits.
const MOST_WAITING: usize = 32 << 20;

/// The reading end of a host's pipe.
pub(super) struct Events {
    receiver: Receiver<(usize, Event)>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Bytes that were read and not taken.
    waiting: AtomicUsize,
    /// The first thing that was no event.
    garbage: Mutex<Option<Contradiction>>,
}

impl Events {
    /// Reads events until the pipe closes.
    pub(super) fn follow(pipe: File) -> io::Result<(Events, JoinHandle<()>)> {
        let (sender, receiver) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        let read = move || {
            let mut reader = BufReader::new(pipe);
            let mut line = Vec::new();
            loop {
                line.clear();
                // Whoever would take them is gone when the sender cannot send; until then this waits with the host.
                while ours.waiting.load(Ordering::Acquire) > MOST_WAITING && Arc::strong_count(&ours) > 1 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
                    Ok(0) => break,
                    Ok(_) if line.last() != Some(&b'\n') && (line.len() as u64) < LONGEST_LINE => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                }
                match serde_json::from_slice(&line) {
                    Ok(event) => {
                        ours.waiting.fetch_add(line.len(), Ordering::AcqRel);
                        if sender.send((line.len(), event)).is_err() {
                            break;
                        }
                    }
                    Err(_) => ours.note_garbage(&line),
                }
            }
        };
        let listener = std::thread::Builder::new().name("waylay-events".into()).spawn(read)?;
        Ok((Events { receiver, shared }, listener))
    }

    fn taken(&self, (bytes, event): (usize, Event)) -> Event {
        self.shared.waiting.fetch_sub(bytes, Ordering::AcqRel);
        event
    }

    /// What has come since the last call.
    pub(super) fn drain(&self) -> Vec<Event> {
        self.receiver.try_iter().map(|event| self.taken(event)).collect()
    }

    /// What still comes, not longer than `limit`: a process that the host started may hold the pipe.
    pub(super) fn remaining(&self, limit: Duration) -> Vec<Event> {
        let began = Instant::now();
        let mut events = Vec::new();
        while let Ok(event) = self.receiver.recv_timeout(limit.saturating_sub(began.elapsed())) {
            events.push(self.taken(event));
        }
        events
    }

    /// The next event.
    pub(super) fn next(&self, limit: Duration) -> Result<Event, RecvTimeoutError> {
        self.receiver.recv_timeout(limit).map(|event| self.taken(event))
    }

    /// Whether something came that no host sends.
    pub(super) fn contradiction(&self) -> Result<(), Contradiction> {
        match &*self.shared.garbage.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(garbage) => Err(garbage.clone()),
            None => Ok(()),
        }
    }
}

impl Shared {
    fn note_garbage(&self, line: &[u8]) {
        const QUOTED: usize = 60;
        let begin: String = String::from_utf8_lossy(&line[..line.len().min(QUOTED)]).escape_debug().collect();
        let fault = format!("{} bytes on the pipe for events are none: \"{begin}\"", line.len());
        self.garbage.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(Contradiction(fault));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn piped(write: impl FnOnce(&mut File) + Send + 'static) -> (Events, JoinHandle<()>) {
        let (reader, writer) = crate::sys::pipe().unwrap();
        std::thread::spawn(move || write(&mut File::from(writer)));
        Events::follow(File::from(reader)).unwrap()
    }

    #[test]
    fn a_line_without_end_is_read_in_pieces_and_told() {
        let (events, listener) = piped(|pipe| {
            let block = vec![b'x'; 1 << 20];
            for _ in 0..40 {
                pipe.write_all(&block).unwrap();
            }
        });
        listener.join().unwrap();
        assert!(events.drain().is_empty());
        assert!(events.contradiction().unwrap_err().0.contains("16777216 bytes on the pipe"));
    }

    #[test]
    fn events_around_garbage_are_kept_and_a_torn_last_line_is_no_garbage() {
        let line = serde_json::to_string(&Event::Exhausted { test: 3 }).unwrap();
        let torn = line[..9].to_owned();
        let (events, listener) = piped(move |pipe| write!(pipe, "{line}\n{line}\n{torn}").unwrap());
        listener.join().unwrap();
        assert_eq!(events.drain().len(), 2);
        assert_eq!(events.contradiction(), Ok(()));
        let (events, listener) = piped(|pipe| pipe.write_all(b"\xff\0 hello\n").unwrap());
        listener.join().unwrap();
        assert!(events.contradiction().is_err());
    }

    /// 60 MB of events are written and nobody takes any: the one who writes has to wait.
    #[test]
    fn a_flood_waits_in_the_pipe_and_not_in_memory() {
        let reason = "x".repeat(1 << 20);
        let line = serde_json::to_string(&Event::TestRefused { test: 0, reason }).unwrap() + "\n";
        let (events, listener) = piped(move |pipe| {
            for _ in 0..60 {
                if pipe.write_all(line.as_bytes()).is_err() {
                    break;
                }
            }
        });
        let mut taken = 0;
        while taken < 60 {
            let waiting = events.shared.waiting.load(Ordering::Acquire);
            assert!(waiting <= MOST_WAITING + (2 << 20), "{waiting}");
            taken += events.drain().len();
        }
        listener.join().unwrap();
    }
}
