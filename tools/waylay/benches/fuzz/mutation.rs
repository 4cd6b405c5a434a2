//! How an input is made from samples: some of the changes that break readers, drawn from one seed.
//!
//! There is no coverage to follow: that needs instrumentation by a nightly compiler. Samples are real files instead, so that a
//! few changes reach far into a reader.

use waylay_dist::Seed;

/// Random choices of one case.
pub(crate) struct Mutator {
    state: u64,
}

/// Numbers at which readers go wrong.
const EDGES: [u64; 16] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX - 7,
    u64::MAX - 1,
    u64::MAX,
];

/// Words at which readers of text go wrong.
const WORDS: [&str; 24] = [
    "-1",
    "0",
    "1e999",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "0.1e-400",
    "nan",
    "null",
    "true",
    "[]",
    "{}",
    "[[[[[[[[",
    "\"",
    "\\u0000",
    "\\ud800",
    "\u{1b}[2J",
    "..",
    "/",
    "%00",
    "9999-12-31T23:59:60Z",
    "-00001-01-01T00:00:00Z",
    "999999999h",
    "\r\n",
];

impl Mutator {
    pub(crate) fn of(seed: Seed, target: &str, case: u32) -> Mutator {
        Mutator { state: seed.derive(target, case).get() | 1 }
    }

    /// The next number; xorshift is enough for what need not be hard to guess, and a million a second are needed.
    pub(crate) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A changed sample; now and then two that are put together.
    pub(crate) fn change(&mut self, samples: &[Vec<u8>], text: bool) -> Vec<u8> {
        let mut bytes = samples[self.below(samples.len())].clone();
        if self.below(16) == 0 {
            let other = &samples[self.below(samples.len())];
            let (from, to) = (self.below(other.len()), self.below(bytes.len()));
            bytes.truncate(to);
            bytes.extend_from_slice(&other[from..]);
        }
        for _ in 0..1 + self.below(6) {
            self.step(&mut bytes, text);
        }
        bytes
    }

    fn step(&mut self, bytes: &mut Vec<u8>, text: bool) {
        if bytes.is_empty() {
            bytes.push(self.next() as u8);
        }
        let at = self.below(bytes.len());
        match self.below(if text { 10 } else { 7 }) {
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.next() as u8,
            2 => {
                let width = 1 << self.below(4);
                let word = EDGES[self.below(EDGES.len())].to_le_bytes();
                let end = (at + width).min(bytes.len());
                bytes[at..end].copy_from_slice(&word[..end - at]);
            }
            3 => {
                let end = (at + 1 + self.below(64)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + 1 + self.below(64)).min(bytes.len());
                let piece = bytes[at..end].repeat(1 + self.below(8));
                bytes.splice(at..at, piece);
            }
            5 if self.below(8) == 0 => bytes.truncate(at),
            5 => {
                let other = self.below(bytes.len());
                bytes.swap(at, other);
            }
            6 => {
                let end = (at + 1 + self.below(16)).min(bytes.len());
                bytes[at..end].fill(self.next() as u8);
            }
            7 => {
                let word = WORDS[self.below(WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
            // A whole number, or what stands between quotation marks, becomes another.
            8 => {
                let inside = |byte: &u8| byte.is_ascii_digit() || *byte == b'.' || *byte == b'-';
                self.replace(bytes, at, inside);
            }
            _ => self.replace(bytes, at, |byte| *byte != b'"' && *byte != b'\n'),
        }
    }

    fn replace(&mut self, bytes: &mut Vec<u8>, near: usize, inside: impl Fn(&u8) -> bool) {
        let Some(start) = bytes[near..].iter().position(&inside).map(|place| near + place) else { return };
        let start = bytes[..start].iter().rposition(|byte| !inside(byte)).map_or(0, |place| place + 1);
        let end = bytes[start..].iter().position(|byte| !inside(byte)).map_or(bytes.len(), |len| start + len);
        let word = WORDS[self.below(WORDS.len())];
        bytes.splice(start..end, word.bytes());
    }
}
