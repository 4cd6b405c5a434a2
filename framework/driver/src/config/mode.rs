//! How a scenario disturbs its tests.

use std::fmt;

use crate::sys;

/// Who decides which thread runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The operating system.
    Free,
    /// The randomizer, which suspends threads from outside.
    Randomized,
    /// The control library, which runs one thread at a time.
    Strict,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Free, Self::Randomized, Self::Strict];

    /// The mode's name in TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Randomized => "randomized",
            Self::Strict => "strict",
        }
    }

    /// Whether this build can run a scenario in the mode, and if not, why.
    ///
    /// The one place that decides: a weaker mode is never used in silence.
    pub fn available(self) -> Result<(), &'static str> {
        match self {
            Self::Free | Self::Randomized => Ok(()),
            Self::Strict if sys::KNOWS_STRICT => Ok(()),
            Self::Strict => Err("strict mode knows Linux with glibc, and Windows, on x86-64 only"),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
