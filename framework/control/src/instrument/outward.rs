//! Calls out of modules whose stores are seen, where stores may wait: what the called code stores is not seen and must not
//! overtake, so the thread's stores become visible first.
//!
//! The slots through which a module calls others lead to a few bytes of code each, which name the function and go to
//! [`leave`]. Functions of this library do it themselves, and those of the program and its own libraries need not. Libraries that
//! are only named to be seen closely do not count as such: what is a step must not depend on how closely a run is looked at.

use core::arch::naked_asm;
use core::cell::UnsafeCell;

use waylay_accesses::delayed;
use waylay_patch::{enter_with_arguments, leave_with_arguments};

use super::delay;
use super::patch::Loaded;
use crate::binding;
use crate::me::{Unmanaged, me};
use crate::runtime::Token;
use crate::sys;

/// Bytes of the code for one function: `mov r11, function; jmp [rip]; leave`.
const ENTRY: usize = 24;
const PAGE: usize = 4096;

/// A page of such code, and how much of it is used.
struct Code(UnsafeCell<(usize, usize)>);

// SAFETY: touched while modules are patched, by one thread at a time.
unsafe impl Sync for Code {}

static CODE: Code = Code(UnsafeCell::new((0, PAGE)));

/// Modules whose stores are seen.
struct Own(UnsafeCell<Vec<core::ops::Range<usize>>>);

// SAFETY: as for `Code`.
unsafe impl Sync for Own {}

static OWN: Own = Own(UnsafeCell::new(Vec::new()));

/// The stores of this module are seen.
pub(super) fn sees_stores_of(module: &Loaded) {
    // SAFETY: see `Own`.
    unsafe { (*OWN.0.get()).push(module.base..module.end) };
}

/// Has the calls of a module lead here.
pub(super) fn see(module: &Loaded) {
    let own = binding::module_of(see as *const () as *mut _);
    let mut instead = |function: usize| {
        let there = binding::module_of(function as *mut _);
        // SAFETY: see `Own`.
        let seen = there.is_none() || there == own || unsafe { &*OWN.0.get() }.iter().any(|module| module.contains(&function));
        if seen { None } else { entry(function) }
    };
    // SAFETY: the module was just loaded, or the program has not begun; each entry goes on to the function.
    unsafe { binding::redirect_bound(module.base, &mut instead) };
}

/// Code that goes on to a function; none when there is no memory.
fn entry(function: usize) -> Option<usize> {
    // SAFETY: see `Code`.
    let (page, used) = unsafe { &mut *CODE.0.get() };
    if *used + ENTRY > PAGE {
        *page = sys::map(PAGE)? as usize;
        *used = 0;
    }
    let at = *page + *used;
    let mut code = [0u8; ENTRY];
    code[..2].copy_from_slice(&[0x49, 0xbb]);
    code[2..10].copy_from_slice(&function.to_le_bytes());
    code[10..16].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
    code[16..].copy_from_slice(&(leave as *const () as usize).to_le_bytes());
    // SAFETY: a page of ours, which nobody executes at this moment.
    unsafe {
        if !sys::protect(*page, PAGE, libc::PROT_READ | libc::PROT_WRITE) {
            return None;
        }
        (at as *mut u8).copy_from_nonoverlapping(code.as_ptr(), ENTRY);
        if !sys::protect(*page, PAGE, libc::PROT_READ | libc::PROT_EXEC) {
            return None;
        }
    }
    *used += ENTRY;
    Some(at)
}

extern "C" fn before() {
    let me = me();
    if !me.is_null() {
        let _inside = Unmanaged::enter_from(me);
        // SAFETY: a logical thread that runs program code has the token.
        unsafe { delay::drain(Token::held_by(me)) };
    }
}

/// Goes on to the function in R11, which linkers may change at a call, with all registers that can hold arguments.
///
/// # Safety
/// Called by the code of an entry only.
#[unsafe(naked)]
unsafe extern "C" fn leave() {
    naked_asm!(
        ".cfi_startproc",
        "cmp byte ptr [rip + {on}], 0",
        "jne 2f",
        "jmp r11",
        "2:",
        enter_with_arguments!(),
        "call {before}",
        leave_with_arguments!(),
        "jmp r11",
        ".cfi_endproc",
        on = sym delayed::ON,
        before = sym before,
    )
}
