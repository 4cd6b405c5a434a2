//! Thread keys: their destructors are noted, because a recycled thread has to run them without ending.

use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::real_thread;

/// glibc's limit.
const KEYS: usize = 1024;
/// libc's limit on rounds of destructors.
const ROUNDS: usize = 4;

/// What is noted about a key that was made with no destructor.
const NO_DESTRUCTOR: *mut c_void = core::ptr::without_provenance_mut(1);

static DESTRUCTORS: [AtomicPtr<c_void>; KEYS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; KEYS];
/// One more than the greatest key in use so far.
static USED: AtomicUsize = AtomicUsize::new(0);

type Destructor = unsafe extern "C-unwind" fn(*mut c_void);

mod real {
    use super::*;
    crate::real::real! {
        pthread_key_create(key: *mut c_uint, destructor: Option<Destructor>) -> c_int;
        pthread_key_delete(key: c_uint) -> c_int;
    }
}

/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn pthread_key_create(key: *mut c_uint, destructor: Option<Destructor>) -> c_int {
    // SAFETY: the caller's promise to us is the one it would have made to libc.
    unsafe {
        let error = real::pthread_key_create(key, destructor);
        if error == 0
            && let Some(slot) = DESTRUCTORS.get(*key as usize)
        {
            slot.store(
                destructor.map_or(NO_DESTRUCTOR, |function| function as *mut c_void),
                Ordering::Relaxed,
            );
            USED.fetch_max(*key as usize + 1, Ordering::Relaxed);
        }
        error
    }
}

/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn pthread_key_delete(key: c_uint) -> c_int {
    if let Some(slot) = DESTRUCTORS.get(key as usize) {
        slot.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
    // SAFETY: the caller's promise to us is the one it would have made to libc.
    unsafe { real::pthread_key_delete(key) }
}

/// C11's keys are the same keys, made by an internal call.
///
/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn tss_create(key: *mut c_uint, destructor: Option<Destructor>) -> c_int {
    const ERROR: c_int = 2;
    // SAFETY: passed on.
    if unsafe { pthread_key_create(key, destructor) } == 0 { 0 } else { ERROR }
}

/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn tss_delete(key: c_uint) {
    // SAFETY: passed on.
    unsafe { pthread_key_delete(key) };
}

/// Makes every key of the calling thread null, running destructors in rounds as libc would at the thread's end.
///
/// # Safety
/// The calling thread has no more use for its values.
pub(crate) unsafe fn run_destructors() {
    for _ in 0..ROUNDS {
        let mut ran = false;
        for (key, slot) in DESTRUCTORS.iter().enumerate().take(USED.load(Ordering::Relaxed)) {
            let destructor = slot.load(Ordering::Relaxed);
            if destructor.is_null() || real_thread::is_last_words(key as c_uint) {
                continue;
            }
            // SAFETY: the key exists; a destructor noted for it has this type.
            unsafe {
                let value = libc::pthread_getspecific(key as c_uint);
                if value.is_null() {
                    continue;
                }
                libc::pthread_setspecific(key as c_uint, core::ptr::null());
                if destructor != NO_DESTRUCTOR {
                    let function: Destructor = core::mem::transmute(destructor);
                    function(value);
                    ran = true;
                }
            }
        }
        if !ran {
            return;
        }
    }
}
