//! What a host prints: kept in two files of limited size, with the tail in memory for evidence.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::secrets;
use crate::store::firm;
use crate::sys::{AsPipe, PipeLevel, wait_until_readable};

/// How much of the end is kept at hand for a failure's evidence.
const TAIL_BYTES: usize = 32 * 1024;

/// Pause between two attempts to write a log that could not be written.
const AGAIN: Duration = Duration::from_millis(500);

/// The log cannot be written; the campaign goes on and says so once.
pub(crate) type LogError = crate::store::WriteError;

/// The log of one scenario's hosts: `path` and, when that is full, `path` with `.1` behind.
#[derive(Clone)]
pub(crate) struct HostLog(Arc<Mutex<Inner>>);

struct Inner {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    limit: u64,
    tail: VecDeque<u8>,
    /// The end of what was printed that may be the beginning of a secret.
    held: Vec<u8>,
    /// What the running host prints into.
    pipes: Vec<PipeLevel>,
    problem: Option<LogError>,
    /// Since when nothing can be written, and how much was lost since.
    lost: Option<(Instant, u64)>,
}

impl HostLog {
    /// A log that takes at most `limit` bytes of disk.
    pub(crate) fn create(path: &Path, limit: u64) -> Result<HostLog, LogError> {
        let file = File::create(path).map_err(|source| LogError { path: path.to_owned(), source })?;
        Ok(HostLog(Arc::new(Mutex::new(Inner {
            path: path.to_owned(),
            file: Some(file),
            written: 0,
            limit: limit.max(2),
            tail: VecDeque::with_capacity(TAIL_BYTES),
            held: Vec::new(),
            pipes: Vec::new(),
            problem: None,
            lost: None,
        }))))
    }

    /// Adds what a host printed.
    pub(crate) fn append(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).append(bytes);
    }

    /// The end of the log.
    pub(crate) fn tail(&self) -> String {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (front, back) = inner.tail.as_slices();
        String::from_utf8_lossy(&[front, back, &inner.held].concat()).into_owned()
    }

    /// Begins a new host: the tail of an earlier one would be taken for its words.
    pub(crate) fn begin_host(&self, pid: u32) {
        self.append(format!("--- host {pid} ---\n").as_bytes());
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.tail.clear();
        inner.pipes.clear();
    }

    /// Waits until what the host has printed so far was read, on a busy machine too; not longer than `limit`, because a
    /// host may print faster than anybody reads.
    pub(crate) fn catch_up(&self, limit: Duration) {
        let began = Instant::now();
        let behind = || {
            let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            !inner.pipes.iter().all(PipeLevel::is_empty)
        };
        while behind() && began.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The problem that stopped the log from being written, once.
    pub(crate) fn take_problem(&self) -> Option<LogError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).problem.take()
    }

    /// Copies everything from `source` on a thread of its own until its end, which is the thread's.
    pub(crate) fn follow(&self, source: impl Read + AsPipe + Send + 'static) -> Option<JoinHandle<()>> {
        self.follow_with(source, |source, buffer| source.read(buffer))
    }

    fn follow_with<S: AsPipe + Send + 'static>(
        &self,
        mut source: S,
        read: impl Fn(&mut S, &mut [u8]) -> std::io::Result<usize> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        let log = self.clone();
        if let Ok(level) = PipeLevel::of(&source) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).pipes.push(level);
        }
        let copy = move || {
            let mut buffer = [0; 16 * 1024];
            loop {
                wait_until_readable(&source);
                // Read under the lock: what is not in the pipe any more is then in the log for everybody who looks.
                let mut inner = log.0.lock().unwrap_or_else(PoisonError::into_inner);
                match read(&mut source, &mut buffer) {
                    Ok(0) => {
                        inner.let_go();
                        break;
                    }
                    Ok(count) => inner.append(&buffer[..count]),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        };
        let spawned = std::thread::Builder::new().name("waylay-log".into()).spawn(copy);
        if let Err(error) = &spawned {
            self.append(format!("waylay: cannot follow the host's output: {error}\n").as_bytes());
        }
        spawned.ok()
    }
}

impl Inner {
    fn append(&mut self, bytes: &[u8]) {
        let mut bytes = [&std::mem::take(&mut self.held), bytes].concat();
        secrets::clean(&mut bytes);
        self.held = bytes.split_off(bytes.len() - secrets::open_end(&bytes));
        self.put(&bytes);
    }

    /// No more comes that could make a secret of it.
    fn let_go(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.put(&held);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.remember(bytes);
        if let Err(source) = self.go_on().and_then(|()| self.write(bytes)) {
            self.file = None;
            let waits = source.kind() == std::io::ErrorKind::WouldBlock;
            let (since, before) = self.lost.unwrap_or_else(|| {
                self.problem = Some(LogError { path: self.path.clone(), source });
                (Instant::now(), 0)
            });
            let since = if waits { since } else { Instant::now() };
            self.lost = Some((since, before + bytes.len() as u64));
        }
    }

    /// Opens the file again that could not be written, now and then, and says in it what is missing.
    fn go_on(&mut self) -> std::io::Result<()> {
        let Some((since, bytes)) = self.lost else { return Ok(()) };
        if since.elapsed() < AGAIN {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        firm::remove_link(&self.path);
        let mut file = File::options().create(true).append(true).open(&self.path)?;
        let words = format!("waylay: {bytes} bytes are missing here: they could not be written\n");
        file.write_all(words.as_bytes())?;
        self.written = file.metadata().map_or(0, |file| file.len());
        self.file = Some(file);
        self.lost = None;
        Ok(())
    }

    fn remember(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let excess = (self.tail.len() + bytes.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.tail.extend(bytes);
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.written + bytes.len() as u64 > self.limit / 2 && self.written > 0 {
            self.file = None;
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            fs::rename(&self.path, older)?;
            firm::remove_link(&self.path);
            self.file = Some(File::create(&self.path)?);
            self.written = 0;
        }
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_use_stays_within_the_limit_and_the_newest_lines_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.log");
        let log = HostLog::create(&path, 10_000).unwrap();
        for number in 0..10_000 {
            log.append(format!("line {number}\n").as_bytes());
        }
        let on_disk: u64 =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
        assert!(on_disk <= 10_000, "{on_disk}");
        assert!(fs::read_to_string(&path).unwrap().ends_with("line 9999\n"));
        assert!(log.tail().ends_with("line 9999\n"));
        assert!(log.tail().len() <= TAIL_BYTES);
    }

    #[test]
    fn what_was_printed_before_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let log = HostLog::create(&folder.path().join("host.log"), 10_000).unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        // As on a busy machine, the one who reads has no processor for a while.
        let delayed = |reader: &mut std::io::PipeReader, buffer: &mut [u8]| {
            std::thread::sleep(Duration::from_millis(300));
            reader.read(buffer)
        };
        let following = log.follow_with(reader, delayed).unwrap();
        writer.write_all(b"last words\n").unwrap();
        log.catch_up(Duration::from_secs(60));
        assert_eq!(log.tail(), "last words\n");
        drop(writer);
        following.join().unwrap();
    }

    /// Windows does not let go of the folder of an open file.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_log_that_cannot_be_written_says_so_once_keeps_the_tail_and_goes_on_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone").join("host.log");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let log = HostLog::create(&path, 10).unwrap();
        log.append(b"first\n");
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        log.append(b"second\n");
        assert!(log.take_problem().unwrap().to_string().contains("host.log"));
        assert!(log.take_problem().is_none());
        assert_eq!(log.tail(), "first\nsecond\n");
        fs::create_dir(path.parent().unwrap()).unwrap();
        std::thread::sleep(AGAIN);
        log.append(b"third\n");
        // Such a small log is turned over at once.
        let read = |name: &str| fs::read_to_string(path.with_file_name(name)).unwrap();
        let (older, text) = (read("host.log.1"), read("host.log"));
        assert!(older.contains("7 bytes are missing here") && text.ends_with("third\n"), "{older}{text}");
    }
}
