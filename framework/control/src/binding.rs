//! Looking functions up once, in the fork server, so that none of its children has to.
//!
//! A lookup reads the tables of every library, and a child has a page fault for each page of them. What is bound here is
//! what the loader would bind at the first call: imports of modules that were there when the program started, which are
//! looked for in all of these modules in the same order. What is not found, or not for certain, stays as it is, and so do
//! modules that look in themselves first.
//!
//! Where somebody wants to see calls of some functions, the imports of a module are redirected: [`redirect`].

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::real::{self, dlvsym};

/// Modules that were there when the library was loaded: the first in the loader's list.
static AT_START: AtomicUsize = AtomicUsize::new(0);

/// Counts the modules. Called when the library is loaded.
pub(crate) fn count_modules() {
    let mut count = 0usize;
    // SAFETY: the callback gets a pointer to the local.
    unsafe { libc::dl_iterate_phdr(Some(count_one), (&raw mut count).cast()) };
    AT_START.store(count, Ordering::Relaxed);
}

unsafe extern "C" fn count_one(_: *mut libc::dl_phdr_info, _: usize, count: *mut c_void) -> c_int {
    // SAFETY: the counter was passed with the callback.
    unsafe { *count.cast::<usize>() += 1 };
    0
}

/// Looks up what the program and its libraries import, and what this library passes calls on to.
pub(crate) fn bind_all() {
    real::look_all_up();
    let mut left = AT_START.load(Ordering::Relaxed);
    // SAFETY: the callback gets a pointer to the local.
    unsafe { libc::dl_iterate_phdr(Some(bind_module), (&raw mut left).cast()) };
}

unsafe extern "C" fn bind_module(info: *mut libc::dl_phdr_info, _: usize, left: *mut c_void) -> c_int {
    // SAFETY: libc passes a valid record of a module that is mapped, and we passed the counter.
    unsafe {
        let left = left.cast::<usize>();
        if *left == 0 {
            return 1;
        }
        *left -= 1;
        if let Some(imports) = Imports::of(&*info).filter(|imports| !imports.symbolic) {
            imports.bind();
        }
    }
    0
}

/// Has the module at this base call other functions than those it imports by name, where `instead` knows one.
///
/// # Safety
/// No thread calls through the module's tables meanwhile, and what `instead` names stands in for what it is asked about.
pub(crate) unsafe fn redirect(base: usize, instead: &mut dyn FnMut(&CStr) -> Option<usize>) {
    let mut wanted = (base, instead);
    // SAFETY: the callback gets a pointer to the local.
    unsafe { libc::dl_iterate_phdr(Some(redirect_one), (&raw mut wanted).cast()) };
}

unsafe extern "C" fn redirect_one(info: *mut libc::dl_phdr_info, _: usize, wanted: *mut c_void) -> c_int {
    type Wanted<'a> = (usize, &'a mut dyn FnMut(&CStr) -> Option<usize>);
    // SAFETY: libc passes a valid record of a module that is mapped, and we passed what is wanted.
    unsafe {
        let (base, instead) = &mut *wanted.cast::<Wanted<'_>>();
        if (*info).dlpi_addr as usize != *base {
            return 0;
        }
        if let Some(imports) = Imports::of(&*info) {
            imports.redirect(instead);
        }
    }
    1
}

/// Has the module at this base call other functions than those its slots lead to, where `instead` knows one for such an
/// address. Slots that the loader would fill at the first call are filled, as far as it is certain with what.
///
/// # Safety
/// As for [`redirect`].
pub(crate) unsafe fn redirect_bound(base: usize, instead: &mut dyn FnMut(usize) -> Option<usize>) {
    let mut wanted = (base, instead);
    // SAFETY: the callback gets a pointer to the local.
    unsafe { libc::dl_iterate_phdr(Some(redirect_bound_one), (&raw mut wanted).cast()) };
}

unsafe extern "C" fn redirect_bound_one(info: *mut libc::dl_phdr_info, _: usize, wanted: *mut c_void) -> c_int {
    type Wanted<'a> = (usize, &'a mut dyn FnMut(usize) -> Option<usize>);
    // SAFETY: libc passes a valid record of a module that is mapped, and we passed what is wanted.
    unsafe {
        let (base, instead) = &mut *wanted.cast::<Wanted<'_>>();
        if (*info).dlpi_addr as usize != *base {
            return 0;
        }
        if let Some(imports) = Imports::of(&*info) {
            if !imports.symbolic {
                imports.bind();
            }
            let code = imports.code.clone();
            imports.replace(&mut |_, bound, calls| {
                let leads_out = bound != 0 && !code.contains(&bound);
                if leads_out && (calls || is_code(bound)) { instead(bound) } else { None }
            });
        }
    }
    1
}

/// Whether a module has code there, and not data.
fn is_code(address: usize) -> bool {
    struct Sought(usize, bool);
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, sought: *mut c_void) -> c_int {
        // SAFETY: libc passes a valid record of a module that is mapped, and we passed what is sought.
        unsafe {
            let sought = &mut *sought.cast::<Sought>();
            let headers = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum as usize);
            let start = (*info).dlpi_addr as usize;
            sought.1 = headers.iter().any(|header| {
                let from = start + header.p_vaddr as usize;
                header.p_type == libc::PT_LOAD
                    && header.p_flags & libc::PF_X != 0
                    && (from..from + header.p_memsz as usize).contains(&sought.0)
            });
            c_int::from(sought.1)
        }
    }
    let mut sought = Sought(address, false);
    // SAFETY: the callback gets a pointer to the local.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut sought).cast()) };
    sought.1
}

const PAGE: usize = 4096;
const GLOB_DAT: u64 = 6;
const JUMP_SLOT: u64 = 7;

/// One entry of a table of relocations.
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// What a module imports through its table of calls.
struct Imports {
    base: usize,
    /// Its code.
    code: core::ops::Range<usize>,
    slots: &'static [Relocation],
    /// Relocations of data, some of which are addresses of functions that are called through them.
    data: &'static [Relocation],
    /// It looks in itself first.
    symbolic: bool,
    /// What the loader has made read-only, in whole pages.
    sealed: core::ops::Range<usize>,
    symbols: *const libc::Elf64_Sym,
    names: *const c_char,
    /// Number of the version of each symbol, if it has versions.
    versions: Option<*const u16>,
    /// What other modules' versions are called.
    needed: Option<*const u8>,
}

const DT_PLTRELSZ: i64 = 2;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SYMBOLIC: i64 = 16;
const DT_JMPREL: i64 = 23;
const DT_FLAGS: i64 = 30;
const DF_SYMBOLIC: u64 = 2;
const DT_VERSYM: i64 = 0x6fff_fff0;
const DT_VERNEED: i64 = 0x6fff_fffe;

impl Imports {
    /// Reads the tables.
    ///
    /// # Safety
    /// `info` describes a module that is mapped and stays so.
    unsafe fn of(info: &libc::dl_phdr_info) -> Option<Imports> {
        // SAFETY: by the caller's promise; the loader has checked and relocated the dynamic section.
        unsafe {
            let base = info.dlpi_addr as usize;
            let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize);
            let code = headers
                .iter()
                .find(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0)?;
            let start = base + code.p_vaddr as usize;
            let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
            let mut at = (base + dynamic.p_vaddr as usize) as *const [u64; 2];
            let [mut jumps, mut bytes, mut symbols, mut names, mut versions, mut needed] = [None; 6];
            let [mut data, mut data_bytes] = [None; 2];
            let mut symbolic = false;
            let sealed = headers.iter().find(|header| header.p_type == libc::PT_GNU_RELRO).map_or(0..0, |header| {
                let start = base + header.p_vaddr as usize;
                start & !(PAGE - 1)..(start + header.p_memsz as usize) & !(PAGE - 1)
            });
            while (*at)[0] != 0 {
                let [tag, value] = *at;
                // Some of the values are relocated in place, some are not: those of the vdso.
                let address = if (value as usize) < base { base + value as usize } else { value as usize };
                match tag as i64 {
                    DT_JMPREL => jumps = Some(address),
                    DT_PLTRELSZ => bytes = Some(value as usize),
                    DT_SYMTAB => symbols = Some(address),
                    DT_STRTAB => names = Some(address),
                    DT_VERSYM => versions = Some(address),
                    DT_VERNEED => needed = Some(address),
                    DT_RELA => data = Some(address),
                    DT_RELASZ => data_bytes = Some(value as usize),
                    DT_SYMBOLIC => symbolic = true,
                    DT_FLAGS if value & DF_SYMBOLIC != 0 => symbolic = true,
                    _ => {}
                }
                at = at.add(1);
            }
            let table = |at: Option<usize>, bytes: Option<usize>| match (at, bytes) {
                (Some(at), Some(bytes)) => {
                    core::slice::from_raw_parts(at as *const Relocation, bytes / size_of::<Relocation>())
                }
                _ => &[],
            };
            Some(Imports {
                base,
                data: table(data, data_bytes),
                symbolic,
                sealed,
                code: start..start + code.p_memsz as usize,
                slots: table(jumps, bytes),
                symbols: symbols? as *const libc::Elf64_Sym,
                names: names? as *const c_char,
                versions: versions.map(|at| at as *const u16),
                needed: needed.map(|at| at as *const u8),
            })
        }
    }

    /// Writes what stands in for some functions into the slots through which they are called.
    ///
    /// # Safety
    /// As for [`redirect`].
    unsafe fn redirect(&self, instead: &mut dyn FnMut(&CStr) -> Option<usize>) {
        // SAFETY: by the caller's promise.
        unsafe { self.replace(&mut |name, _, _| instead(name)) };
    }

    /// The same; `instead` is told the name, what the slot holds, and whether it is for calls alone.
    ///
    /// # Safety
    /// As for [`redirect`].
    unsafe fn replace(&self, instead: &mut dyn FnMut(&CStr, usize, bool) -> Option<usize>) {
        let called = |slot: &&Relocation| matches!(slot.info & 0xffff_ffff, GLOB_DAT | JUMP_SLOT);
        for slot in self.slots.iter().chain(self.data).filter(called) {
            // SAFETY: the tables are the module's own; what is sealed is opened for the moment.
            unsafe {
                let symbol = &*self.symbols.add((slot.info >> 32) as usize);
                if symbol.st_shndx != 0 || symbol.st_value != 0 {
                    continue;
                }
                let place = self.base + slot.offset as usize;
                let name = CStr::from_ptr(self.names.add(symbol.st_name as usize));
                let calls = slot.info & 0xffff_ffff == JUMP_SLOT;
                let Some(to) = instead(name, (place as *const usize).read(), calls) else { continue };
                let sealed = self.sealed.contains(&place);
                let page = (place & !(PAGE - 1)) as *mut c_void;
                if sealed && libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                    continue;
                }
                (place as *mut usize).write(to);
                if sealed {
                    libc::mprotect(page, PAGE, libc::PROT_READ);
                }
            }
        }
    }

    /// Fills the slots that wait for their first call.
    ///
    /// # Safety
    /// No other thread binds them meanwhile to something else; the loader would bind them to the same.
    unsafe fn bind(&self) {
        for slot in self.slots.iter().filter(|slot| slot.info & 0xffff_ffff == JUMP_SLOT) {
            // SAFETY: the tables are the module's own. A slot that is not bound yet holds an address in the module's own
            // code, the stub that asks the loader; such slots can be written, or the loader could not either.
            unsafe {
                let place = (self.base + slot.offset as usize) as *mut usize;
                let index = (slot.info >> 32) as usize;
                let symbol = &*self.symbols.add(index);
                // With a value it is the function's address for all modules, this very stub, because the program took it.
                let imported = symbol.st_shndx == 0 && symbol.st_value == 0;
                if !imported || !self.code.contains(&*place) {
                    continue;
                }
                let name = self.names.add(symbol.st_name as usize);
                if let Some(found) = look_up(name, self.version(index)) {
                    place.write(found as usize);
                }
            }
        }
    }

    /// The version that a symbol is wanted in.
    ///
    /// # Safety
    /// `symbol` is a place in the module's table.
    unsafe fn version(&self, symbol: usize) -> Option<&'static CStr> {
        /// The uppermost bit says that a symbol is hidden.
        const NUMBER: u16 = 0x7fff;
        // SAFETY: records of the module's table of needed versions are chained by their distances; 0 ends a chain. A file
        // is {u16, u16 count, u32 name, u32 first, u32 next}, a version {u32, u16, u16 number, u32 name, u32 next}.
        unsafe {
            let wanted = *self.versions?.add(symbol) & NUMBER;
            let word = |at: *const u8, offset: usize| at.add(offset).cast::<u32>().read_unaligned() as usize;
            let mut file = self.needed?;
            loop {
                let mut version = file.add(word(file, 8));
                loop {
                    if version.add(6).cast::<u16>().read_unaligned() & NUMBER == wanted {
                        return Some(CStr::from_ptr(self.names.add(word(version, 8))));
                    }
                    match word(version, 12) {
                        0 => break,
                        distance => version = version.add(distance),
                    }
                }
                match word(file, 12) {
                    0 => return None,
                    distance => file = file.add(distance),
                }
            }
        }
    }
}

/// What the loader would find; none where that is not certain.
///
/// The loader takes the first module that has the name, whether it has versions or not; this library has none. `dlsym`
/// does the same but prefers the version that a module gives by default, `dlvsym` skips modules without versions.
///
/// # Safety
/// The name is NUL-terminated.
unsafe fn look_up(name: *const c_char, version: Option<&CStr>) -> Option<*mut c_void> {
    // SAFETY: by the caller's promise.
    unsafe {
        let first = libc::dlsym(libc::RTLD_DEFAULT, name);
        let Some(version) = version else { return (!first.is_null()).then_some(first) };
        let module = module_of(first)?;
        if module == module_of(look_up as *const () as *mut c_void)? {
            return Some(first);
        }
        let versioned = dlvsym(libc::RTLD_DEFAULT, name, version.as_ptr());
        (module_of(versioned)? == module).then_some(versioned)
    }
}

/// Where the module begins that an address belongs to.
pub(crate) fn module_of(address: *mut c_void) -> Option<usize> {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: `dladdr` fills the record when it answers with a number other than 0, whatever the address.
    unsafe {
        let known = !address.is_null() && libc::dladdr(address, info.as_mut_ptr()) != 0;
        known.then(|| info.assume_init().dli_fbase as usize)
    }
}
