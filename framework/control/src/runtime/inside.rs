//! Descriptors whose two ends nobody but this process can have.
//!
//! A thread that waits for such a pipe, pair of sockets or counter of events waits for the threads of the run, as for a mutex: when
//! none of them can run, that is a deadlock, and no reason to wait for the world. What is not known to be so is outside: what was
//! there before the run, what came in or went out over a socket, everything once a process was started, named pipes, and
//! sockets with an address. A program with a handler of a signal that others send may be woken by what the handler writes, so
//! there nothing is known either.

use core::ffi::c_int;
use std::io::Write;

use waylay_control_protocol::account::{DescriptorKind, Object, Operation};

use super::listing::for_each_entry;
use super::{Token, mappings};
use crate::sys;

/// Ends that are remembered: far more than a process has open, unless it was told otherwise.
const MOST: usize = 4096;

/// What the run made, and whether descriptors left or entered the process.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    /// Device and number of pipes and of both ends of pairs.
    files: Vec<(u64, u64)>,
    /// Counters of events, by their descriptor: the kernel has one number for all of them.
    counters: Vec<c_int>,
    exchanged: bool,
}

impl Inside {
    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.files.clear();
        self.counters.clear();
        self.exchanged = false;
    }

    /// The program made a pipe, or two sockets that are connected to each other.
    pub(crate) fn made_pair(&mut self, ends: [c_int; 2]) {
        // What is forgotten counts as outside.
        if self.files.len() >= MOST {
            self.files.drain(..MOST / 2);
        }
        self.files.extend(ends.into_iter().filter_map(file_of).map(|(_, file)| file));
    }

    /// The program made a counter of events.
    pub(crate) fn made_counter(&mut self, fd: c_int) {
        self.counters.push(fd);
    }

    /// The program closes a descriptor.
    pub(crate) fn closes(&mut self, fd: c_int) {
        self.counters.retain(|&counter| counter != fd);
    }

    /// Descriptors come in with a message, or go out with one.
    pub(crate) fn exchanged(&mut self) {
        self.exchanged = true;
    }

    /// Whether nobody but this process can have what is waited for.
    pub(super) fn has_all_of(&self, waited_for: &[libc::pollfd]) -> bool {
        !self.exchanged && waited_for.iter().all(|one| one.fd < 0 || self.kind_of(one.fd).is_some())
    }

    fn kind_of(&self, fd: c_int) -> Option<DescriptorKind> {
        // Something else may have been put in its place since.
        if self.counters.contains(&fd) && Link::of(fd).starts_with(COUNTER) {
            return Some(DescriptorKind::Counter);
        }
        let (mode, file) = file_of(fd)?;
        let known = self.files.contains(&file);
        match mode {
            libc::S_IFIFO if known => Some(DescriptorKind::Pipe),
            libc::S_IFSOCK if known => Some(DescriptorKind::Socket),
            _ => None,
        }
    }
}

/// What the link of a counter of events says.
const COUNTER: &[u8] = b"anon_inode:[eventfd]";

/// What the link of a descriptor in `/proc/self/fd` says, as far as it is of interest.
struct Link([u8; 64], usize);

impl Link {
    fn of(fd: c_int) -> Link {
        let mut path = [0u8; 32];
        let mut rest = &mut path[..31];
        // Too short for no number of a descriptor.
        let _ = write!(rest, "/proc/self/fd/{fd}");
        let mut link = [0u8; 64];
        let (at, to) = (path.as_ptr() as usize, link.as_mut_ptr() as usize);
        // SAFETY: the path ends with a zero byte; the kernel writes no more than the length says.
        let len = unsafe { sys::call(libc::SYS_readlinkat, [libc::AT_FDCWD as usize, at, to, link.len(), 0, 0]) };
        Link(link, len.max(0) as usize)
    }

    fn text(&self) -> &[u8] {
        &self.0[..self.1]
    }

    fn starts_with(&self, begin: &[u8]) -> bool {
        self.text().starts_with(begin)
    }
}

/// Sort, and device and number, of the file of a descriptor.
fn file_of(fd: c_int) -> Option<(u32, (u64, u64))> {
    // SAFETY: an all-zero stat is valid, and the kernel fills it.
    unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        let known = sys::call(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0, 0]) == 0;
        known.then_some((stat.st_mode & libc::S_IFMT, (stat.st_dev, stat.st_ino)))
    }
}

/// What the thread waits for, if that is a descriptor.
pub(super) fn waits_in(me: &mut Token) -> Option<Operation<'static>> {
    let thread = me.thread();
    let system = &me.run().system;
    let watch = system.watches.iter().find(|watch| watch.is_of(thread) && !watch.is_empty())?;
    // SAFETY: the thread waits, so its set is still.
    let set = unsafe { watch.set() };
    let first = set.iter().find(|one| one.fd >= 0)?;
    let kind = match (set.len(), first.events & libc::POLLIN != 0) {
        (1, true) => "read",
        (1, false) => "write",
        _ => "poll",
    };
    let what = system.inside.kind_of(first.fd).unwrap_or(DescriptorKind::Other);
    Some(Operation { kind: kind.into(), object: Object::Descriptor(first.fd as u32, what) })
}

/// Whether somebody outside may make the program run a handler, which could write to a pipe.
pub(super) fn handlers_may_run() -> bool {
    /// What a thread does to itself, and libc's own two.
    const OWN: [c_int; 10] = [
        libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGSYS, libc::SIGTRAP, libc::SIGPIPE, 32, 33,
    ];
    (1..=64).any(|signal| {
        // What the kernel fills: handler, flags, restorer, mask.
        let mut action = [0usize; 4];
        let args = [signal as usize, 0, action.as_mut_ptr() as usize, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel writes that structure.
        let known = unsafe { sys::call(libc::SYS_rt_sigaction, args) } == 0;
        known && action[0] > libc::SIG_IGN && !OWN.contains(&signal) && !super::is_our_signal(signal)
    })
}

/// Whether the kernel itself may write to a descriptor of the process, or count events: for queues of requests and for devices.
pub(super) fn kernel_may_act() -> bool {
    /// Links of descriptors behind which the kernel does nothing to others.
    const QUIET: [&[u8]; 8] = [
        b"pipe:",
        b"socket:",
        COUNTER,
        b"anon_inode:[eventpoll]",
        b"anon_inode:[timerfd]",
        b"anon_inode:[signalfd]",
        b"anon_inode:inotify",
        b"/memfd:",
    ];
    let mut acts = false;
    for_each_entry(c"/proc/self/fd", |name| {
        let Some(fd) = name.to_str().ok().and_then(|name| name.parse().ok()) else { return };
        let link = Link::of(fd);
        let device = || file_of(fd).is_some_and(|(mode, _)| matches!(mode, libc::S_IFCHR | libc::S_IFBLK));
        let quiet = QUIET.iter().any(|begin| link.starts_with(begin))
            || link.starts_with(b"/") && (is_plain_device(link.text()) || !device());
        acts |= !quiet;
    });
    acts || has_requests()
}

/// Terminals, and devices that only give or take bytes.
fn is_plain_device(link: &[u8]) -> bool {
    const PLAIN: [&[u8]; 7] =
        [b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom", b"/dev/tty", b"/dev/console"];
    PLAIN.contains(&link) || link.starts_with(b"/dev/pts/") || link.starts_with(b"/dev/tty")
}

/// Whether the process has asked the kernel for a queue of asynchronous requests (`io_setup`, `io_uring_setup`), which is a mapping.
fn has_requests() -> bool {
    mappings::has(|line| line.ends_with(b"[io_uring]") || line.windows(6).any(|part| part == b"/[aio]"))
}
