//! What makes two processes parts of the same night: the same code is run in the same way with the same seed. Where a file lies
//! does not matter, what is in it does.

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Everything that a night is named after, added piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Identity(Sha256);

impl Identity {
    /// Adds a text. Texts are kept apart: `ab` and `c` are not `a` and `bc`.
    pub fn text(&mut self, text: &str) -> &mut Identity {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
        self
    }

    /// Adds what is in a file; one that cannot be read is added as its name, because whoever runs it will say so.
    pub fn file(&mut self, file: &Path) -> &mut Identity {
        match digest_of(file) {
            Ok(digest) => self.text(&digest),
            Err(_) => self.text(&file.display().to_string()),
        }
    }

    /// The name: sixteen hexadecimal digits.
    pub fn name(&self) -> String {
        hex(&self.0.clone().finalize())[..16].to_owned()
    }

    /// A number made of it.
    pub fn number(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// SHA-256 of what is in a file, in hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn digest_of(file: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(file)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            length => hash.update(&buffer[..length]),
        }
    }
}

/// SHA-256 of bytes, in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The machine that this process runs on, as the engine calls it or as it calls itself.
pub fn machine() -> String {
    let named = ["SLURMD_NODENAME", "WAYLAY_MACHINE"].iter().find_map(|name| std::env::var(name).ok());
    let own = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let other = || std::env::var("COMPUTERNAME").ok();
    named.or_else(own).or_else(other).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_apart_and_files_are_what_is_in_them() {
        let name = |texts: &[&str]| {
            let mut identity = Identity::default();
            texts.iter().for_each(|text| {
                identity.text(text);
            });
            identity.name()
        };
        assert_ne!(name(&["ab", "c"]), name(&["a", "bc"]));
        assert_eq!(name(&["ab", "c"]), name(&["ab", "c"]));
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        std::fs::write(&one, "same").unwrap();
        std::fs::write(&two, "same").unwrap();
        let of = |file: &Path| Identity::default().file(file).name();
        assert_eq!(of(&one), of(&two));
        std::fs::write(&two, "other").unwrap();
        assert_ne!(of(&one), of(&two));
        assert_eq!(digest(b"same"), digest_of(&one).unwrap());
    }
}
