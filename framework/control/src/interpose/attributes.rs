//! What a thread is like. The stack of the main one is looked up once, because it is the same in every run: libc finds it by
//! reading the list of all mappings, which takes longer than a short run, and every Rust program asks for it first thing.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_int, pthread_attr_t, pthread_t, size_t};

use super::interpose;
use crate::runtime::lookup;

/// Handle of the main thread, the lower end of its stack, and its size; 0 while that is not known.
static MAIN: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Looks it up. The main thread calls this before the first run.
pub(crate) fn note_main_stack() {
    // SAFETY: libc fills the attributes in, and they are given back.
    unsafe {
        let mut attributes: pthread_attr_t = core::mem::zeroed();
        let (mut low, mut size) = (core::ptr::null_mut(), 0);
        let main = libc::pthread_self();
        if real::pthread_getattr_np(main, &raw mut attributes) != 0 {
            return;
        }
        if pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size) == 0 {
            MAIN[1].store(low as usize, Ordering::Relaxed);
            MAIN[2].store(size, Ordering::Relaxed);
            MAIN[0].store(main as usize, Ordering::Relaxed);
        }
        libc::pthread_attr_destroy(&raw mut attributes);
    }
}

unsafe extern "C" {
    fn pthread_attr_getstack(from: *const pthread_attr_t, low: *mut *mut c_void, size: *mut size_t) -> c_int;
    fn pthread_attr_setstack(to: *mut pthread_attr_t, low: *mut c_void, size: size_t) -> c_int;
}

interpose! {
    fn pthread_getattr_np(handle: pthread_t, to: *mut pthread_attr_t) -> c_int, |me| {
        let [main, low, size] = [0, 1, 2].map(|place| MAIN[place].load(Ordering::Relaxed));
        if handle as usize != main {
            let result = real::pthread_getattr_np(handle, to);
            if let Some(thread) = lookup(me, handle as usize).filter(|thread| result == 0 && (**thread).recyclable) {
                // A kernel thread that several threads of the program have one after the other is none that libc knows as detached.
                let states = [libc::PTHREAD_CREATE_JOINABLE, libc::PTHREAD_CREATE_DETACHED];
                libc::pthread_attr_setdetachstate(to, states[usize::from((*thread).detached)]);
            }
            return result;
        }
        libc::pthread_attr_init(to);
        // The kernel guards that stack, not libc.
        libc::pthread_attr_setguardsize(to, 0);
        pthread_attr_setstack(to, low as *mut c_void, size)
    }
}
