//! Libraries that are loaded, and functions that are looked up, while the program runs.
//!
//! A thread inside the loader holds a lock that no thread can begin without, so it makes no steps there.

use core::ffi::{CStr, c_void};

use windows_sys::Win32::Foundation as base;
use windows_sys::Win32::Foundation::{HANDLE, HMODULE};
use windows_sys::Win32::System::LibraryLoader as real;
use windows_sys::core::{BOOL, PCSTR, PCWSTR};

use super::imports::{is_provider, patch_modules};
use super::{hook_for, interpose};
use crate::me::{keep_error, set_me};
use crate::runtime::Token;
use crate::watch;

/// Loads a library; its initialisers are program code of `me`.
fn load(me: &mut Token, work: impl FnOnce() -> HMODULE) -> HMODULE {
    // SAFETY: who has the token lives.
    unsafe {
        (*me.thread()).unpreemptible += 1;
        set_me(me.thread());
        let module = work();
        set_me(core::ptr::null_mut());
        keep_error(me);
        if let Some(first) = patch_modules() {
            watch::modules_loaded(me, first);
        }
        (*me.thread()).unpreemptible -= 1;
        module
    }
}

fn load_outside(work: impl FnOnce() -> HMODULE) -> HMODULE {
    let module = work();
    if !module.is_null() {
        patch_modules();
    }
    module
}

unsafe fn unload_outside(module: HMODULE) -> BOOL {
    // SAFETY: by the caller's promise.
    let result = unsafe { base::FreeLibrary(module) };
    patch_modules();
    result
}

/// The function of that name, or ours in its place.
unsafe fn look_up(module: HMODULE, name: PCSTR) -> *const c_void {
    /// Smaller values are no addresses but numbers of functions.
    const NUMBERS: usize = 0x1_0000;
    // SAFETY: by the caller's promise.
    unsafe {
        let found =
            real::GetProcAddress(module, name).map_or(core::ptr::null(), |found| found as *const c_void);
        if found.is_null() || (name as usize) < NUMBERS {
            return found;
        }
        match hook_for(CStr::from_ptr(name.cast()).to_bytes()) {
            Some(hook) if is_provider(module) => {
                hook.remember(found.cast_mut());
                hook.ours
            }
            _ => found,
        }
    }
}

interpose! {
    fn LoadLibraryA(name: PCSTR) -> HMODULE = load_outside(|| real::LoadLibraryA(name)), |me| {
        load(me, || real::LoadLibraryA(name))
    }
    fn LoadLibraryW(name: PCWSTR) -> HMODULE = load_outside(|| real::LoadLibraryW(name)), |me| {
        load(me, || real::LoadLibraryW(name))
    }
    fn LoadLibraryExA(name: PCSTR, file: HANDLE, flags: u32) -> HMODULE
        = load_outside(|| real::LoadLibraryExA(name, file, flags)), |me| {
        load(me, || real::LoadLibraryExA(name, file, flags))
    }
    fn LoadLibraryExW(name: PCWSTR, file: HANDLE, flags: u32) -> HMODULE
        = load_outside(|| real::LoadLibraryExW(name, file, flags)), |me| {
        load(me, || real::LoadLibraryExW(name, file, flags))
    }
    fn FreeLibrary(module: HMODULE) -> BOOL = unload_outside(module), |me| {
        let mut result = 0;
        load(me, || {
            result = base::FreeLibrary(module);
            core::ptr::null_mut()
        });
        result
    }
    fn GetProcAddress(module: HMODULE, name: PCSTR) -> *const c_void = look_up(module, name), |me| {
        let found = look_up(module, name);
        keep_error(me);
        found
    }
}
