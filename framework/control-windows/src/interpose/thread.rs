//! Creating, resuming and leaving threads.

use core::ffi::c_void;

use windows_sys::Win32::Foundation::{HANDLE, HMODULE};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::LibraryLoader as libraries;
use windows_sys::Win32::System::Threading as real;
use windows_sys::Win32::System::Threading::{CREATE_SUSPENDED, LPTHREAD_START_ROUTINE};

use super::interpose;
use crate::me::{keep_error, set_me};
use crate::runtime::{create, exit_point, resume, runtime};

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
        let handle = create(me, routine, argument.cast_mut(), suspended, |routine, argument| {
            let handle =
                real::CreateThread(security, stack, Some(routine), argument, flags & !CREATE_SUSPENDED, number);
            keep_error(me);
            handle
        });
        handle
    }

    fn ResumeThread(handle: HANDLE) -> u32 = real::ResumeThread(handle), |me| {
        if resume(me, handle) {
            // It was suspended once, by its creation.
            return 1;
        }
        (*runtime()).note_uncontrolled();
        let before = real::ResumeThread(handle);
        keep_error(me);
        before
    }

    fn ExitThread(code: u32) -> ! = real::ExitThread(code), |me| {
        exit_point(me);
        set_me(core::ptr::null_mut());
        real::ExitThread(code)
    }

    fn FreeLibraryAndExitThread(module: HMODULE, code: u32) -> !
        = libraries::FreeLibraryAndExitThread(module, code), |me| {
        exit_point(me);
        set_me(core::ptr::null_mut());
        libraries::FreeLibraryAndExitThread(module, code)
    }
}
