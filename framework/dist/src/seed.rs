//! The seed of a campaign and the keys that are split from it.
//!
//! Every random choice of a campaign comes from one [`Seed`]. It is split by name, not by order: the
//! generator of a component or of a test's worker is ChaCha8 under a 256-bit key that is laid out from
//! what the stream is for, so adding, removing or reordering tests never changes another's numbers.
//!
//! ```text
//! bytes  0..8    the seed
//! bytes  8..24   FNV-1a, 128 bits, of the name
//! bytes 24..28   index (worker, restart, …)
//! bytes 28..32   domain: what kind of stream this is
//! ```
//!
//! ChaCha is a pseudorandom function of its key, so the parts need no further mixing. This layout is part
//! of the stored format: a change makes every recorded seed useless, and the golden tests fail.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The number that a whole campaign can be repeated from.
///
/// Printed as `0x` and sixteen hexadecimal digits; read in hexadecimal or decimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seed(u64);

/// A text that is not a seed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a seed: write up to sixteen hexadecimal digits after 0x, or a decimal number below 2^64"
)]
pub struct SeedError {
    text: String,
}

/// Keeps streams of different purposes apart even when their names are equal.
#[derive(Clone, Copy)]
pub(crate) enum Domain {
    Component = 1,
    Derived = 2,
    Worker = 3,
}

impl Seed {
    /// The seed with this value.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The seed's value.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// A seed that was never used before, from the operating system: the one function here that does not
    /// give the same answer twice. Print what it returns.
    pub fn fresh() -> Self {
        // Each `RandomState` differs from the last only by a counter within a thread; hashing the time as
        // well costs nothing and does not rely on that detail.
        let mut hasher = RandomState::new().build_hasher();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        hasher.write_u128(now.as_nanos());
        Self(hasher.finish())
    }

    /// The seed of a named part, such as one scenario or the `index`-th start of a host.
    pub fn derive(self, name: &str, index: u32) -> Self {
        Self(ChaCha8Rng::from_seed(self.key(Domain::Derived, name, index)).next_u64())
    }

    /// The generator of a named component that is not a test: the randomizer, the combiner, a strategy.
    pub fn component(self, name: &str) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.key(Domain::Component, name, 0))
    }

    pub(crate) fn key(self, domain: Domain, name: &str, index: u32) -> [u8; 32] {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.0.to_le_bytes());
        key[8..24].copy_from_slice(&fnv1a_128(name.as_bytes()).to_le_bytes());
        key[24..28].copy_from_slice(&index.to_le_bytes());
        key[28..].copy_from_slice(&(domain as u32).to_le_bytes());
        key
    }
}

/// FNV-1a with the published 128-bit basis and prime: names are short and nobody attacks them, so the only
/// demand is that two different names practically never meet.
fn fnv1a_128(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seed({self})")
    }
}

impl FromStr for Seed {
    type Err = SeedError;

    fn from_str(text: &str) -> Result<Self, SeedError> {
        let digits = text.trim();
        let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        // `from_str_radix` would take a sign, which no seed has.
        let value = match hexadecimal {
            Some(hex) if !hex.starts_with('+') => u64::from_str_radix(&hex.replace('_', ""), 16).ok(),
            None if !digits.starts_with('+') => digits.replace('_', "").parse().ok(),
            _ => None,
        };
        value.map(Self).ok_or_else(|| SeedError { text: text.to_owned() })
    }
}

impl Serialize for Seed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Seed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a seed such as \"0x5eed\" or 24301")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Seed, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Seed, E> {
                Ok(Seed(value))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Seed, E> {
                u64::try_from(value).map(Seed).map_err(|_| E::custom("a seed cannot be negative"))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_reads_back() {
        for value in [0, 1, 0x5eed, u64::MAX] {
            let seed = Seed::new(value);
            assert_eq!(seed.to_string().len(), 18);
            assert_eq!(seed.to_string().parse(), Ok(seed));
            assert_eq!(value.to_string().parse(), Ok(seed));
        }
        assert_eq!("0x5EED".parse(), Ok(Seed::new(0x5eed)));
        assert_eq!(" 1_000 ".parse(), Ok(Seed::new(1000)));
    }

    #[test]
    fn refuses_what_is_not_a_seed() {
        for text in
            ["", "0x", "-1", "+1", "0x+1", "5eed", "0x10000000000000000", "18446744073709551616", "1.0"]
        {
            assert!(text.parse::<Seed>().is_err(), "{text}");
        }
    }

    #[test]
    fn name_hash_is_the_published_fnv1a() {
        assert_eq!(fnv1a_128(b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(fnv1a_128(b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
    }

    #[test]
    fn different_purposes_never_share_a_key() {
        let seed = Seed::new(7);
        let keys = [
            seed.key(Domain::Worker, "a", 0),
            seed.key(Domain::Worker, "a", 1),
            seed.key(Domain::Worker, "b", 0),
            seed.key(Domain::Component, "a", 0),
            seed.key(Domain::Derived, "a", 0),
            Seed::new(8).key(Domain::Worker, "a", 0),
        ];
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key));
        }
    }

    #[test]
    fn fresh_seeds_differ() {
        assert_ne!(Seed::fresh(), Seed::fresh());
    }
}
