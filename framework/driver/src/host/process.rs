//! Starting a host, talking to it, and ending it with everything that it started.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use waylay_dist::Seed;
use waylay_host::description::PluginDescription;
use waylay_host::event::Event;
use waylay_host::plan::{Plan, RunPlan, TestPlan, TrialPlan};
use waylay_leaks::SharedRegion;
use waylay_leaks::region::{Sampling, preload};
use waylay_page::{Clock, Command as HostOrder, HostPhase, Layout, Page, wait_until_changed, wake_all};

use super::events::Events;
use super::log::HostLog;
use super::region::ControlRegion;
use super::witness::{Contradiction, Witness};
use crate::scratch::Scratch;
use crate::sys::{self, Cage};

/// Longest wait for what a host printed before its end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Pause between two looks whether a process that is waited for lives.
const GLANCE: Duration = Duration::from_millis(50);
/// How often a process that somebody kills is started to describe a plugin.
const ATTEMPTS_TO_DESCRIBE: u32 = 3;
/// Bytes that are read of what a constructor prints.
const MOST_WORDS: u64 = 1 << 20;

/// How long a host may take to read its plan: it has to be loaded first, and may wait for a processor.
const READING: Duration = Duration::from_secs(60);
/// How long a host that was killed may take to be gone: the kernel may have to write pages back or to free much memory.
const DEATH: Duration = Duration::from_secs(20);

/// How to start a host.
#[derive(Clone, Debug)]
pub(crate) struct HostCommand {
    /// The waylay command itself.
    pub(crate) executable: PathBuf,
    /// The control library, to be loaded before anything else; none when it was not found.
    pub(crate) control: Option<PathBuf>,
}

/// What a host is to run.
pub(crate) struct HostTask {
    pub(crate) seed: Seed,
    pub(crate) plugins: Vec<PathBuf>,
    pub(crate) tests: Vec<TestPlan>,
    /// Let the process outlive the driver when it is kept for a debugger.
    pub(crate) keep_when_orphaned: bool,
    /// Schedule after schedule of the one test.
    pub(crate) strict: bool,
    /// For a comparison.
    pub(crate) trial: Option<TrialPlan>,
}

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a host ({}): {source}", .executable.display())]
pub(crate) struct StartError {
    executable: PathBuf,
    source: io::Error,
}

/// Why there is no description of a plugin.
struct Refused {
    why: String,
    /// Somebody else killed the process before it could answer.
    killed: bool,
}

impl Refused {
    fn because(why: String) -> Refused {
        Refused { why, killed: false }
    }
}

/// A running host. Dropping it kills it and everything that it started.
pub(crate) struct HostProcess {
    child: Child,
    status: Option<ExitStatus>,
    kept: bool,
    page: Arc<Page>,
    witness: Witness,
    heap: Option<SharedRegion>,
    /// What holds everything that it starts, where that is allowed.
    cage: Option<Cage>,
    /// Where its temporary files are.
    scratch: Option<Scratch>,
    events: Events,
    /// Processes that its tests left behind and that were ended.
    orphans: Vec<String>,
    /// The threads that read what it prints and reports, until its pipes are closed.
    listeners: Vec<JoinHandle<()>>,
}

impl HostCommand {
    /// Whether hosts can tell where memory was allocated.
    pub(crate) fn accounts_heap(&self) -> bool {
        self.control.is_some() || !sys::HEAP_NEEDS_LIBRARY
    }

    fn start_error(&self) -> impl FnOnce(io::Error) -> StartError {
        let executable = self.executable.clone();
        move |source| StartError { executable, source }
    }

    /// Starts a process with the plan on its standard input. The plan learns the number of the event pipe.
    fn launch(
        &self,
        inherited: Vec<i32>,
        adjust: impl FnOnce(&mut Command),
        plan: impl FnOnce(i64) -> Plan,
    ) -> io::Result<(Child, Events, JoinHandle<()>)> {
        let (reader, writer) = sys::pipe()?;
        let mut command = Command::new(&self.executable);
        command.arg("host").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut inherited = inherited;
        inherited.push(sys::raw(&writer));
        sys::prepare(&mut command, inherited);
        sys::give_back_mask(&mut command);
        adjust(&mut command);
        let mut child = command.spawn()?;
        let text = serde_json::to_vec(&plan(i64::from(sys::raw(&writer))))?;
        drop(writer);
        let stdin = child.stdin.take().expect("stdin is piped");
        // A host that was killed before it read its plan is one that vanished, as at any other moment of its life.
        if let Err(error) = hand_over(stdin, text)
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            end(&mut child);
            return Err(error);
        }
        let (events, listener) = Events::follow(File::from(reader))?;
        Ok((child, events, listener))
    }

    /// Loads a plugin in a process of its own and says what is inside, or why not, in words that name the file.
    pub(crate) fn describe(&self, plugin: &Path, limit: Duration) -> Result<PluginDescription, String> {
        // Somebody who kills the process, as the kernel does when memory runs out, says nothing about the plugin.
        for _ in 1..ATTEMPTS_TO_DESCRIBE {
            match self.describe_once(plugin, limit) {
                Err(Refused { killed: true, .. }) => {}
                answer => return answer.map_err(|refused| refused.why),
            }
        }
        self.describe_once(plugin, limit).map_err(|refused| refused.why)
    }

    fn describe_once(&self, plugin: &Path, limit: Duration) -> Result<PluginDescription, Refused> {
        let path = plugin.to_owned();
        // What a constructor starts must not outlive it either.
        sys::adopt_orphans();
        let cage = Cage::new();
        let (mut child, events, _) = self
            .launch(
                Vec::new(),
                // A plugin that was compiled for it calls functions of the control library from its constructors on.
                |command| {
                    if let Some(cage) = &cage {
                        cage.take_in(command);
                    }
                    if let Some(control) = &self.control {
                        preload(command, control);
                    }
                },
                |events| Plan::Describe { plugin: path, events },
            )
            .map_err(|error| Refused::because(self.start_error()(error).to_string()))?;
        // The output of a plugin's constructors is of no interest here, but must not block them.
        let mut stderr = child.stderr.take().expect("stderr is piped");
        let mut stdout = child.stdout.take().expect("stdout is piped");
        let (said, words) = std::sync::mpsc::channel();
        let reader = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let readers = reader("waylay-stdout").spawn(move || io::copy(&mut stdout, &mut io::sink()));
        let readers = readers.and_then(|_| {
            reader("waylay-stderr").spawn(move || {
                let mut text = Vec::new();
                let _ = (&mut stderr).take(MOST_WORDS).read_to_end(&mut text);
                let _ = said.send(String::from_utf8_lossy(&text).into_owned());
                io::copy(&mut stderr, &mut io::sink())
            })
        });
        if let Err(error) = readers {
            end(&mut child);
            let why = format!("cannot start a thread that reads what {} prints: {error}", plugin.display());
            return Err(Refused::because(why));
        }

        let began = Instant::now();
        let answer = first_answer(&child, &events, limit);
        if let Err(RecvTimeoutError::Disconnected) = answer {
            // How it ends is part of the answer; a constructor may also have closed the pipe and gone on.
            while !sys::has_ended(&child) && began.elapsed() < limit {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        // Everything that a constructor started goes, too, and its destructors do not run: both could hang.
        let had_ended = sys::has_ended(&child);
        let status = end(&mut child);
        drop(cage);
        sys::end_orphans(&child);
        match answer {
            Ok(Event::Described { plugin }) => Ok(plugin),
            Ok(Event::PluginRefused { reason, .. }) => Err(Refused::because(reason)),
            Ok(other) => Err(Refused::because(format!("{}: unexpected answer {other:?}", plugin.display()))),
            Err(RecvTimeoutError::Timeout) => Err(Refused::because(format!(
                "{}: did not finish loading within {limit:?}: a constructor of the library hangs",
                plugin.display()
            ))),
            Err(RecvTimeoutError::Disconnected) => {
                let killed = had_ended && status.is_some_and(sys::was_killed);
                let end = status.map_or_else(|| "did not end".to_owned(), sys::describe_exit);
                // A process that it started may hold the pipe for ever.
                let words = words.recv_timeout(LAST_WORDS).unwrap_or_default();
                let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                let quoted = if last.is_empty() { String::new() } else { format!(" (it printed: {last})") };
                let why = format!(
                    "{}: the process that loaded it {end}: a constructor of the library crashed or ended the \
                     process, or the file is damaged{quoted}; load it under a debugger: {} {} doctor {}",
                    plugin.display(),
                    sys::DEBUGGER,
                    self.executable.display(),
                    plugin.display()
                );
                Err(Refused { why, killed })
            }
        }
    }

    /// Starts a host that runs tests; what it prints goes to `log`. `heap` is the sampling distance in bytes.
    pub(crate) fn start(
        &self,
        task: HostTask,
        clock: &Clock,
        log: &HostLog,
        heap: Option<u64>,
        control: Option<&ControlRegion>,
    ) -> Result<HostProcess, StartError> {
        let start = || -> io::Result<HostProcess> {
            let page = Page::create(clock)?;
            let witness = Witness::new(clock, task.plugins.len(), &task.tests, task.strict)?;
            let region = match heap.filter(|_| self.accounts_heap()) {
                Some(period) => Some((SharedRegion::create().map_err(io::Error::other)?, period)),
                None => None,
            };
            // A disk without room for a folder has none for temporary files either; that is the test's to tell.
            let scratch = Scratch::create().ok();
            let cage = Cage::new();
            let attach = |command: &mut Command| {
                if let Some(cage) = &cage {
                    cage.take_in(command);
                }
                if let Some(scratch) = &scratch {
                    scratch.announce(command);
                }
                if let Some((region, period)) = &region {
                    region.announce(command, Sampling { period: *period, ..Sampling::default() });
                }
                // Without accounting the library still tells whose a thread is.
                if let Some(control) = &self.control {
                    preload(command, control);
                }
                if let Some(region) = control {
                    region.announce(command);
                }
            };
            let page_handle = page.handle().raw();
            let mut inherited = vec![page_handle];
            inherited.extend(control.map(ControlRegion::descriptor));
            let (mut child, events, listener) = self.launch(inherited, attach, |events| {
                let HostTask { seed, plugins, tests, keep_when_orphaned, strict, trial } = task;
                let page = i64::from(page_handle);
                Plan::Run(RunPlan { page, events, seed, keep_when_orphaned, plugins, tests, strict, trial })
            })?;
            // What tests send to us is not the user's wish.
            waylay_interrupt::disregard(child.id());
            log.begin_host(child.id());
            let stdout = log.follow(child.stdout.take().expect("stdout is piped"));
            let stderr = log.follow(child.stderr.take().expect("stderr is piped"));
            let listeners = stdout.into_iter().chain(stderr).chain([listener]).collect();
            let heap = region.map(|(region, _)| region);
            let page = Arc::new(page);
            let orphans = Vec::new();
            Ok(HostProcess {
                child,
                status: None,
                kept: false,
                page,
                witness,
                heap,
                cage,
                scratch,
                events,
                orphans,
                listeners,
            })
        };
        start().map_err(self.start_error())
    }
}

/// What a process says first. One that has ended says no more, whoever else holds its pipe.
fn first_answer(child: &Child, events: &Events, limit: Duration) -> Result<Event, RecvTimeoutError> {
    let began = Instant::now();
    loop {
        let left = limit.saturating_sub(began.elapsed());
        match events.next(left.min(GLANCE)) {
            Err(RecvTimeoutError::Timeout) if sys::has_ended(child) => {
                let last = events.next(LAST_WORDS);
                return last.map_err(|_| RecvTimeoutError::Disconnected);
            }
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            answer => return answer,
        }
    }
}

/// Kills a process and everything that it started, and waits for its end, but not for ever.
fn end(child: &mut Child) -> Option<ExitStatus> {
    sys::kill_group(child);
    let began = Instant::now();
    while !sys::has_ended(child) {
        if began.elapsed() > DEATH {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait().ok()
}

/// Hands a plan over. It may be larger than what a pipe holds, and its reader may be stopped.
fn hand_over(mut stdin: ChildStdin, plan: Vec<u8>) -> io::Result<()> {
    let (done, outcome) = std::sync::mpsc::channel();
    let write = move || {
        let _ = done.send(stdin.write_all(&plan));
    };
    std::thread::Builder::new().name("waylay-plan".into()).spawn(write)?;
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the host does not read its plan");
    outcome.recv_timeout(READING).map_err(late)?
}

impl HostProcess {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn layout(&self) -> &Layout {
        self.page.layout()
    }

    /// The shared page, for whoever outlives a borrow of this.
    pub(crate) fn page(&self) -> &Arc<Page> {
        &self.page
    }

    pub(crate) fn heap(&self) -> Option<&SharedRegion> {
        self.heap.as_ref()
    }

    /// Looks at what the host shows, and believes it unless it cannot be.
    pub(crate) fn observe(&mut self) -> Result<(), Contradiction> {
        self.witness.observe(&self.page)?;
        self.events.contradiction()
    }

    /// What was last believed of the host: its counters, and what its tests and workers were doing.
    pub(crate) fn believed(&self) -> &Layout {
        self.witness.believed()
    }

    /// What the host reported since the last call.
    pub(crate) fn drain_events(&self) -> Vec<Event> {
        self.events.drain()
    }

    /// Everything that a host which has ended reported and nobody has taken yet.
    pub(crate) fn remaining_events(&self, limit: Duration) -> Vec<Event> {
        self.events.remaining(limit)
    }

    /// How the process ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() && sys::has_ended(&self.child) {
            // What it started does not outlive it. Only now, while it is not waited for, is the group's number its own.
            sys::kill_group(&self.child);
            self.bury();
        }
        self.status
    }

    /// Whether a host that ended did so as its page says: it leaves when it is told to, and not by a signal or with an error.
    pub(crate) fn left_as_it_says(&self, status: ExitStatus) -> Result<(), Contradiction> {
        if HostPhase::load(&self.layout().header.phase) != HostPhase::Left {
            return Ok(());
        }
        // Whoever is killed from outside between the two does not contradict himself.
        let in_order = status.success() || sys::was_killed(status);
        match self.was_told_to_leave() && in_order {
            true => Ok(()),
            false => {
                Err(Contradiction(format!("the host left in order, and it {}", sys::describe_exit(status))))
            }
        }
    }

    /// Processes that its tests left behind and that were ended since the last call.
    pub(crate) fn take_orphans(&mut self) -> Vec<String> {
        std::mem::take(&mut self.orphans)
    }

    fn bury(&mut self) {
        self.status = self.child.wait().ok();
        // Named while they live; who is their parent does not matter.
        let host = self.child.id();
        self.orphans.extend(self.cage.iter().flat_map(|cage| cage.kill(host)));
        let others = sys::end_orphans(&self.child);
        let known = |name: &String| self.orphans.contains(name);
        let others: Vec<String> = others.into_iter().filter(|name| !known(name)).collect();
        self.orphans.extend(others);
        self.hear_out();
    }

    /// Waits until the last words of a host that is gone are in the log, and its last events were read. A process that it started and that left its
    /// group may hold the pipe for ever, so not for long.
    fn hear_out(&self) {
        let began = Instant::now();
        while !self.listeners.iter().all(JoinHandle::is_finished) && began.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the host rings, or the time is over. `seen` is the doorbell's count before the last look.
    pub(crate) fn wait_for_bell(&self, seen: u32, limit: Duration) {
        wait_until_changed(&self.layout().header.doorbell, seen, Some(limit));
    }

    /// Tells the host to cancel and end all tests.
    pub(crate) fn cancel(&self) {
        self.order(HostOrder::Cancel);
    }

    fn order(&self, order: HostOrder) {
        self.witness.orders.borrow_mut().command = Some(order);
        let command = &self.layout().header.command;
        order.store(command);
        wake_all(command);
    }

    /// Whether the host was told to leave.
    pub(crate) fn was_told_to_leave(&self) -> bool {
        self.witness.orders.borrow().command == Some(HostOrder::Leave)
    }

    /// Whether the host was told to create its first test.
    pub(crate) fn may_go(&self) -> bool {
        self.witness.orders.borrow().go
    }

    /// Tells the host to cancel and end one test.
    pub(crate) fn cancel_test(&self, test: usize) {
        self.witness.orders.borrow_mut().cancelled.insert(test);
        HostOrder::Cancel.store(&self.layout().tests[test].command);
        wake_all(&self.layout().header.command);
    }

    /// Kills the host and everything that it started, and waits for its end; not for ever, because another process may
    /// trace it, or the kernel may not get on.
    pub(crate) fn kill(&mut self) {
        if self.status.is_some() || self.kept {
            return;
        }
        let began = Instant::now();
        sys::kill_group(&self.child);
        while !sys::has_ended(&self.child) && began.elapsed() < DEATH {
            std::thread::sleep(Duration::from_millis(1));
            sys::let_go(&self.child);
        }
        if sys::has_ended(&self.child) {
            self.bury();
        }
    }

    /// Lets the host create its first test.
    pub(crate) fn go(&self) {
        self.witness.orders.borrow_mut().go = true;
        let go = &self.layout().header.go;
        go.store(1, Ordering::Release);
        wake_all(go);
    }

    /// Lets a host that has ended all tests exit.
    pub(crate) fn leave(&self) {
        self.order(HostOrder::Leave);
    }

    /// Leaves the process alone for a debugger.
    pub(crate) fn keep(&mut self) -> u32 {
        self.witness.orders.borrow_mut().kept = true;
        self.layout().header.kept.store(1, Ordering::Release);
        self.scratch.as_mut().map(Scratch::keep);
        self.cage.as_mut().map(Cage::open);
        sys::let_outlive_us();
        self.kept = true;
        self.pid()
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The plan does not fit a pipe, so that writing it ends only when its reader is gone.
    #[test]
    fn a_host_that_dies_before_it_reads_its_plan_has_vanished_and_is_no_error_of_ours() {
        let folder = tempfile::tempdir().unwrap();
        let log = HostLog::create(&folder.path().join("host.log"), 10_000).unwrap();
        let at_once = if cfg!(windows) { "hostname.exe" } else { "/bin/true" };
        let command = HostCommand { executable: at_once.into(), control: None };
        let test = |number: usize| TestPlan {
            plugin: 0,
            name: format!("test {number} {}", "x".repeat(1000)),
            params: BTreeMap::new(),
            workers: Vec::new(),
            contained: None,
            combiner: None,
        };
        let mut host = start(&command, &log, (0..500).map(test).collect());
        wait_for_end(&mut host);
    }

    fn start(command: &HostCommand, log: &HostLog, tests: Vec<TestPlan>) -> HostProcess {
        let task = HostTask {
            seed: Seed::new(1),
            plugins: Vec::new(),
            tests,
            keep_when_orphaned: false,
            strict: false,
            trial: None,
        };
        command.start(task, &Clock::calibrate(), log, None, None).unwrap()
    }

    fn wait_for_end(host: &mut HostProcess) {
        let began = Instant::now();
        while host.ended().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "it is not seen to have ended");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Its last events are still in the pipe when it is gone, and reading them takes a while.
    #[cfg(target_os = "linux")]
    #[test]
    fn everything_that_a_host_reported_is_there_when_it_has_ended() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let line = serde_json::to_string(&Event::Exhausted { test: 0 }).unwrap() + "\n";
        std::fs::write(folder.path().join("lines"), line.repeat(20_000)).unwrap();
        let script = folder.path().join("host");
        let text = format!(
            "#!/bin/sh\npipe=$(sed 's/.*\"events\":\\([0-9]*\\).*/\\1/')\ncat '{}' >/proc/self/fd/$pipe\n",
            folder.path().join("lines").display()
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let log = HostLog::create(&folder.path().join("host.log"), 10_000).unwrap();
        let command = HostCommand { executable: script, control: None };
        let mut host = start(&command, &log, Vec::new());
        wait_for_end(&mut host);
        assert_eq!(host.drain_events().len(), 20_000, "{}", log.tail());
    }
}
