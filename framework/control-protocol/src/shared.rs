//! Out of memory that somebody else may be writing, and into it: value by value, never by a reference to more than one word.
//!
//! A reference to plain data promises that nobody changes it. Of a mapping that another process has, nobody can promise that.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::instrumentation::Site;
use crate::race::Pair;
use crate::report::Report;
use crate::stretch::{Note, Stretch};

/// Bytes of a word.
pub(crate) const WORD: usize = size_of::<u64>();

/// Plain numbers: each pattern of bits is a value, and nothing between the fields is left open.
///
/// # Safety
/// Both hold for the type, and it is aligned to no more than a word.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a number.
unsafe impl Plain for u8 {}
// SAFETY: two u32 and one u64, without a gap.
unsafe impl Plain for Stretch {}
// SAFETY: four u64.
unsafe impl Plain for Note {}
// SAFETY: one u64.
unsafe impl Plain for Site {}
// SAFETY: two u64.
unsafe impl Plain for Pair {}

/// The first `count` values there; what is written meanwhile is in them or not.
///
/// # Safety
/// So many values lie there, aligned, for as long as the call takes.
pub(crate) unsafe fn copied<T: Plain>(from: *const T, count: usize) -> Vec<T> {
    // SAFETY: by the caller's promise; any bits are a value.
    (0..count).map(|place| unsafe { from.add(place).read_volatile() }).collect()
}

/// The values there up to `count`, as long as `goes_on` says so of each: what does not is the last.
///
/// # Safety
/// As of [`copied`].
pub(crate) unsafe fn copied_while<T: Plain>(
    from: *const T,
    count: usize,
    mut goes_on: impl FnMut(&T) -> bool,
) -> Vec<T> {
    let mut all = Vec::new();
    for place in 0..count {
        // SAFETY: by the caller's promise; any bits are a value.
        let value = unsafe { from.add(place).read_volatile() };
        all.push(value);
        if !goes_on(&value) {
            break;
        }
    }
    all
}

/// A report as it is now.
///
/// # Safety
/// One lies there, aligned, for as long as the call takes.
pub(crate) unsafe fn copied_report(from: *const Report) -> Box<Report> {
    const WORDS: usize = size_of::<Report>() / WORD;
    const { assert!(size_of::<Report>().is_multiple_of(WORD) && align_of::<Report>() == WORD) };
    let from = from.cast::<AtomicU64>();
    // SAFETY: by the caller's promise; words of a report are aligned, and are read one at a time.
    let words: [u64; WORDS] =
        core::array::from_fn(|place| unsafe { (*from.add(place)).load(Ordering::Relaxed) });
    // SAFETY: as large as a report, which consists of atomic integers: each pattern of bits is one.
    Box::new(unsafe { words.as_ptr().cast::<Report>().read() })
}

/// A report that says nothing.
pub(crate) fn empty_report() -> Box<Report> {
    // SAFETY: a report consists of atomic integers: zeroes are one.
    Box::new(unsafe { core::mem::zeroed() })
}

/// Bytes of an area of words, which both sides access word by word.
#[derive(Clone, Copy)]
pub(crate) struct Area<'a>(pub(crate) &'a [AtomicU64]);

impl Area<'_> {
    /// Writes bytes from a place on that is a multiple of a word; zeroes fill the last word. They have to fit.
    pub(crate) fn put(self, at: usize, bytes: &[u8]) {
        for (word, bytes) in self.0[at / WORD..].iter().zip(bytes.chunks(WORD)) {
            let mut whole = [0; WORD];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
    }

    /// So many bytes from a place on that is a multiple of a word; none when they do not all lie in the area.
    pub(crate) fn take(self, at: usize, count: usize) -> Option<Vec<u8>> {
        let first = at.is_multiple_of(WORD).then_some(at / WORD)?;
        let words = self.0.get(first..first.checked_add(count.div_ceil(WORD))?)?;
        let mut bytes: Vec<u8> =
            words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        bytes.truncate(count);
        Some(bytes)
    }

    /// So many values from a place on.
    pub(crate) fn take_values<T: Plain>(self, at: usize, count: usize) -> Option<Vec<T>> {
        let bytes = self.take(at, count.checked_mul(size_of::<T>())?)?;
        let from = bytes.as_ptr().cast::<T>();
        // SAFETY: so many bytes were taken, and any bits are a value.
        Some((0..count).map(|place| unsafe { from.add(place).read_unaligned() }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_gives_back_what_was_put_and_nothing_beyond_it() {
        let words: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(u64::MAX)).collect();
        let area = Area(&words);
        area.put(8, b"eleven bytes"[..11].as_ref());
        assert_eq!(area.take(8, 11).unwrap(), b"eleven byte");
        assert_eq!(area.take(8, 16).unwrap()[11..], [0; 5]);
        assert_eq!(area.take(24, 8).unwrap(), [0xff; 8]);
        for (at, count) in [(24, 9), (32, 1), (4, 1), (0, usize::MAX), (usize::MAX - 7, 16)] {
            assert_eq!(area.take(at, count), None, "{count} at {at}");
        }
        assert_eq!(area.take_values::<Site>(8, usize::MAX / 4), None);
        assert_eq!(area.take_values::<Site>(24, 1).unwrap(), [Site(u64::MAX)]);
    }
}
