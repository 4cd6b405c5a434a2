//! Import tables: where a module keeps the addresses of functions of other modules, and where ours are put.
//!
//! The program, its plugins and the libraries that come with them are changed. Windows itself is not, so that what it does
//! inside stays its own business, except for the runtimes of languages, which may lie in its folder: locks and threads of
//! C++ are in there.

use core::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use windows_sys::Win32::Foundation::{HMODULE, MAX_PATH};
use windows_sys::Win32::System::LibraryLoader::{
    GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, GetModuleFileNameW,
    GetModuleHandleExW,
};
use windows_sys::Win32::System::Memory::{PAGE_READWRITE, VirtualProtect};
use windows_sys::Win32::System::ProcessStatus::K32EnumProcessModules;
use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;
use windows_sys::Win32::System::Threading::GetCurrentProcess;

use super::{Hook, hook_for};
use crate::{access, patch};

/// Modules looked at; no process has more.
const MODULES: usize = 1024;

/// What functions are put in place of: names of modules, in small letters, as they begin.
const PROVIDERS: [&str; 15] = [
    "kernel32.",
    "kernelbase.",
    "ntdll.",
    "api-ms-win-",
    "msvcrt.",
    "ucrtbase.",
    "vcruntime",
    "winmm.",
    "bcryptprimitives.",
    "bcrypt.",
    "advapi32.",
    "cryptbase.",
    "libwinpthread-",
    "libstdc++-",
    "libgcc_s_",
];

/// Runtimes of languages that are changed wherever they lie.
const RUNTIMES: [&str; 8] =
    ["libwinpthread-", "libstdc++-", "libgcc_s_", "libc++", "libunwind", "msvcp", "vcruntime", "concrt"];

/// Puts our functions into the import tables of all modules of the program, and patches their code. What is there already
/// stays. Says which is the first patched module that is new, if there are any.
pub(crate) fn patch_modules() -> Option<usize> {
    let ours = own_module();
    let system = system_folder();
    let mut modules = [core::ptr::null_mut(); MODULES];
    let mut bytes = 0;
    // SAFETY: the list is as large as said.
    unsafe {
        let size = size_of_val(&modules) as u32;
        if K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), size, &mut bytes) == 0 {
            return None;
        }
    }
    let count = (bytes as usize / size_of::<HMODULE>()).min(MODULES);
    let mut changed = Vec::new();
    for &module in &modules[..count] {
        let (folder, name) = name_of(module);
        let runtime = RUNTIMES.iter().any(|runtime| name.starts_with(runtime));
        if module != ours && (runtime || folder != system) {
            // SAFETY: a module of this list is loaded; nobody unloads a library while the program runs this.
            unsafe {
                patch(module.cast());
                access::ask(module);
            }
            changed.push(module);
        }
    }
    // SAFETY: as above; the code of a module that is new has not run, or only in its initialisers.
    let first = unsafe { patch::attend(&changed) };
    let changed: Vec<usize> = changed.into_iter().map(|module| module as usize).collect();
    *CHANGED.lock().unwrap_or_else(PoisonError::into_inner) = Some(changed.into());
    first
}

/// The begins of the program's modules, in the order in which they were loaded.
pub(crate) fn changed_modules() -> Arc<[usize]> {
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}

static CHANGED: Mutex<Option<Arc<[usize]>>> = Mutex::new(None);

/// Whether our functions stand in for those of this module.
pub(super) fn is_provider(module: HMODULE) -> bool {
    is_provider_name(&name_of(module).1)
}

fn is_provider_name(name: &str) -> bool {
    PROVIDERS.iter().any(|provider| name.starts_with(provider))
}

fn own_module() -> HMODULE {
    let from = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    let mut module = core::ptr::null_mut();
    // SAFETY: the address is only looked up.
    unsafe { GetModuleHandleExW(from, own_module as *const u16, &mut module) };
    module
}

/// Folder and name of a module, in small letters.
fn name_of(module: HMODULE) -> (String, String) {
    let mut path = [0u16; 4 * MAX_PATH as usize];
    // SAFETY: the buffer is as large as said.
    let length = unsafe { GetModuleFileNameW(module, path.as_mut_ptr(), path.len() as u32) } as usize;
    let path = String::from_utf16_lossy(&path[..length]).to_lowercase();
    match path.rsplit_once('\\') {
        Some((folder, name)) => (folder.to_owned(), name.to_owned()),
        None => (String::new(), path),
    }
}

fn system_folder() -> String {
    let mut path = [0u16; MAX_PATH as usize];
    // SAFETY: the buffer is as large as said.
    let length = unsafe { GetSystemDirectoryW(path.as_mut_ptr(), path.len() as u32) } as usize;
    String::from_utf16_lossy(&path[..length.min(path.len())]).to_lowercase()
}

/// Offsets of the PE format: the header's place, the directory of imports in it (64 bits), and an import descriptor.
const HEADER: usize = 0x3c;
const IMPORTS: usize = 0x90;
const DESCRIPTOR: usize = 20;
const BY_NUMBER: usize = 1 << 63;

/// Changes the table of one module.
///
/// # Safety
/// A loaded 64-bit module begins at `base`.
unsafe fn patch(base: *mut u8) {
    // SAFETY: by the caller's promise the structures are there, and every address is relative to the module's begin.
    unsafe {
        let word = |at: usize| base.add(at).cast::<u32>().read_unaligned() as usize;
        let directory = word(HEADER) + IMPORTS;
        let (mut descriptor, size) = (word(directory), word(directory + 4));
        if descriptor == 0 || size == 0 {
            return;
        }
        loop {
            let (names, provider, slots) = (word(descriptor), word(descriptor + 12), word(descriptor + 16));
            if provider == 0 || slots == 0 {
                return;
            }
            descriptor += DESCRIPTOR;
            let provider = CStr::from_ptr(base.add(provider).cast()).to_string_lossy().to_lowercase();
            if names == 0 || !is_provider_name(&provider) {
                continue;
            }
            for index in 0.. {
                let name = base.add(names).cast::<usize>().add(index).read_unaligned();
                if name == 0 {
                    break;
                }
                if name & BY_NUMBER == 0
                    && let Some(hook) = hook_for(CStr::from_ptr(base.add(name + 2).cast()).to_bytes())
                {
                    put(base.add(slots).cast::<*mut c_void>().add(index), hook);
                }
            }
        }
    }
}

/// Linkers need not align the table: mingw's puts that of its own C++ runtime at multiples of four.
///
/// # Safety
/// `slot` is an entry of an import table for the function that the hook is for.
unsafe fn put(slot: *mut *mut c_void, hook: &'static Hook) {
    // SAFETY: by the caller's promise; the page is made writable for as long as it takes.
    unsafe {
        let there = slot.read_unaligned();
        if core::ptr::eq(there, hook.ours) {
            return;
        }
        hook.remember(there);
        let mut before = 0;
        if VirtualProtect(slot.cast(), size_of::<usize>(), PAGE_READWRITE, &mut before) != 0 {
            slot.write_unaligned(hook.ours.cast_mut());
            VirtualProtect(slot.cast(), size_of::<usize>(), before, &mut before);
        }
    }
}
