//! The section that carries a region from driver to host on Windows.
//!
//! The driver makes it and the host inherits the handle. No library is loaded before the host: it covers its own
//! modules, and takes the region with [`claim_inherited`].

use super::layout::{REGION_BYTES, Region};
use super::snapshot::HeapSnapshot;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::process::Command;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::time::Duration;
use windows_sys::Win32::Foundation::{CloseHandle, HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_ALL_ACCESS, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile, PAGE_READWRITE,
    UnmapViewOfFile,
};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

/// Environment variable that switches heap accounting on: `handle=<number>,sample=<bytes>[,seed=<number>]`.
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
    /// As on Linux: one sample in 512 KiB.
    fn default() -> Sampling {
        Sampling { period: 512 * 1024, seed: None }
    }
}

/// The region could not be created.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// A system call failed.
    #[error("cannot {step} the shared heap region ({bytes} bytes); is memory exhausted?")]
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

/// A region in a section without a file, mapped into this process.
#[derive(Debug)]
pub struct SharedRegion {
    section: OwnedHandle,
    map: NonNull<Region>,
}

// SAFETY: the view belongs to no thread, and every field of `Region` is an atomic.
unsafe impl Send for SharedRegion {}
// SAFETY: as above.
unsafe impl Sync for SharedRegion {}

impl SharedRegion {
    /// A new, formatted region without an owner. Its handle is inherited by children.
    ///
    /// # Errors
    /// When the system has no memory for it.
    pub fn create() -> Result<SharedRegion, RegionError> {
        let inherited = SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: std::ptr::null_mut(),
            bInheritHandle: 1,
        };
        // SAFETY: the attributes live across the call; no name is given.
        let section = unsafe {
            CreateFileMappingW(
                INVALID_HANDLE_VALUE,
                &inherited,
                PAGE_READWRITE,
                0,
                REGION_BYTES as u32,
                std::ptr::null(),
            )
        };
        if section.is_null() {
            return Err(system("create"));
        }
        // SAFETY: just made, owned by nobody else.
        let section = unsafe { OwnedHandle::from_raw_handle(section) };
        let map = map(section.as_raw_handle()).ok_or_else(|| system("map"))?;
        let shared = SharedRegion { section, map };
        shared.region().format();
        Ok(shared)
    }

    /// The mapped region.
    pub fn region(&self) -> &Region {
        // SAFETY: mapped in `create` with the size of `Region`, unmapped only in `drop`; a section does not shrink, and
        // any bytes are a valid `Region`.
        unsafe { self.map.as_ref() }
    }

    /// Everything alive now.
    pub fn snapshot(&self) -> HeapSnapshot {
        self.region().snapshot(monotonic_now())
    }

    /// Passes the region and how to sample to a command.
    pub fn announce(&self, command: &mut Command, sampling: Sampling) {
        let handle = self.section.as_raw_handle() as isize;
        let seed = sampling.seed.map(|seed| format!(",seed={seed}")).unwrap_or_default();
        command.env(ENVIRONMENT, format!("handle={handle},sample={}{seed}", sampling.period));
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        unmap(self.map);
    }
}

/// Takes the region that the driver announced, for the rest of this process: the only writer from now on. None when there
/// is none, or when it has its writer.
///
/// # Safety
///
/// Only for the process that the driver started with [`SharedRegion::announce`]: the handle is taken at its word.
pub unsafe fn claim_inherited() -> Option<(&'static Region, Sampling)> {
    let (handle, sampling) = parse(&std::env::var(ENVIRONMENT).ok()?)?;
    let handle = handle as HANDLE;
    let map = map(handle)?;
    // SAFETY: the handle is ours, and the view keeps the section.
    unsafe { CloseHandle(handle) };
    // SAFETY: a view of the size of a region, never unmapped once it is claimed; any bytes are a valid `Region`.
    let region: &'static Region = unsafe { map.as_ref() };
    if region.claim(std::process::id(), sampling.period, monotonic_now().as_nanos() as u64) {
        return Some((region, sampling));
    }
    unmap(map);
    None
}

fn parse(value: &str) -> Option<(isize, Sampling)> {
    let (mut handle, mut period, mut seed) = (None, None, None);
    for pair in value.split(',') {
        let (key, number) = pair.split_once('=')?;
        match key {
            "handle" => handle = Some(number.parse::<isize>().ok().filter(|handle| *handle > 0)?),
            "sample" => period = Some(number.parse::<u64>().ok().filter(|period| *period > 0)?),
            "seed" => seed = Some(number.parse().ok()?),
            _ => return None,
        }
    }
    Some((handle?, Sampling { period: period?, seed }))
}

fn map(section: HANDLE) -> Option<NonNull<Region>> {
    // SAFETY: a new view at an address that the system chooses; a section that is smaller is refused.
    let view = unsafe { MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, 0, REGION_BYTES) };
    NonNull::new(view.Value.cast())
}

fn unmap(map: NonNull<Region>) {
    // SAFETY: mapped by `map`, and whoever calls this has no reference into it any more.
    unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: map.as_ptr().cast() }) };
}

fn system(step: &'static str) -> RegionError {
    RegionError::System { step, bytes: REGION_BYTES, source: io::Error::last_os_error() }
}

/// Nothing is loaded first into a process of this system.
pub fn preload(_command: &mut Command, _library: &Path) {}

/// The clock births are stamped with: the performance counter, which is one for all processes.
pub fn monotonic_now() -> Duration {
    static FREQUENCY: OnceLock<u64> = OnceLock::new();
    let frequency = *FREQUENCY.get_or_init(|| {
        let mut frequency = 0;
        // SAFETY: writes one number.
        unsafe { QueryPerformanceFrequency(&mut frequency) };
        frequency.max(1) as u64
    });
    let mut ticks = 0;
    // SAFETY: writes one number.
    unsafe { QueryPerformanceCounter(&mut ticks) };
    let ticks = ticks as u64;
    let rest = ticks % frequency * 1_000_000_000 / frequency;
    Duration::new(ticks / frequency, rest as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Sample, Tag};

    #[test]
    fn what_is_entered_is_seen() {
        let shared = SharedRegion::create().expect("a section");
        let region = shared.region();
        assert!(region.is_formatted() && shared.snapshot().owner == 0);
        assert!(region.claim(42, 1024, 7));
        assert!(!region.claim(43, 1024, 7), "one region, one writer");
        let tag = Tag(3);
        let site = region.intern(tag, &[0x10, 0x20]);
        let sample = Sample { birth: region.next_birth(), born: 9, size: 100, weight: 1075, site, tag };
        assert!(region.enter(0x5000, &sample));
        assert_eq!(shared.snapshot().live_bytes_of(tag), 1075);
    }

    #[test]
    fn settings_that_make_no_sense_switch_it_off() {
        let good = Sampling { period: 524_288, seed: Some(3) };
        assert_eq!(parse("handle=184,sample=524288,seed=3"), Some((184, good)));
        for bad in ["", "handle=184", "handle=0,sample=1", "handle=4,sample=0", "handle=4,sample=1,color=red"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_clock_goes_on() {
        let before = monotonic_now();
        std::thread::sleep(Duration::from_millis(20));
        let passed = monotonic_now() - before;
        assert!(passed >= Duration::from_millis(15) && passed < Duration::from_secs(20), "{passed:?}");
    }
}
