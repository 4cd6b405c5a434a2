//! The functions that become steps, one file per family, and how they get into the program.
//!
//! Import tables of the program's own modules are changed ([`imports`]): calls from the program come here, calls from
//! Windows itself do not. A function that finds no logical thread behaves as if the library were not there, except that
//! it tells the scheduler what it did to objects that logical threads may wait for.
//!
//! The real functions are called through the import table of this library, which is never changed; those of a C runtime
//! or of a threads library through what stood in the program's table ([`Foreign`]), since a process may have several.

mod address;
mod clock;
mod condition;
mod exit;
mod fault;
mod handle;
mod heap;
mod imports;
mod loader;
mod once;
mod posix;
mod pthread;
mod random;
mod section;
mod sleep;
mod slim;
mod statics;
mod thread;
mod timer;
mod uncontrolled;
mod wait;

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use waylay_scheduler::Moment;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleA, GetProcAddress};
use windows_sys::Win32::System::Threading::INFINITE;

pub(crate) use clock::virtual_ticks;
pub(crate) use exit::at_unload;
pub(crate) use fault::watch_for_faults;
pub(crate) use handle::Handles;
pub(crate) use heap::configure as configure_heap;
pub(crate) use imports::{changed_modules, patch_modules};
pub(crate) use pthread::Mutexes;
pub(crate) use section::owner_of as owner_of_section;

use crate::runtime::Token;
use crate::sys::{exit_now, say};

/// One function in the place of another.
pub(crate) struct Hook {
    name: &'static str,
    ours: *const c_void,
    /// Where to keep what stood there, for functions of which a process may have several.
    foreign: Option<&'static Foreign>,
}

// SAFETY: addresses of functions and of statics.
unsafe impl Sync for Hook {}

/// All of them.
static FAMILIES: [&[Hook]; 17] = [
    address::HOOKS,
    clock::HOOKS,
    condition::HOOKS,
    exit::HOOKS,
    fault::HOOKS,
    handle::HOOKS,
    loader::HOOKS,
    once::HOOKS,
    posix::HOOKS,
    random::HOOKS,
    section::HOOKS,
    sleep::HOOKS,
    slim::HOOKS,
    statics::HOOKS,
    thread::HOOKS,
    timer::HOOKS,
    uncontrolled::HOOKS,
];

/// The hook for a function of this name.
fn hook_for(name: &[u8]) -> Option<&'static Hook> {
    static SORTED: std::sync::OnceLock<Vec<&'static Hook>> = std::sync::OnceLock::new();
    let sorted = SORTED.get_or_init(|| {
        let families = FAMILIES.iter().chain([&wait::HOOKS]).chain(&pthread::FAMILIES);
        let mut all: Vec<&Hook> = families.copied().flatten().chain(heap::hooks()).collect();
        all.sort_by_key(|hook| hook.name);
        all
    });
    let place = sorted.binary_search_by(|hook| hook.name.as_bytes().cmp(name)).ok()?;
    Some(sorted[place])
}

impl Hook {
    /// Keeps what stood in the program's table.
    fn remember(&self, function: *mut c_void) {
        if let Some(foreign) = self.foreign {
            let nothing = core::ptr::null_mut();
            let _ = foreign.found.compare_exchange(nothing, function, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// A function of the program's C runtime or threads library.
pub(crate) struct Foreign {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

/// Where such functions are, should the program not import them itself.
const LIBRARIES: [&CStr; 7] = [
    c"libwinpthread-1.dll",
    c"libstdc++-6.dll",
    c"libgcc_s_seh-1.dll",
    c"msvcrt.dll",
    c"ucrtbase.dll",
    c"kernel32.dll",
    c"winmm.dll",
];

impl Foreign {
    const fn new(name: &'static str) -> Foreign {
        let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) else { panic!("names end with a zero") };
        Foreign { name, found: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// The function.
    pub(crate) fn address(&self) -> *mut c_void {
        match self.found.load(Ordering::Relaxed) {
            found if found.is_null() => self.look_up(),
            found => found,
        }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        // SAFETY: both names end with a zero.
        let found = LIBRARIES.iter().find_map(|library| unsafe {
            let module = GetModuleHandleA(library.as_ptr().cast());
            if module.is_null() { None } else { GetProcAddress(module, self.name.as_ptr().cast()) }
        });
        let Some(found) = found else {
            say(format_args!("the program has no function {}", self.name.to_string_lossy()));
            exit_now(3)
        };
        self.found.store(found as *mut c_void, Ordering::Relaxed);
        found as *mut c_void
    }
}

/// Defines functions that stand in for those of Windows with the same names. They may be unwound: what they call on the
/// program's behalf may throw. After the signature stands what they do for
/// threads that are not under control, then what they do for the running logical thread.
macro_rules! interpose {
    ($(
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty = $outside:expr, |$me:pat_param| $body:block
    )+) => {
        $(
            #[allow(non_snake_case, reason = "the name in Windows")]
            unsafe extern "system-unwind" fn $name($($argument: $type),*) -> $result {
                let me = $crate::me::me();
                // SAFETY: the program promises what the function of this name demands; a logical thread that runs
                // program code has the token.
                unsafe {
                    if me.is_null() {
                        $outside
                    } else {
                        let _inside = $crate::me::Inside::enter(me);
                        let $me = $crate::runtime::Token::held_by(me);
                        $body
                    }
                }
            }
        )+
        pub(super) const HOOKS: &[$crate::interpose::Hook] = &[$(
            $crate::interpose::Hook {
                name: stringify!($name),
                ours: $name as unsafe extern "system-unwind" fn($($type),*) -> $result as *const core::ffi::c_void,
                foreign: None,
            },
        )+];
    };
}

/// The same for functions that do not come from Windows itself: `real::name` is the program's own.
macro_rules! interpose_foreign {
    ($(
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty = $outside:expr, |$me:pat_param| $body:block
    )+) => {
        /// The functions as they stood in the program's table.
        #[allow(dead_code, non_snake_case, reason = "not every one is needed; the names in C")]
        mod real {
            use super::*;
            $(
                pub(super) mod $name {
                    pub(crate) static FOREIGN: $crate::interpose::Foreign =
                        $crate::interpose::Foreign::new(concat!(stringify!($name), "\0"));
                }
                #[inline]
                pub(super) unsafe fn $name($($argument: $type),*) -> $result {
                    // SAFETY: the function of this name has this type, and is known when a hook for it is called.
                    unsafe {
                        let function: unsafe extern "system-unwind" fn($($type),*) -> $result =
                            core::mem::transmute($name::FOREIGN.address());
                        function($($argument),*)
                    }
                }
            )+
        }
        $(
            #[allow(non_snake_case, reason = "the name in the library")]
            unsafe extern "system-unwind" fn $name($($argument: $type),*) -> $result {
                let me = $crate::me::me();
                // SAFETY: the program promises what the function of this name demands; a logical thread that runs
                // program code has the token.
                unsafe {
                    if me.is_null() {
                        $outside
                    } else {
                        let _inside = $crate::me::Inside::enter(me);
                        let $me = $crate::runtime::Token::held_by(me);
                        $body
                    }
                }
            }
        )+
        pub(super) const HOOKS: &[$crate::interpose::Hook] = &[$(
            $crate::interpose::Hook {
                name: stringify!($name),
                ours: $name as unsafe extern "system-unwind" fn($($type),*) -> $result as *const core::ffi::c_void,
                foreign: Some(&real::$name::FOREIGN),
            },
        )+];
    };
}

use interpose;
use interpose_foreign;

const NANOSECONDS: u64 = 1_000_000;

/// The moment that lies so many milliseconds ahead; none when that is for ever.
fn deadline(me: &mut Token, milliseconds: u32) -> Option<Moment> {
    // SAFETY: who has the token lives.
    (milliseconds != INFINITE).then(|| me.run().sched.clock.after(u64::from(milliseconds) * NANOSECONDS))
}
