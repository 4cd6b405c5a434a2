//! Linux: touching a mapped file beyond its end, or where a full disk has no room for it, is SIGBUS. SQLite maps the index of
//! its log, so whoever cuts that file off would end the process that writes the history, with the campaign in it.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static CUT_OFFS: AtomicU64 = AtomicU64::new(0);

/// From now on memory that is gone reads as zeros, and is counted.
pub(crate) fn survive_cut_offs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: an all-zero sigaction is a valid value to fill in; the handler makes async-signal-safe calls only.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = survive;
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        }
    });
}

/// How often that happened in this process.
pub(crate) fn cut_offs() -> u64 {
    CUT_OFFS.load(Ordering::Relaxed)
}

extern "C" fn survive(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands over a valid description. The page is one that has no memory behind it, so that nothing is
    // lost by putting another one there; both calls are async-signal-safe, and errno is left as it was.
    unsafe {
        let errno = *libc::__errno_location();
        let size = libc::sysconf(libc::_SC_PAGESIZE).max(4096) as usize;
        let page = (*info).si_addr() as usize & !(size - 1);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let replaced = (*info).si_code == libc::BUS_ADRERR
            && libc::mmap(page as *mut libc::c_void, size, protection, flags, -1, 0) != libc::MAP_FAILED;
        if replaced {
            CUT_OFFS.fetch_add(1, Ordering::Relaxed);
        } else {
            // The same access ends the process now.
            libc::signal(signal, libc::SIG_DFL);
        }
        *libc::__errno_location() = errno;
    }
}
