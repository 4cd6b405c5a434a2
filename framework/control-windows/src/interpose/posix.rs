//! Threads and the end of the process as C runtimes make them: a process may have several runtimes, so the real functions
//! are those that the program was linked with.

use core::ffi::{c_int, c_void};

use waylay_control_protocol::Ending;
use waylay_schedule::{Event, EventKind, ThreadId};
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::Threading::{CREATE_SUSPENDED, STACK_SIZE_PARAM_IS_A_RESERVATION};

use super::thread::tell_number;
use super::{exit, interpose_foreign};
use crate::me::{as_program, set_me};
use crate::runtime::{Routine, create, exit_point, finalise, step};

/// What `_beginthread` starts returns nothing.
type Procedure = unsafe extern "C" fn(*mut c_void);

interpose_foreign! {
    fn _beginthreadex(
        security: *mut c_void,
        stack: u32,
        routine: Routine,
        argument: *mut c_void,
        flags: u32,
        number: *mut u32,
    ) -> HANDLE = real::_beginthreadex(security, stack, routine, argument, flags, number), |me| {
        let plain = security.is_null() && flags & !(CREATE_SUSPENDED | STACK_SIZE_PARAM_IS_A_RESERVATION) == 0;
        let (suspended, pooled) = (flags & CREATE_SUSPENDED != 0, plain.then_some(stack as usize));
        let handle = create(me, routine, argument, suspended, pooled, |_, routine, argument| {
            real::_beginthreadex(security, stack, routine, argument, flags & !CREATE_SUSPENDED, number)
        });
        tell_number(handle, number);
        handle
    }

    fn _beginthread(routine: Procedure, stack: u32, argument: *mut c_void) -> HANDLE
        = real::_beginthread(routine, stack, argument), |me| {
        // The values that both return are in the same register, and nobody looks at that of a procedure.
        let routine = core::mem::transmute::<Procedure, Routine>(routine);
        create(me, routine, argument, false, None, |_, routine, argument| {
            real::_beginthread(core::mem::transmute::<Routine, Procedure>(routine), stack, argument)
        })
    }

    fn _endthreadex(code: u32) -> () = real::_endthreadex(code), |me| {
        exit_point(me, code);
        set_me(core::ptr::null_mut());
        real::_endthreadex(code)
    }

    fn _endthread() -> () = real::_endthread(), |me| {
        exit_point(me, 0);
        set_me(core::ptr::null_mut());
        real::_endthread()
    }

    fn exit(status: c_int) -> () = real::exit(status), |me| {
        step(me, Event::on_thread(EventKind::ProcessExit, ThreadId::MAIN));
        exit::hold(me, status as u32);
        as_program(me, || real::exit(status))
    }

    fn _exit(status: c_int) -> () = real::_exit(status), |me| {
        step(me, Event::on_thread(EventKind::ProcessExit, ThreadId::MAIN));
        exit::hold(me, status as u32);
        finalise(me, Ending::Exited);
        real::_exit(status)
    }

    fn abort() -> () = real::abort(), |me| {
        exit::hold(me, exit::ABORTED);
        as_program(me, || real::abort())
    }
}
