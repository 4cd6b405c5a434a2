//! Calls by which compiled code reports its accesses, so that those that nobody wants can be taken out of it.
//!
//! Such a call leads to a function of another module, through a stub that jumps to what a word of the module's own data
//! holds, or through that word directly. The relocation of the word names the function.

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

use crate::code::Code;
use crate::image::{Image, ImageError};

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its address, in the file's own numbering.
    pub at: u32,
    /// Its bytes.
    pub length: u8,
}

/// What takes the place of a call of so many bytes: one instruction without effect.
pub fn nothing(length: u8) -> Option<&'static [u8]> {
    match length {
        5 => Some(&[0x0f, 0x1f, 0x44, 0x00, 0x00]),
        6 => Some(&[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00]),
        _ => None,
    }
}

/// The calls of a module to functions of others with such names, by address.
pub fn calls(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Call>, ImageError> {
    let words = words(bytes, is_wanted)?;
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let image = Image::parse(bytes)?;
    let code = Code::decode(&image);
    let mut found = Vec::new();
    for instruction in code.instructions.iter().filter(|instruction| instruction.mnemonic() == Mnemonic::Call)
    {
        let word = match instruction.op0_kind() {
            OpKind::NearBranch64 => stub(&image, instruction.near_branch64()),
            OpKind::Memory if instruction.is_ip_rel_memory_operand() => {
                Some(instruction.ip_rel_memory_address())
            }
            _ => None,
        };
        let length = instruction.len() as u8;
        if word.is_some_and(|word| words.contains(&word))
            && nothing(length).is_some()
            && let Ok(at) = u32::try_from(instruction.ip())
        {
            found.push(Call { at, length });
        }
    }
    Ok(found)
}

/// The words that the loader fills with addresses of these functions.
fn words(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<BTreeSet<u64>, ImageError> {
    let file = object::File::parse(bytes)?;
    let mut words = BTreeSet::new();
    let Some(symbols) = file.dynamic_symbol_table() else { return Ok(words) };
    for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let RelocationTarget::Symbol(index) = relocation.target() else { continue };
        let named = symbols.symbol_by_index(index).is_ok_and(|symbol| symbol.name().is_ok_and(&is_wanted));
        if named {
            words.insert(address);
        }
    }
    Ok(words)
}

/// The word through which a stub jumps.
fn stub(image: &Image<'_>, at: u64) -> Option<u64> {
    let bytes = image.at(at)?;
    let decoder = Decoder::with_ip(64, &bytes[..bytes.len().min(32)], at, DecoderOptions::NONE);
    let jump = decoder.into_iter().find(|instruction| instruction.mnemonic() != Mnemonic::Endbr64)?;
    (jump.mnemonic() == Mnemonic::Jmp && jump.is_ip_rel_memory_operand())
        .then(|| jump.ip_rel_memory_address())
}
