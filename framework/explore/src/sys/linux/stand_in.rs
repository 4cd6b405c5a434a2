//! Our library under the name of another: a program that was linked with the compilers' own runtime for
//! `-fsanitize=thread` asks the loader for that by name, and gets ours.
//!
//! A runtime that is linked statically, as clang does unless told otherwise, cannot be replaced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use object::read::elf::{Dyn, FileHeader};

/// The name by which a program asks for that runtime.
pub(crate) fn wanted_by(program: &Path) -> Option<String> {
    let bytes = fs::read(program).ok()?;
    let header = object::elf::FileHeader64::<object::Endianness>::parse(&*bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &*bytes).ok()?;
    let (entries, strings) = sections.dynamic(endian, &*bytes).ok()??;
    let strings = sections.strings(endian, &*bytes, strings).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag(endian) == object::elf::DT_NEEDED);
    let mut names = needed.filter_map(|entry| std::str::from_utf8(entry.string(endian, strings).ok()?).ok());
    names.find(|name| name.starts_with("libtsan.so")).map(str::to_owned)
}

/// A folder in which the library has that name: to be searched before all others.
pub(crate) fn folder_with(library: &Path, name: &str, under: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let library = fs::canonicalize(library)?;
    // One folder per file, so that two installations do not take each other's place.
    let meta = fs::metadata(&library)?;
    let folder = under.join(format!("tsan-{:x}-{:x}", meta.dev(), meta.ino()));
    fs::create_dir_all(&folder)?;
    let link = folder.join(name);
    if fs::read_link(&link).ok().as_deref() != Some(&library) {
        let fresh = folder.join(format!("{name}.{}", std::process::id()));
        let _ = fs::remove_file(&fresh);
        std::os::unix::fs::symlink(&library, &fresh)?;
        fs::rename(&fresh, &link)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_name_leads_to_the_library() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("ours.so");
        fs::write(&library, "x").unwrap();
        for _ in 0..2 {
            let found = folder_with(&library, "libtsan.so.2", folder.path()).unwrap();
            assert_eq!(fs::read(found.join("libtsan.so.2")).unwrap(), b"x");
        }
        assert_eq!(wanted_by(&library), None);
        assert_eq!(wanted_by(Path::new("/proc/self/exe")), None);
    }
}
