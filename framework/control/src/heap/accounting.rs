//! Entering and removing samples, and the beginning of it all.

use super::sampler;
use super::settings::{self, Settings};
use super::stack::{Stack, locate_own_code};
use super::thread::{self, NEVER};
use super::wiped::WIPED;
use std::ffi::{c_char, c_int, c_void};
use waylay_leaks::region::layout::REGION_BYTES;
use waylay_leaks::region::{Region, Sample, Tag, weight};

/// Runs an allocation that the fast path would not decide on, and samples it if a sample point lies within
/// it. `next` returns null when it failed.
#[cold]
#[inline(never)]
pub(super) fn allocate(size: usize, next: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let due = is_due(size);
    let pointer = if due { unsampled(next) } else { next() };
    if due && !pointer.is_null() {
        enter(pointer, size);
    }
    pointer
}

/// Forgets the sample at `pointer`, which is about to be freed.
#[cold]
#[inline(never)]
pub(super) fn forget(pointer: *mut c_void) {
    if let Some((region, sample)) = take(pointer) {
        region.bury(&sample, now());
    }
}

/// Runs a `realloc` of which the old pointer may be sampled or the new one due. To the tables it is a death
/// and a birth; one that failed is nothing at all.
#[cold]
#[inline(never)]
pub(super) fn reallocate(
    pointer: *mut c_void,
    size: usize,
    next: impl FnOnce() -> *mut c_void,
) -> *mut c_void {
    let due = is_due(size);
    let taken = if WIPED.may_hold(pointer.addr()) { take(pointer) } else { None };
    let moved = if due { unsampled(next) } else { next() };
    let failed = moved.is_null() && size != 0;
    if let Some((region, sample)) = taken {
        if !failed {
            region.bury(&sample, now());
        } else if region.restore(pointer.addr() as u64, &sample) {
            WIPED.add(pointer.addr());
        }
    }
    if due && !moved.is_null() {
        enter(moved, size);
    }
    moved
}

fn is_due(size: usize) -> bool {
    // SAFETY: stays on this thread.
    let thread = unsafe { thread::current() };
    sampler::is_due(thread, size, WIPED.region().is_some())
}

/// Does something during which no allocation of this thread is sampled. An allocator may build one
/// function of the family on another, which is ours again: the block must not be entered twice.
#[inline(always)]
fn unsampled<Result>(action: impl FnOnce() -> Result) -> Result {
    // SAFETY: stays on this thread.
    let thread = unsafe { thread::current() };
    let left = thread.set_left(NEVER);
    let result = action();
    thread.set_left(left);
    result
}

/// Enters a sample. Inlined, like the capture of the stack in it: every frame of ours is one that the
/// unwinder must first find its way out of.
#[inline(always)]
fn enter(pointer: *mut c_void, size: usize) {
    let Some(region) = WIPED.region() else { return };
    let stack = unsampled(Stack::capture);
    // SAFETY: stays on this thread.
    let tag = Tag(unsafe { thread::current() }.tag.get());
    let sample = Sample {
        birth: region.next_birth(),
        born: now(),
        size: size as u64,
        weight: weight(size as u64, sampler::period()),
        site: region.intern(tag, stack.frames()),
        tag,
    };
    if region.enter(pointer.addr() as u64, &sample) {
        WIPED.add(pointer.addr());
    }
}

fn take(pointer: *mut c_void) -> Option<(&'static Region, Sample)> {
    let region = WIPED.region()?;
    let sample = region.take(pointer.addr() as u64)?;
    WIPED.remove(pointer.addr());
    Some((region, sample))
}

/// Nanoseconds of CLOCK_MONOTONIC, the clock the driver reads, too. No system call: the vDSO answers.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Reads the settings and begins, or decides for good not to. The loader calls it once, before `main`.
pub(super) extern "C" fn start(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    // SAFETY: the loader passes the environment block of the process.
    let settings = unsafe { settings::from_environment(environment) };
    match settings.and_then(|settings| Some((settings, begin(&settings)?))) {
        Some((settings, region)) => {
            WIPED.set_region(region);
            sampler::switch(Some(settings.period), settings.seed.unwrap_or_else(now));
        }
        None => sampler::switch(None, 0),
    }
}

/// Claims the region behind the descriptor. A child of the host that inherited the environment finds
/// something else there, or a region that has its writer, and stays out.
fn begin(settings: &Settings) -> Option<&'static Region> {
    if !is_region_file(settings.fd) || !WIPED.wipe_on_fork() {
        return None;
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address the kernel chooses.
    let map = unsafe {
        libc::mmap(std::ptr::null_mut(), REGION_BYTES, protection, libc::MAP_SHARED, settings.fd, 0)
    };
    if map == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the file has the size of a region (checked, and sealed by the driver), any bytes are a valid
    // `Region`, and the mapping is never removed once it is claimed.
    let region = unsafe { &*map.cast::<Region>() };
    if !region.claim(std::process::id(), settings.period, now()) {
        // SAFETY: mapped above; the reference is not used any more.
        unsafe { libc::munmap(map, REGION_BYTES) };
        return None;
    }
    locate_own_code();
    // SAFETY: the descriptor was made for us; the program must not see it among its own.
    unsafe { libc::close(settings.fd) };
    Some(region)
}

/// Whether the descriptor is a file of exactly the right size that begins like a region. Looked at with
/// calls that change nothing, because it may be anything.
fn is_region_file(fd: c_int) -> bool {
    let mut magic = [0u8; 8];
    // SAFETY: zero is a valid `stat`; both calls write only into what they are given.
    let (described, status, read) = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let described = libc::fstat(fd, &mut status);
        (described, status, libc::pread(fd, magic.as_mut_ptr().cast(), magic.len(), 0))
    };
    described == 0
        && status.st_mode & libc::S_IFMT == libc::S_IFREG
        && status.st_size == REGION_BYTES as libc::off_t
        && read == magic.len() as isize
        && u64::from_le_bytes(magic) == waylay_leaks::region::layout::MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn other_files_are_left_alone() {
        let file = std::fs::File::open("/proc/self/exe").expect("own executable");
        assert!(!is_region_file(file.as_raw_fd()));
        assert!(!is_region_file(-1));
        let (reader, _writer) = std::io::pipe().expect("pipe");
        assert!(!is_region_file(reader.as_raw_fd()));
        assert!(begin(&Settings { fd: file.as_raw_fd(), period: 1, seed: None }).is_none());
    }
}
