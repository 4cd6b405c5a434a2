//! Whatever ends a campaign, it ends in order, and no process of it stays.

use std::collections::BTreeSet;
use std::fs;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Console::{
    CTRL_BREAK_EVENT, CTRL_C_EVENT, CTRL_CLOSE_EVENT, CTRL_SHUTDOWN_EVENT,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::Threading::{OpenThread, SuspendThread, THREAD_SUSPEND_RESUME};

use crate::in_turn;
use crate::place::Place;
use crate::system::{console_event, processes};

const PATIENCE: Duration = Duration::from_secs(120);

/// A test that never fails and never ends by itself.
fn endless(mode: &str) -> Place {
    Place::with(&format!(
        "[[scenario]]\nname = \"s\"\nduration = \"280s\"\nmode = \"{mode}\"\n\
         [[scenario.test]]\nplugin = \"waylay_libraries\"\nname = \"map\"\n",
    ))
}

fn start(place: &Place) -> (Child, Family) {
    let before = processes().into_iter().map(|(pid, _)| pid).collect();
    let log = fs::File::create(place.path.join("stderr.txt")).expect("a file");
    let mut command = place.command(&["run", "waylay.toml", "--json"]);
    command.stdout(Stdio::null()).stderr(log);
    let child = command.spawn().expect("the command starts");
    let family = Family { root: child.id(), before, known: BTreeSet::new() };
    (child, family)
}

fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes that descend from one.
struct Family {
    root: u32,
    /// Those that were there before: the number of a parent that has ended may since be that of one of ours.
    before: BTreeSet<u32>,
    /// Those that live, and the root, whose number is kept by who holds it.
    known: BTreeSet<u32>,
}

impl Family {
    /// As far as their parents were seen alive.
    fn descendants(&mut self) -> Vec<u32> {
        let all: Vec<_> = processes().into_iter().filter(|(pid, _)| !self.before.contains(pid)).collect();
        self.known.retain(|pid| all.iter().any(|(alive, _)| alive == pid));
        self.known.insert(self.root);
        // Parents are listed in any order.
        for _ in 0..4 {
            let children = all.iter().filter(|(_, parent)| self.known.contains(parent)).map(|(pid, _)| *pid);
            let children: Vec<_> = children.collect();
            self.known.extend(children);
        }
        self.known.iter().copied().filter(|pid| *pid != self.root).collect()
    }

    fn nobody_stays(&mut self) {
        until("no process stays", || self.descendants().is_empty());
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("the command ends", || {
        status = child.try_wait().expect("waited");
        status.is_some()
    });
    status.expect("ended")
}

/// The record of the only campaign, once its host has started tests.
fn record(place: &Place) -> Option<Value> {
    let campaign = place.campaigns().pop()?;
    serde_json::from_slice(&fs::read(campaign.join("campaign.json")).ok()?).ok()
}

/// Until so many processes are at work: a host, with a randomizer and its watchdog three.
fn until_at_work(place: &Place, family: &mut Family, count: usize) {
    until("its processes are at work", || family.descendants().len() >= count);
    until("there is a campaign", || record(place).is_some());
    // A campaign that is ended before its first iteration says that nothing ran; a host needs most of a second to come to it.
    std::thread::sleep(Duration::from_secs(3));
}

#[test]
fn ctrl_c_ctrl_break_and_the_end_of_the_console_end_a_campaign_in_order() {
    for event in [CTRL_C_EVENT, CTRL_BREAK_EVENT, CTRL_CLOSE_EVENT, CTRL_SHUTDOWN_EVENT] {
        let _turn = in_turn();
        let place = endless("free");
        let (mut child, mut family) = start(&place);
        until_at_work(&place, &mut family, 1);
        console_event(child.id(), event);
        let status = wait(&mut child);
        let said = fs::read_to_string(place.path.join("stderr.txt")).unwrap_or_default();
        let record = record(&place).expect("a record");
        assert_eq!(record["state"], "stopped", "event {event}: {said}\n{record:#}");
        assert_eq!(status.code(), Some(0), "event {event}: {said}");
        family.nobody_stays();
    }
}

/// A console that closes tells all processes in it, and Ctrl-Break does, too: what the host does is for the driver to say.
#[test]
fn a_host_leaves_console_events_to_its_driver() {
    let _turn = in_turn();
    let place = Place::with(
        "[[scenario]]\nname = \"s\"\nduration = \"4s\"\n[[scenario.test]]\nplugin = \"waylay_libraries\"\nname = \"map\"\n",
    );
    let (mut child, mut family) = start(&place);
    let mut hosts = Vec::new();
    until("a host is at work", || {
        hosts = family.descendants();
        !hosts.is_empty() && place.host_log().contains("host")
    });
    for event in [CTRL_BREAK_EVENT, CTRL_CLOSE_EVENT] {
        hosts.iter().for_each(|host| console_event(*host, event));
    }
    let status = wait(&mut child);
    let said = fs::read_to_string(place.path.join("stderr.txt")).unwrap_or_default();
    assert_eq!(status.code(), Some(0), "{said}\n{}", place.host_log());
    family.nobody_stays();
}

/// It is stopped with threads in its hands, as a debugger would do it: the driver kills it, the watchdog lets go of the
/// threads, another one takes its place, and nobody is blamed.
#[test]
fn a_randomizer_that_stands_still_is_replaced_and_lets_go() {
    let _turn = in_turn();
    let place = Place::with(
        "[[scenario]]\nname = \"s\"\nduration = \"20s\"\n\
         [scenario.randomizer]\nperiod = \"1ms\"\nsuspend = \"50ms\"\ncount = 8\n\
         [[scenario.test]]\nplugin = \"waylay_libraries\"\nname = \"map\"\nhang-timeout = \"30s\"\n",
    );
    let (mut child, mut family) = start(&place);
    until_at_work(&place, &mut family, 3);
    // The one that has a child of its own: its watchdog.
    let all = processes();
    let parents: BTreeSet<u32> =
        all.iter().filter(|(pid, _)| family.known.contains(pid)).map(|(_, parent)| *parent).collect();
    let randomizer =
        *family.known.iter().find(|pid| **pid != child.id() && parents.contains(pid)).expect("a randomizer");
    stop(randomizer);
    let status = wait(&mut child);
    let said = fs::read_to_string(place.path.join("stderr.txt")).unwrap_or_default();
    let record = record(&place).expect("a record");
    assert_eq!(status.code(), Some(0), "{said}\n{}", place.host_log());
    let tally = &record["scenarios"][0]["randomizer"];
    assert!(tally["restarted"].as_u64().is_some_and(|count| count > 0), "{tally:#}\n{said}");
    family.nobody_stays();
}

/// Suspends all threads of a process.
fn stop(pid: u32) {
    // SAFETY: returns a new handle or an invalid one.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) };
    assert_ne!(snapshot, INVALID_HANDLE_VALUE);
    // SAFETY: just made, owned by nobody else.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(snapshot) };
    let mut entry = THREADENTRY32 { dwSize: size_of::<THREADENTRY32>() as u32, ..Default::default() };
    let mut stopped = 0;
    // SAFETY: the entry says its own size and lives across the calls; the handle is checked before it is used.
    unsafe {
        let mut more = Thread32First(snapshot.as_raw_handle(), &mut entry) != 0;
        while more {
            let thread = match entry.th32OwnerProcessID == pid {
                true => OpenThread(THREAD_SUSPEND_RESUME, 0, entry.th32ThreadID),
                false => std::ptr::null_mut(),
            };
            if !thread.is_null() {
                let thread = OwnedHandle::from_raw_handle(thread);
                stopped += usize::from(SuspendThread(thread.as_raw_handle()) != u32::MAX);
            }
            more = Thread32Next(snapshot.as_raw_handle(), &mut entry) != 0;
        }
    }
    assert!(stopped > 0, "no thread of {pid} was stopped");
}

/// At moments that differ: while plugins are loaded, while processes start, while threads are suspended.
#[test]
fn a_driver_that_is_killed_at_any_moment_leaves_no_process() {
    let _turn = in_turn();
    let mut seen = 0;
    for turn in 0..8u64 {
        let place = endless("randomized");
        let (mut child, mut family) = start(&place);
        if turn % 4 == 3 {
            until_at_work(&place, &mut family, 3);
        }
        let end = Instant::now() + Duration::from_millis(turn * 137 % 900);
        while Instant::now() < end {
            family.descendants();
        }
        seen += family.descendants().len();
        child.kill().expect("killed");
        child.wait().expect("waited");
        family.nobody_stays();
    }
    assert!(seen >= 6, "only {seen} processes were there to stay");
}
