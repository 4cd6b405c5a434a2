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
const UNSEEN_ON_LINUX: [&str; 36] = [
    "memrchr",
    "memmem",
    "memccpy",
    "stpncpy",
    "strspn",
    "strcspn",
    "strpbrk",
    "sscanf",
    "fscanf",
    "scanf",
    "vsscanf",
    "vfscanf",
    "vscanf",
    "wmemcpy",
    "wmemset",
    "wmemcmp",
    "wcscpy",
    "wcslen",
    "wcscmp",
    "wcstok",
    "swprintf",
    "wprintf",
    "fwprintf",
    "fread_unlocked",
    "fgets_unlocked",
    "fputs_unlocked",
    "fwrite_unlocked",
    "recvmmsg",
    "sendmmsg",
    "process_vm_readv",
    "process_vm_writev",
    "aio_read",
    "aio_write",
    "hsearch",
    "crypt",
    "tmpnam",
];

/// Where the loader finds libraries of the system.
const FOLDERS: [&str; 5] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/local/lib"];

/// A program or a library, and what that needs and its libraries need, as far as the files are found.
pub fn modules_of(file: &Path) -> Vec<PathBuf> {
    let mut all = vec![file.to_owned()];
    let mut at = 0;
    while let Some(module) = all.get(at).cloned() {
        at += 1;
        let needed = std::fs::read(&module).ok().and_then(|bytes| needed(&bytes)).unwrap_or_default();
        let beside = module.parent().unwrap_or(Path::new("."));
        for name in needed {
            let mut folders = std::iter::once(beside).chain(FOLDERS.iter().map(Path::new));
            let found = folders.find_map(|folder| Some(folder.join(&name)).filter(|path| path.exists()));
            let new = found.filter(|path| !all.iter().any(|known| known.file_name() == path.file_name()));
            all.extend(new);
        }
    }
    all
}

/// The names of the files where the loader finds libraries of the system.
pub fn installed_libraries() -> impl Iterator<Item = String> {
    let files = FOLDERS.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned())
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

/// What code leaves to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Functions of the C library.
    pub copies: Vec<String>,
    /// Libraries of the system.
    pub libraries: Vec<String>,
}

impl Unseen {
    /// Of a program or a library, and of the libraries that it brings along; nothing when it cannot be read.
    pub fn of(file: &Path) -> Unseen {
        Unseen::of_all([file])
    }

    /// Adds libraries of the system that turned out to be used.
    pub fn add(&mut self, libraries: Vec<String>) {
        for name in libraries {
            if !BASIC.iter().any(|basic| name.starts_with(basic)) && !self.libraries.contains(&name) {
                self.libraries.push(name);
            }
        }
    }

    /// Of several, together.
    pub fn of_all<'a>(files: impl IntoIterator<Item = &'a Path>) -> Unseen {
        let mut unseen = Unseen::default();
        let mut copied = BTreeSet::new();
        // What is read, and whether it is the system's: of those it matters only what they need.
        let mut files: Vec<(PathBuf, bool)> =
            files.into_iter().map(|file| (file.to_owned(), false)).collect();
        let mut at = 0;
        while let Some((file, system)) = files.get(at).cloned() {
            at += 1;
            let Ok(bytes) = std::fs::read(&file) else { continue };
            if !system {
                copied.extend(copies(&bytes));
            }
            let folder = file.parent().unwrap_or(Path::new("."));
            for name in needed(&bytes).unwrap_or_default() {
                if BASIC.iter().any(|basic| name.starts_with(basic)) {
                    continue;
                }
                let brought = (folder.join(&name), false);
                if !system && brought.0.exists() {
                    if !files.contains(&brought) {
                        files.push(brought);
                    }
                } else if !unseen.libraries.contains(&name) {
                    let installed = FOLDERS.iter().map(|folder| Path::new(folder).join(&name));
                    files.extend(installed.filter(|path| path.exists()).take(1).map(|path| (path, true)));
                    unseen.libraries.push(name);
                }
            }
        }
        // In the order of the lists, which is roughly that of how often they are used.
        let listed = COPIES.iter().chain(&UNSEEN_ON_LINUX);
        for name in listed.filter(|name| copied.contains(**name)) {
            if !unseen.copies.iter().any(|known| known == name) {
                unseen.copies.push((*name).to_owned());
            }
        }
        unseen
    }
}

fn copies(bytes: &[u8]) -> Vec<&'static str> {
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let plain = |name: &str| {
        let name = name.trim_start_matches('_');
        // How compilers call what reads formats and numbers as newer standards of C have it.
        let name =
            ["isoc99_", "isoc23_"].iter().find_map(|standard| name.strip_prefix(standard)).unwrap_or(name);
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
    unseen.iter().filter(|name| names.contains(**name)).copied().collect()
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
