//! Linux: memfd, shared futexes, the vDSO clock.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};

/// Mapped memory.
pub(crate) type Mapping = MmapRaw;

/// A piece of memory that can be handed to a child process: here a memfd, inherited by number.
#[derive(Debug)]
pub struct SharedHandle(OwnedFd);

impl SharedHandle {
    /// The descriptor's number; the same in the child.
    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Takes over an inherited descriptor.
    ///
    /// # Safety
    ///
    /// `raw` must be an open descriptor that nothing else in this process owns.
    pub unsafe fn from_raw(raw: RawFd) -> SharedHandle {
        // SAFETY: passed on to our caller.
        SharedHandle(unsafe { OwnedFd::from_raw_fd(raw) })
    }

    /// Another descriptor of the same memory.
    pub fn try_clone(&self) -> io::Result<SharedHandle> {
        self.0.try_clone().map(SharedHandle)
    }
}

/// Makes `size` bytes of shared memory, zeroed, inherited by children only when asked for by number. It keeps that size:
/// memory that somebody cuts off would end, with a bus error, whoever looks at it.
pub(crate) fn create_shared(size: usize) -> io::Result<SharedHandle> {
    // SAFETY: the name is a NUL-terminated literal; the call has no other memory effects.
    let fd =
        unsafe { libc::memfd_create(c"waylay-page".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: memfd_create just returned this descriptor to us.
    let handle = unsafe { SharedHandle::from_raw(fd) };
    // SAFETY: plain call on our own descriptor.
    if unsafe { libc::ftruncate(fd, size as libc::off_t) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: plain call on our own descriptor.
    if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(handle)
}

pub(crate) fn map(handle: &SharedHandle, size: usize) -> io::Result<Mapping> {
    MmapOptions::new().len(size).map_raw(handle.raw())
}

/// Waits until `word` no longer holds `seen`, a wake, or the timeout; may return early.
pub fn wait_until_changed(word: &AtomicU32, seen: u32, timeout: Option<Duration>) {
    let timespec = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs() as libc::time_t,
        tv_nsec: t.subsec_nanos() as libc::c_long,
    });
    let timespec_ptr = timespec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word outlives the call, the timespec too. No FUTEX_PRIVATE: the waker is another process.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, timespec_ptr) };
}

/// Wakes everybody who waits on `word`.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: the word outlives the call; waking has no memory effects.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

pub(crate) fn pause_briefly() {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 200_000 };
    // SAFETY: the timespec lives across the call; nanosleep is safe in a signal handler.
    unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
}

pub(crate) fn monotonic_nanos() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whether the time stamp counter runs at one rate on all cores and in all sleep states, and the kernel trusts it.
pub(crate) fn has_invariant_tsc() -> bool {
    cfg!(target_arch = "x86_64")
        && std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
            text.lines().find(|line| line.starts_with("flags")).is_some_and(|flags| {
                let has = |flag| flags.split_ascii_whitespace().any(|word| word == flag);
                has("constant_tsc") && has("nonstop_tsc")
            })
        })
}
