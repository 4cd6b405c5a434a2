//! Landing pads of C++ and Rust: where an exception continues a function. The layout of the table is that of the Itanium
//! C++ ABI, "LSDA".

/// No value at all, in the encoding of a pointer.
const OMITTED: u8 = 0xff;

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn variable(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Some(value);
            }
            shift += 7;
        }
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.bytes.get(self.at..self.at + N)?.try_into().ok()?;
        self.at += N;
        Some(bytes)
    }

    fn encoded(&mut self, encoding: u8) -> Option<u64> {
        match encoding & 0x0f {
            0x1 => self.variable(),
            0x2 => Some(u64::from(u16::from_le_bytes(self.fixed()?))),
            0x3 => Some(u64::from(u32::from_le_bytes(self.fixed()?))),
            0xb => Some(i32::from_le_bytes(self.fixed()?) as i64 as u64),
            0x0 | 0x4 | 0xc => Some(u64::from_le_bytes(self.fixed()?)),
            _ => None,
        }
    }
}

/// Names every landing pad of the table of the function at `start`.
pub(crate) fn pads(table: &[u8], start: u64, found: impl FnMut(u64)) {
    let _ = read(&mut Cursor { bytes: table, at: 0 }, start, found);
}

fn read(table: &mut Cursor<'_>, start: u64, mut found: impl FnMut(u64)) -> Option<()> {
    let base_encoding = table.byte()?;
    let base = if base_encoding == OMITTED { start } else { table.encoded(base_encoding)? };
    if table.byte()? != OMITTED {
        table.variable()?;
    }
    let encoding = table.byte()?;
    let length = table.variable()? as usize;
    let end = table.at.checked_add(length)?;
    while table.at < end {
        table.encoded(encoding)?;
        table.encoded(encoding)?;
        let pad = table.encoded(encoding)?;
        table.variable()?;
        if pad != 0 {
            found(base.wrapping_add(pad));
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_are_relative_to_the_function() {
        // No base, no types, lengths of variable size, two entries of which one has no pad.
        let table = [0xff, 0xff, 0x01, 8, 0, 4, 0x20, 0, 4, 4, 0, 1];
        let mut found = Vec::new();
        pads(&table, 0x1000, |pad| found.push(pad));
        assert_eq!(found, [0x1020]);
    }

    #[test]
    fn a_cut_table_ends_it() {
        pads(&[0xff, 0xff, 0x01, 50, 0], 0, |_| panic!("there is none"));
    }
}
