//! Stacks of suspended threads.
//!
//! A thread knows its own stack best: to describe all of them, the inspecting thread resumes each in turn, which
//! unwinds itself and passes the token back. That works alike on the carrier and at home.

use core::ffi::{CStr, c_int, c_void};
use core::fmt::Write;
use core::sync::atomic::{AtomicPtr, Ordering};

use waylay_schedule::{Event, EventKind, ThreadId};

use super::handover::pass;
use super::logical::Logical;
use super::{SHARED, runtime};
use crate::interpose::mutex_owner;
use crate::me::Unmanaged;
use crate::sched::State;

static INSPECTOR: AtomicPtr<Logical> = AtomicPtr::new(core::ptr::null_mut());

/// Adds the stack of every thread that is suspended, and of `inspector` itself, to the report.
///
/// # Safety
/// `inspector` executes the call and holds the token; no thread will ever run program code again.
pub(super) unsafe fn describe_all(inspector: *mut Logical) {
    INSPECTOR.store(inspector, Ordering::Relaxed);
    SHARED.inspecting.store(true, Ordering::Relaxed);
    // SAFETY: by the caller's promise.
    unsafe {
        for index in 0..(*runtime()).logicals.len() {
            let thread = (&(*runtime()).logicals)[index];
            let state = (*runtime()).sched.thread((*thread).id).state;
            // The inspector may be a thread that found out at its very end: it waits for nothing.
            if thread == inspector && state != State::Finished {
                describe(thread);
            } else if matches!(state, State::Blocked | State::Ready) {
                pass(inspector, thread);
            }
        }
    }
}

/// Describes the calling thread and passes the token back.
///
/// # Safety
/// `me` executes the call, and was resumed by [`describe_all`].
pub(super) unsafe fn describe_and_return(me: *mut Logical) {
    // SAFETY: the inspector waits for the token.
    unsafe {
        describe(me);
        pass(me, INSPECTOR.load(Ordering::Relaxed));
    }
}

/// A text of bounded length on its way to the region.
struct Text([u8; 1024], usize);

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let taken = text.len().min(self.0.len() - self.1);
        self.0[self.1..self.1 + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.1 += taken;
        Ok(())
    }
}

/// Adds a line to the report in words.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn line(text: core::fmt::Arguments<'_>) {
    let mut buffer = Text([0; 1024], 0);
    let _ = writeln!(buffer, "{text}");
    let text = String::from_utf8_lossy(&buffer.0[..buffer.1]);
    // SAFETY: by the caller's promise.
    unsafe { (*runtime()).region.append_text(&text) };
}

/// A line that is for whoever explores programs: in a host, what is said is the reason of a failure.
///
/// # Safety
/// As for [`line`].
pub(super) unsafe fn note(text: core::fmt::Arguments<'_>) {
    // SAFETY: by the caller's promise.
    unsafe {
        if (*runtime()).settings.in_process == 0 {
            line(text);
        }
    }
}

unsafe fn describe(me: *mut Logical) {
    // SAFETY: called with the token, by the thread that is described.
    unsafe {
        let unmanaged = Unmanaged::enter();
        let thread = (*runtime()).sched.thread((*me).id);
        let (pending, state, steps) = (thread.pending, thread.state, thread.steps);
        let verb = if state == State::Blocked { "waits in" } else { "is about to do" };
        match holder(pending).filter(|_| state == State::Blocked) {
            Some(holder) => {
                line(format_args!("{} ({steps} steps) {verb} {pending}, held by {holder}", (*me).id))
            }
            None => line(format_args!("{} ({steps} steps) {verb} {pending}", (*me).id)),
        }
        _Unwind_Backtrace(frame, core::ptr::null_mut());
        drop(unmanaged);
    }
}

/// The logical thread that holds the mutex a thread waits for.
unsafe fn holder(pending: Event) -> Option<ThreadId> {
    if pending.kind != EventKind::MutexLock {
        return None;
    }
    // SAFETY: a thread waits for the mutex, so it exists; called with the token.
    unsafe {
        let owner = mutex_owner(pending.object.0 as *const libc::pthread_mutex_t);
        let logicals = &(*runtime()).logicals;
        logicals
            .iter()
            .find(|&&thread| owner != 0 && (*thread).kernel_id as u32 == owner)
            .map(|&thread| (*thread).id)
    }
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

unsafe extern "C" fn frame(context: *mut c_void, _: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes a context of its own.
    unsafe {
        let address = _Unwind_GetIP(context);
        if address != 0 {
            place(address);
        }
    }
    0
}

/// Adds the place of code to the report, unless it is our own.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn place(address: usize) {
    // SAFETY: by the caller's promise; the name pointers of dladdr are static strings.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        // One byte back: a return address may lie behind the last instruction of the calling function.
        if libc::dladdr((address - 1) as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return line(format_args!("    {address:#x}"));
        }
        let module = CStr::from_ptr(info.dli_fname).to_string_lossy();
        if module.contains("libwaylay_control") {
            return;
        }
        let offset = address - info.dli_fbase as usize;
        if info.dli_sname.is_null() {
            line(format_args!("    {module}+{offset:#x}"));
        } else {
            let name = CStr::from_ptr(info.dli_sname).to_string_lossy();
            line(format_args!("    {module}+{offset:#x} {name}"));
        }
    }
}
