//! The modules of the process, as the loader knows them.

use core::ffi::{CStr, c_int, c_void};

use waylay_accesses::Module;

/// All of them.
pub(super) fn all() -> Vec<Module> {
    let mut all: Vec<Module> = Vec::new();
    // SAFETY: the callback gets this list and nothing else touches it meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut all).cast()) };
    all
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
        let orders = waylay_patch::scope::synchronises(&name);
        (*list.cast::<Vec<Module>>()).push(Module { base, start: base + start, end: base + end, name, orders });
    }
    0
}
