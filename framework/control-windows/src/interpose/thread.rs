//! Creating, resuming and leaving threads.

use core::ffi::c_void;

use windows_sys::Win32::Foundation::{HANDLE, HMODULE};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::LibraryLoader as libraries;
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::{
    CREATE_SUSPENDED, LPTHREAD_START_ROUTINE, STACK_SIZE_PARAM_IS_A_RESERVATION,
};
use windows_sys::core::BOOL;

use super::imports::patch_modules;
use super::interpose;
use crate::me::{keep_error, set_me};
use crate::runtime::{create, exit_point, note_joined, resume, runtime};

/// Tells the system's number of a thread that may be one of the pool.
pub(super) unsafe fn tell_number(handle: HANDLE, number: *mut u32) {
    // SAFETY: by the caller's promise; called with the token.
    unsafe {
        if !number.is_null()
            && !handle.is_null()
            && let Some(thread) = (*runtime()).system.handles.thread(handle)
        {
            *number = (*thread).number;
        }
    }
}

interpose! {
    fn CreateThread(
        security: *const SECURITY_ATTRIBUTES,
        stack: usize,
        routine: LPTHREAD_START_ROUTINE,
        argument: *const c_void,
        flags: u32,
        number: *mut u32,
    ) -> HANDLE = real::CreateThread(security, stack, routine, argument, flags, number), |me| {
        let Some(routine) = routine else {
            return real::CreateThread(security, stack, None, argument, flags, number);
        };
        let suspended = flags & CREATE_SUSPENDED != 0;
        let plain = security.is_null() && flags & !(CREATE_SUSPENDED | STACK_SIZE_PARAM_IS_A_RESERVATION) == 0;
        let pooled = plain.then_some(stack);
        let handle = create(me, routine, argument.cast_mut(), suspended, pooled, |me, routine, argument| {
            let handle =
                real::CreateThread(security, stack, Some(routine), argument, flags & !CREATE_SUSPENDED, number);
            keep_error(me);
            handle
        });
        tell_number(handle, number);
        handle
    }

    fn ResumeThread(handle: HANDLE) -> u32 = real::ResumeThread(handle), |me| {
        if resume(me, handle) {
            // It was suspended once, by its creation.
            return 1;
        }
        me.run().note_uncontrolled();
        let before = real::ResumeThread(handle);
        keep_error(me);
        before
    }

    fn ExitThread(code: u32) -> ! = real::ExitThread(code), |me| {
        exit_point(me, code);
        set_me(core::ptr::null_mut());
        real::ExitThread(code)
    }

    fn FreeLibraryAndExitThread(module: HMODULE, code: u32) -> !
        = libraries::FreeLibraryAndExitThread(module, code), |me| {
        windows_sys::Win32::Foundation::FreeLibrary(module);
        patch_modules();
        exit_point(me, code);
        set_me(core::ptr::null_mut());
        real::ExitThread(code)
    }

    fn GetExitCodeThread(handle: HANDLE, code: *mut u32) -> BOOL = real::GetExitCodeThread(handle, code), |me| {
        if let Some(thread) = me.run().system.handles.thread(handle) && me.run().has_finished(thread) {
            note_joined(me, thread);
            *code = (*thread).result;
            return 1;
        }
        let result = real::GetExitCodeThread(handle, code);
        keep_error(me);
        result
    }

    fn TlsSetValue(slot: u32, value: *const c_void) -> BOOL = real::TlsSetValue(slot, value), |me| {
        (*me.thread()).slots.note(slot);
        let result = real::TlsSetValue(slot, value);
        keep_error(me);
        result
    }
}
