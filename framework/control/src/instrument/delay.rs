//! Where stores of this process may no longer wait in the thread's store buffer, and what `waylay-accesses` asks for that.
//!
//! A processor's store buffer is empty at locked instructions and fences, and in the kernel. Here it is, too, wherever the
//! library or libc act for the thread, because stores that are made there are not seen: calls that are interposed, signal
//! handlers, the end of a thread, memory that is given back.

use waylay_accesses::delayed;
pub(crate) use waylay_accesses::delayed::is_on;
use waylay_schedule::{Event, EventKind, ThreadId};

use super::watch::Linux;
use crate::me::{Unmanaged, me};
use crate::runtime::{Logical, Token, runtime, step};
use crate::sys;

/// The running thread is about to have something done for it: others may run while its stores still wait, and then they do no
/// longer.
#[inline]
pub(crate) fn before_call(me: &mut Token) {
    if delayed::is_on() {
        settle(me);
    }
}

#[cold]
fn settle(me: &mut Token) {
    // SAFETY: who has the token lives.
    unsafe {
        if delayed::waits((*me.thread()).id) {
            step(me, Event::local(EventKind::Fence));
            drain(me);
        }
    }
}

/// All stores of the running thread become visible.
#[inline]
pub(crate) fn drain(me: &mut Token) {
    // SAFETY: who has the token lives.
    unsafe { delayed::drain::<Linux>(me.thread()) };
}

/// Memory is about to be given back, freed or unmapped, by whoever makes the call.
#[inline]
pub(crate) fn release(block: (usize, usize)) {
    if delayed::is_on() {
        let me = me();
        if !me.is_null() {
            let _inside = Unmanaged::enter_from(me);
            // SAFETY: a logical thread that runs program code has the token.
            unsafe { delayed::release::<Linux>(me, block) };
        }
    }
}

/// A fence that a compiler reports; `full`: it orders stores before loads.
pub(super) fn fence(full: bool) {
    if delayed::is_on() && full {
        let me = me();
        if !me.is_null() {
            let _inside = Unmanaged::enter_from(me);
            // SAFETY: a logical thread that runs program code has the token.
            unsafe { settle(Token::held_by(me)) };
        }
    }
}

/// Whether eight bytes around an address can be read. The kernel looks at a set of signals before it finds that nothing is to
/// be done with it.
pub(super) fn is_readable(address: usize) -> bool {
    const NOTHING: usize = usize::MAX;
    let arguments = [NOTHING, address & !7, 0, size_of::<u64>(), 0, 0];
    // SAFETY: changes nothing, and reads the address only if that is possible.
    unsafe { sys::call(libc::SYS_rt_sigprocmask, arguments) != -(libc::EFAULT as isize) }
}

/// Keeps the table of threads as long as the scheduler's.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn flusher_made(flusher: ThreadId) {
    let mut nobody = Logical::new(None, core::ptr::null_mut());
    nobody.id = flusher;
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).logicals.push(Box::into_raw(nobody)) };
}
