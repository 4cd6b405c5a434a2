//! What the code in place of a site calls: saves every register that a call may change, and looks first whether there
//! is anything to do.
//!
//! Two ways. The short one keeps the general registers, the flags of arithmetic and 16 vectors of 128 bits: all there is in
//! a module that uses no wider vectors, masks, old floating-point unit or backward copies anywhere. The long one keeps
//! everything, by the processor's own instruction for it.
//!
//! For whoever walks the stack, the caller of both is the program, at the site: the code in between belongs to no module.

use core::arch::naked_asm;

use waylay_patch::registers::{ALL_REGISTERS, AREA};
use waylay_patch::{restore_registers, save_registers};

use super::table::at_site;

/// Words that the stub pushes before it calls. The last is filled in by what is called: where the program is.
const PUSHED: usize = 11;
/// Where the trampoline left the site's number and the address, seen from there: above our words and a return address.
const SITE: usize = (PUSHED + 1) * 8;
const ADDRESS: usize = SITE + 8;
/// Where the program's own stack begins: above the three words of the trampoline and what functions use without saying so.
const PROGRAM: usize = SITE + 3 * 8 + 128;

/// Set in what is passed on where the kernel saved registers, for a breakpoint.
pub(super) const FROM_KERNEL: usize = 1;

/// Where a stub saved RDX and RCX, and the trampoline RAX, seen from what is passed on.
const RDX: usize = 64;
const RCX: usize = 72;
const RAX: usize = ADDRESS + 8;

/// Where a stub saved the other registers in which arguments of the kernel are: RDI, RSI, R10, R8 and R9.
const ARGUMENTS: [usize; 5] = [48, 56, 24, 40, 32];

/// What a call of the kernel is given: its number and six arguments.
///
/// # Safety
/// `saved` is what a stub passed on, and the site has not been left.
pub(super) unsafe fn call(saved: usize) -> (i64, [usize; 6]) {
    // SAFETY: by the caller's promise.
    let [number, third, _] = unsafe { results(saved).map(|place| place.read()) };
    let [first, second, fourth, fifth, sixth] = if saved & FROM_KERNEL != 0 {
        let registers = (saved & !FROM_KERNEL) as *const u64;
        [libc::REG_RDI, libc::REG_RSI, libc::REG_R10, libc::REG_R8, libc::REG_R9]
            // SAFETY: by the caller's promise, the registers that the kernel saved for a handler that has not returned.
            .map(|place| unsafe { registers.add(place as usize).read() })
    } else {
        // SAFETY: by the caller's promise, the words that the stub pushed.
        ARGUMENTS.map(|offset| unsafe { ((saved + offset) as *const u64).read() })
    };
    (number as i64, [first, second, third, fourth, fifth, sixth].map(|argument| argument as usize))
}

/// Where RAX, RDX and RCX are kept, to be changed before the program goes on.
///
/// # Safety
/// `saved` is what a stub passed on, and the site has not been left.
pub(super) unsafe fn results(saved: usize) -> [*mut u64; 3] {
    if saved & FROM_KERNEL != 0 {
        let registers = (saved & !FROM_KERNEL) as *mut u64;
        return [libc::REG_RAX, libc::REG_RDX, libc::REG_RCX]
            // SAFETY: by the caller's promise, the registers that the kernel saved for a handler that has not returned.
            .map(|place| unsafe { registers.add(place as usize) });
    }
    [RAX, RDX, RCX].map(|offset| (saved + offset) as *mut u64)
}

/// The registers by which a stack is walked, as they were at a site: RSP, RBP, RBX, R12 to R15.
///
/// # Safety
/// `saved` is what a stub passed on, and the site has not been left.
pub(in crate::instrument) unsafe fn program_registers(saved: usize) -> [usize; 7] {
    if saved & FROM_KERNEL != 0 {
        let registers = (saved & !FROM_KERNEL) as *const i64;
        return [
            libc::REG_RSP,
            libc::REG_RBP,
            libc::REG_RBX,
            libc::REG_R12,
            libc::REG_R13,
            libc::REG_R14,
            libc::REG_R15,
        ]
        // SAFETY: by the caller's promise, the registers that the kernel saved for a handler that has not returned.
        .map(|place| unsafe { registers.add(place as usize).read() as usize });
    }
    // SAFETY: by the caller's promise, the words that the stub pushed.
    let word = |place: usize| unsafe { (place as *const usize).read() };
    let below = |words: usize| word(saved - words * 8);
    [saved + PROGRAM, word(saved + 8), below(1), below(2), below(3), below(4), below(5)]
}

/// The short way.
///
/// # Safety
/// Called by a trampoline only.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn short() {
    naked_asm!(
        ".cfi_startproc",
        "lahf",
        "seto al",
        "push rax",
        "mov rax, qword ptr [rip + waylay_control_me@GOTTPOFF]",
        "cmp qword ptr fs:[rax], 0",
        "jne 2f",
        "pop rax",
        "add al, 0x7f",
        "sahf",
        "ret",
        "2:",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push rbp",
        "push 0",
        "mov rdx, rcx",
        "mov rcx, rsi",
        "mov edi, dword ptr [rsp + {site}]",
        "mov rsi, qword ptr [rsp + {address}]",
        "mov rbp, rsp",
        ".cfi_def_cfa rbp, {program}",
        ".cfi_offset rip, -{program}",
        ".cfi_offset rbp, 8 - {program}",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "and rsp, -16",
        "sub rsp, 256",
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "movaps [rsp + 32], xmm2",
        "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4",
        "movaps [rsp + 80], xmm5",
        "movaps [rsp + 96], xmm6",
        "movaps [rsp + 112], xmm7",
        "movaps [rsp + 128], xmm8",
        "movaps [rsp + 144], xmm9",
        "movaps [rsp + 160], xmm10",
        "movaps [rsp + 176], xmm11",
        "movaps [rsp + 192], xmm12",
        "movaps [rsp + 208], xmm13",
        "movaps [rsp + 224], xmm14",
        "movaps [rsp + 240], xmm15",
        "mov r8, rbp",
        "call {at_site}",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "movaps xmm2, [rsp + 32]",
        "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]",
        "movaps xmm5, [rsp + 80]",
        "movaps xmm6, [rsp + 96]",
        "movaps xmm7, [rsp + 112]",
        "movaps xmm8, [rsp + 128]",
        "movaps xmm9, [rsp + 144]",
        "movaps xmm10, [rsp + 160]",
        "movaps xmm11, [rsp + 176]",
        "movaps xmm12, [rsp + 192]",
        "movaps xmm13, [rsp + 208]",
        "movaps xmm14, [rsp + 224]",
        "movaps xmm15, [rsp + 240]",
        "lea rsp, [rbp + 8]",
        "pop rbp",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "add al, 0x7f",
        "sahf",
        "ret",
        ".cfi_endproc",
        site = const SITE,
        address = const ADDRESS,
        program = const PROGRAM,
        at_site = sym at_site,
    )
}

/// The long way.
///
/// # Safety
/// Called by a trampoline only; the processor has XSAVEC.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn long() {
    naked_asm!(
        ".cfi_startproc",
        "pushfq",
        "mov rax, qword ptr [rip + waylay_control_me@GOTTPOFF]",
        "cmp qword ptr fs:[rax], 0",
        "jne 2f",
        "popfq",
        "ret",
        "2:",
        "cld",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push rbp",
        "push 0",
        "mov rdx, rcx",
        "mov rcx, rsi",
        "mov edi, dword ptr [rsp + {site}]",
        "mov rsi, qword ptr [rsp + {address}]",
        "mov rbp, rsp",
        ".cfi_def_cfa rbp, {program}",
        ".cfi_offset rip, -{program}",
        ".cfi_offset rbp, 8 - {program}",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "and rsp, -64",
        "sub rsp, {area}",
        "mov r8, rdx",
        save_registers!(),
        "mov rdx, r8",
        // Whoever runs next finds the old floating-point stack empty; its control word comes back below.
        "fnstcw [rsp - 8]",
        "fninit",
        "fldcw [rsp - 8]",
        "mov r8, rbp",
        "call {at_site}",
        restore_registers!(),
        "lea rsp, [rbp + 8]",
        "pop rbp",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "popfq",
        "ret",
        ".cfi_endproc",
        site = const SITE,
        address = const ADDRESS,
        program = const PROGRAM,
        area = const AREA,
        state = const ALL_REGISTERS,
        at_site = sym at_site,
    )
}

/// Whether the long way works on this processor.
pub(super) fn can_save_all() -> bool {
    std::arch::is_x86_feature_detected!("xsavec")
}
