//! Robust mutexes that a thread holds when it ends: they are marked, and those who wait may go on.
//!
//! The kernel marks them when a kernel thread exits, which is after the thread took part in the run for the last time, and
//! at a moment that no schedule knows; whoever waits would never be told. So it is done here, in the kernel's way, and the
//! kernel finds nothing left. One that inherits priorities is no other: nobody waits for it in the kernel, which knows nothing of it.
//! Where there are other processes, which may wait for it there, it stays the kernel's.

use core::sync::atomic::{AtomicU32, Ordering};

use super::Token;
use crate::sched::{Key, Shares};
use crate::sys;

/// The list that libc keeps and the kernel reads.
#[repr(C)]
struct Head {
    /// The first entry, or the head itself.
    first: usize,
    /// From an entry to the lock word of its mutex.
    to_lock: isize,
    pending: usize,
}

const OWNER: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 1 << 30;
const WAITERS: u32 = 1 << 31;
/// An entry whose lowest bit is set is a mutex that inherits priorities.
const INHERITS: usize = 1;
/// Longer lists are broken.
const LONGEST: usize = 1 << 20;

/// Marks what the calling thread holds. False if something is left to the kernel, because other processes may wait for it there.
///
/// # Safety
/// Its program code has ended.
pub(super) unsafe fn pass_on(me: &mut Token, has_processes: bool) -> bool {
    // SAFETY: the list, in libc's record of the thread, is circular and holds mutexes that exist.
    unsafe {
        let head = list_of(me);
        if head.is_null() {
            return true;
        }
        let mut entry = (*head).first;
        for _ in 0..LONGEST {
            if entry == head as usize {
                break;
            }
            let at = entry & !INHERITS;
            let lock = at.wrapping_add_signed((*head).to_lock);
            if entry & INHERITS != 0 && has_processes {
                return false;
            }
            mark(me, &*(lock as *const AtomicU32));
            entry = *(at as *const usize);
            (*head).first = entry;
        }
        true
    }
}

fn mark(me: &mut Token, lock: &AtomicU32) {
    let value = lock.load(Ordering::Relaxed);
    // SAFETY: who has the token lives.
    unsafe {
        if value & OWNER == (*me.thread()).kernel_id as u32 {
            lock.store(value & WAITERS | OWNER_DIED, Ordering::Release);
            me.run().sched.freed(Key(core::ptr::from_ref(lock) as usize), Shares::ALL);
        }
    }
}

/// As libc told the kernel. On the carrier the calling kernel thread is another one, so it is asked for by its number.
fn list_of(me: &mut Token) -> *mut Head {
    let (mut head, mut length) = (0usize, 0usize);
    // SAFETY: a thread of this process; the kernel writes to the locals.
    unsafe {
        if (*me.thread()).robust_list.is_null() {
            let args = [
                (*me.thread()).kernel_id as usize,
                &raw mut head as usize,
                &raw mut length as usize,
                0,
                0,
                0,
            ];
            sys::call(libc::SYS_get_robust_list, args);
            (*me.thread()).robust_list = head as *mut core::ffi::c_void;
        }
        (*me.thread()).robust_list.cast()
    }
}
