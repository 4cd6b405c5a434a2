//! Where exceptions continue functions of Microsoft's C++.
//!
//! A block that catches is a function of its own and says where to go on when it returns. That place is an address in its
//! code, or, in the newer of the two descriptions (`__CxxFrameHandler4`), a number: then the places stand in the
//! description, packed as in `ehdata4_export.h` of Microsoft's C++ runtime. No other instruction needs to lead there.

use super::Image;

/// How the older description begins, but for the last digit: its places are in code.
const OLDER: u64 = 0x1993_0520;

/// Flags of a function's description: what it has.
const IS_SEPARATED: u8 = 1 << 1;
const HAS_FLAGS: u8 = 1 << 2;
const HAS_UNWINDING: u8 = 1 << 3;
const HAS_TRIES: u8 = 1 << 4;
const UNUSED: u8 = 1 << 7;
/// Flags of a block that catches, and the number of places where it goes on.
const HAS_ADJECTIVES: u8 = 1 << 0;
const HAS_TYPE: u8 = 1 << 1;
const HAS_OBJECT: u8 = 1 << 2;
const IS_ADDRESS: u8 = 1 << 3;
const PLACES: u8 = 4;
const NOTHING: u8 = 0b1100_0000;
/// Blocks of a function at most; more is no such description.
const MOST: u32 = 4096;

/// The places of the function at `start` whose description is said to be at an address. What is none names none.
pub(super) fn places(image: &Image<'_>, description: u64, start: u64) -> Vec<u64> {
    let mut found = Vec::new();
    if description != 0
        && !image.is_code(description)
        && read(image, description, start, &mut found).is_none()
    {
        found.clear();
    }
    found
}

fn read(image: &Image<'_>, description: u64, start: u64, found: &mut Vec<u64>) -> Option<()> {
    let mut function = Cursor(image.at(description)?);
    if u64::from(Cursor(function.0).word()?) & !7 == OLDER {
        return Some(());
    }
    let has = function.byte()?;
    if has & UNUSED != 0 || has & HAS_TRIES == 0 {
        return None;
    }
    if has & HAS_FLAGS != 0 {
        function.packed()?;
    }
    if has & HAS_UNWINDING != 0 {
        function.word()?;
    }
    let mut tries = Cursor(image.at(function.word()?.into())?);
    let states = function.word()?;
    if has & IS_SEPARATED == 0 {
        image.at(states.into())?;
    }
    for _ in 0..tries.count()? {
        let (first, last, caught) = (tries.packed()?, tries.packed()?, tries.packed()?);
        if first > last || last > caught {
            return None;
        }
        let mut blocks = Cursor(image.at(tries.word()?.into())?);
        for _ in 0..blocks.count()? {
            block(image, &mut blocks, start, found)?;
        }
    }
    Some(())
}

fn block(image: &Image<'_>, blocks: &mut Cursor<'_>, start: u64, found: &mut Vec<u64>) -> Option<()> {
    let has = blocks.byte()?;
    if has & NOTHING != 0 {
        return None;
    }
    if has & HAS_ADJECTIVES != 0 {
        blocks.packed()?;
    }
    if has & HAS_TYPE != 0 {
        blocks.word()?;
    }
    if has & HAS_OBJECT != 0 {
        blocks.packed()?;
    }
    if !image.is_code(blocks.word()?.into()) {
        return None;
    }
    for _ in 0..has >> PLACES {
        let place =
            if has & IS_ADDRESS != 0 { blocks.word()?.into() } else { start + u64::from(blocks.packed()?) };
        found.push(place);
    }
    Some(())
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    /// A number in one to five bytes: the ones at the end of the first say how many bytes follow.
    fn packed(&mut self) -> Option<u32> {
        let more = self.0.first()?.trailing_ones().min(4) as usize;
        let mut bytes = [0; 8];
        bytes[..=more].copy_from_slice(self.0.get(..=more)?);
        self.0 = &self.0[more + 1..];
        // The fifth byte leaves no room in the first.
        let bits = if more == 4 { 8 } else { more + 1 };
        Some((u64::from_le_bytes(bytes) >> bits) as u32)
    }

    fn count(&mut self) -> Option<u32> {
        self.packed().filter(|&count| count <= MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unpacked() {
        let cases: [(&[u8], u32); 6] = [
            (&[0x00], 0),
            (&[0x2a << 1], 0x2a),
            (&[0x01 | 0x34 << 2, 0x12], 0x12 << 6 | 0x34),
            (&[0x03 | 5 << 3, 0x56, 0x34], 0x3456 << 5 | 5),
            (&[0x07 | 9 << 4, 0x56, 0x34, 0x12], 0x12_3456 << 4 | 9),
            (&[0x0f, 0x78, 0x56, 0x34, 0x12], 0x1234_5678),
        ];
        for (bytes, number) in cases {
            let mut cursor = Cursor(bytes);
            assert_eq!((cursor.packed(), cursor.0.len()), (Some(number), 0), "{bytes:x?}");
            assert_eq!(Cursor(&bytes[..bytes.len() - 1]).packed(), None, "{bytes:x?}");
        }
    }
}
