//! FNV-1a, 64 bits: the hash behind signatures.
//!
//! Chosen because it is a published constant that can be written down in full, so that a signature means
//! the same in every release: start with 0xcbf29ce484222325; for every byte, exclusive-or it in, then
//! multiply by 0x100000001b3.

/// The 64-bit FNV-1a hash of some bytes.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_come_out() {
        assert_eq!(digest(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(digest(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(digest(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
