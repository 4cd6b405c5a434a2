//! How the library comes to life: when it is loaded, and when the program reaches `main`.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use waylay_control_protocol::{
    REGION_VARIABLE, RegionMap, SERVER_VARIABLE, SHIFT_VARIABLE, STAND_IN_VARIABLE, Switching,
};

use super::stand_aside::stand_aside;
use super::{exit, processors, real_thread};
use crate::me::Unmanaged;
use crate::message::say;
use crate::runtime::Token;
use crate::{binding, fork_server, instrument, runtime, snapshot, sys};

type Main = extern "C-unwind" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

struct Slot(UnsafeCell<Option<RegionMap>>);

// SAFETY: written by the loader's thread before `main`, taken by the main thread at `main`.
unsafe impl Sync for Slot {}

static REGION: Slot = Slot(UnsafeCell::new(None));
static SERVER: AtomicI32 = AtomicI32::new(-1);
static MAIN: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = at_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOADED: extern "C" fn() = exit::at_unload;

/// The environment is read here and nowhere else: interposed functions are called before it exists, by sanitizer
/// runtimes for one. The variables are removed, so that programs started by this one are left alone.
extern "C" fn at_load() {
    real_thread::make_key(runtime::last_words);
    binding::count_modules();
    let Some(region) = take_number(REGION_VARIABLE) else { return stand_aside() };
    if let Some(server) = take_number(SERVER_VARIABLE) {
        SERVER.store(server, Ordering::Relaxed);
    }
    leave_out_what_is_ours();
    for _ in 0..take_number(SHIFT_VARIABLE).unwrap_or(0) {
        // About what libc keeps of a thread. SAFETY: never used, and kept for good.
        unsafe { libc::malloc(288) };
    }
    match RegionMap::open(region) {
        Ok(region) => {
            instrument::configure(&region.instrumentation());
            if runtime::settings_of(&region).1 == Switching::Free && SERVER.load(Ordering::Relaxed) < 0 {
                stand_aside();
            }
            // SAFETY: no other thread exists yet.
            unsafe { *REGION.0.get() = Some(region) }
        }
        Err(error) => {
            say(format_args!("{error}"));
            sys::exit_now(3);
        }
    }
}

/// The loader has read its lists: for programs that this one starts they are what they were before us.
fn leave_out_what_is_ours() {
    let stand_in = std::env::var(STAND_IN_VARIABLE).ok();
    leave_out("LD_PRELOAD", |entry| {
        entry.rsplit('/').next().is_some_and(|file| file.starts_with(OUR_FILE))
    });
    leave_out("LD_LIBRARY_PATH", |entry| Some(entry) == stand_in.as_deref());
    // SAFETY: the process has one thread, which is in the loader.
    unsafe { std::env::remove_var(STAND_IN_VARIABLE) };
}

/// Takes entries out of a list in the environment, and the list when there are no others.
fn leave_out(variable: &str, ours: impl Fn(&str) -> bool) {
    let Ok(list) = std::env::var(variable) else { return };
    let rest = list.split(':').filter(|entry| !ours(entry)).collect::<Vec<_>>().join(":");
    // SAFETY: the process has one thread, which is in the loader.
    unsafe {
        match rest.as_str() {
            "" => std::env::remove_var(variable),
            rest if rest != list => std::env::set_var(variable, rest),
            _ => {}
        }
    }
}

/// How the name of this library's file begins.
const OUR_FILE: &str = "libwaylay_control";

fn take_number(variable: &str) -> Option<i32> {
    let number = std::env::var(variable).ok()?.parse().ok();
    // SAFETY: the process has one thread, which is in the loader.
    unsafe { std::env::remove_var(variable) };
    number
}

/// The plan of a run of this process, unless there is none or a host makes its own.
fn plan(region: &RegionMap) -> runtime::Planned {
    let (settings, switching) = runtime::settings_of(region);
    if switching == Switching::Free || settings.in_process != 0 {
        return Err("nothing was planned".to_owned());
    }
    runtime::plan(region)
}

/// The same, in a fork server: what every run would have to do by itself is done.
fn prepared(region: &RegionMap) -> runtime::Planned {
    // SAFETY: no run has begun in this process.
    unsafe { instrument::prepare(region) };
    plan(region)
}

extern "C-unwind" fn controlled_main(
    argc: c_int,
    argv: *mut *mut c_char,
    environment: *mut *mut c_char,
) -> c_int {
    // SAFETY: set before libc called us; the region is only taken here.
    let (main, region) = unsafe {
        let main: Main = core::mem::transmute(MAIN.load(Ordering::Relaxed));
        (main, (*REGION.0.get()).take())
    };
    let Some(region) = region else { return main(argc, argv, environment) };
    runtime::note_modules();
    crate::heap::guard::prepare();
    instrument::patch::begin(&region.instrumentation(), region.settings().debugged != 0);
    let server = SERVER.load(Ordering::Relaxed);
    let (region, planned) = if server >= 0 {
        match fork_server::serve(server, region, prepared) {
            Some(ready) => ready,
            None => {
                // SAFETY: the main thread is on the carrier, as it was left.
                unsafe { runtime::begin_restored() };
                return run_main(main, argc, argv, environment);
            }
        }
    } else {
        if runtime::settings_of(&region).1 != Switching::Free {
            fork_server::get_ready();
        }
        let planned = plan(&region);
        (region, planned)
    };
    let (settings, switching) = runtime::settings_of(&region);
    if switching == Switching::Free {
        processors::release();
        return main(argc, argv, environment);
    }
    if settings.in_process != 0 {
        // SAFETY: the main thread is the only one here; the host takes it back out with its first run.
        unsafe { *REGION.0.get() = Some(region) };
        return main(argc, argv, environment);
    }
    // SAFETY: constructors may have left threads running; they stay unmanaged. No run has begun in this process.
    unsafe { runtime::begin(region, planned) };
    run_main(main, argc, argv, environment)
}

/// Runs the program under control.
fn run_main(main: Main, argc: c_int, argv: *mut *mut c_char, environment: *mut *mut c_char) -> c_int {
    let status = if snapshot::is_on() {
        run_main_restored(Call { main, argc, argv, environment })
    } else {
        main(argc, argv, environment)
    };
    let me = crate::me::me();
    if !me.is_null() {
        let _inside = Unmanaged::enter();
        // SAFETY: the main thread runs program code until here, so it has the token.
        unsafe { exit::last_step(Token::held_by(me)) };
    }
    status
}

/// A call of `main`.
struct Call {
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    environment: *mut *mut c_char,
}

/// The same for a run that will be undone: the main thread may end from within, and its kernel thread stays.
fn run_main_restored(mut call: Call) -> c_int {
    extern "C-unwind" fn make(call: *mut c_void) -> *mut c_void {
        // SAFETY: the caller passes a call that outlives this.
        let Call { main, argc, argv, environment } = unsafe { call.cast::<Call>().read() };
        core::ptr::without_provenance_mut(main(argc, argv, environment) as usize)
    }
    // SAFETY: the main thread makes the call, with the token.
    unsafe {
        let ended = runtime::call_until_exit(make, (&raw mut call).cast());
        if ended.from_within != 0 {
            runtime::main_left();
        }
        ended.result.addr() as c_int
    }
}

/// The region, for a host that begins its first run.
///
/// # Safety
/// Only one thread of the host begins runs.
pub(crate) unsafe fn take_region_for_host() -> Option<RegionMap> {
    // SAFETY: by the caller's promise.
    unsafe { (*REGION.0.get()).take() }
}

crate::real::real! {
    __libc_start_main(
        main: Main,
        argc: c_int,
        argv: *mut *mut c_char,
        init: *mut c_void,
        fini: *mut c_void,
        loader_fini: *mut c_void,
        stack_end: *mut c_void
    ) -> c_int;
}

mod exported {
    use super::*;

    /// # Safety
    /// Called once, by the program's start-up code.
    #[cfg_attr(not(test), unsafe(no_mangle))]
    unsafe extern "C-unwind" fn __libc_start_main(
        main: Main,
        argc: c_int,
        argv: *mut *mut c_char,
        init: *mut c_void,
        fini: *mut c_void,
        loader_fini: *mut c_void,
        stack_end: *mut c_void,
    ) -> c_int {
        MAIN.store(main as *mut c_void, Ordering::Relaxed);
        // SAFETY: passed on as received.
        unsafe { super::__libc_start_main(controlled_main, argc, argv, init, fini, loader_fini, stack_end) }
    }
}
