//! The code that a window is replaced by: the same instructions elsewhere, with a call out before each site; behind it where
//! the instruction reads the processor's counter, so that what is called can change what was read. A call of the kernel is left
//! out when what is called has left something in RCX, which such a call changes anyway.
//!
//! At a call out, three words lie on the stack, below the 128 bytes that a function may use without saying so:
//!
//! ```text
//! rsp + 8     the site's number
//! rsp + 16    the address that the instruction is about to access; 0 if none
//! rsp + 24    rax
//! ```
//!
//! Nothing else is changed, flags included; what is called must leave everything as it was.

use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, Instruction, InstructionBlock,
    MemoryOperand, OpKind, Register,
};

use crate::site::{calls_kernel, reads_counter};

/// Bytes that a function may use below its stack pointer.
const RED_ZONE: u64 = 128;

/// What was made of a window.
#[derive(Debug)]
pub struct Trampoline {
    /// The code, for the address it was made for.
    pub code: Vec<u8>,
    /// Where in it each instruction of the window is: offset in the code, and its own address.
    pub moved: Vec<(usize, u64)>,
}

/// An instruction of a window, with the number of its site if it is one.
pub type Piece = (Instruction, Option<u32>);

/// Decodes the instructions of a window at their addresses in memory.
pub fn decode(bytes: &[u8], address: u64) -> Vec<Instruction> {
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).into_iter().collect()
}

/// Makes the code for address `at`; `slot` holds the address that is called. Nothing when an instruction cannot be
/// expressed there.
pub fn build(pieces: &[Piece], at: u64, slot: u64) -> Option<Trampoline> {
    let mut made = Trampoline { code: Vec::with_capacity(64), moved: Vec::new() };
    for (instruction, site) in pieces {
        let behind = reads_counter(instruction);
        if let Some(site) = site.filter(|_| !behind) {
            let conditional = calls_kernel(instruction);
            if conditional {
                made.code.extend([0xb9, 0, 0, 0, 0]); // mov ecx, 0
            }
            call_out(&mut made.code, instruction, site, at, slot)?;
            if conditional {
                made.code.extend([0xe3, 0x02]); // jrcxz, to the instruction
                made.code.extend([0xeb, instruction.len() as u8]); // jmp, behind it
            }
        }
        made.moved.push((made.code.len(), instruction.ip()));
        let here = at + made.code.len() as u64;
        let encoded =
            BlockEncoder::encode(64, InstructionBlock::new(&[*instruction], here), BlockEncoderOptions::NONE);
        made.code.extend(encoded.ok()?.code_buffer);
        if let Some(site) = site.filter(|_| behind) {
            call_out(&mut made.code, instruction, site, at, slot)?;
        }
    }
    let back = pieces.last()?.0.next_ip();
    made.code.push(0xe9);
    let after = at + made.code.len() as u64 + 4;
    made.code.extend(distance(after, back)?);
    Some(made)
}

/// A jump of five bytes.
pub fn jump(from: u64, to: u64) -> Option<[u8; 5]> {
    let [a, b, c, d] = distance(from + 5, to)?;
    Some([0xe9, a, b, c, d])
}

fn distance(after: u64, to: u64) -> Option<[u8; 4]> {
    i32::try_from(to.wrapping_sub(after) as i64).ok().map(i32::to_le_bytes)
}

fn call_out(code: &mut Vec<u8>, instruction: &Instruction, site: u32, at: u64, slot: u64) -> Option<()> {
    code.extend([0x48, 0x8d, 0x64, 0x24, 0x80]); // lea rsp, [rsp - 128]
    code.push(0x50); // push rax
    match address_of(instruction, RED_ZONE + 8)? {
        Some(load) => {
            let here = at + code.len() as u64;
            let encoded =
                BlockEncoder::encode(64, InstructionBlock::new(&[load], here), BlockEncoderOptions::NONE);
            code.extend(encoded.ok()?.code_buffer);
            code.push(0x50); // push rax
        }
        None => code.extend([0x6a, 0x00]), // push 0
    }
    code.push(0x68); // push site
    code.extend(site.to_le_bytes());
    code.extend([0xff, 0x15]); // call [rip + slot]
    let after = at + code.len() as u64 + 4;
    code.extend(distance(after, slot)?);
    code.extend([0x48, 0x8d, 0x64, 0x24, 0x10]); // lea rsp, [rsp + 16]
    code.push(0x58); // pop rax
    code.extend([0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea rsp, [rsp + 128]
    Some(())
}

/// The instruction that loads the address into rax, when the stack pointer is `lower` by so much; inner `None`: it
/// accesses nothing that has an address. Outer `None`: an address that cannot be told that way.
fn address_of(instruction: &Instruction, lower: u64) -> Option<Option<Instruction>> {
    for operand in 0..instruction.op_count() {
        match instruction.op_kind(operand) {
            OpKind::Memory => {
                let base = instruction.memory_base();
                let index = instruction.memory_index();
                // With 32-bit registers the address wraps around; with vectors of indices there are several.
                let plain = |register: Register| {
                    register == Register::None || register == Register::RIP || register.is_gpr64()
                };
                if !plain(base) || !plain(index) {
                    return None;
                }
                let mut displacement = instruction.memory_displacement64();
                if base == Register::RSP {
                    displacement = displacement.wrapping_add(lower);
                }
                // In this mode a displacement is none, a byte, or called eight bytes whatever is encoded.
                let size =
                    if displacement == 0 && base != Register::RIP && base != Register::None { 0 } else { 8 };
                let operand = MemoryOperand::new(
                    base,
                    index,
                    instruction.memory_index_scale(),
                    displacement as i64,
                    size,
                    false,
                    Register::None,
                );
                return Some(Some(Instruction::with2(Code::Lea_r64_m, Register::RAX, operand).ok()?));
            }
            OpKind::MemoryESRDI => return Some(Some(copy_of(Register::RDI)?)),
            OpKind::MemorySegRSI => return Some(Some(copy_of(Register::RSI)?)),
            _ => {}
        }
    }
    Some(None)
}

fn copy_of(register: Register) -> Option<Instruction> {
    Instruction::with2(Code::Lea_r64_m, Register::RAX, MemoryOperand::with_base(register)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_instructions_keep_their_meaning() {
        // lock inc dword [rip + 0x10]; je +2
        let bytes = [0xf0, 0xff, 0x05, 0x10, 0, 0, 0, 0x74, 0x02];
        let window = decode(&bytes, 0x40_0000);
        let pieces: Vec<Piece> = vec![(window[0], Some(7)), (window[1], None)];
        let made = build(&pieces, 0x50_0000, 0x4f_fff8).unwrap();
        let again = decode(&made.code, 0x50_0000);
        let moved: Vec<_> = again.iter().filter(|i| i.has_lock_prefix()).collect();
        assert_eq!(moved[0].memory_displacement64(), window[0].memory_displacement64());
        assert!(again.iter().any(|i| i.near_branch64() == window[1].near_branch64()));
        assert_eq!(again.last().unwrap().near_branch64(), 0x40_0009);
        let place = made.moved.iter().find(|(_, ip)| *ip == 0x40_0000).unwrap().0;
        assert_eq!(0x50_0000 + place as u64, moved[0].ip());
    }

    #[test]
    fn what_the_counter_said_can_be_changed() {
        // rdtsc; shl rdx, 32
        let window = decode(&[0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20], 0x40_0000);
        let made = build(&[(window[0], Some(3)), (window[1], None)], 0x50_0000, 0x4f_fff8).unwrap();
        let again = decode(&made.code, 0x50_0000);
        let place = |wanted: &dyn Fn(&Instruction) -> bool| again.iter().position(wanted).unwrap();
        let call = place(&|i| i.code() == Code::Call_rm64);
        assert!(
            place(&reads_counter) < call && call < place(&|i| i.code() == Code::Shl_rm64_imm8),
            "{again:?}"
        );
        assert_eq!(made.moved, [(0, 0x40_0000), (made.moved[1].0, 0x40_0002)]);
    }

    #[test]
    fn a_call_of_the_kernel_can_be_left_out() {
        // syscall; cmp rax, -38
        let window = decode(&[0x0f, 0x05, 0x48, 0x83, 0xf8, 0xda], 0x40_0000);
        let made = build(&[(window[0], Some(3)), (window[1], None)], 0x50_0000, 0x4f_fff8).unwrap();
        let again = decode(&made.code, 0x50_0000);
        let place = |wanted: &dyn Fn(&Instruction) -> bool| again.iter().position(wanted).unwrap();
        let call = place(&|i| i.code() == Code::Call_rm64);
        let kernel = place(&calls_kernel);
        assert_eq!(again[0].code(), Code::Mov_r32_imm32);
        assert!(call < kernel, "{again:?}");
        assert_eq!(again[kernel - 2].near_branch64(), again[kernel].ip());
        assert_eq!(again[kernel - 1].near_branch64(), again[kernel + 1].ip());
        assert_eq!(made.moved[0], ((again[kernel].ip() - 0x50_0000) as usize, 0x40_0000));
    }

    #[test]
    fn the_own_stack_is_where_it_was() {
        // lock or dword [rsp + 8], 0
        let window = decode(&[0xf0, 0x83, 0x4c, 0x24, 0x08, 0x00], 0x1000);
        let load = address_of(&window[0], 136).unwrap().unwrap();
        assert_eq!((load.memory_base(), load.memory_displacement64()), (Register::RSP, 144));
    }

    #[test]
    fn every_kind_of_address_can_be_told() {
        let cases: [&[u8]; 8] = [
            &[0xf0, 0xff, 0x07],                      // [rdi]
            &[0xf0, 0xff, 0x45, 0x00],                // [rbp + 0]
            &[0xf0, 0xff, 0x47, 0x08],                // [rdi + 8]
            &[0xf0, 0xff, 0x87, 0, 1, 0, 0],          // [rdi + 256]
            &[0xf0, 0xff, 0x04, 0xb7],                // [rdi + rsi * 4]
            &[0xf0, 0x41, 0xff, 0x44, 0xb4, 0x80],    // [r12 + rsi * 4 - 128]
            &[0xf0, 0xff, 0x04, 0x25, 0, 0x10, 0, 0], // [0x1000]
            &[0xf0, 0xff, 0x04, 0x24],                // [rsp]
        ];
        for bytes in cases {
            let window = decode(bytes, 0x40_0000);
            let made =
                build(&[(window[0], Some(1))], 0x50_0000, 0x4f_fff8).unwrap_or_else(|| panic!("{bytes:x?}"));
            let again = decode(&made.code, 0x50_0000);
            let load =
                again.iter().find(|i| i.code() == Code::Lea_r64_m && i.op0_register() == Register::RAX);
            let load = load.unwrap_or_else(|| panic!("{bytes:x?}: {again:?}"));
            let lower = if window[0].memory_base() == Register::RSP { 136 } else { 0 };
            assert_eq!(load.memory_displacement64(), window[0].memory_displacement64() + lower, "{bytes:x?}");
            assert_eq!(
                (load.memory_base(), load.memory_index()),
                (window[0].memory_base(), window[0].memory_index())
            );
        }
    }

    #[test]
    fn a_jump_reaches_two_gigabytes() {
        assert_eq!(jump(0x1000, 0x1005), Some([0xe9, 0, 0, 0, 0]));
        assert_eq!(jump(0, 1 << 40), None);
    }
}
