//! Functions of Windows modules that have no entry in the table by which functions are unwound: those that call nothing and
//! leave the stack alone need none. Counters of references and small locks are often such functions.
//!
//! They are known by who leads to them: a branch of a function that is known, or an address, if it is where compilers
//! begin functions. What is found must look like such a function from its first instruction to its last.

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::image::Image;

/// Bytes of such a function at most.
const LONGEST: usize = 4096;
/// Compilers begin functions at multiples of this.
const ALIGNED: u64 = 16;

/// Where such functions begin and end, among what branches and what else leads to.
pub(crate) fn functions(image: &Image<'_>, branches: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let aligned = image.pointed_to.iter().copied().filter(|place| place % ALIGNED == 0);
    let mut wanted: BTreeSet<u64> = branches.iter().copied().chain(aligned).collect();
    let mut found: Vec<(u64, u64)> = Vec::new();
    // By address: what a function leads to behind itself comes in its turn.
    let mut at = 0;
    while let Some(&start) = wanted.range(at..).next() {
        at = start + 1;
        let inside = found.last().is_some_and(|&(_, end)| start < end);
        if inside || !image.is_code(start) || image.whole(start) != u64::MAX {
            continue;
        }
        if let Some((end, further)) = read(image, start) {
            found.push((start, end));
            wanted.extend(further.into_iter().filter(|&place| place >= end));
        }
    }
    found
}

/// The end of the function that begins here, if one does, and where it jumps to outside.
fn read(image: &Image<'_>, start: u64) -> Option<(u64, Vec<u64>)> {
    let next = image.functions.range(start..).next().map_or(u64::MAX, |(&next, _)| next);
    let bytes = image.at(start)?;
    let length = bytes.len().min(LONGEST).min(usize::try_from(next - start).unwrap_or(usize::MAX));
    let near = start..start + length as u64;
    let mut decoder = Decoder::with_ip(64, &bytes[..length], start, DecoderOptions::NONE);
    let (mut reached, mut outside) = (start, Vec::new());
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if !is_allowed(&instruction) {
            return None;
        }
        if instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64 {
            let target = instruction.near_branch64();
            if near.contains(&target) {
                // Perhaps to another function, which is then taken for a part of this one.
                reached = reached.max(target);
            } else {
                outside.push(target);
            }
        }
        if ends(&instruction) && instruction.next_ip() > reached {
            return Some((instruction.next_ip(), outside));
        }
    }
    None
}

/// Whether an instruction may be part of one: others need to be unwound.
fn is_allowed(instruction: &Instruction) -> bool {
    let calls = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
    let moves = instruction.is_stack_instruction() && instruction.mnemonic() != Mnemonic::Ret;
    let computes = instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register() == Register::RSP
        && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    // Through a table, perhaps, to places that are not read here.
    let jumps = instruction.flow_control() == FlowControl::IndirectBranch
        && instruction.op0_kind() == OpKind::Register;
    !instruction.is_invalid() && !calls && !moves && !computes && !jumps
}

fn ends(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Return
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Exception
            | FlowControl::Interrupt
    )
}
