//! The modules of the process, and which of them are left alone.

use core::ffi::{CStr, c_int, c_void};

use waylay_control_protocol::{Instrumentation, Level};
use waylay_patch::{Wanted, scope};

/// One module.
#[derive(Debug)]
pub(in crate::instrument) struct Loaded {
    /// What is added to the addresses of its file.
    pub(in crate::instrument) base: usize,
    /// Its file; the program itself has none in the loader's list.
    pub(super) path: String,
    /// Its code, as the loader mapped it.
    pub(super) code: Vec<(usize, usize)>,
    /// The end of all of it.
    pub(in crate::instrument) end: usize,
    /// The identity that the linker gave it.
    pub(super) build_id: Option<Vec<u8>>,
}

impl Loaded {
    /// All modules.
    pub(super) fn all() -> Vec<Loaded> {
        let mut all: Vec<Loaded> = Vec::new();
        // SAFETY: the callback gets this list and nothing else touches it meanwhile.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut all).cast()) };
        all
    }

    pub(super) fn is_program(&self) -> bool {
        self.path.is_empty()
    }

    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether it orders threads by accesses that look like any other, and that is of interest.
    pub(super) fn orders(&self, by: &Instrumentation) -> bool {
        by.all != 0 && by.level().sees_accesses() && scope::synchronises(&self.path)
    }

    /// What of it is to be patched, in a process that runs the program at this path. `asked`: a host was asked to load it, so
    /// it is a plugin, wherever it lies.
    pub(super) fn wanted(&self, by: &Instrumentation, program: &str, asked: bool) -> Option<Wanted> {
        let closely = self.is_close(by, program, asked) || self.orders(by);
        scope::wanted(&self.path, closely, by.all != 0 || by.level() == Level::Auto)
    }

    /// Whether its plain accesses are of interest.
    pub(super) fn is_close(&self, by: &Instrumentation, program: &str, asked: bool) -> bool {
        let named = |wish: &str| self.name() == wish || self.path == wish;
        self.is_own(by, program, asked) || by.level().sees_accesses() && by.memory_modules().any(named)
    }

    /// The same without having been named.
    pub(super) fn is_own(&self, by: &Instrumentation, program: &str, asked: bool) -> bool {
        let brought = || scope::is_own(&self.path, program);
        match by.level() {
            Level::Sync | Level::Atomics => false,
            // The program of a host is not the user's; what it loads is.
            Level::Memory if by.host != 0 => asked || brought(),
            Level::Memory => self.is_program(),
            Level::Auto => asked || self.is_program() || brought(),
        }
    }

    /// The file, to be read.
    pub(super) fn file(&self) -> &str {
        if self.is_program() { "/proc/self/exe" } else { &self.path }
    }
}

unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> c_int {
    // SAFETY: libc passes a valid record of a module that is mapped; the list is the one given above.
    unsafe {
        let headers = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum as usize);
        let base = (*info).dlpi_addr as usize;
        let range = |header: &libc::Elf64_Phdr| {
            let start = base + header.p_vaddr as usize;
            (start, start + header.p_memsz as usize)
        };
        let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let code = loads().filter(|header| header.p_flags & libc::PF_X != 0).map(range).collect();
        let end = loads().map(|header| range(header).1).max().unwrap_or(base);
        let build_id = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_NOTE)
            .find_map(|header| build_id(range(header), header.p_align.max(4) as usize));
        let path = CStr::from_ptr((*info).dlpi_name).to_string_lossy().into_owned();
        (*list.cast::<Vec<Loaded>>()).push(Loaded { base, path, code, end, build_id });
    }
    0
}

/// The note with the identity, if these notes have it.
unsafe fn build_id((start, end): (usize, usize), align: usize) -> Option<Vec<u8>> {
    const GNU_BUILD_ID: u32 = 3;
    // SAFETY: notes are mapped as long as their module.
    let notes = unsafe { core::slice::from_raw_parts(start as *const u8, end - start) };
    let mut rest = notes;
    while let Some((head, after)) = rest.split_first_chunk::<12>() {
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (name, content, kind) = (word(0) as usize, word(4) as usize, word(8));
        let begin = name.next_multiple_of(align.min(8));
        let bytes = after.get(begin..begin + content)?;
        if kind == GNU_BUILD_ID && after.starts_with(b"GNU\0") {
            return Some(bytes.to_vec());
        }
        rest = after.get(begin + content.next_multiple_of(align.min(8))..)?;
    }
    None
}
