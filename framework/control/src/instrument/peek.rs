//! Reads of the program's memory that may fault where the program handles that: then they end with nothing.

use core::arch::global_asm;

global_asm!(
    ".text",
    ".p2align 4",
    ".hidden waylay_control_peek",
    ".hidden waylay_control_peeked",
    ".globl waylay_control_peek",
    ".globl waylay_control_peeked",
    ".type waylay_control_peek,@function",
    // Address and number of bytes: 1, 2, 4 or 8. One access, as the program's.
    "waylay_control_peek:",
    "xor eax, eax",
    "cmp esi, 4",
    "jb 2f",
    "je 1f",
    "mov rax, [rdi]",
    "ret",
    "1: mov eax, [rdi]",
    "ret",
    "2: cmp esi, 1",
    "je 3f",
    "movzx eax, word ptr [rdi]",
    "ret",
    "3: movzx eax, byte ptr [rdi]",
    "waylay_control_peeked:",
    "ret",
    ".size waylay_control_peek, . - waylay_control_peek",
);

unsafe extern "C" {
    fn waylay_control_peek(address: usize, bytes: usize) -> u64;
    fn waylay_control_peeked();
}

/// What lies at an address.
///
/// # Safety
/// These bytes can be read, or the program handles the fault.
pub(super) unsafe fn peek(address: usize, bytes: usize) -> u64 {
    match bytes {
        // SAFETY: by the caller's promise.
        1 | 2 | 4 | 8 => unsafe { waylay_control_peek(address, bytes) },
        _ => (0..bytes.min(8)).fold(0, |word, place| {
            // SAFETY: as above.
            let byte = unsafe { waylay_control_peek(address + place, 1) };
            word | byte << (8 * place)
        }),
    }
}

/// If a fault was made here, lets the read end with nothing; says whether it was.
pub(crate) fn ends_with_nothing(registers: &mut [i64; 23]) -> bool {
    let at = registers[libc::REG_RIP as usize] as usize;
    let end = waylay_control_peeked as *const () as usize;
    let is_here = (waylay_control_peek as *const () as usize..end).contains(&at);
    if is_here {
        // What it was to find, and where it returns.
        registers[libc::REG_RAX as usize] = 0;
        registers[libc::REG_RIP as usize] = end as i64;
    }
    is_here
}
