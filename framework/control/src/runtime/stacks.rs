//! Stacks of the program's threads and who holds its mutexes, for the report of a run that ends.

use core::ffi::{CStr, c_int, c_void};

use waylay_control_protocol::Statement;
use waylay_control_protocol::account::{Operation, Place};
use waylay_runtime::{Stacks, inspect};
use waylay_schedule::{Event, EventKind, ThreadId};

use super::{Token, inside};
use crate::instrument::Linux;
use crate::interpose::Mutex;

impl Stacks for Linux {
    unsafe fn holder(me: &mut Token, pending: Event) -> Option<ThreadId> {
        if pending.kind != EventKind::MutexLock {
            return None;
        }
        // SAFETY: a thread waits for the mutex, so it exists.
        unsafe {
            let owner = Mutex::at(pending.object.0 as *mut libc::pthread_mutex_t).owner();
            let logicals = &me.run().logicals;
            logicals
                .iter()
                .find(|&&thread| owner != 0 && (*thread).kernel_id as u32 == owner)
                .map(|&thread| (*thread).id)
        }
    }

    fn waits_in(me: &mut Token) -> Option<Operation<'static>> {
        inside::waits_in(me)
    }

    fn describe_stack(me: &mut Token) {
        // SAFETY: the function gets the token, and is called before this returns.
        unsafe { _Unwind_Backtrace(frame, me.thread().cast()) };
    }

    fn place(me: &mut Token, address: usize) {
        // SAFETY: plain call; the name pointers of dladdr are static strings.
        unsafe {
            let mut info: libc::Dl_info = core::mem::zeroed();
            // One byte back: a return address may lie behind the last instruction of the calling function.
            if libc::dladdr((address - 1) as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
                return tell(me, Place::Address(address as u64));
            }
            let module = CStr::from_ptr(info.dli_fname).to_string_lossy();
            if module.contains("libwaylay_control") {
                return;
            }
            let offset = address - info.dli_fbase as usize;
            let has_name = !info.dli_sname.is_null();
            let name = has_name.then(|| CStr::from_ptr(info.dli_sname).to_string_lossy());
            tell(me, Place::InModule(module, offset as u64, name));
        }
    }
}

fn tell(me: &mut Token, place: Place<'_>) {
    inspect::tell(me, &Statement::Place(place));
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

unsafe extern "C" fn frame(context: *mut c_void, me: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes a context of its own, and the thread that has the token.
    unsafe {
        let address = _Unwind_GetIP(context);
        if address != 0 {
            Linux::place(Token::held_by(me.cast()), address);
        }
    }
    0
}
