//! Files that are mapped and shared: one byte of a file may have several addresses.
//!
//! Queues of messages map a ring twice in a row, and what two parts of a program map for themselves may be the same file. Where
//! accesses are compared, a byte of a file is told by its place in the file.

/// Where places in files begin: no process has such addresses.
const FIRST: usize = 1 << 62;
/// log2 of the bytes of a file that are told apart.
const EXTENT: u32 = 44;

/// A part of a file, at an address.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    start: usize,
    bytes: usize,
    place: usize,
}

/// What is mapped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// Device and number of each.
    known: Vec<(u64, u64)>,
    mappings: Vec<Mapping>,
}

impl Files {
    /// A part of a file has this address from now on. Returns its place.
    pub(crate) fn mapped(&mut self, (start, bytes): (usize, usize), file: (u64, u64), offset: u64) -> usize {
        self.unmapped((start, bytes));
        let number = self.known.iter().position(|known| *known == file).unwrap_or_else(|| {
            self.known.push(file);
            self.known.len() - 1
        });
        let place = FIRST + (number << EXTENT) + offset as usize;
        self.mappings.push(Mapping { start, bytes, place });
        place
    }

    /// There is something else at these addresses, or nothing.
    pub(crate) fn unmapped(&mut self, (start, bytes): (usize, usize)) {
        self.mappings.retain(|known| known.start + known.bytes <= start || start + bytes <= known.start);
    }

    /// What tells a byte from others: its place in a file, or else its address.
    #[inline]
    pub(crate) fn place(&self, address: usize) -> usize {
        let at = |known: &&Mapping| (known.start..known.start + known.bytes).contains(&address);
        match self.mappings.iter().find(at) {
            Some(known) => known.place + (address - known.start),
            None => address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_of_a_file_is_one_at_all_its_addresses() {
        let mut files = Files::default();
        files.mapped((0x1000, 0x1000), (1, 7), 0);
        files.mapped((0x8000, 0x1000), (1, 7), 0);
        files.mapped((0x4000, 0x1000), (1, 8), 0);
        assert_eq!(files.place(0x1010), files.place(0x8010));
        assert_ne!(files.place(0x1010), files.place(0x4010));
        assert_eq!(files.place(0x3000), 0x3000, "no file is there");
        files.mapped((0x9000, 0x1000), (1, 7), 0x800);
        assert_eq!(files.place(0x1810), files.place(0x9010));
        files.unmapped((0x8000, 0x1000));
        assert_eq!(files.place(0x8010), 0x8010);
    }
}
