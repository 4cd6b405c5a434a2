//! Libraries that a plugin or a program brings: those that it needs and that lie beside it, where it says or where it is told to
//! look, not where the system keeps its own. Only ELF files say that here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf;
use object::read::elf::{Dyn, ElfFile64};

/// Folders of the system: what is there is on the other machine, or the pack says so when it is checked.
const SYSTEM: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// The libraries that files bring, they themselves included, each once. Beside where they say, it is looked in the folders of
/// `more`, in their order.
pub fn brought(files: &[PathBuf], more: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut found: BTreeSet<PathBuf> = files.iter().cloned().collect();
    let mut open = files.to_vec();
    while let Some(file) = open.pop() {
        for needed in needed_by(&file, more).unwrap_or_default() {
            if found.insert(needed.clone()) {
                open.push(needed);
            }
        }
    }
    found
}

/// What a file needs of what lies outside of the system's folders; none when it is no library of this kind.
fn needed_by(file: &Path, more: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let data = std::fs::read(file).ok()?;
    let elf = ElfFile64::<Endianness>::parse(&*data).ok()?;
    let (endian, sections) = (elf.endian(), elf.elf_section_table());
    let (entries, link) = sections.dynamic(endian, &*data).ok()??;
    let strings = sections.strings(endian, &*data, link).ok()?;
    let text = |entry: &elf::Dyn64<Endianness>| {
        let bytes = entry.string(endian, strings).ok()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    let own = file.parent().unwrap_or(Path::new("/")).to_owned();
    let mut folders = Vec::new();
    let mut names = Vec::new();
    for entry in entries {
        match entry.tag(endian) {
            elf::DT_NEEDED => names.extend(text(entry)),
            elf::DT_RUNPATH | elf::DT_RPATH => {
                let paths = text(entry)?;
                let origin = own.display().to_string();
                folders.extend(paths.split(':').map(|path| {
                    PathBuf::from(path.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
                }));
            }
            _ => {}
        }
    }
    folders.push(own);
    folders.extend_from_slice(more);
    let is_ours = |path: &PathBuf| path.is_file() && !SYSTEM.iter().any(|system| path.starts_with(system));
    Some(
        names
            .iter()
            .filter_map(|name| folders.iter().map(|folder| folder.join(name)).find(is_ours))
            .collect(),
    )
}
