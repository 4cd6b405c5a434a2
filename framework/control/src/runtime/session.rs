//! Beginning a run: from the settings in the region to a runtime whose only logical thread is the caller.

use core::sync::atomic::{AtomicBool, Ordering};

use waylay_control_protocol::account::Beside;
use waylay_control_protocol::{RegionMap, Settings, Switching};
use waylay_runtime::session::{limits_of, prepare, refuse};
use waylay_schedule::{Run as Schedule, Seed, Source, Spec};

use super::carrier::{self, Carrier};
use super::idling::Idling;
use super::logical::Logical;
use super::platform::State;
use super::{Token, calls, lifecycle, outside, pool, preempt, runtime};
use crate::heap::{guard, strict};
use crate::instrument::{self, Linux};
use crate::interpose::{alone, processors};
use crate::me::set_me;
use crate::sched::{ByAddress, Limits, Scheduler};
pub(crate) use crate::sched::{Planned, plan};
use crate::sys;

/// The settings that the driver left, and how threads are to be switched.
pub(crate) fn settings_of(region: &RegionMap) -> (Settings, Switching) {
    let settings = region.settings();
    (settings, Switching::from_code(settings.switching).unwrap_or(Switching::Free))
}

/// Puts the calling thread under control as the main thread of the process's only run.
///
/// # Safety
/// The caller is the only thread of the process that may run program code, and no run has begun.
pub(crate) unsafe fn begin(region: RegionMap, planned: Planned) {
    let strategy = match planned {
        Ok(strategy) => strategy,
        Err(error) => refuse::<Linux>(&region, &error),
    };
    let settings = region.settings();
    let limits = limits_of(&settings);
    // SAFETY: by the caller's promise.
    unsafe {
        prepare::<Linux>(region, strategy, limits, false);
        preempt::start(settings.preempt_ms);
        start(settings);
    }
}

/// Threads that a program is expected to have, before it is known better.
const FIRST_THREADS: u32 = 4;

/// Does everything that runs have in common, with the calling thread as their main thread: from here on, runs begin with
/// [`begin_restored`]. Returns on the carrier.
///
/// # Safety
/// As for [`begin`].
pub(crate) unsafe fn prepare_to_restore(region: RegionMap) -> Result<(), i32> {
    let preempt_ms = region.settings().preempt_ms;
    if region.batch().wished().next().is_none() {
        region.batch().wish(0, FIRST_THREADS);
    }
    let wishes: Vec<_> = region.batch().wished().collect();
    // SAFETY: no run has begun in this process.
    unsafe { instrument::prepare(&region) };
    // SAFETY: by the caller's promise.
    unsafe {
        let is_alone = alone::is_said();
        let main = prepare::<Linux>(region, Spec::Random.build(), Limits::default(), true);
        preempt::start(preempt_ms);
        pool::notice_modules();
        carrier::start(main)?;
        pool::warm(main);
        for (stack_size, threads) in wishes {
            match lifecycle::fill_pool(Token::held_by(main), stack_size, threads) {
                0 => {}
                error => return Err(error),
            }
        }
        alone::say(is_alone);
    }
    Ok(())
}

/// Begins a run as [`begin`] does, in a process that was prepared for it.
///
/// # Safety
/// The main thread makes the call, on the carrier; everything is as [`prepare_to_restore`] left it.
pub(crate) unsafe fn begin_restored() {
    // SAFETY: by the caller's promise.
    unsafe {
        let region = &(*runtime()).region;
        let strategy = match plan(region) {
            Ok(strategy) => strategy,
            Err(error) => refuse::<Linux>(region, &error),
        };
        let (settings, switching) = usable_settings(region);
        let scheduler = Scheduler::recording_into(region, &settings, strategy);
        // What was there is not dropped: it comes back with the next run.
        (&raw mut (*runtime()).sched).write(scheduler);
        (*runtime()).settings = settings;
        (*runtime()).limits = limits_of(&settings);
        (*runtime()).system.switching = switching;
        start(settings);
    }
}

/// Whether the program created a thread that is not under control.
static UNCONTROLLED: AtomicBool = AtomicBool::new(false);

/// A thread is created that is not under control: a constructor that runs before `main` does that.
pub(crate) fn note_uncontrolled_thread() {
    UNCONTROLLED.store(true, Ordering::Relaxed);
}

/// Lets the run begin.
unsafe fn start(settings: Settings) {
    // SAFETY: called once per run, by its main thread, which is the only one so far.
    unsafe {
        let main = (*runtime()).main;
        let me = Token::held_by(main);
        if UNCONTROLLED.load(Ordering::Relaxed) {
            outside::takes_part(me, &Beside::BeforeMain);
        }
        (*runtime()).random.begin(Schedule { seed: Seed(!settings.seed), index: settings.run });
        lifecycle::register(me, main);
        lifecycle::arm_end(main);
        instrument::begin_run(me);
        outside::set_running(true);
        let level = (*runtime()).region.level();
        if settings.calls != 0 || settings.guard != 0 || level.sees_accesses() {
            strict::take_control();
        }
        if settings.calls != 0 {
            calls::make_steps();
        }
        if settings.guard != 0 {
            guard::switch_on();
        }
        calls::ask_for(settings.asked);
        set_me(main);
    }
}

/// Whether fibers can work here: user code may set the FS base, and no shadow stack has to follow a switch.
pub(crate) fn can_carry() -> bool {
    const FSGSBASE: u64 = 1 << 1;
    const SHADOW_STACK_STATUS: usize = 0x5005;
    let mut features = 0u64;
    // SAFETY: asks the loader's table, and the kernel, which writes eight bytes; kernels that do not know the request
    // refuse it and have no shadow stacks.
    unsafe {
        sys::call(libc::SYS_arch_prctl, [SHADOW_STACK_STATUS, &raw mut features as usize, 0, 0, 0, 0]);
        libc::getauxval(libc::AT_HWCAP2) & FSGSBASE != 0 && features & 1 == 0
    }
}

/// The settings as they can be carried out here.
fn usable_settings(region: &RegionMap) -> (Settings, Switching) {
    let (settings, mut switching) = settings_of(region);
    if switching == Switching::Carrier && !can_carry() {
        switching = Switching::Baton;
    }
    region.report().switching.store(switching as u32, Ordering::Relaxed);
    (settings, switching)
}

/// The calling thread as the main thread of runs, and what a run has on this system only.
pub(super) fn make_ready(region: &RegionMap) -> (*mut Logical, State) {
    let (_, switching) = usable_settings(region);
    // Hand-overs between kernel threads on two processors take thirty times as long; under carrier that concerns the
    // creation of threads.
    processors::bind();
    let main = Box::into_raw(Logical::new(None, core::ptr::null_mut()));
    let system = State {
        switching,
        handles: ByAddress::default(),
        carrier: Carrier::new(),
        watches: Vec::new(),
        inside: Default::default(),
        several: Vec::new(),
        idling: Idling::default(),
        held: 0,
        overdue: Vec::new(),
        sent: Vec::new(),
        pool: Vec::new(),
    };
    // SAFETY: `main` was just made.
    unsafe {
        (*main).kernel_id = sys::thread_id();
        (*main).handle = libc::pthread_self() as usize;
        preempt::held_by((*main).kernel_id);
    }
    (main, system)
}
