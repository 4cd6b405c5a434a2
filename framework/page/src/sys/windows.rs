//! Windows: a section without a file, inherited by handle; waits that look again and again; the performance counter.
//!
//! `WaitOnAddress` wakes threads of one process only. A wait across processes therefore looks at the word at growing
//! distances: the first looks cost microseconds, later ones come every two milliseconds (or what the system's timer
//! makes of it), so that a waiter costs next to nothing however long it waits.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{
    HANDLE, HANDLE_FLAG_INHERIT, INVALID_HANDLE_VALUE, SetHandleInformation,
};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_ALL_ACCESS, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile, PAGE_READWRITE,
    UnmapViewOfFile,
};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::Threading::SwitchToThread;

/// Looks without sleeping, each after giving the processor away.
const EAGER_LOOKS: u32 = 20;
/// The first sleep between two looks, and the longest.
const FIRST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// A piece of memory that can be handed to a child process: here a section, inherited by handle.
#[derive(Debug)]
pub struct SharedHandle(OwnedHandle);

impl SharedHandle {
    /// The handle's number; the same in the child. Handles have 32 significant bits on every Windows.
    pub fn raw(&self) -> i32 {
        self.0.as_raw_handle() as isize as i32
    }

    /// Takes over an inherited handle, and keeps it from processes that this one starts.
    ///
    /// # Safety
    ///
    /// `raw` must be an open handle that nothing else in this process owns.
    pub unsafe fn from_raw(raw: i32) -> SharedHandle {
        let handle = raw as isize as HANDLE;
        // SAFETY: changes a flag of a handle that is open, as our caller says, which is passed on for the rest.
        unsafe {
            SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0);
            SharedHandle(OwnedHandle::from_raw_handle(handle))
        }
    }

    /// Another handle to the same memory.
    pub fn try_clone(&self) -> io::Result<SharedHandle> {
        self.0.try_clone().map(SharedHandle)
    }
}

/// A view of a section.
#[derive(Debug)]
pub(crate) struct Mapping(NonNull<u8>);

// SAFETY: the view belongs to no thread; what is in it is only reached through the atomics of the layout.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` and unmapped once.
        unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: self.0.as_ptr().cast() }) };
    }
}

/// Makes `size` bytes of shared memory, zeroed, inherited by children.
pub(crate) fn create_shared(size: usize) -> io::Result<SharedHandle> {
    let inherited = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: std::ptr::null_mut(),
        bInheritHandle: 1,
    };
    let (high, low) = ((size as u64 >> 32) as u32, size as u32);
    // SAFETY: the attributes live across the call; no name is given.
    let handle = unsafe {
        CreateFileMappingW(INVALID_HANDLE_VALUE, &inherited, PAGE_READWRITE, high, low, std::ptr::null())
    };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, owned by nobody else.
    Ok(SharedHandle(unsafe { OwnedHandle::from_raw_handle(handle) }))
}

pub(crate) fn map(handle: &SharedHandle, size: usize) -> io::Result<Mapping> {
    // SAFETY: a new view at an address that the system chooses.
    let view = unsafe { MapViewOfFile(handle.0.as_raw_handle(), FILE_MAP_ALL_ACCESS, 0, 0, size) };
    NonNull::new(view.Value.cast()).map(Mapping).ok_or_else(io::Error::last_os_error)
}

/// Waits until `word` no longer holds `seen` or the timeout; may return early.
pub fn wait_until_changed(word: &AtomicU32, seen: u32, timeout: Option<Duration>) {
    let deadline = timeout.map(|time| Instant::now() + time);
    let mut looks = 0;
    let mut sleep = FIRST_SLEEP;
    while word.load(Ordering::SeqCst) == seen {
        let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return;
        }
        looks += 1;
        if looks <= EAGER_LOOKS {
            // SAFETY: gives the processor away, nothing else.
            unsafe { SwitchToThread() };
        } else {
            std::thread::sleep(left.map_or(sleep, |left| left.min(sleep)));
            sleep = (sleep * 2).min(LONGEST_SLEEP);
        }
    }
}

/// Wakes everybody who waits on `word`: they look by themselves.
pub fn wake_all(_word: &AtomicU32) {}

pub(crate) fn pause_briefly() {
    std::thread::sleep(Duration::from_micros(200));
}

pub(crate) fn monotonic_nanos() -> u64 {
    let (mut count, mut frequency) = (0, 0);
    // SAFETY: both are valid places for the answers; the calls cannot fail on any Windows since XP.
    unsafe {
        QueryPerformanceCounter(&mut count);
        QueryPerformanceFrequency(&mut frequency);
    }
    (count as u128 * 1_000_000_000 / frequency.max(1) as u128) as u64
}

/// Whether the time stamp counter runs at one rate on all cores and in all sleep states: what the processor says.
pub(crate) fn has_invariant_tsc() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        const POWER_MANAGEMENT: u32 = 0x8000_0007;
        const INVARIANT_TSC: u32 = 1 << 8;
        __cpuid(0x8000_0000).eax >= POWER_MANAGEMENT && __cpuid(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}
