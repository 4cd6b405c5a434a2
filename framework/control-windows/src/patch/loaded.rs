//! A module of the process, as Windows loaded it, and whether it is left alone.

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use waylay_control_protocol::{Instrumentation, Level};
use waylay_patch::{Wanted, scope};
use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{GetModuleFileNameW, GetModuleHandleW};
use windows_sys::Win32::System::SystemInformation::GetWindowsDirectoryW;

/// More than any path of a module has.
const LONGEST: usize = 1 << 15;

/// Offsets of the PE format, 64 bits: the header's place; from the header, the number of sections, the size of what comes
/// in front of them, when the module was linked, its size, its checksum and the table of functions; a section's header.
const HEADER: usize = 0x3c;
const SECTIONS: usize = 6;
const LINKED: usize = 8;
const OPTIONAL: usize = 20;
const SIZE: usize = 0x50;
const CHECKSUM: usize = 0x58;
const FUNCTIONS: usize = 0xa0;
const IN_FRONT: usize = 24;
const SECTION: usize = 40;
const EXECUTABLE: u32 = 0x2000_0000;

/// One module.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Where it begins: the zero of the file's own numbering.
    pub(super) base: usize,
    /// Its bytes in memory.
    pub(super) size: usize,
    pub(super) path: PathBuf,
    /// Its code: begin and end.
    pub(super) code: Vec<(usize, usize)>,
    /// The table of its functions: begin and end.
    functions: (usize, usize),
    /// When it was linked and its checksum, as the linker says.
    linked: [u32; 2],
}

impl Loaded {
    /// The module with this handle; none if it is no module for 64 bits.
    ///
    /// # Safety
    /// It is loaded.
    pub(super) unsafe fn new(module: HMODULE) -> Option<Loaded> {
        /// Of the part of the header that programs and libraries have, for 64 bits.
        const PE32_PLUS: u16 = 0x20b;
        let base = module as usize;
        // SAFETY: by the caller's promise the headers are there.
        let half = |at: usize| unsafe { ((base + at) as *const u16).read_unaligned() };
        // SAFETY: as above.
        let word = |at: usize| unsafe { ((base + at) as *const u32).read_unaligned() };
        let header = word(HEADER) as usize;
        if half(header + IN_FRONT) != PE32_PLUS {
            return None;
        }
        let sections = header + IN_FRONT + usize::from(half(header + OPTIONAL));
        let mut code = Vec::new();
        for index in 0..usize::from(half(header + SECTIONS)) {
            let section = sections + index * SECTION;
            if word(section + 36) & EXECUTABLE != 0 {
                let start = base + word(section + 12) as usize;
                code.push((start, start + word(section + 8) as usize));
            }
        }
        let functions = base + word(header + FUNCTIONS) as usize;
        Some(Loaded {
            base,
            size: word(header + SIZE) as usize,
            path: path_of(module),
            code,
            functions: (functions, functions + word(header + FUNCTIONS + 4) as usize),
            linked: [word(header + LINKED), word(header + CHECKSUM)],
        })
    }

    /// Whether none of its code is replaced. `host`: the program itself is ours.
    pub(super) fn is_left_alone(&self, host: bool) -> bool {
        // SAFETY: plain call.
        let program = unsafe { GetModuleHandleW(core::ptr::null()) } as usize;
        host && self.base == program
            || scope::is_left_alone_on_windows(&self.path.to_string_lossy(), &windows_folder())
    }

    /// The name of its file, in small letters.
    pub(super) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default()
    }

    /// What of it is to be patched, if anything is.
    pub(super) fn wanted(&self, by: &Instrumentation) -> Wanted {
        let named = |wish: &str| self.name() == wish.to_lowercase() || self.path == Path::new(wish);
        // SAFETY: plain call.
        let program = unsafe { GetModuleHandleW(core::ptr::null()) };
        let is_program = || self.base == program as usize;
        let path = || self.path.to_string_lossy().into_owned();
        let own = match by.level() {
            Level::Sync | Level::Atomics => false,
            // The program of a host is not the user's; what it loads is.
            Level::Auto if by.host != 0 => scope::is_brought_on_windows(&path()),
            Level::Memory => is_program(),
            Level::Auto => {
                is_program() || scope::is_own_on_windows(&path(), &path_of(program).to_string_lossy())
            }
        };
        let closely = own || by.level().sees_accesses() && by.memory_modules().any(named);
        scope::extent(closely, by.all != 0 || by.level() == Level::Auto)
    }

    /// What tells it from other modules, and from other versions of itself: its code and the table of its functions. Not all
    /// linkers give a module a number of its own.
    ///
    /// # Safety
    /// It is loaded, and nothing of it is replaced.
    pub(super) unsafe fn identity(&self) -> [u8; 16] {
        let mut sums = [0xcbf2_9ce4_8422_2325_u64, 0x9e37_79b9_7f4a_7c15];
        let mut add = |word: u64| {
            sums[0] = (sums[0] ^ word).wrapping_mul(0x0100_0000_01b3);
            sums[1] = (sums[1].rotate_left(23) ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        };
        add(u64::from(self.linked[0]) << 32 | u64::from(self.linked[1]));
        for &(start, end) in self.code.iter().chain([&self.functions]) {
            // SAFETY: by the caller's promise; sections are readable for their length.
            let bytes = unsafe { core::slice::from_raw_parts(start as *const u8, end - start) };
            add((start - self.base) as u64);
            let words = bytes.chunks_exact(8);
            for &byte in words.remainder() {
                add(u64::from(byte));
            }
            words.for_each(|word| add(u64::from_le_bytes(word.try_into().unwrap_or_default())));
        }
        (u128::from(sums[0]) << 64 | u128::from(sums[1])).to_le_bytes()
    }
}

fn path_of(module: HMODULE) -> PathBuf {
    let mut path = vec![0u16; LONGEST];
    // SAFETY: the buffer is as large as said.
    let length = unsafe { GetModuleFileNameW(module, path.as_mut_ptr(), path.len() as u32) } as usize;
    OsString::from_wide(&path[..length]).into()
}

fn windows_folder() -> String {
    let mut path = [0u16; 512];
    // SAFETY: the buffer is as large as said.
    let length = unsafe { GetWindowsDirectoryW(path.as_mut_ptr(), path.len() as u32) } as usize;
    String::from_utf16_lossy(&path[..length.min(path.len())])
}
