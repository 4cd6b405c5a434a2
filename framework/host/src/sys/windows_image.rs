//! Windows: why the loader cannot load a file, in words for people. The loader itself only says that something is
//! missing, and not what.

use std::collections::BTreeSet;
use std::fs;
use std::os::windows::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::FreeLibrary;
use windows_sys::Win32::System::LibraryLoader::{LOAD_LIBRARY_AS_DATAFILE, LoadLibraryExW};

const WITH_64_BITS: u16 = 0x8664;
const WITH_32_BITS: u16 = 0x14c;
const IS_LIBRARY: u16 = 0x2000;
/// Libraries that one imports from; more is a damaged file.
const MOST_IMPORTS: usize = 4096;

/// Why the loader cannot load this file; none when it looks right.
pub(crate) fn why_not_loadable(path: &Path) -> Option<String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return Some(format!("cannot be read: {error}")),
    };
    let Some(image) = Image::parse(&bytes) else {
        return Some("is not a Windows library; a plugin is a dynamic library (.dll)".to_owned());
    };
    match image.machine {
        WITH_64_BITS => {}
        WITH_32_BITS => {
            return Some("is a 32-bit library; build the plugin for this 64-bit machine".to_owned());
        }
        other => {
            return Some(format!(
                "is built for another processor (machine {other:#x}, this is {WITH_64_BITS:#x} {}); build it for this \
                 machine",
                std::env::consts::ARCH
            ));
        }
    }
    if image.flags & IS_LIBRARY == 0 {
        return Some("is a program, not a dynamic library; link it with -shared or /DLL".to_owned());
    }
    mixed_runtimes(&image.imports().collect::<Vec<_>>())
}

/// The libraries without which the loader cannot load a file, as what the file needs; none when all are there. The
/// loader looks in more places than this does, so ask only when it has failed.
pub(crate) fn missing_libraries(path: &Path) -> Option<String> {
    let mut missing: Vec<Missing> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![path.to_owned()];
    while let Some(file) = open.pop() {
        let bytes = fs::read(&file).unwrap_or_default();
        let imports = Image::parse(&bytes).into_iter().flat_map(|image| image.imports().collect::<Vec<_>>());
        for name in imports.filter(|name| seen.insert(name.to_ascii_lowercase())) {
            match find(path, &name) {
                Found::At(library) => open.push(library),
                Found::InWindows => {}
                Found::Nowhere => missing.push(Missing { name, needed_by: file.clone() }),
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let folder = path.parent().unwrap_or(Path::new(".")).display();
    let names = missing.iter().map(|one| one.told(path)).collect::<Vec<_>>().join(" and ");
    Some(match missing.iter().any(|one| is_debug_runtime(&one.name)) {
        true => format!(
            "needs {names}: it was built with the debug C runtime, which comes with Visual Studio only; build it with \
             the release runtime (/MD, not /MDd)"
        ),
        false => format!(
            "needs {names}, which is neither beside it nor on the search path; put it into {folder} or into a folder \
             of PATH"
        ),
    })
}

/// A library that was not found.
struct Missing {
    name: String,
    needed_by: PathBuf,
}

impl Missing {
    /// Its name, and who needs it if that is not the file itself.
    fn told(&self, file: &Path) -> String {
        match self.needed_by.file_name() {
            Some(name) if self.needed_by != file => format!("{} (for {})", self.name, name.display()),
            _ => self.name.clone(),
        }
    }
}

/// The parts of the C and C++ runtime of Visual Studio 2015 and later, without the `d` of their debug builds.
const RUNTIMES: [&str; 5] = ["ucrtbase", "vcruntime140", "vcruntime140_1", "msvcp140", "concrt140"];

/// Whether a library is part of a debug build of the C runtime.
fn is_debug_runtime(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let Some(stem) = name.strip_suffix("d.dll") else { return false };
    // Older ones carry the version in their names: msvcr120d.dll.
    let older = stem.strip_prefix("msvcr").or(stem.strip_prefix("msvcp"));
    RUNTIMES.contains(&stem) || stem == "msvcrt" || older.is_some_and(|rest| rest.parse::<u32>().is_ok())
}

/// What one of two C runtimes allocates the other cannot free.
fn mixed_runtimes(imports: &[String]) -> Option<String> {
    let debug = imports.iter().find(|name| is_debug_runtime(name))?;
    let is_release = |name: &&String| {
        let name = name.to_ascii_lowercase();
        name.starts_with("api-ms-win-crt-")
            || name.strip_suffix(".dll").is_some_and(|stem| RUNTIMES.contains(&stem))
    };
    let release = imports.iter().find(is_release)?;
    Some(format!(
        "uses the debug C runtime ({debug}) and the release one ({release}) at once, and what one allocates the other \
         cannot free; build all of it with /MD, or all with /MDd"
    ))
}

/// Where the loader finds a library.
enum Found {
    /// A file that needs others in turn.
    At(PathBuf),
    /// A part of Windows, which is complete.
    InWindows,
    Nowhere,
}

/// Looks for a library as the loader does for a file: beside it, or where it looks for all.
fn find(file: &Path, name: &str) -> Found {
    // Sets of functions that the system itself maps to libraries.
    if name.starts_with("api-ms-") || name.starts_with("ext-ms-") {
        return Found::InWindows;
    }
    if let Some(beside) = file.parent().map(|folder| folder.join(name)).filter(|path| path.is_file()) {
        return Found::At(beside);
    }
    let wide: Vec<u16> = std::ffi::OsStr::new(name).encode_wide().chain([0]).collect();
    // SAFETY: a name that ends with zero; as data nothing of the file runs, and the handle is closed once.
    let is_loadable = unsafe {
        let module = LoadLibraryExW(wide.as_ptr(), std::ptr::null_mut(), LOAD_LIBRARY_AS_DATAFILE);
        !module.is_null() && FreeLibrary(module) != 0
    };
    if !is_loadable {
        return Found::Nowhere;
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let windows = std::env::var_os("SystemRoot").map(PathBuf::from).unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.filter(|path| !path.starts_with(&windows)).map_or(Found::InWindows, Found::At)
}

/// The headers of a PE file.
struct Image<'a> {
    bytes: &'a [u8],
    machine: u16,
    flags: u16,
    /// Place in memory of the list of imports.
    imports: u32,
    sections: usize,
    section_count: usize,
}

impl<'a> Image<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Image<'a>> {
        let header = word(bytes, 0x3c)? as usize;
        if !bytes.starts_with(b"MZ") || bytes.get(header..header.checked_add(4)?)? != b"PE\0\0" {
            return None;
        }
        let optional = header + 24;
        const WIDE: u16 = 0x20b;
        let directories = optional + if half(bytes, optional)? == WIDE { 112 } else { 96 };
        Some(Image {
            bytes,
            machine: half(bytes, header + 4)?,
            flags: half(bytes, header + 22)?,
            imports: word(bytes, directories + 8)?,
            sections: optional + usize::from(half(bytes, header + 20)?),
            section_count: usize::from(half(bytes, header + 6)?),
        })
    }

    /// The place in the file of a place in memory.
    fn offset(&self, place: u32) -> Option<usize> {
        (0..self.section_count).find_map(|index| {
            let at = self.sections + index * 40;
            let (start, size, offset) =
                (word(self.bytes, at + 12)?, word(self.bytes, at + 16)?, word(self.bytes, at + 20)?);
            (start..start.checked_add(size)?).contains(&place).then(|| (place - start + offset) as usize)
        })
    }

    /// The names of the libraries that it needs.
    fn imports(&self) -> impl Iterator<Item = String> {
        let list = if self.imports == 0 { None } else { self.offset(self.imports) };
        (0..MOST_IMPORTS).map_while(move |index| {
            let name = word(self.bytes, list? + index * 20 + 12)?;
            if name == 0 {
                return None;
            }
            let text = self.bytes.get(self.offset(name)?..)?.split(|byte| *byte == 0).next()?;
            Some(String::from_utf8_lossy(text).into_owned())
        })
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(change: impl FnOnce(&mut Vec<u8>)) -> Option<String> {
        let mut bytes = fs::read(std::env::current_exe().expect("a path")).expect("readable");
        change(&mut bytes);
        let folder = std::env::temp_dir().join(format!("waylay-image-{:?}", std::thread::current().id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("plugin.dll");
        fs::write(&path, bytes).expect("writable");
        let answer = why_not_loadable(&path).or_else(|| missing_libraries(&path));
        let _ = fs::remove_dir_all(folder);
        answer
    }

    fn header(bytes: &[u8]) -> usize {
        word(bytes, 0x3c).expect("a header") as usize
    }

    #[test]
    fn debug_runtimes_are_known_by_their_names() {
        for name in [
            "ucrtbased.dll",
            "UCRTBASED.DLL",
            "VCRUNTIME140D.dll",
            "msvcp140d.dll",
            "MSVCR120D.dll",
            "msvcrtd.dll",
        ] {
            assert!(is_debug_runtime(name), "{name}");
        }
        for name in ["ucrtbase.dll", "msvcrt.dll", "kernel32.dll", "d3d.dll", "msvcrossd.dll", "cmd.exe"] {
            assert!(!is_debug_runtime(name), "{name}");
        }
    }

    #[test]
    fn two_runtimes_in_one_library_are_refused() {
        let mixed =
            |names: &[&str]| mixed_runtimes(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(mixed(&["kernel32.dll", "ucrtbased.dll", "VCRUNTIME140D.dll"]), None);
        assert_eq!(mixed(&["kernel32.dll", "api-ms-win-crt-heap-l1-1-0.dll", "VCRUNTIME140.dll"]), None);
        let said = mixed(&["ucrtbased.dll", "api-ms-win-crt-heap-l1-1-0.dll"]).expect("refused");
        assert!(said.contains("ucrtbased.dll") && said.contains("api-ms-win-crt-heap-l1-1-0.dll"), "{said}");
        assert!(mixed(&["MSVCP140D.dll", "vcruntime140.dll"]).is_some());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let program = judged(|_| {}).expect("refused");
        assert!(program.contains("is a program"), "{program}");
        let narrow = judged(|bytes| {
            let at = header(bytes) + 4;
            bytes[at..at + 2].copy_from_slice(&WITH_32_BITS.to_le_bytes());
        });
        assert!(narrow.expect("refused").contains("32-bit"));
        assert!(judged(|bytes| bytes.truncate(30)).expect("refused").contains("not a Windows library"));
        let missing = judged(|bytes| {
            let at = header(bytes) + 22;
            bytes[at + 1] |= (IS_LIBRARY >> 8) as u8;
            // Everybody imports it, and this program names it in other places, too.
            let is_name = |at: &usize| bytes[*at..*at + 13].eq_ignore_ascii_case(b"kernel32.dll\0");
            let places: Vec<usize> = (0..bytes.len() - 13).filter(is_name).collect();
            places.into_iter().for_each(|at| bytes[at] = b'q');
        });
        assert!(missing.as_deref().is_some_and(|text| text.contains("needs q")), "{missing:?}");
    }
}
