//! Memory that the program is given, and gives back: who allocated what, for whoever tells memory apart that is used again,
//! and who frees what others use.
//!
//! A free is a step where it was seen to conflict with an access; nothing else here is one. The functions are put in place
//! only where accesses of programs are looked at. The code that calls is told by where the call returns to, which Rust
//! cannot ask for: each function is some instructions of assembly that pass it on as a fifth argument.

use core::arch::global_asm;
use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use windows_sys::Win32::Foundation::HANDLE;

use super::{Foreign, Hook};
use crate::me::{Inside, me};
use crate::runtime::Token;
use crate::watch::edge;

static WANTED: AtomicBool = AtomicBool::new(false);

/// Settles whether it matters who allocates, for the life of the process. Before modules are looked at.
pub(crate) fn configure(wanted: bool) {
    WANTED.store(wanted, Ordering::Relaxed);
}

/// The functions, if they are wanted.
pub(super) fn hooks() -> &'static [Hook] {
    if WANTED.load(Ordering::Relaxed) { HOOKS } else { &[] }
}

type Block = *mut c_void;

/// Code at `caller` was given a block.
fn allocated(block: Block, bytes: usize, caller: usize) -> Block {
    let me = me();
    if edge::follows() && !block.is_null() && !me.is_null() {
        // SAFETY: a logical thread that runs program code has the token.
        unsafe {
            let _inside = Inside::enter(me);
            edge::allocated(Token::held_by(me), block as usize, bytes, caller);
        }
    }
    block
}

/// Code at `caller` is about to give a block back, or may be: of `bytes`, or as long as it is known to be if that is 0.
/// `certain`: it does.
fn frees(block: Block, bytes: usize, caller: usize, certain: bool) {
    let me = me();
    if !edge::follows() || block.is_null() || me.is_null() {
        return;
    }
    // SAFETY: a logical thread that runs program code has the token.
    unsafe {
        let _inside = Inside::enter(me);
        let me = Token::held_by(me);
        let known = if bytes == 0 { edge::length_of(me, block as usize) } else { Some(bytes) };
        if let Some(bytes) = known {
            edge::before_free(me, (block as usize, bytes), caller);
            if certain {
                edge::freed(me, (block as usize, bytes), caller);
            }
        }
    }
}

/// A block becomes another, or has another length: what is no longer in use was freed.
fn reallocated(before: Block, bytes: usize, caller: usize, real: impl FnOnce() -> Block) -> Block {
    frees(before, 0, caller, false);
    let block = real();
    let me = me();
    if block.is_null() || me.is_null() || !edge::follows() {
        return block;
    }
    // SAFETY: a logical thread that runs program code has the token.
    unsafe {
        let _inside = Inside::enter(me);
        let me = Token::held_by(me);
        let old = edge::length_of(me, before as usize).filter(|_| !before.is_null());
        if before != block {
            if let Some(old) = old {
                edge::freed(me, (before as usize, old), caller);
            }
            edge::allocated(me, block as usize, bytes, caller);
        } else {
            if let Some(less) = old.and_then(|old| old.checked_sub(bytes)).filter(|&less| less > 0) {
                edge::freed(me, (block as usize + bytes, less), caller);
            }
            edge::resized(me, block as usize, bytes);
        }
    }
    block
}

/// Bytes of a text with the zero behind it.
unsafe fn length(text: *const c_char) -> usize {
    // SAFETY: by the caller's promise that it is one.
    unsafe { core::ffi::CStr::from_ptr(text) }.count_bytes() + 1
}

/// Functions with at most four arguments that return a block, or something else that fits into a register: `ours` has them and, after arguments that mean nothing, the
/// caller as the fifth. `real` is the program's own.
macro_rules! allocates {
    ($(fn $name:ident[$stub:ident, $ours:ident]($($argument:ident: $type:ty),*; $($filler:ident)*) |$real:ident, $caller:ident| $body:expr;)+) => {
        $(
            static $stub: Foreign = Foreign::new(concat!(stringify!($name), "\0"));

            #[allow(clippy::too_many_arguments, reason = "four of the program's and one of ours")]
            unsafe extern "system-unwind" fn $ours($($argument: $type,)* $($filler: usize,)* $caller: usize) -> Block {
                type Real = unsafe extern "system-unwind" fn($($type),*) -> Block;
                // SAFETY: the function of this name has this type; the program promises what it demands.
                unsafe {
                    let $real: Real = core::mem::transmute($stub.address());
                    $body
                }
            }

            global_asm!(
                concat!(".globl waylay_control_", stringify!($name)),
                concat!(".def waylay_control_", stringify!($name), "; .scl 2; .type 32; .endef"),
                concat!(".seh_proc waylay_control_", stringify!($name)),
                concat!("waylay_control_", stringify!($name), ":"),
                "sub rsp, 56",
                ".seh_stackalloc 56",
                ".seh_endprologue",
                "mov rax, [rsp + 56]",
                "mov [rsp + 32], rax",
                "call {ours}",
                "add rsp, 56",
                "ret",
                ".seh_endproc",
                ours = sym $ours,
            );
        )+

        mod stubs {
            unsafe extern "C" {
                $(
                    #[link_name = concat!("waylay_control_", stringify!($name))]
                    pub(super) fn $ours();
                )+
            }
        }

        const HOOKS: &[Hook] = &[$(
            Hook {
                name: stringify!($name),
                ours: stubs::$ours as unsafe extern "C" fn() as *const c_void,
                foreign: Some(&$stub),
            },
        )+];
    };
}

allocates! {
    fn HeapAlloc[HEAP_ALLOC, heap_alloc](heap: HANDLE, flags: u32, bytes: usize; _a) |real, caller|
        allocated(real(heap, flags, bytes), bytes, caller);
    fn HeapReAlloc[HEAP_RE_ALLOC, heap_re_alloc](heap: HANDLE, flags: u32, block: Block, bytes: usize;) |real, caller|
        reallocated(block, bytes, caller, || real(heap, flags, block, bytes));
    fn malloc[MALLOC, plain](bytes: usize; _a _b _c) |real, caller| allocated(real(bytes), bytes, caller);
    fn calloc[CALLOC, cleared](count: usize, bytes: usize; _a _b) |real, caller|
        allocated(real(count, bytes), count.saturating_mul(bytes), caller);
    fn realloc[REALLOC, changed](block: Block, bytes: usize; _a _b) |real, caller|
        reallocated(block, bytes, caller, || real(block, bytes));
    fn _aligned_malloc[ALIGNED, aligned](bytes: usize, alignment: usize; _a _b) |real, caller|
        allocated(real(bytes, alignment), bytes, caller);
    fn _strdup[STRDUP, copied](text: *const c_char; _a _b _c) |real, caller|
        allocated(real(text), length(text), caller);
    fn strdup[OLD_STRDUP, also_copied](text: *const c_char; _a _b _c) |real, caller|
        allocated(real(text), length(text), caller);
    fn VirtualAlloc[VIRTUAL_ALLOC, pages](at: Block, bytes: usize, kind: u32, protection: u32;) |real, caller|
        allocated(real(at, bytes, kind, protection), bytes, caller);
    // What these return fits into a register, whatever it is.
    fn HeapFree[HEAP_FREE, heap_free](heap: HANDLE, flags: u32, block: Block; _a) |real, caller| {
        frees(block, 0, caller, true);
        real(heap, flags, block)
    };
    fn free[FREE, freed](block: Block; _a _b _c) |real, caller| {
        frees(block, 0, caller, true);
        real(block)
    };
    fn _aligned_free[ALIGNED_FREE, aligned_freed](block: Block; _a _b _c) |real, caller| {
        frees(block, 0, caller, true);
        real(block)
    };
    fn VirtualFree[VIRTUAL_FREE, pages_freed](at: Block, bytes: usize, kind: u32; _a) |real, caller| {
        frees(at, bytes, caller, true);
        real(at, bytes, kind)
    };
}
