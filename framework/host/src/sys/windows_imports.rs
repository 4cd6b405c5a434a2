//! Windows: functions that modules of this process import are replaced by ours. A module calls what it imports through a
//! table of addresses that the loader has filled in; whoever has the address of a replaced function there gets ours.
//!
//! Found by address, not by name: kernel32's `HeapAlloc` is ntdll's `RtlAllocateHeap` under another name, and others
//! import it by names of their own.

use std::ffi::{CStr, c_void};

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Memory::{PAGE_READWRITE, VirtualProtect};
use windows_sys::Win32::System::ProcessStatus::{K32EnumProcessModules, K32GetModuleInformation, MODULEINFO};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// Modules of a process that are looked at; more than any test has.
const MOST_MODULES: usize = 2048;
/// Places of the list of imports in the headers of a 64-bit image.
const NEW_HEADER: usize = 0x3c;
const IMPORTS: usize = 24 + 112 + 8;
/// What one library's imports are described by: names at 0, addresses at 16.
const DESCRIPTOR: usize = 20;

/// The system's own modules, which build these functions on each other.
const SYSTEM: [&CStr; 3] = [c"ntdll.dll", c"kernel32.dll", c"kernelbase.dll"];

/// A function and what takes its place.
#[derive(Clone, Copy)]
pub(super) struct Replacement {
    pub(super) original: usize,
    pub(super) ours: usize,
}

/// The function behind an address that was noted before it was replaced.
macro_rules! original {
    ($place:ident as $kind:ty) => {
        // SAFETY: stored before anything was replaced, from a function of that type.
        unsafe { std::mem::transmute::<usize, $kind>($place.load(Ordering::Relaxed)) }
    };
}
pub(super) use original;

/// The addresses under which the system's modules export a function.
pub(super) fn addresses_of(names: &[&CStr]) -> Vec<usize> {
    let mut found = Vec::new();
    for module in SYSTEM.iter().map(|name| module_named(name)).filter(|module| !module.is_null()) {
        for name in names {
            // SAFETY: the module is loaded for good and the name ends with zero.
            if let Some(function) = unsafe { GetProcAddress(module, name.as_ptr().cast()) }
                && !found.contains(&(function as usize))
            {
                found.push(function as usize);
            }
        }
    }
    found
}

fn module_named(name: &CStr) -> HMODULE {
    // SAFETY: a name that ends with zero; nothing is loaded.
    unsafe { GetModuleHandleA(name.as_ptr().cast()) }
}

/// Where a module lies: its first address and the first behind it.
pub(super) fn extent_of(module: HMODULE) -> Option<(usize, usize)> {
    let mut info = MODULEINFO::default();
    // SAFETY: the module is one of this process, and the structure is as large as said.
    let done = unsafe {
        K32GetModuleInformation(GetCurrentProcess(), module, &mut info, size_of::<MODULEINFO>() as u32)
    };
    let start = info.lpBaseOfDll as usize;
    (done != 0).then_some((start, start + info.SizeOfImage as usize))
}

/// Replaces functions in every library that is loaded now; in those that were seen to before nothing is left to do. The
/// program itself goes on calling the originals.
pub(super) fn replace_in_libraries(replacements: &[Replacement]) {
    replace_in_all_but(replacements, &[SYSTEM.map(module_named).as_slice(), &[own_module()]].concat());
}

/// The program that this process runs.
pub(super) fn own_module() -> HMODULE {
    // SAFETY: no name means the program.
    unsafe { GetModuleHandleA(std::ptr::null()) }
}

fn replace_in_all_but(replacements: &[Replacement], spared: &[HMODULE]) {
    let mut modules = vec![std::ptr::null_mut(); MOST_MODULES];
    let mut needed = 0;
    let room = size_of_val(modules.as_slice()) as u32;
    // SAFETY: there is room for as many modules as said.
    if unsafe { K32EnumProcessModules(GetCurrentProcess(), modules.as_mut_ptr(), room, &mut needed) } == 0 {
        return;
    }
    modules.truncate(needed as usize / size_of::<HMODULE>());
    for module in modules.into_iter().filter(|module| !spared.contains(module)) {
        if let Some(extent) = extent_of(module) {
            // SAFETY: a loaded module; nobody unloads plugins, and what else goes while we look is the test's own doing.
            unsafe { replace_in(extent, replacements) };
        }
    }
}

/// # Safety
///
/// A module is loaded there and stays so.
unsafe fn replace_in((start, end): (usize, usize), replacements: &[Replacement]) {
    let word = |offset: usize| -> Option<usize> {
        let at = start.checked_add(offset)?;
        // SAFETY: inside the module, whose headers and lists are readable.
        (at + 4 <= end).then(|| unsafe { (at as *const u32).read_unaligned() } as usize)
    };
    let Some(list) = word(NEW_HEADER).and_then(|header| word(header + IMPORTS)).filter(|list| *list != 0)
    else {
        return;
    };
    let mut at = list;
    while let (Some(name), Some(addresses)) = (word(at + 12), word(at + 16))
        && name != 0
        && addresses != 0
    {
        let mut slot = start + addresses;
        // SAFETY: inside the module; the loader ended the list of addresses with a null.
        while slot + 8 <= end
            && let address = unsafe { (slot as *const usize).read_unaligned() }
            && address != 0
        {
            if let Some(found) = replacements.iter().find(|replacement| replacement.original == address) {
                // SAFETY: the slot is one of the module's addresses.
                unsafe { write_slot(slot, found.ours) };
            }
            slot += 8;
        }
        at += DESCRIPTOR;
    }
}

/// # Safety
///
/// `slot` is in a table of addresses of a loaded module.
unsafe fn write_slot(slot: usize, value: usize) {
    let place = slot as *mut c_void;
    let mut before = 0;
    // SAFETY: the place is mapped, as our caller says. mingw's linker does not align the tables of all libraries; the
    // processor still writes the word at once, so that who calls through it at this moment finds the one or the other.
    unsafe {
        if VirtualProtect(place, 8, PAGE_READWRITE, &mut before) != 0 {
            place.cast::<usize>().write_unaligned(value);
            VirtualProtect(place, 8, before, &mut before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use windows_sys::Win32::System::Threading::GetCurrentProcessId;

    static ORIGINAL: AtomicU32 = AtomicU32::new(0);

    unsafe extern "system" fn another_number() -> u32 {
        ORIGINAL.load(Ordering::Relaxed) ^ 0x5a5a
    }

    #[test]
    fn an_import_is_replaced_and_put_back() {
        let own = std::process::id();
        ORIGINAL.store(own, Ordering::Relaxed);
        let originals = addresses_of(&[c"GetCurrentProcessId"]);
        assert!(!originals.is_empty());
        let ours = another_number as unsafe extern "system" fn() -> u32 as usize;
        let there: Vec<_> = originals.iter().map(|&original| Replacement { original, ours }).collect();
        // The test is the program.
        replace_in_all_but(&there, &SYSTEM.map(module_named));
        // SAFETY: returns a number.
        let seen = unsafe { GetCurrentProcessId() };
        let back: Vec<_> =
            originals.iter().map(|&original| Replacement { original: ours, ours: original }).collect();
        replace_in_all_but(&back[..1], &SYSTEM.map(module_named));
        assert_eq!(seen, own ^ 0x5a5a);
        // SAFETY: as above.
        assert_eq!(unsafe { GetCurrentProcessId() }, own);
    }

    #[test]
    fn a_module_knows_where_it_lies() {
        let (start, end) = extent_of(module_named(c"ntdll.dll")).expect("everybody has it");
        let inside = addresses_of(&[c"RtlAllocateHeap"]);
        assert!(
            inside.iter().any(|address| (start..end).contains(address)),
            "{inside:?} {start:#x} {end:#x}"
        );
    }
}
