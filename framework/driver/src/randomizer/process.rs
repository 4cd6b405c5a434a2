//! Starting a randomizer beside a host, hearing how it goes, getting it out of the way, and ending it.
//!
//! It is a child like the host, in a group of its own, and dies with the driver; the kernel then resumes what it held.
//! Nothing here waits for it without a limit. When it is started again, and with which seed, is decided elsewhere.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use waylay_dist::Seed;
use waylay_page::Page;
use waylay_randomizer::quiesce::Words;
use waylay_randomizer::statistics::Progress;
use waylay_randomizer::{RawSettings, Report};

use crate::host::HostLog;
use crate::sys;

/// How long it may take to let go of the threads before it is killed. It answers within a millisecond unless a thread
/// does not reach its stop, or the machine is busy.
const PATIENCE: Duration = Duration::from_millis(200);
/// Longest wait for its log before the log is kept as it is.
const PATIENCE_WITH_LOG: Duration = Duration::from_millis(200);
/// How long one that was killed may take to be gone.
const DEATH: Duration = Duration::from_secs(20);
/// How long it may take to end and report.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// It reports five times a second; one that says nothing for so long is stopped or stuck, perhaps with threads in its
/// hands.
const SILENCE: Duration = Duration::from_secs(5);
/// How long it may say nothing before its first words: it has to be loaded first, and may wait for a processor.
const SILENCE_AT_FIRST: Duration = Duration::from_secs(10);
/// Bytes that are read of its report: some hundred for each thread.
const MOST_WORDS: u64 = 64 << 20;
/// Disk for the log of one randomizer, in MiB: about a minute at the default settings.
const LOG_MIB: u32 = 1;

/// How to start one.
#[derive(Clone, Debug)]
pub(crate) struct RandomizerCommand {
    /// The waylay command itself.
    pub(crate) executable: PathBuf,
    /// Where each writes its log, over that of the one before.
    pub(crate) log: PathBuf,
}

/// What one is to do.
pub(crate) struct RandomizerTask<'a> {
    pub(crate) pid: u32,
    pub(crate) page: &'a Arc<Page>,
    pub(crate) settings: &'a RawSettings,
    pub(crate) seed: Seed,
}

/// A randomizer at work. Dropping it kills it.
pub(crate) struct RandomizerProcess {
    child: Child,
    started: Instant,
    /// Suspensions beside this host before it.
    suspensions_before: u64,
    ended: Option<ExitStatus>,
    page: Arc<Page>,
    seed: Seed,
    log: PathBuf,
    heard: Arc<Mutex<Heard>>,
    readers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Heard {
    progress: Option<(Progress, Instant)>,
    /// Its last words: a report, or why there is none.
    answer: String,
}

/// What one left behind.
#[derive(Debug)]
pub(crate) struct RandomizerEnd {
    /// Its report; none when it was killed.
    pub(crate) report: Option<Report>,
    /// The last it said about how it goes.
    pub(crate) progress: Option<Progress>,
    /// From its start to its end.
    pub(crate) lived: Duration,
    /// Its suspensions, as the page counts them: known of one that was killed, too.
    pub(crate) suspensions: u64,
    /// Why it ended although the host had not, in words.
    pub(crate) reason: String,
}

/// The randomizer stays away while this lives.
pub(crate) struct Quiet(Arc<Page>);

impl Drop for Quiet {
    fn drop(&mut self) {
        Words::of(&self.0.layout().header).release();
    }
}

impl RandomizerCommand {
    /// Starts one; what it prints for people goes to `host_log`.
    pub(crate) fn start(
        &self,
        task: &RandomizerTask<'_>,
        host_log: &HostLog,
    ) -> io::Result<RandomizerProcess> {
        let (reader, writer) = sys::pipe()?;
        let page = task.page.handle().raw();
        let mut command = Command::new(&self.executable);
        command.args(["randomizer", "--json", "--quiet"]);
        command.arg(format!("--pid={}", task.pid)).arg(format!("--seed={}", task.seed));
        command.arg(format!("--page={page}")).arg(format!("--stats={}", sys::raw(&writer)));
        command.arg("--log").arg(&self.log).arg(format!("--log-limit={LOG_MIB}"));
        let RawSettings { period, suspend, count, include, exclude } = task.settings;
        for (flag, spec) in [("period", period), ("suspend", suspend), ("count", count)] {
            command.args(spec.iter().map(|spec| format!("--{flag}={spec}")));
        }
        command.args(include.iter().map(|name| format!("--include={name}")));
        command.args(exclude.iter().map(|name| format!("--exclude={name}")));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        sys::prepare(&mut command, vec![page, sys::raw(&writer)]);
        let mut child = command.spawn()?;
        drop(writer);
        let heard = Arc::new(Mutex::new(Heard::default()));
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut readers = vec![follow_progress(File::from(reader), &heard)?, follow_answer(stdout, &heard)?];
        readers.extend(host_log.follow(child.stderr.take().expect("stderr is piped")));
        Ok(RandomizerProcess {
            child,
            started: Instant::now(),
            suspensions_before: suspensions(task.page),
            ended: None,
            page: Arc::clone(task.page),
            seed: task.seed,
            log: self.log.clone(),
            heard,
            readers,
        })
    }
}

fn follow_progress(pipe: File, heard: &Arc<Mutex<Heard>>) -> io::Result<JoinHandle<()>> {
    let heard = Arc::clone(heard);
    let read = move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if let Ok(progress) = serde_json::from_str(&line) {
                lock(&heard).progress = Some((progress, Instant::now()));
            }
        }
    };
    std::thread::Builder::new().name("waylay-numbers".into()).spawn(read)
}

fn follow_answer(
    mut stdout: impl Read + Send + 'static,
    heard: &Arc<Mutex<Heard>>,
) -> io::Result<JoinHandle<()>> {
    let heard = Arc::clone(heard);
    let read = move || {
        let mut text = String::new();
        let _ = stdout.by_ref().take(MOST_WORDS).read_to_string(&mut text);
        let _ = io::copy(&mut stdout, &mut io::sink());
        lock(&heard).answer = text;
    };
    std::thread::Builder::new().name("waylay-answer".into()).spawn(read)
}

fn lock(heard: &Mutex<Heard>) -> std::sync::MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RandomizerProcess {
    /// Its seed.
    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    fn words(&self) -> Words<'_> {
        Words::of(&self.page.layout().header)
    }

    /// Windows that were opened beside this host so far.
    pub(crate) fn windows(&self) -> u64 {
        self.words().windows.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Time since it was started.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether it would open windows by now.
    pub(crate) fn is_at_work(&self) -> bool {
        self.words().at_work.load(std::sync::atomic::Ordering::SeqCst) != 0
    }

    /// How it goes, as it last said.
    pub(crate) fn progress(&self) -> Option<Progress> {
        lock(&self.heard).progress.as_ref().map(|(progress, _)| progress.clone())
    }

    /// Whether it said nothing for so long that it must be stopped or stuck.
    pub(crate) fn is_silent(&self) -> bool {
        match &lock(&self.heard).progress {
            Some((_, at)) => at.elapsed() > SILENCE,
            None => self.age() > SILENCE_AT_FIRST,
        }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.ended.is_none() && sys::has_ended(&self.child) {
            self.ended = self.child.wait().ok();
        }
        self.ended.is_some()
    }

    /// Waits for a moment until it has seen the end of its host.
    pub(crate) fn await_end(&mut self) {
        let began = Instant::now();
        while !self.has_ended() && began.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Gets it out of the way for as long as the guard lives. False when it did not let go in time and was killed.
    pub(crate) fn quiet(&mut self) -> (Quiet, bool) {
        let answered = self.words().ask(PATIENCE);
        if !answered {
            self.kill();
        }
        (Quiet(Arc::clone(&self.page)), answered)
    }

    /// Copies its log into a folder, up to the last window. Call while it is quiet.
    pub(crate) fn keep_log(&self, folder: &Path) -> io::Result<()> {
        if self.ended.is_none() {
            self.words().wait_until_rested(PATIENCE_WITH_LOG);
        }
        for from in [self.log.clone(), older(&self.log)] {
            let Some(name) = from.file_name() else { continue };
            match fs::copy(&from, folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Kills it and waits for its end: then every thread that it held has been resumed. Not for ever, because the kernel
    /// may not get on.
    pub(crate) fn kill(&mut self) {
        if !self.has_ended() {
            sys::kill_randomizer(&self.child);
            let began = Instant::now();
            while !self.has_ended() && began.elapsed() < DEATH {
                std::thread::sleep(Duration::from_micros(500));
            }
        }
        self.words().note_end_of_randomizer();
    }

    /// Asks it to end, waits for its report, and kills it if there is none in time.
    pub(crate) fn finish(mut self) -> RandomizerEnd {
        if !self.has_ended() {
            self.words().ask_to_end();
            self.await_end();
        }
        self.kill();
        let began = Instant::now();
        // Its pipes are closed with it, so the readers end.
        while !self.readers.iter().all(JoinHandle::is_finished) && began.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_micros(500));
        }
        let heard = std::mem::take(&mut *lock(&self.heard));
        let report: Option<Report> = serde_json::from_str(&heard.answer).ok();
        RandomizerEnd {
            progress: report
                .as_ref()
                .map(|report| report.progress.clone())
                .or(heard.progress.map(|(said, _)| said)),
            lived: self.age(),
            suspensions: suspensions(&self.page).saturating_sub(self.suspensions_before),
            reason: self.why_it_ended(&heard.answer, report.as_ref()),
            report,
        }
    }

    fn why_it_ended(&self, answer: &str, report: Option<&Report>) -> String {
        let error = serde_json::from_str::<serde_json::Value>(answer).ok();
        let error = error.as_ref().and_then(|value| value.get("error")?.as_str());
        match (error, report, self.ended) {
            (Some(error), _, _) => error.to_owned(),
            (None, Some(report), _) => report.ending.to_string(),
            (None, None, Some(status)) => format!("it {}", sys::describe_exit(status)),
            (None, None, None) => "it cannot be waited for".to_owned(),
        }
    }
}

fn suspensions(page: &Page) -> u64 {
    page.layout().header.suspensions.load(std::sync::atomic::Ordering::Relaxed)
}

fn older(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

impl Drop for RandomizerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
