//! What the library asks of Windows for itself: a signal between threads, one processor, words on standard error.
//!
//! These calls go through the import table of this library, which is never patched: nothing here can become a step.

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use waylay_runtime::text::Text;
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::Storage::FileSystem::WriteFile;
use windows_sys::Win32::System::Console::{GetStdHandle, STD_ERROR_HANDLE};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentProcessorNumber, GetProcessAffinityMask, INFINITE, SetProcessAffinityMask,
    Sleep, TerminateProcess, WaitOnAddress, WakeByAddressSingle,
};

/// One thread waits until another raises it; then it is down again.
///
/// Under both Windows and Wine a wait on an address that is over, and a wake-up that nobody waits for, stay in user space.
#[derive(Debug, Default)]
pub(crate) struct Signal(AtomicU32);

impl Signal {
    pub(crate) const fn new() -> Signal {
        Signal(AtomicU32::new(0))
    }

    /// Lets the waiting thread go on, now or when it comes to wait.
    pub(crate) fn raise(&self) {
        self.0.store(1, Ordering::Release);
        // SAFETY: the address is only compared with those of waiting threads, never read.
        unsafe { WakeByAddressSingle(self.0.as_ptr().cast()) };
    }

    /// Waits until it is raised.
    pub(crate) fn wait(&self) {
        while self.0.swap(0, Ordering::Acquire) == 0 {
            wait_on(&self.0, 0, INFINITE);
        }
    }

    /// Waits until it is raised, or for so long; says whether it was.
    pub(crate) fn wait_for(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        while self.0.swap(0, Ordering::Acquire) == 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            wait_on(&self.0, 0, left.as_millis() as u32 + 1);
        }
        true
    }
}

/// Waits until the word is not `seen` any more, is woken, or the time is over.
pub(crate) fn wait_on(word: &AtomicU32, seen: u32, milliseconds: u32) {
    // SAFETY: both addresses are readable for four bytes.
    unsafe { WaitOnAddress(word.as_ptr().cast(), (&raw const seen).cast(), size_of::<u32>(), milliseconds) };
}

/// Binds the process to the processor it runs on: a hand-over between two processors takes many times as long.
pub(crate) fn bind_to_one_processor() {
    let (mut mine, mut all) = (0usize, 0usize);
    // SAFETY: plain calls; the masks are written into the locals.
    unsafe {
        GetProcessAffinityMask(GetCurrentProcess(), &mut mine, &mut all);
        let current = 1usize << (GetCurrentProcessorNumber() % usize::BITS);
        let chosen = if mine & current != 0 { current } else { mine & mine.wrapping_neg() };
        SetProcessAffinityMask(GetCurrentProcess(), chosen);
    }
}

/// Ends the process without running anything of it.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: the process is our own.
    unsafe { TerminateProcess(GetCurrentProcess(), status as u32) };
    hold()
}

/// Waits to be killed.
pub(crate) fn hold() -> ! {
    loop {
        // SAFETY: plain call.
        unsafe { Sleep(INFINITE) };
    }
}

/// Writes one line, cut at 512 bytes, in one call.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let line = Text::<512>::line(format_args!("waylay-control: {text}"));
    let mut written = 0;
    // SAFETY: the bytes are readable for their length.
    unsafe {
        let stderr: HANDLE = GetStdHandle(STD_ERROR_HANDLE);
        WriteFile(
            stderr,
            line.bytes().as_ptr(),
            line.bytes().len() as u32,
            &mut written,
            core::ptr::null_mut(),
        );
    }
}
