//! Changes in the header of an ELF file that make a loader refuse it.

use crate::write;
use std::fs;
use std::path::Path;

/// Byte 4 of the header: 1 for 32 bits, 2 for 64.
const CLASS: usize = 4;
const CLASS_32: u8 = 1;
/// Bytes 18 and 19: the processor.
const MACHINE: usize = 18;
const MACHINE_386: u8 = 3;
/// Big-endian SPARC and s390 would do too; RISC-V is little-endian, so nothing but the number is wrong.
const MACHINE_RISC_V: u8 = 243;

fn change(file: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
    assert!(bytes.starts_with(b"\x7fELF"), "{} is no ELF file", file.display());
    edit(&mut bytes);
    write(file, &bytes);
}

pub(crate) fn halve(file: &Path) {
    change(file, |bytes| bytes.truncate(bytes.len() / 2));
}

pub(crate) fn make_32_bit(file: &Path) {
    change(file, |bytes| {
        bytes[CLASS] = CLASS_32;
        bytes[MACHINE] = MACHINE_386;
    });
}

pub(crate) fn change_machine(file: &Path) {
    change(file, |bytes| bytes[MACHINE] = MACHINE_RISC_V);
}
