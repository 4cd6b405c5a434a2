//! System calls made directly, past every interposed function.
//!
//! The library exports `syscall`, `futex` users and half of libc's blocking calls itself, so its own needs must not
//! go through those names. None of these touch errno.

use core::arch::asm;
use core::sync::atomic::AtomicU32;

/// Makes system call `number`; returns what the kernel returned (negative: an error number).
///
/// # Safety
/// As for the system call in question.
#[inline(always)]
pub(crate) unsafe fn call(number: i64, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel clobbers rcx and r11 only; effects on memory are the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Sleeps while `word` holds `expected`; may return early.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32) {
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word outlives the call; no timeout is passed.
    unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, op as usize, expected as usize, 0, 0, 0]) };
}

/// Sleeps while `word` holds `expected`, at most for `length`; may return early.
pub(crate) fn futex_wait_for(word: &AtomicU32, expected: u32, length: &libc::timespec) {
    let op = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let length = core::ptr::from_ref(length) as usize;
    // SAFETY: word and length outlive the call.
    unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, op as usize, expected as usize, length, 0, 0]) };
}

/// Wakes one kernel thread that sleeps on `word`.
pub(crate) fn futex_wake(word: &AtomicU32) {
    let op = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: waking only needs an address.
    unsafe { call(libc::SYS_futex, [word.as_ptr() as usize, op as usize, 1, 0, 0, 0]) };
}

/// The kernel's id of the calling kernel thread.
pub(crate) fn thread_id() -> i32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { call(libc::SYS_gettid, [0; 6]) as i32 }
}

/// The kernel's id of the process.
pub(crate) fn process_id() -> i32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { call(libc::SYS_getpid, [0; 6]) as i32 }
}

/// Gives up the processor once.
pub(crate) fn yield_now() {
    // SAFETY: takes no arguments.
    unsafe { call(libc::SYS_sched_yield, [0; 6]) };
}

/// Maps `len` zeroed private bytes.
pub(crate) fn map(len: usize) -> Option<*mut u8> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    // SAFETY: a fresh anonymous mapping disturbs nothing.
    let at = unsafe { call(libc::SYS_mmap, [0, len, prot, flags, usize::MAX, 0]) };
    let at = (!(-4095..=0).contains(&at)).then_some(at as *mut u8)?;
    crate::snapshot::mapped(at, len);
    Some(at)
}

/// Unmaps.
///
/// # Safety
/// The range is a mapping of the caller's that nobody uses any more.
pub(crate) unsafe fn unmap(at: *mut u8, len: usize) {
    crate::snapshot::will_change(at as usize, len);
    // SAFETY: passed on.
    unsafe { call(libc::SYS_munmap, [at as usize, len, 0, 0, 0, 0]) };
}

/// Changes what may be done with a range of pages; false when the kernel refuses.
///
/// # Safety
/// Nobody relies on what is taken away.
pub(crate) unsafe fn protect(at: usize, len: usize, protection: i32) -> bool {
    crate::snapshot::will_change(at, len);
    // SAFETY: passed on.
    unsafe { call(libc::SYS_mprotect, [at, len, protection as usize, 0, 0, 0]) == 0 }
}

/// Makes a range inaccessible.
///
/// # Safety
/// The range is a mapping of the caller's whose content nobody needs.
pub(crate) unsafe fn forbid(at: *mut u8, len: usize) {
    crate::snapshot::will_change(at as usize, len);
    // SAFETY: passed on.
    unsafe { call(libc::SYS_mprotect, [at as usize, len, libc::PROT_NONE as usize, 0, 0, 0]) };
}

/// Writes all bytes to a descriptor, as far as the kernel takes them.
pub(crate) fn write(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the slice is readable for its whole length.
        let n =
            unsafe { call(libc::SYS_write, [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0]) };
        if n <= 0 {
            return;
        }
        bytes = &bytes[n as usize..];
    }
}

/// Ends the process without running anything more of it.
pub(crate) fn exit_now(code: i32) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { call(libc::SYS_exit_group, [code as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Binds the calling kernel thread, and those it will create, to the processor it is on.
pub(crate) fn pin_to_current_processor() {
    let mut processor = 0u32;
    // SAFETY: the kernel writes four bytes to the first argument; the others may be null.
    unsafe { call(libc::SYS_getcpu, [&raw mut processor as usize, 0, 0, 0, 0, 0]) };
    pin_to(processor);
}

/// Binds the calling kernel thread, and those it will create, to one processor.
pub(crate) fn pin_to(processor: u32) {
    let mut mask = [0u64; 16];
    if let Some(word) = mask.get_mut(processor as usize / 64) {
        *word |= 1 << (processor % 64);
        // SAFETY: the mask is readable for the length passed.
        unsafe {
            call(libc::SYS_sched_setaffinity, [0, size_of_val(&mask), mask.as_ptr() as usize, 0, 0, 0]);
        }
    }
}

/// Replaces the signal mask of the calling kernel thread and returns the one it had.
pub(crate) fn swap_signal_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    let (new, old_at) = (&raw const mask as usize, &raw mut old as usize);
    // SAFETY: both point at eight bytes, the size passed.
    unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, new, old_at, 8, 0, 0]) };
    old
}

/// The kernel's monotonic clock.
pub(crate) fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to the local.
    unsafe { call(libc::SYS_clock_gettime, [libc::CLOCK_MONOTONIC as usize, &raw mut now as usize, 0, 0, 0, 0]) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Has the calling kernel thread block these signals as well, and returns its mask before.
pub(crate) fn block_signals(signals: u64) -> u64 {
    let mut old = 0u64;
    let (new, old_at) = (&raw const signals as usize, &raw mut old as usize);
    // SAFETY: both point at eight bytes, the size passed.
    unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, new, old_at, 8, 0, 0]) };
    old
}

/// The signal mask of the calling kernel thread.
pub(crate) fn signal_mask() -> u64 {
    let mut mask = 0u64;
    // SAFETY: nothing is changed; the kernel writes eight bytes, the size passed.
    unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, 0, &raw mut mask as usize, 8, 0, 0]) };
    mask
}
