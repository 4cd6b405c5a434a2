//! Ending the process.

use libc::c_int;
use waylay_control_protocol::Ending;
use waylay_schedule::{Event, EventKind, ThreadId};

use super::interpose;
use crate::heap::guard;
use crate::me::{as_program, set_me};
use crate::runtime::{Logical, finalise, step};

/// The last step of a program that ends itself: others may still run before it, and show what they would have done.
///
/// # Safety
/// `me` executes the call and holds the token.
pub(super) unsafe fn last_step(me: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe { step(me, Event::on_thread(EventKind::ProcessExit, ThreadId::MAIN)) }
    guard::look_at_all();
}

/// What runs when the library is unloaded, after the program's exit handlers.
pub(super) extern "C" fn at_unload() {
    let me = crate::me::me();
    if !me.is_null() {
        // SAFETY: a logical thread that runs program code, exit handlers included, has the token.
        unsafe { finalise(Ending::Exited) };
        set_me(core::ptr::null_mut());
    }
}

interpose! {
    fn exit(status: c_int) -> (), |me| {
        last_step(me);
        as_program(me, || real::exit(status))
    }

    fn _exit(status: c_int) -> (), |me| {
        last_step(me);
        finalise(Ending::Exited);
        real::_exit(status)
    }

    fn _Exit(status: c_int) -> (), |me| {
        last_step(me);
        finalise(Ending::Exited);
        real::_Exit(status)
    }

    fn quick_exit(status: c_int) -> (), |me| {
        last_step(me);
        finalise(Ending::Exited);
        as_program(me, || real::quick_exit(status))
    }
}
