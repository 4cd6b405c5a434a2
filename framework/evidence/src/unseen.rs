//! What code of a file leaves to others whose accesses to memory nobody sees: functions of the C library, and libraries of the
//! system.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use object::read::elf::{Dyn, FileHeader};
use object::{NameOrOrdinal, Object, ObjectSymbol};

/// Functions of the C library that read or write memory of their caller's, without a suffix for checks (`__memcpy_chk`).
const COPIES: [&str; 30] = [
    "memcpy", "memmove", "mempcpy", "memset", "memcmp", "memchr", "memrchr", "memmem", "bcmp", "bcopy",
    "bzero", "strcpy", "strncpy", "stpcpy", "strcat", "strncat", "strlen", "strnlen", "strcmp", "strncmp",
    "strchr", "strrchr", "strstr", "strdup", "strtok", "wmemcpy", "wcscpy", "wcslen", "sprintf", "snprintf",
];

/// Those of them whose calls are not seen on Linux either, and others of their kind.
const UNSEEN_ON_LINUX: [&str; 18] = [
    "memrchr", "memmem", "memccpy", "stpncpy", "strtok", "strtok_r", "strsep", "strspn", "strcspn",
    "strpbrk", "sscanf", "wmemcpy", "wmemset", "wmemcmp", "wcscpy", "wcslen", "wcscmp", "swprintf",
];

/// Where the loader finds libraries of the system.
const FOLDERS: [&str; 5] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/local/lib"];

/// A program or a library, and what it needs, as far as the files are found.
pub fn modules_of(file: &Path) -> Vec<PathBuf> {
    let needed = std::fs::read(file).ok().and_then(|bytes| needed(&bytes)).unwrap_or_default();
    let beside = file.parent().unwrap_or(Path::new("."));
    let find = |name: &String| {
        let folders = std::iter::once(beside).chain(FOLDERS.iter().map(Path::new));
        folders.map(|folder| folder.join(name)).find(|path| path.exists())
    };
    std::iter::once(file.to_owned()).chain(needed.iter().filter_map(find)).collect()
}

/// Libraries that are not told of: those that the C library consists of, the compiler's own, and what stands for us.
const BASIC: [&str; 11] = [
    "libc.",
    "libm.",
    "libpthread.",
    "libdl.",
    "librt.",
    "libgcc_s.",
    "ld-linux",
    "libwaylay",
    "libtsan",
    "libasan",
    "linux-vdso",
];

/// What one file leaves to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Functions of the C library.
    pub copies: Vec<String>,
    /// Libraries of the system.
    pub libraries: Vec<String>,
}

impl Unseen {
    /// Of a program or a library; nothing when it cannot be read.
    pub fn of(file: &Path) -> Unseen {
        let Ok(bytes) = std::fs::read(file) else { return Unseen::default() };
        let folder = file.parent().unwrap_or(Path::new("."));
        let needed = needed(&bytes).unwrap_or_default();
        let foreign =
            |name: &String| !BASIC.iter().any(|basic| name.starts_with(basic)) && !folder.join(name).exists();
        Unseen { copies: copies(&bytes), libraries: needed.into_iter().filter(foreign).collect() }
    }
}

fn copies(bytes: &[u8]) -> Vec<String> {
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let plain = |name: &str| {
        let name = name.trim_start_matches('_');
        name.strip_suffix("_chk").unwrap_or(name).to_owned()
    };
    let wanted = file.dynamic_symbols().filter(|symbol| symbol.is_undefined());
    let imported = file.imports().ok().into_iter().flatten().filter_map(Result::ok);
    let imported = imported.filter_map(|import| match import.name() {
        NameOrOrdinal::Name(name) => Some(plain(&String::from_utf8_lossy(name))),
        NameOrOrdinal::Ordinal(_) => None,
    });
    let names: BTreeSet<String> =
        wanted.filter_map(|symbol| symbol.name().ok().map(plain)).chain(imported).collect();
    let unseen = if file.format() == object::BinaryFormat::Elf { &UNSEEN_ON_LINUX[..] } else { &COPIES };
    // In the order of the list, which is roughly that of how often they are used.
    unseen.iter().filter(|name| names.contains(**name)).map(|name| (*name).to_owned()).collect()
}

fn needed(bytes: &[u8]) -> Option<Vec<String>> {
    let header = object::elf::FileHeader64::<object::Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let (entries, strings) = sections.dynamic(endian, bytes).ok()??;
    let strings = sections.strings(endian, bytes, strings).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag(endian) == object::elf::DT_NEEDED);
    let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
    Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_what_it_leaves_to_others() {
        // This test itself is a program of Rust's, which copies by `memcpy`; on Linux calls of that are seen.
        let own = Unseen::of(&std::env::current_exe().unwrap());
        assert_eq!(own.copies.contains(&"memcpy".to_owned()), cfg!(windows), "{own:?}");
        assert!(!own.libraries.iter().any(|name| name.starts_with("libc.")), "{own:?}");
        assert_eq!(Unseen::of(Path::new("/nonexistent")), Unseen::default());
    }
}
