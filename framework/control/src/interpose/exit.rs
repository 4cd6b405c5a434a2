//! Ending the process.

use core::ffi::c_void;

use libc::c_int;
use waylay_control_protocol::Ending;
use waylay_schedule::{Event, EventKind, ThreadId};

use super::interpose;
use crate::heap::guard;
use crate::me::{Unmanaged, as_program, set_me};
use crate::runtime::{Token, finalise, step};

/// The last step of a program that ends itself: others may still run before it, and show what they would have done.
pub(super) fn last_step(me: &mut Token) {
    step(me, Event::on_thread(EventKind::ProcessExit, ThreadId::MAIN));
    guard::look_at_all();
}

unsafe extern "C" {
    fn __cxa_atexit(
        function: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        module: *mut c_void,
    ) -> c_int;
}

/// What runs when the library is unloaded, after the program's exit handlers. Destructors of other libraries may follow, which
/// stop the threads of these libraries: the end of the run comes after all of them.
pub(super) extern "C" fn at_unload() {
    if crate::me::me().is_null() {
        return;
    }
    let inside = Unmanaged::enter();
    // SAFETY: the function stays loaded until the process ends.
    let error = unsafe { __cxa_atexit(conclude, core::ptr::null_mut(), core::ptr::null_mut()) };
    drop(inside);
    if error != 0 {
        conclude(core::ptr::null_mut());
    }
}

/// The end of the run. Other threads may still run before it, and find what exit handlers have destroyed.
extern "C" fn conclude(_: *mut c_void) {
    let running = crate::me::me();
    if !running.is_null() {
        // SAFETY: a logical thread that runs program code, exit handlers included, has the token.
        let me = unsafe { Token::held_by(running) };
        if me.run().sched.live() > 1 {
            let _inside = Unmanaged::enter_from(running);
            step(me, Event::local(EventKind::Call));
        }
        finalise(me, Ending::Exited);
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
        finalise(me, Ending::Exited);
        real::_exit(status)
    }

    fn _Exit(status: c_int) -> (), |me| {
        last_step(me);
        finalise(me, Ending::Exited);
        real::_Exit(status)
    }

    fn quick_exit(status: c_int) -> (), |me| {
        last_step(me);
        finalise(me, Ending::Exited);
        as_program(me, || real::quick_exit(status))
    }
}
