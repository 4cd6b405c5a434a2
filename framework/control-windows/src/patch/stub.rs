//! What the code in place of a site calls: saves every register that a call may change, and looks first whether there is
//! anything to do.
//!
//! Two ways. The short one keeps the general registers, the flags of arithmetic and the vectors of 128 bits that a called
//! function of Windows may change: all there is in a module that uses no wider vectors, masks, old floating-point unit or
//! backward copies anywhere. The long one keeps everything, by the processor's own instruction for it.
//!
//! Some languages give their many small threads stacks of their own, with little room; neither way is taken there.
//!
//! For whoever walks the stack, the caller of both is the program, at the site: the code in between belongs to no module.
//! What functions may use below their stack pointer on other systems is free here, and what would be the return address
//! of a call stands in it.

use core::arch::global_asm;

use waylay_patch::registers::{ALL_REGISTERS, AREA};
use waylay_patch::{restore_registers, save_registers};

use super::site::at_site;
use crate::me::{OFFSET, STACK_BASE, STACK_LIMIT};

/// Where a stub keeps things, from what it passes on: its own frame pointer. Above it are seven words of its own, where to
/// return to, and the three words of the trampoline.
const RDX: usize = 40;
const RCX: usize = 48;
const SITE: usize = 72;
const ADDRESS: usize = 80;
const RAX: usize = 88;
/// The last word below the program's own stack.
const CALLER: usize = RAX + 8 + 128 - 8;
/// What lies between the frame pointer that is kept and that word, for whoever walks the stack.
const BETWEEN: usize = CALLER - 8;

/// Windows gives a stack its memory page by page, as it is touched, so that the area is taken in two parts.
const HALF: usize = AREA / 2;

/// Says where the program is.
///
/// # Safety
/// `saved` is what a stub passed on, and the site has not been left.
pub(super) unsafe fn set_caller(saved: usize, place: usize) {
    // SAFETY: by the caller's promise.
    unsafe { ((saved + CALLER) as *mut usize).write(place) };
}

/// The number of the site.
///
/// # Safety
/// As for [`set_caller`].
pub(super) unsafe fn site_of(saved: usize) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe { ((saved + SITE) as *const u32).read() }
}

/// What RSP and RBP were at the site.
///
/// # Safety
/// As for [`set_caller`].
pub(super) unsafe fn frame(saved: usize) -> [usize; 2] {
    // SAFETY: by the caller's promise.
    [saved + CALLER + 8, unsafe { (saved as *const usize).read() }]
}

/// What RCX holds: how often a string instruction is done.
///
/// # Safety
/// As for [`set_caller`].
pub(super) unsafe fn count(saved: usize) -> usize {
    // SAFETY: by the caller's promise.
    unsafe { ((saved + RCX) as *const usize).read() }
}

/// Puts what the processor's counter is to show in place of what was read, with the processor's number if that is asked for.
///
/// # Safety
/// `saved` is what a stub passed on at a site that reads the counter, which has not been left.
pub(super) unsafe fn set_counter(saved: usize, ticks: u64, with_processor: bool) {
    let place = |offset: usize| (saved + offset) as *mut u64;
    // SAFETY: by the caller's promise.
    unsafe {
        place(RAX).write(ticks & u64::from(u32::MAX));
        place(RDX).write(ticks >> 32);
        if with_processor {
            place(RCX).write(0);
        }
    }
}

/// The address of the stub for a module.
pub(super) fn address(long: bool) -> usize {
    let stub = if long { waylay_control_long as *const () } else { waylay_control_short as *const () };
    stub as usize
}

/// Whether the long way works on this processor.
pub(crate) fn can_save_all() -> bool {
    std::arch::is_x86_feature_detected!("xsavec")
}

unsafe extern "C" {
    fn waylay_control_short();
    fn waylay_control_long();
}

global_asm!(
    ".globl waylay_control_short",
    ".def waylay_control_short; .scl 2; .type 32; .endef",
    ".seh_proc waylay_control_short",
    "waylay_control_short:",
    "lahf",
    "seto al",
    "push rax",
    "mov rax, qword ptr [rip + {offset}]",
    "cmp qword ptr gs:[rax], 0",
    "jne 2f",
    "3:",
    "pop rax",
    "add al, 0x7f",
    "sahf",
    "ret",
    "2:",
    // On a stack that is not the thread's own there may be no room: no step is made there.
    "cmp rsp, qword ptr gs:[{limit}]",
    "jb 3b",
    "cmp rsp, qword ptr gs:[{base}]",
    "ja 3b",
    "push rcx",
    "push rdx",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    ".seh_stackalloc {between}",
    "push rbp",
    ".seh_pushreg rbp",
    "mov rbp, rsp",
    ".seh_setframe rbp, 0",
    ".seh_endprologue",
    "and rsp, -16",
    // 32 bytes for the called function, and six vectors.
    "sub rsp, 128",
    "movaps [rsp + 32], xmm0",
    "movaps [rsp + 48], xmm1",
    "movaps [rsp + 64], xmm2",
    "movaps [rsp + 80], xmm3",
    "movaps [rsp + 96], xmm4",
    "movaps [rsp + 112], xmm5",
    "mov ecx, dword ptr [rbp + {site}]",
    "mov rdx, qword ptr [rbp + {address}]",
    "mov r8, rbp",
    "mov r9, rsi",
    "call {at_site}",
    "movaps xmm0, [rsp + 32]",
    "movaps xmm1, [rsp + 48]",
    "movaps xmm2, [rsp + 64]",
    "movaps xmm3, [rsp + 80]",
    "movaps xmm4, [rsp + 96]",
    "movaps xmm5, [rsp + 112]",
    "mov rsp, rbp",
    "pop rbp",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdx",
    "pop rcx",
    "pop rax",
    "add al, 0x7f",
    "sahf",
    "ret",
    ".seh_endproc",
    ".globl waylay_control_long",
    ".def waylay_control_long; .scl 2; .type 32; .endef",
    ".seh_proc waylay_control_long",
    "waylay_control_long:",
    "pushfq",
    "mov rax, qword ptr [rip + {offset}]",
    "cmp qword ptr gs:[rax], 0",
    "jne 2f",
    "3:",
    "popfq",
    "ret",
    "2:",
    "cmp rsp, qword ptr gs:[{limit}]",
    "jb 3b",
    "cmp rsp, qword ptr gs:[{base}]",
    "ja 3b",
    "cld",
    "push rcx",
    "push rdx",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    ".seh_stackalloc {between}",
    "push rbp",
    ".seh_pushreg rbp",
    "mov rbp, rsp",
    ".seh_setframe rbp, 0",
    ".seh_endprologue",
    "and rsp, -64",
    "sub rsp, {half}",
    "mov [rsp], rax",
    "sub rsp, {half}",
    save_registers!(),
    "sub rsp, 64",
    // Whoever runs next finds the old floating-point stack empty; its control word comes back below.
    "fnstcw [rsp + 32]",
    "fninit",
    "fldcw [rsp + 32]",
    "mov ecx, dword ptr [rbp + {site}]",
    "mov rdx, qword ptr [rbp + {address}]",
    "mov r8, rbp",
    "mov r9, rsi",
    "call {at_site}",
    "add rsp, 64",
    restore_registers!(),
    "mov rsp, rbp",
    "pop rbp",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdx",
    "pop rcx",
    "popfq",
    "ret",
    ".seh_endproc",
    offset = sym OFFSET,
    limit = const STACK_LIMIT,
    base = const STACK_BASE,
    at_site = sym at_site,
    site = const SITE,
    address = const ADDRESS,
    between = const BETWEEN,
    half = const HALF,
    state = const ALL_REGISTERS,
);
