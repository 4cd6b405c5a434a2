//! Where the dynamic linker keeps its list of loaded files: what a debugger reads to find their symbols.
//!
//! The way is the one that debuggers go: the auxiliary vector has the program's headers, these its dynamic section, that the
//! linker's `r_debug`, and this the list. Everything that is read on the way is told, so that it can be kept.

const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
const PT_DYNAMIC: u32 = 2;
const PT_PHDR: u32 = 6;
const DT_DEBUG: u64 = 21;
/// More loaded files than this are a list that is damaged.
const MOST_FILES: usize = 10_000;
/// Longest path of Linux.
const PATH: usize = 4096;
/// Program headers of a program, and entries of a dynamic section, that are looked at.
const MOST_ENTRIES: u64 = 512;

/// Copies memory: exactly so many bytes, or none.
pub(crate) type Read<'a> = &'a dyn Fn(u64, usize) -> Option<Vec<u8>>;

/// The ranges that the list takes, beginning and end; empty for a program that is linked statically.
pub(crate) fn ranges(auxiliary: &[u8], read: Read<'_>) -> Vec<(u64, u64)> {
    let mut ranges = Vec::new();
    // A list that cannot be followed to its end is kept as far as it goes.
    let _ = follow(auxiliary, read, &mut ranges);
    ranges
}

fn follow(auxiliary: &[u8], read: Read<'_>, ranges: &mut Vec<(u64, u64)>) -> Option<()> {
    let entry = |wanted: u64| {
        auxiliary.chunks_exact(16).find(|entry| word(entry, 0) == wanted).map(|entry| word(entry, 8))
    };
    let (headers, count) = (entry(AT_PHDR)?, entry(AT_PHNUM)?.min(MOST_ENTRIES));
    let bytes = read(headers, count as usize * 56)?;
    ranges.push((headers, headers + bytes.len() as u64));
    let of_kind = |kind: u32| {
        bytes.chunks_exact(56).find(|header| word(header, 0) as u32 == kind).map(|header| word(header, 16))
    };
    // Without an entry for the headers themselves the program stands where its file says.
    let moved = of_kind(PT_PHDR).map_or(0, |meant| headers.wrapping_sub(meant));
    let dynamic = of_kind(PT_DYNAMIC)?.wrapping_add(moved);
    let debug = (0..MOST_ENTRIES).find_map(|index| {
        let at = dynamic.wrapping_add(index * 16);
        let entry = read(at, 16)?;
        ranges.push((at, at + 16));
        (word(&entry, 0) == DT_DEBUG).then(|| word(&entry, 8))
    })?;
    let list = read(debug, 40)?;
    ranges.push((debug, debug + 40));
    let mut at = word(&list, 8);
    for _ in 0..MOST_FILES {
        if at == 0 {
            break;
        }
        let file = read(at, 40)?;
        ranges.push((at, at + 40));
        let name = word(&file, 8);
        // Most names are short, and the memory behind one need not be there.
        let length = [64, PATH].into_iter().find_map(|most| {
            let bytes = read(name, most)?;
            bytes.iter().position(|byte| *byte == 0)
        });
        let length = length.unwrap_or(64) as u64;
        ranges.push((name, name.saturating_add(length + 1)));
        at = word(&file, 24);
    }
    Some(())
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
