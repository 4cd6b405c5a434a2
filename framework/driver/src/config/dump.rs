//! Which dumps are written: their formats.

/// A format of dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpFormat {
    /// What debuggers of Windows, lldb and breakpad open.
    Minidump,
    /// An ELF core, which gdb and lldb open.
    Core,
}

impl DumpFormat {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Minidump, Self::Core];

    /// Its name in TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::Minidump => "minidump",
            Self::Core => "core",
        }
    }

    /// Whether this system can write it, and if not, why.
    pub fn available(self) -> Result<(), &'static str> {
        match self {
            Self::Core if !waylay_evidence::KNOWS_CORES => Err("ELF cores are written on Linux only"),
            _ => Ok(()),
        }
    }
}
