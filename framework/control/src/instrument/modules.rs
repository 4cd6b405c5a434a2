//! Code addresses as others know them: a module and a place in it.

use core::ffi::{CStr, c_int, c_void};

use waylay_control_protocol::Site;

/// The modules of the process, as far as they have been looked at.
#[derive(Default)]
pub(super) struct Modules {
    all: Vec<Module>,
}

struct Module {
    /// Where offset 0 of the file would be.
    base: usize,
    start: usize,
    end: usize,
    name: String,
}

impl Modules {
    /// The place of an address; none in code that belongs to no module.
    pub(super) fn site(&mut self, code: usize) -> Option<Site> {
        if !self.all.iter().any(|module| (module.start..module.end).contains(&code)) {
            self.look();
        }
        self.known(code)
    }

    /// The same in a module that was looked at before, or of data in it.
    pub(super) fn known(&self, address: usize) -> Option<Site> {
        let module = self.all.iter().find(|module| (module.start..module.end).contains(&address))?;
        Some(Site::new(&module.name, (address - module.base) as u32))
    }

    /// The address of a place; none when its module is not loaded.
    pub(super) fn code(&mut self, site: Site) -> Option<usize> {
        let offset = site.0 as u32;
        let matching = |module: &&Module| Site::new(&module.name, offset) == site;
        if !self.all.iter().any(|module| matching(&module)) {
            self.look();
        }
        self.all.iter().find(matching).map(|module| module.base + offset as usize)
    }

    fn look(&mut self) {
        self.all.clear();
        // SAFETY: the callback gets this list and nothing else touches it meanwhile.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut self.all).cast()) };
    }
}

unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, list: *mut c_void) -> c_int {
    // SAFETY: libc passes a valid record; the list is the one given above.
    unsafe {
        let headers = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum as usize);
        let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let base = (*info).dlpi_addr as usize;
        let start = loads().map(|header| header.p_vaddr as usize).min().unwrap_or(0);
        let end = loads().map(|header| (header.p_vaddr + header.p_memsz) as usize).max().unwrap_or(0);
        let path = CStr::from_ptr((*info).dlpi_name).to_string_lossy();
        // The program itself has no name in this list.
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        (*list.cast::<Vec<Module>>()).push(Module { base, start: base + start, end: base + end, name });
    }
    0
}
