//! Steps inside the program's own code: what its compiler was asked to report (`waylay_steps.c` of the headers).
//!
//! Called by the thread that is about to make the access. In threads that are not under control, and inside the library,
//! the identity is null and nothing happens. Executions are sequentially consistent whatever the program asks for.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

use waylay_accesses::{Access, access};
use waylay_control_protocol::Level;
use waylay_schedule::EventKind;
use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::GetProcAddress;

use crate::me::{Inside, me};
use crate::watch::Windows;

/// What accesses are, as the code that reports them says.
const KINDS: [EventKind; 5] = [
    EventKind::PlainRead,
    EventKind::PlainWrite,
    EventKind::AtomicLoad,
    EventKind::AtomicStore,
    EventKind::AtomicRmw,
];

/// The level, as a code of [`Level`].
static LEVEL: AtomicU32 = AtomicU32::new(Level::Sync as u32);

/// Settles what is a step, for the life of the process. Before modules are looked at.
pub(crate) fn configure(level: Level) {
    LEVEL.store(level as u32, Ordering::Relaxed);
}

fn reports(level: Level) -> bool {
    LEVEL.load(Ordering::Relaxed) >= level as u32
}

/// Asks the code of a module to report its accesses, if it was compiled for that and anybody wants to know.
///
/// # Safety
/// The module is loaded, and stays while its code runs.
pub(crate) unsafe fn ask(module: HMODULE) {
    if !reports(Level::Atomics) {
        return;
    }
    // SAFETY: by the caller's promise; what a module exports under this name is a place for such a function.
    unsafe {
        if let Some(place) = GetProcAddress(module, c"waylay_steps".as_ptr().cast()) {
            let place = place as *mut c_void as *mut Report;
            place.write_volatile(accessed);
        }
    }
}

type Report = unsafe extern "C" fn(u32, usize, usize, usize);

/// The running thread is about to make an access of so many bytes; `code` tells places in the code apart.
unsafe extern "C" fn accessed(kind: u32, address: usize, bytes: usize, code: usize) {
    let Some(&kind) = (kind as usize).checked_sub(1).and_then(|kind| KINDS.get(kind)) else { return };
    let plain = matches!(kind, EventKind::PlainRead | EventKind::PlainWrite);
    let me = me();
    if me.is_null() || plain && !reports(Level::Memory) {
        return;
    }
    let access = Access::reported(kind, address, bytes, code);
    // SAFETY: a logical thread that runs program code has the token; the program is about to access the memory itself.
    unsafe {
        let _inside = Inside::enter(me);
        if plain {
            access::plain::<Windows>(me, access);
        } else {
            access::atomic::<Windows>(me, access);
        }
    }
}
