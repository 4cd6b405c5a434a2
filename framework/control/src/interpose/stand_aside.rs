//! Getting out of the way: when nothing is to be controlled, the program's calls go to libc directly.
//!
//! A function in front of `pthread_mutex_lock` costs a third of the lock itself, even if it only passes the call on.
//! So when the library finds at load that it has nothing to do, it rewrites the entries by which the modules loaded
//! so far call the frequent functions, from ours to the real ones. Modules that are loaded later keep calling
//! through ours, which works as well.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::Ordering;

use crate::real::Real;
use crate::sys;

/// The functions that programs call often.
static FREQUENT: [Real; 31] = [
    Real::new(c"pthread_mutex_lock"),
    Real::new(c"pthread_mutex_trylock"),
    Real::new(c"pthread_mutex_unlock"),
    Real::new(c"pthread_mutex_timedlock"),
    Real::new(c"pthread_mutex_clocklock"),
    Real::versioned(c"pthread_cond_wait", c"GLIBC_2.3.2"),
    Real::versioned(c"pthread_cond_timedwait", c"GLIBC_2.3.2"),
    Real::new(c"pthread_cond_clockwait"),
    Real::versioned(c"pthread_cond_signal", c"GLIBC_2.3.2"),
    Real::versioned(c"pthread_cond_broadcast", c"GLIBC_2.3.2"),
    Real::new(c"pthread_rwlock_rdlock"),
    Real::new(c"pthread_rwlock_wrlock"),
    Real::new(c"pthread_rwlock_tryrdlock"),
    Real::new(c"pthread_rwlock_trywrlock"),
    Real::new(c"pthread_rwlock_unlock"),
    Real::new(c"pthread_spin_lock"),
    Real::new(c"pthread_spin_trylock"),
    Real::new(c"pthread_spin_unlock"),
    Real::new(c"pthread_once"),
    Real::new(c"sem_wait"),
    Real::new(c"sem_trywait"),
    Real::new(c"sem_post"),
    Real::new(c"clock_gettime"),
    Real::new(c"gettimeofday"),
    Real::new(c"time"),
    Real::new(c"sched_yield"),
    Real::new(c"syscall"),
    Real::new(c"read"),
    Real::new(c"write"),
    Real::new(c"poll"),
    Real::new(c"epoll_wait"),
];

/// Relocations that hold the address of a function: of a call, and of a pointer to it.
const JUMP_SLOT: u32 = 7;
const GLOBAL_DATA: u32 = 6;

const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

const PAGE: usize = 4096;

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

/// Rewrites what can be rewritten.
pub(super) fn stand_aside() {
    // SAFETY: the callback needs no argument; the loader's thread is the only one.
    unsafe { libc::dl_iterate_phdr(Some(visit), core::ptr::null_mut()) };
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> c_int {
    const EXEMPT: [&[u8]; 4] =
        [b"/libc.so.6", b"/ld-linux-x86-64.so.2", b"linux-vdso.so.1", b"/libwaylay_control.so"];
    // SAFETY: libc passes a valid record of a module that is relocated.
    unsafe {
        let name = CStr::from_ptr((*info).dlpi_name).to_bytes();
        if EXEMPT.iter().any(|exempt| name.ends_with(exempt)) {
            return 0;
        }
        let base = (*info).dlpi_addr as usize;
        let headers = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum as usize);
        let of_type = |kind| headers.iter().find(|header| header.p_type == kind);
        let Some(dynamic) = of_type(libc::PT_DYNAMIC) else { return 0 };
        let sealed = of_type(libc::PT_GNU_RELRO).map_or(0..0, |header| {
            let low = base + header.p_vaddr as usize;
            low..low + header.p_memsz as usize
        });
        let entry = |tag| {
            let mut at = (base + dynamic.p_vaddr as usize) as *const Dynamic;
            while (*at).tag != 0 {
                if (*at).tag == tag {
                    return (*at).value;
                }
                at = at.add(1);
            }
            0
        };
        let tables = Tables { base, symbols: entry(DT_SYMTAB), strings: entry(DT_STRTAB), sealed };
        if tables.symbols != 0 && tables.strings != 0 {
            tables.rewrite(entry(DT_JMPREL), entry(DT_PLTRELSZ));
            tables.rewrite(entry(DT_RELA), entry(DT_RELASZ));
        }
    }
    0
}

struct Tables {
    base: usize,
    symbols: usize,
    strings: usize,
    /// What the loader made read-only after relocation.
    sealed: core::ops::Range<usize>,
}

impl Tables {
    unsafe fn rewrite(&self, relocations: usize, bytes: usize) {
        if relocations == 0 {
            return;
        }
        // SAFETY: addresses and lengths are the module's own, made absolute by the loader.
        unsafe {
            let count = bytes / size_of::<libc::Elf64_Rela>();
            for relocation in core::slice::from_raw_parts(relocations as *const libc::Elf64_Rela, count) {
                let (kind, symbol) = (relocation.r_info as u32, (relocation.r_info >> 32) as usize);
                if kind != JUMP_SLOT && kind != GLOBAL_DATA {
                    continue;
                }
                let symbol = &*(self.symbols as *const libc::Elf64_Sym).add(symbol);
                let name = CStr::from_ptr((self.strings + symbol.st_name as usize) as *const _);
                if let Some(real) = FREQUENT.iter().find(|real| real.name() == name) {
                    self.write(self.base + relocation.r_offset as usize, real.address() as usize);
                }
            }
        }
    }

    unsafe fn write(&self, at: usize, value: usize) {
        let page = at & !(PAGE - 1);
        // SAFETY: `at` is an entry of the module's table, a word that does not cross a page; calls through it load
        // it whole.
        unsafe {
            let sealed = self.sealed.contains(&at);
            if sealed && !sys::protect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE) {
                return;
            }
            (*(at as *const core::sync::atomic::AtomicUsize)).store(value, Ordering::Relaxed);
            if sealed {
                sys::protect(page, PAGE, libc::PROT_READ);
            }
        }
    }
}
