//! What was seen becomes a finding: stacks are taken and named, the kind is decided, the signature computed.

use std::process::ExitStatus;
use std::time::Duration;

use waylay_control_protocol::Account;
use waylay_dist::Seed;
use waylay_evidence::signature::Signature as EvidenceSignature;
use waylay_evidence::{
    CaptureOptions, CodeAddress, CrashContext, Frame, MemoryMap, MemoryMapError, ProcessId, SchedulerState,
    StackEnd, Standstill, Symbolizer, ThreadId, ThreadStack, Wait, capture, capture_and_hold, render,
};
use waylay_page::HostPhase;
use waylay_page::record::{Received, Sort};

use super::draft::Draft;
use super::leaks::LeakSeen;
use super::scene::Scene;
use super::stopped::Stopped;
use crate::failure::{Finding, Kind, Occurrence, Signature};
use crate::host::{HostLog, StoppedBy};
use crate::last_words::own_assertion;
use crate::store::Keep;
use crate::sys;

/// A fault this near to the stack pointer is a stack overflow: no frame of real code skips more at once.
const OVERFLOW_DISTANCE: u64 = 1 << 20;

/// Takes evidence. Holds the names that were looked up before.
pub(crate) struct Investigator {
    symbolizer: Symbolizer,
    /// Where the code of the last host was: its failures can be named even when it is gone.
    last_map: Option<(ProcessId, MemoryMap)>,
}

impl Investigator {
    pub(crate) fn new(symbolizer: Symbolizer) -> Investigator {
        Investigator { symbolizer, last_map: None }
    }

    /// Remembers where a host's code is. Call when its plugins are loaded.
    pub(crate) fn note_code(&mut self, pid: u32) {
        // A host that is gone already has nothing that could be named.
        let _ = self.memory_map(ProcessId(pid));
    }

    /// Where the code of a host is, or was while it lived.
    fn memory_map(&mut self, process: ProcessId) -> Result<MemoryMap, MemoryMapError> {
        let now = MemoryMap::of(process);
        // A process that ends while its map is read has a part of it, and one that is not waited for yet an empty one.
        let is_whole = |map: &MemoryMap, before: &MemoryMap| {
            let code = before.mappings().iter().filter(|mapping| mapping.executable);
            code.into_iter().all(|mapping| map.find(mapping.start).is_some())
        };
        match (now, &self.last_map) {
            (Ok(map), Some((known, before))) if *known == process && !is_whole(&map, before) => {
                Ok(before.clone())
            }
            (Err(_), Some((known, before))) if *known == process => Ok(before.clone()),
            (Ok(map), _) => {
                self.last_map = Some((process, map.clone()));
                Ok(map)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// Where the code of a host was when it was last looked at.
    fn code_of(&self, process: ProcessId) -> MemoryMap {
        let last = self.last_map.as_ref().filter(|(known, _)| *known == process);
        last.map(|(_, map)| map.clone()).unwrap_or_default()
    }

    /// A failure that the test reported itself; the host goes on. `keep` says what is wanted of that signature.
    pub(crate) fn reported(
        &mut self,
        scene: &Scene<'_>,
        received: &Received,
        keep: impl FnOnce(&str) -> Keep,
    ) -> Draft {
        let test = scene.test_of_received(received);
        let mut gaps = Vec::new();
        let frames = match self.memory_map(scene.process()) {
            Ok(map) => self.symbolizer.resolve(&map, &return_addresses(&received.frames)),
            Err(error) => {
                gaps.push(format!("no stack: {error}"));
                Vec::new()
            }
        };
        let name = scene.test_name(test).unwrap_or_else(|| "the host".to_owned());
        let (kind, word) = match received.sort {
            Sort::Panic => (Kind::Assert, "panic"),
            Sort::Exception => (Kind::Exception, "exception"),
            _ => (Kind::Assert, "assert"),
        };
        let signature = EvidenceSignature::of_stack(word, &name, Some(&received.message), &frames);
        let signature = Signature::new(kind, signature);
        let wanted = matches!(keep(&signature.id), Keep::Stacks | Keep::Everything);
        let (stacks, still) = if wanted {
            self.stacks_with(scene, received.tid, frames, &mut gaps)
        } else {
            (Vec::new(), None)
        };
        let what = match received.sort {
            Sort::Panic => format!("panic: {}", received.message),
            _ if received.message.is_empty() => "the test reported a failure without a message".to_owned(),
            _ => received.message.clone(),
        };
        let occurrence = scene.of_received(received);
        let mut draft = self.draft(scene, kind, signature, what, test, occurrence, stacks, gaps);
        draft.still = still;
        draft
    }

    /// A fatal signal or a call of `exit`: the host is over.
    pub(crate) fn fatal(&mut self, scene: &Scene<'_>, received: &Received) -> Draft {
        let mut gaps = Vec::new();
        let crash = (received.sort == Sort::Fatal)
            .then(|| CrashContext::from_bytes(ThreadId(received.tid), &received.siginfo, &received.machine))
            .transpose()
            .unwrap_or_else(|error| {
                gaps.push(error.to_string());
                None
            });
        let options =
            CaptureOptions { crashed: crash.iter().cloned().collect(), ..CaptureOptions::default() };
        let (mut overflow, mut still) = (false, None);
        let mut stacks = match capture_and_hold(scene.process(), &options) {
            Ok((snapshot, held)) => {
                still = Some(held);
                let pointer = snapshot
                    .threads
                    .iter()
                    .find(|thread| thread.id.0 == received.tid)
                    .and_then(|thread| thread.context.registers())
                    .and_then(|registers| registers.stack());
                overflow = sys::may_be_overflow(received.signal)
                    && pointer.is_some_and(|pointer| pointer.abs_diff(received.address) < OVERFLOW_DISTANCE);
                self.symbolizer.stacks(&snapshot)
            }
            Err(error) => {
                gaps.push(format!("no stacks: {error}"));
                Vec::new()
            }
        };
        bring_first(&mut stacks, received.tid);
        let frames = stacks.first().map_or(&[][..], |stack| &stack.frames[..]);
        let calls = |name: &str| {
            frames.iter().any(|frame| frame.function.as_deref().is_some_and(|f| f.contains(name)))
        };
        let assertion = calls("__assert_fail");
        let by_libc = caller_of_abort(frames).is_some_and(sys::leaves_a_message);
        let signal = sys::signal_name(received.signal as i32);
        let message = received.message.trim();
        // Of several tests in one host, nothing says whose words they are.
        let alone = sys::is_abort(received.signal) && scene.assignment.plans.len() == 1;
        let own = alone.then(|| own_assertion(&caught_up(scene.log))).flatten();
        let (kind, word, what) = if received.sort == Sort::Exit {
            (
                Kind::Exit,
                "exit".to_owned(),
                format!("{}, which ends the whole process", nonempty(message, "the test called exit()")),
            )
        } else if overflow {
            (
                Kind::Crash,
                "stack overflow".to_owned(),
                format!("stack overflow ({signal} at {:#x})", received.address),
            )
        } else if assertion {
            (Kind::Assert, "assert".to_owned(), nonempty(message, "an assertion failed"))
        } else if calls("std::terminate") || calls("__terminate") || aborted_by_cpp_runtime(frames) {
            let what = last_words(scene.log).unwrap_or_else(|| "std::terminate was called".to_owned());
            // A thread that was neither joined nor detached ends in the same place, without an exception.
            match what.contains("without an active exception") {
                true => (Kind::Crash, "std::terminate".to_owned(), what),
                false => (Kind::Exception, "uncaught exception".to_owned(), what),
            }
        } else if let Some(said) = own.filter(|_| !by_libc) {
            (Kind::Assert, "assert".to_owned(), said)
        } else if sys::is_abort(received.signal) {
            let what = if message.is_empty() || !aborted_by_libc(frames) {
                "abort() was called".to_owned()
            } else {
                format!("aborted: {message}")
            };
            (Kind::Crash, format!("crash {signal}"), what)
        } else {
            let what = match &crash {
                Some(crash) if crash.fault_address.is_none() => format!("{signal} was raised or sent"),
                _ => format!("{signal} at address {:#x}", received.address),
            };
            (Kind::Crash, format!("crash {signal}"), what)
        };
        let test = scene.test_of_received(received).or_else(|| Self::guess_test(scene, frames));
        let name = scene.test_name(test).unwrap_or_else(|| "the host".to_owned());
        let said = assertion.then_some(message);
        let signature = Signature::new(kind, EvidenceSignature::of_stack(&word, &name, said, frames));
        let mut draft =
            self.draft(scene, kind, signature, what, test, scene.of_received(received), stacks, gaps);
        draft.crash = crash;
        draft.still = still;
        draft
    }

    /// A thread that belongs to no worker: the only test whose plugin is on its stack is to blame.
    pub(super) fn guess_test(scene: &Scene<'_>, frames: &[Frame]) -> Option<usize> {
        let on_stack = |test: &usize| {
            let plugin = &scene.assignment.plugins[scene.assignment.plans[*test].plugin];
            frames
                .iter()
                .any(|frame| frame.module.as_deref().is_some_and(|module| plugin.as_os_str() == module))
        };
        let mut candidates = (0..scene.assignment.plans.len()).filter(on_stack);
        let first = candidates.next();
        if candidates.next().is_none() { first } else { None }
    }

    /// The process ended without a word.
    pub(crate) fn vanished(&mut self, scene: &Scene<'_>, status: ExitStatus) -> Draft {
        let end = sys::describe_exit(status);
        let loading = HostPhase::load(&scene.layout.header.phase) < HostPhase::Running;
        let what = match sys::ending_signal(status) {
            Some(_) if sys::was_killed(status) => {
                "the host was killed by SIGKILL from outside: somebody, or the kernel because memory ran out"
                    .to_owned()
            }
            Some(_) => format!("the host {end} before anything could be seen"),
            None => format!("the host {end} without a word: _exit() or exec was called"),
        };
        let while_loading = if loading { ", while it was loading or starting tests" } else { "" };
        // Nobody but its tests makes a host exit; with one test it is clear which.
        let alone = scene.assignment.plans.len() == 1 && !sys::was_killed(status);
        let test = (alone && !loading).then_some(0);
        let owner = scene.test_name(test).map_or_else(String::new, |name| format!(" in {name}"));
        let signature = EvidenceSignature::from_text(format!("host {end}{owner}{while_loading}"));
        let kind = if sys::ending_signal(status).is_some() { Kind::Crash } else { Kind::Exit };
        let signature = Signature::new(kind, signature);
        let gaps = vec!["no stacks: the process was gone".to_owned()];
        let mut draft = self.draft(
            scene,
            kind,
            signature,
            format!("{what}{while_loading}"),
            test,
            scene.occurrence_of_slot(test, None, Seed::new(0)),
            Vec::new(),
            gaps,
        );
        draft.alive = false;
        draft
    }

    /// The control library stopped a schedule: no thread can run, or it does not come to its end.
    pub(crate) fn stopped(
        &mut self,
        scene: &Scene<'_>,
        verdict: StoppedBy,
        account: &Account,
        steps: u64,
        seed: Seed,
    ) -> Draft {
        let name = scene.test_name(Some(0)).unwrap_or_default();
        let Stopped { kind, what, known_by, reason } = Stopped::of(verdict, account, steps);
        let signature = EvidenceSignature::from_text(format!("{kind} in {name} {known_by}"));
        let occurrence = scene.occurrence_of_slot(Some(0), Some(0), scene.seed_of_slot(0, seed));
        let signature = Signature::new(kind, signature);
        let mut draft = self.draft(scene, kind, signature, what, Some(0), occurrence, Vec::new(), Vec::new());
        if reason.is_some() {
            draft.finding.reason = reason;
            draft.finding.stacks_text = account.text();
        }
        draft
    }

    /// Something that grows or was left behind.
    pub(crate) fn leak(&mut self, scene: &Scene<'_>, seen: LeakSeen) -> Draft {
        let mut gaps = Vec::new();
        let LeakSeen { test, what, reason, label, frames, threads, growth: _ } = seen;
        let mut stacks = Vec::new();
        if !frames.is_empty() {
            match self.memory_map(scene.process()) {
                Ok(map) => {
                    let frames = self.symbolizer.resolve(&map, &return_addresses(&frames));
                    stacks.push(given_stack("allocated here", frames));
                }
                Err(error) => gaps.push(format!("no stack: {error}")),
            }
        }
        let mut still = None;
        if !threads.is_empty() {
            let all;
            (all, still) = self.sample_and_hold(scene, &mut gaps);
            stacks.extend(all.into_iter().filter(|stack| threads.contains(&stack.id.0)));
        }
        let name = scene.test_name(test).unwrap_or_else(|| "several tests together".to_owned());
        let frames = stacks.first().map_or(&[][..], |stack| &stack.frames[..]);
        let signature = Signature::new(Kind::Leak, EvidenceSignature::of_stack(&label, &name, None, frames));
        let occurrence = scene.occurrence_of_slot(test, None, Seed::new(0));
        let mut draft = self.draft(scene, Kind::Leak, signature, what, test, occurrence, stacks, gaps);
        draft.finding.reason = reason;
        draft.still = still;
        draft
    }

    /// All stacks of a host that goes on at once.
    pub(super) fn sample(&mut self, scene: &Scene<'_>, gaps: &mut Vec<String>) -> Vec<ThreadStack> {
        match capture(scene.process(), &CaptureOptions::default()) {
            Ok(snapshot) => self.symbolizer.stacks(&snapshot),
            Err(error) => {
                let gap = format!("no stacks: {error}");
                if !gaps.contains(&gap) {
                    gaps.push(gap);
                }
                Vec::new()
            }
        }
    }

    /// All stacks of a host that stands still until its dump is written.
    pub(super) fn sample_and_hold(
        &mut self,
        scene: &Scene<'_>,
        gaps: &mut Vec<String>,
    ) -> (Vec<ThreadStack>, Option<Standstill>) {
        match capture_and_hold(scene.process(), &CaptureOptions::default()) {
            Ok((snapshot, still)) => (self.symbolizer.stacks(&snapshot), Some(still)),
            Err(error) => {
                let gap = format!("no stacks: {error}");
                if !gaps.contains(&gap) {
                    gaps.push(gap);
                }
                (Vec::new(), None)
            }
        }
    }

    /// All stacks, the failing thread first and with the frames that it reported itself.
    fn stacks_with(
        &mut self,
        scene: &Scene<'_>,
        tid: u32,
        frames: Vec<Frame>,
        gaps: &mut Vec<String>,
    ) -> (Vec<ThreadStack>, Option<Standstill>) {
        let (mut stacks, still) = self.sample_and_hold(scene, gaps);
        bring_first(&mut stacks, tid);
        match stacks.first_mut().filter(|stack| stack.id.0 == tid) {
            Some(stack) if !frames.is_empty() => stack.frames = frames,
            Some(_) => {}
            None if !frames.is_empty() => stacks.insert(0, given_stack("failed here", frames)),
            None => {}
        }
        (stacks, still)
    }

    #[allow(clippy::too_many_arguments)] // one place that puts a finding together from what the four paths found
    pub(super) fn draft(
        &self,
        scene: &Scene<'_>,
        kind: Kind,
        signature: Signature,
        what: String,
        test: Option<usize>,
        occurrence: Occurrence,
        stacks: Vec<ThreadStack>,
        gaps: Vec<String>,
    ) -> Draft {
        let finding = Finding {
            kind,
            signature,
            what,
            reason: None,
            test: scene.test_name(test),
            plugin: scene.plugin(test),
            occurrence,
            stacks_text: render::stacks(&stacks, render::RenderOptions::default()),
            stacks,
            log_tail: scene.log.tail(),
            gaps,
            code: self.code_of(scene.process()),
            why: Default::default(),
        };
        Draft { finding, crash: None, test, alive: true, shelved: None, still: None }
    }
}

/// Unwinders end a walk with a zero.
fn return_addresses(frames: &[u64]) -> Vec<CodeAddress> {
    frames.iter().filter(|pc| **pc != 0).map(|pc| CodeAddress::Return(*pc)).collect()
}

fn nonempty(text: &str, otherwise: &str) -> String {
    if text.is_empty() { otherwise.to_owned() } else { text.to_owned() }
}

fn bring_first(stacks: &mut [ThreadStack], tid: u32) {
    if let Some(position) = stacks.iter().position(|stack| stack.id.0 == tid) {
        stacks[..=position].rotate_right(1);
    }
}

/// A stack that was handed over as addresses.
fn given_stack(name: &str, frames: Vec<Frame>) -> ThreadStack {
    ThreadStack {
        id: ThreadId(0),
        name: name.to_owned(),
        scheduled: None,
        crashed: false,
        state: SchedulerState::Other,
        syscall: None,
        wait: Wait::No,
        cpu_ns: 0,
        wakeups: 0,
        frames,
        omitted: None,
        end: StackEnd::Root,
    }
}

/// The module whose code called `abort`, if that is known.
fn caller_of_abort(frames: &[Frame]) -> Option<&str> {
    let is_abort = |frame: &Frame| frame.function.as_deref() == Some("abort");
    let caller = frames.iter().skip_while(|frame| !is_abort(frame)).find(|frame| !is_abort(frame));
    caller.and_then(|frame| frame.module.as_deref())
}

/// Whether `abort` was called by the C++ runtime, whose inner functions have no names in a stripped library.
fn aborted_by_cpp_runtime(frames: &[Frame]) -> bool {
    let module = caller_of_abort(frames).unwrap_or_default();
    ["libstdc++", "libc++"].iter().any(|runtime| module.contains(runtime))
}

/// Whether `abort` was called by libc itself, which leaves a message. There is one place for all threads: the message
/// that is found there when the program called `abort` is another thread's.
fn aborted_by_libc(frames: &[Frame]) -> bool {
    caller_of_abort(frames).is_none_or(sys::leaves_a_message)
}

/// What the C++ runtime printed before it aborted.
fn last_words(log: &HostLog) -> Option<String> {
    terminate_message(&caught_up(log))
}

/// The end of the log: what was printed is in the pipe, but perhaps not read yet.
fn caught_up(log: &HostLog) -> String {
    const CATCH_UP: Duration = Duration::from_secs(2);
    log.catch_up(CATCH_UP);
    log.tail()
}

/// What libstdc++ prints before it aborts, on one line. When several threads came to that, nothing says which of the
/// messages is whose.
fn terminate_message(log: &str) -> Option<String> {
    let mut messages: Vec<String> = Vec::new();
    for (at, _) in log.match_indices("terminate called") {
        let mut lines = log[at..].lines();
        let first = lines.next().unwrap_or_default().trim();
        let what = lines.next().map(str::trim).filter(|line| line.starts_with("what():"));
        let message = match what {
            Some(what) => format!("{first}, {what}"),
            None => first.to_owned(),
        };
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    (!messages.is_empty()).then(|| messages.join(", or "))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use waylay_evidence::Trust;

    use super::*;

    /// Two tests of one host abort at once, and the message of one of them is there.
    #[test]
    fn only_libc_leaves_a_message_when_it_aborts() {
        let frame = |function: Option<&str>, module: &str| Frame {
            function: function.map(str::to_owned),
            function_offset: None,
            module: Some(module.to_owned()),
            offset: 1,
            address: 2,
            file: None,
            line: None,
            inlined: false,
            trust: Trust::Tables,
        };
        let libc = "/lib/x86_64-linux-gnu/libc.so.6";
        let abort = || vec![frame(Some("raise"), libc), frame(Some("abort"), libc)];
        let called_by = |module: &str| [abort(), vec![frame(None, module)]].concat();
        assert!(aborted_by_libc(&called_by(libc)), "free(): invalid pointer");
        assert!(!aborted_by_libc(&called_by("/plugins/libmine.so")));
        assert!(aborted_by_libc(&abort()), "nobody knows");
    }
}
