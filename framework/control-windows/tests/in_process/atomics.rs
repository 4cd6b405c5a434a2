//! Lock-free programs in libraries that were built by mingw and know nothing of Waylay: `atomics.c` and `thrown.cpp`.

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::{FreeLibrary, HMODULE};
use windows_sys::Win32::System::LibraryLoader::{GetProcAddress, LoadLibraryW};

/// Where they are; none with another tool chain.
const FOLDER: Option<&str> = option_env!("WAYLAY_TEST_LIBRARIES");

/// Whether there are none.
#[allow(dead_code, reason = "the benchmark has no use for it")]
pub(crate) fn are_missing() -> bool {
    FOLDER.is_none()
}

type Function = unsafe extern "C" fn() -> c_int;

fn load(library: &str) -> HMODULE {
    let folder = FOLDER.unwrap_or_default().replace('/', "\\");
    // A folder of the machine that built this is on Wine's drive for it.
    let drive = if folder.starts_with('\\') { "Z:" } else { "" };
    let path: Vec<u16> = format!("{drive}{folder}\\{library}.dll").encode_utf16().chain([0]).collect();
    // SAFETY: the path ends with a zero; the libraries do nothing when they are loaded.
    let module = unsafe { LoadLibraryW(path.as_ptr()) };
    assert!(!module.is_null(), "{folder}\\{library}: {}", std::io::Error::last_os_error());
    module
}

fn function(module: HMODULE, name: &CStr) -> Function {
    // SAFETY: the libraries export functions of this type.
    unsafe {
        let found = GetProcAddress(module, name.as_ptr().cast()).expect("exported");
        std::mem::transmute::<unsafe extern "system" fn() -> isize, Function>(found)
    }
}

static FOUND: OnceLock<Function> = OnceLock::new();

fn call() -> bool {
    // SAFETY: the function of a library that stays loaded.
    FOUND.get().is_some_and(|function| unsafe { function() } != 0)
}

/// The library comes and goes with the run.
fn reloaded() -> bool {
    let module = load("atomics");
    // SAFETY: the threads of the function have ended when it returns.
    unsafe {
        let good = function(module, c"lost_update")() != 0;
        FreeLibrary(module);
        good
    }
}

/// A process runs one of them.
pub(crate) fn find(name: &str) -> Option<fn() -> bool> {
    let (library, function_name) = match name {
        "c-lost-update" => ("atomics", c"lost_update"),
        "c-added" => ("atomics", c"added"),
        "c-spin-lock" => ("atomics", c"spin_lock"),
        "c-turns" => ("atomics", c"turns"),
        "c-busy" => ("atomics", c"busy"),
        "c-registers" => ("atomics", c"registers"),
        "c-wide-registers" => ("wide", c"registers"),
        "c-short-functions" => ("atomics", c"short_functions"),
        "c-watched" => ("atomics", c"watched"),
        "c-own-stacks" => ("atomics", c"own_stacks"),
        "cpp-thrown" => ("thrown", c"thrown"),
        "c-reloaded" => return Some(reloaded),
        _ => return None,
    };
    FOUND.get_or_init(|| function(load(library), function_name));
    Some(call)
}
