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

/// Who may read the files of a campaign: the permissions of a file, as `chmod` takes them. Folders can be entered by those
/// who may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl Default for FileMode {
    /// The owner, and nobody else: evidence holds the memory of tests.
    fn default() -> FileMode {
        FileMode(0o600)
    }
}

impl std::str::FromStr for FileMode {
    type Err = String;

    fn from_str(text: &str) -> Result<FileMode, String> {
        let digits = text.strip_prefix("0o").unwrap_or(text);
        match u32::from_str_radix(digits, 8) {
            Ok(mode) if mode & !0o666 == 0 && mode & 0o600 == 0o600 => Ok(FileMode(mode)),
            _ => Err(format!(
                "`{text}` is no mode of a file that its owner can read and write, such as 0600 or 0640"
            )),
        }
    }
}

impl fmt::Display for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_of_files_are_read_as_chmod_does() {
        assert_eq!("0640".parse(), Ok(FileMode(0o640)));
        assert_eq!("0o644".parse::<FileMode>().map(|mode| mode.to_string()), Ok("0644".to_owned()));
        for wrong in ["", "0400", "0755", "rw", "99"] {
            assert!(wrong.parse::<FileMode>().is_err(), "{wrong}");
        }
    }
}
