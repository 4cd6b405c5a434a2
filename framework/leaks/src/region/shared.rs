//! The memfd that carries a region from driver to host.
//!
//! The driver creates and maps it; the host inherits the descriptor and maps it, too. The size is sealed,
//! so a host that goes wild can write nonsense into it but cannot make the driver fault.

use super::layout::{REGION_BYTES, Region};
use super::snapshot::HeapSnapshot;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::ptr::NonNull;
use std::time::Duration;

/// Environment variable that switches heap accounting on: `fd=<number>,sample=<bytes>[,seed=<number>]`.
pub const ENVIRONMENT: &str = "WAYLAY_HEAP";

/// How the host samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Mean bytes between samples.
    pub period: u64,
    /// Start of the random numbers; without it every process samples differently.
    pub seed: Option<u64>,
}

impl Default for Sampling {
    /// One sample in 512 KiB: a few per cent of an allocation-heavy program's time, and a leak of two
    /// samples (1 MiB) per second is found within a minute.
    fn default() -> Sampling {
        Sampling { period: 512 * 1024, seed: None }
    }
}

/// The region could not be created.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// A system call failed.
    #[error(
        "cannot {step} the shared heap region ({bytes} bytes); is memory or the descriptor limit exhausted?"
    )]
    System {
        /// What was being done.
        step: &'static str,
        /// The size that was asked for.
        bytes: usize,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// A region in a memfd, mapped into this process.
#[derive(Debug)]
pub struct SharedRegion {
    fd: OwnedFd,
    map: NonNull<Region>,
}

// SAFETY: the mapping belongs to no thread, and every field of `Region` is an atomic.
unsafe impl Send for SharedRegion {}
// SAFETY: as above.
unsafe impl Sync for SharedRegion {}

impl SharedRegion {
    /// A new, formatted region without an owner.
    pub fn create() -> Result<SharedRegion, RegionError> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let fd = checked("create", unsafe { libc::memfd_create(c"waylay-heap".as_ptr(), flags) })?;
        // SAFETY: `fd` was just created and is owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: plain system calls on a descriptor we own.
        checked("size", unsafe { libc::ftruncate(fd.as_raw_fd(), REGION_BYTES as libc::off_t) })?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: as above.
        checked("seal", unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping at an address the kernel chooses; the file is as long as the mapping.
        let map = unsafe {
            libc::mmap(std::ptr::null_mut(), REGION_BYTES, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if map == libc::MAP_FAILED {
            return Err(system("map", io::Error::last_os_error()));
        }
        let map =
            NonNull::new(map.cast::<Region>()).ok_or_else(|| system("map", io::Error::last_os_error()))?;
        let shared = SharedRegion { fd, map };
        shared.region().format();
        Ok(shared)
    }

    /// The mapped region.
    pub fn region(&self) -> &Region {
        // SAFETY: mapped in `create` with the size of `Region` and page alignment, unmapped only in `drop`;
        // the file behind it cannot shrink (sealed), and any bytes are a valid `Region`.
        unsafe { self.map.as_ref() }
    }

    /// Everything alive now.
    pub fn snapshot(&self) -> HeapSnapshot {
        self.region().snapshot(monotonic_now())
    }

    /// Makes `command` start with heap accounting on: preloads `library` (before any other preload), and
    /// passes the region and how to sample.
    ///
    /// The command must be the host itself, not a shell around it: the first process that starts with the
    /// library takes the region.
    pub fn attach(&self, command: &mut Command, library: &Path, sampling: Sampling) {
        self.announce(command, sampling);
        preload(command, library);
    }

    /// Passes the region and how to sample to a command that loads the library anyway.
    pub fn announce(&self, command: &mut Command, sampling: Sampling) {
        let fd = self.fd.as_raw_fd();
        let seed = sampling.seed.map(|seed| format!(",seed={seed}")).unwrap_or_default();
        command.env(ENVIRONMENT, format!("fd={fd},sample={}{seed}", sampling.period));
        // SAFETY: the closure runs between fork and exec and makes one async-signal-safe system call. The
        // descriptor stays close-on-exec in this process, so other children never inherit it.
        unsafe { command.pre_exec(move || keep_across_exec(fd)) };
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        // SAFETY: mapped in `create` with this size; `&mut self` means no reference into it is left.
        unsafe { libc::munmap(self.map.as_ptr().cast(), REGION_BYTES) };
    }
}

/// The clock births are stamped with.
pub fn monotonic_now() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec; CLOCK_MONOTONIC always exists on Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Loads the library first into what the command starts.
pub fn preload(command: &mut Command, library: &Path) {
    command.env("LD_PRELOAD", preload_list(library, command));
}

/// Our library first, then what the command (or, failing that, our own environment) preloads anyway.
fn preload_list(library: &Path, command: &Command) -> OsString {
    let chosen = command.get_envs().find(|(name, _)| *name == "LD_PRELOAD");
    let others = match chosen {
        Some((_, value)) => value.map(OsString::from),
        None => std::env::var_os("LD_PRELOAD"),
    };
    let mut list = OsString::from(library);
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

fn keep_across_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: changes a flag of a descriptor of this (forked) process.
    match unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn checked(step: &'static str, result: libc::c_int) -> Result<libc::c_int, RegionError> {
    if result < 0 { Err(system(step, io::Error::last_os_error())) } else { Ok(result) }
}

fn system(step: &'static str, source: io::Error) -> RegionError {
    RegionError::System { step, bytes: REGION_BYTES, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Sample, Tag};

    #[test]
    fn a_created_region_is_formatted_and_empty() {
        let shared = SharedRegion::create().expect("memfd");
        assert!(shared.region().is_formatted());
        let snapshot = shared.snapshot();
        assert_eq!((snapshot.owner, snapshot.samples, snapshot.sites.len()), (0, 0, 0));
    }

    #[test]
    fn what_is_entered_is_seen() {
        let shared = SharedRegion::create().expect("memfd");
        let region = shared.region();
        assert!(region.claim(42, 1024, 7));
        assert!(!region.claim(43, 1024, 7), "one region, one writer");
        let tag = Tag(3);
        let site = region.intern(tag, &[0x10, 0x20]);
        let sample = Sample { birth: region.next_birth(), born: 9, size: 100, weight: 1075, site, tag };
        assert!(region.enter(0x5000, &sample));
        let snapshot = shared.snapshot();
        assert_eq!((snapshot.owner, snapshot.period, snapshot.samples), (42, 1024, 1));
        assert_eq!(snapshot.live_bytes_of(tag), 1075);
        assert_eq!(region.stack(site).expect("published").frames, [0x10, 0x20]);
    }

    #[test]
    fn earlier_preloads_are_kept_behind_ours() {
        let mut command = Command::new("true");
        command.env("LD_PRELOAD", "libother.so");
        assert_eq!(preload_list(Path::new("/x/libours.so"), &command), "/x/libours.so:libother.so");
        command.env_remove("LD_PRELOAD");
        assert_eq!(preload_list(Path::new("/x/libours.so"), &command), "/x/libours.so");
    }

    #[test]
    fn the_size_cannot_be_changed() {
        let shared = SharedRegion::create().expect("memfd");
        // SAFETY: a system call on a descriptor we own; it must fail.
        let shrunk = unsafe { libc::ftruncate(shared.fd.as_raw_fd(), 0) };
        assert_eq!(shrunk, -1);
    }
}
