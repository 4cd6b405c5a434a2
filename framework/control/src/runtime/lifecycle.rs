//! Beginning and ending logical threads.
//!
//! A new kernel thread starts in [`enter`], reaches its place and waits to be chosen; its creator waits for that, so
//! that the order in which the kernel starts threads is not seen. The end of a thread is its very last piece of
//! program code: a destructor of a thread key of ours that keeps itself alive for as many rounds as libc allows.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use waylay_control_protocol::Switching;
use waylay_runtime::handover::{dispatch, follow, resumed};
use waylay_runtime::{Platform, in_process, point};
use waylay_schedule::{Event, EventKind, ThreadId};

use super::logical::{Logical, Place, Routine};
use super::platform::STARTED;
use super::{Token, carrier, handover, leaving, outside, pool, robust, runtime};
use crate::instrument::{self, Linux};
use crate::interpose::{alone, processors, real_thread};
use crate::me::{Unmanaged, me, set_me};
use crate::sched::{Choice, Key, Shares};
use crate::{snapshot, sys};

/// Creates a logical thread on behalf of `me`. Returns libc's error number, 0 for success.
///
/// # Safety
/// The other arguments are those of `pthread_create`.
pub(crate) unsafe fn create(
    me: &mut Token,
    handle: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        instrument::before_spawn(me);
        let system = &me.run().system;
        match system.switching {
            Switching::Carrier if !system.carrier.running => {
                if let Err(error) = carrier::start(me.thread()) {
                    return error;
                }
            }
            Switching::Baton => carrier::leave_its_trace(me),
            Switching::Carrier | Switching::Free => {}
        }
        let affinity = match processors::of_new((*me.thread()).affinity, attributes) {
            Ok(affinity) => affinity,
            Err(error) => return error,
        };
        let stack_size = real_thread::stack_size(attributes);
        if let Some(thread) = from_pool(me, stack_size) {
            alone::say(false);
            (*thread).routine = Some(routine);
            (*thread).argument = argument;
            (*thread).detached = real_thread::is_detached(attributes);
            (*thread).mask = (*me.thread()).mask;
            (*thread).affinity = affinity;
            *handle = (*thread).handle as libc::pthread_t;
            register(me, thread);
            instrument::edge::spawned(me, thread);
            point::step(me, Event::on_thread(EventKind::ThreadSpawn, (*thread).id));
            return 0;
        }
        snapshot::needs_thread(stack_size);
        let thread = Box::into_raw(Logical::new(Some(routine), argument));
        let unmanaged = Unmanaged::enter();
        (*thread).detached = real_thread::is_detached(attributes);
        (*thread).stack_size = stack_size.unwrap_or(0);
        (*thread).mask = (*me.thread()).mask;
        (*thread).affinity = affinity;
        (*thread).recyclable = me.run().repeats && stack_size.is_some();
        (*thread).id = ThreadId(me.run().logicals.len() as u32);
        STARTED.store(0, Ordering::Relaxed);
        let error = real_thread::create_with_room(handle, attributes, stack_size, enter, thread.cast());
        if error != 0 {
            drop(unmanaged);
            drop(Box::from_raw(thread));
            return error;
        }
        while STARTED.load(Ordering::Acquire) == 0 {
            sys::futex_wait(&STARTED, 0);
        }
        drop(unmanaged);
        (*thread).handle = *handle as usize;
        register(me, thread);
        instrument::edge::spawned(me, thread);
        point::step(me, Event::on_thread(EventKind::ThreadSpawn, (*thread).id));
        0
    }
}

/// Makes threads for the pool before a run begins; returns libc's error number, 0 for success.
/// The caller sits on the carrier.
pub(crate) fn fill_pool(me: &mut Token, stack_size: usize, count: u32) -> i32 {
    // SAFETY: a thread that was made lives until the process ends; attributes are initialised before they are used.
    unsafe {
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        if stack_size != 0 {
            libc::pthread_attr_setstacksize(&raw mut attributes, real_thread::with_room(stack_size));
        }
        let first = me.run().system.pool.len();
        for _ in 0..count {
            let thread = Box::into_raw(Logical::new(None, core::ptr::null_mut()));
            (*thread).id = ThreadId(u32::MAX);
            (*thread).stack_size = stack_size;
            (*thread).recyclable = true;
            (*thread).pooled = true;
            STARTED.store(0, Ordering::Relaxed);
            let mut handle: libc::pthread_t = 0;
            let error = real_thread::pthread_create(&raw mut handle, &raw const attributes, enter, thread.cast());
            if error != 0 {
                return error;
            }
            while STARTED.load(Ordering::Acquire) == 0 {
                sys::futex_wait(&STARTED, 0);
            }
            // The first comes out first: a thread that is created later lies lower, as it does in a process that creates
            // them when it needs them. (Rust keeps its threads in a tree by address.)
            me.run().system.pool.insert(first, thread);
        }
        libc::pthread_attr_destroy(&raw mut attributes);
        0
    }
}

/// A thread of the pool with the right stack.
fn from_pool(me: &mut Token, stack_size: Option<usize>) -> Option<*mut Logical> {
    let stack_size = stack_size?;
    // SAFETY: threads in the pool live until the process ends.
    unsafe {
        let pool = &mut me.run().system.pool;
        let place = pool.iter().rposition(|&thread| (*thread).stack_size == stack_size)?;
        let thread = pool.swap_remove(place);
        (*thread).pooled = false;
        (*thread).cancelled = false;
        (*thread).cancels_anywhere = false;
        (*thread).pending_signals = 0;
        (*thread).keeps_going = false;
        (*thread).pauses = false;
        (*thread).alternate_stack = None;
        (*thread).handlers = 0;
        Some(thread)
    }
}

/// Tells scheduler and tables about a thread that is in place.
///
/// # Safety
/// The thread lives as long as the run.
pub(super) unsafe fn register(me: &mut Token, thread: *mut Logical) {
    // SAFETY: by the caller's promise.
    unsafe {
        let runtime = me.run();
        (*thread).id = runtime.sched.add_thread();
        runtime.logicals.push(thread);
        runtime.system.handles.insert((*thread).handle, thread);
    }
}

/// The first function of every created thread.
extern "C-unwind" fn enter(thread: *mut c_void) -> *mut c_void {
    let thread = thread.cast::<Logical>();
    // SAFETY: the creator keeps the thread alive and waits until it is in place.
    unsafe {
        if (*thread).pooled {
            pool::warm(thread);
        }
        set_me(thread);
        (*thread).kernel_id = sys::thread_id();
        (*thread).handle = libc::pthread_self() as usize;
        arm_end(thread);
        if (*runtime()).system.switching == Switching::Carrier {
            carrier::move_to_carrier(thread);
        } else {
            STARTED.store(1, Ordering::Release);
            sys::futex_wake(&STARTED);
            set_me(core::ptr::null_mut());
            (*thread).baton.wait();
        }
        loop {
            set_me(core::ptr::null_mut());
            resumed(Token::held_by(thread));
            set_me(thread);
            let Some(routine) = (*thread).routine else { return core::ptr::null_mut() };
            if snapshot::is_on() {
                run_restored(Token::held_by(thread), routine);
                continue;
            }
            (*thread).result = routine((*thread).argument);
            if !(*thread).recyclable {
                break;
            }
            pool::renew(Token::held_by(thread));
            set_me(core::ptr::null_mut());
            let me = Token::held_by(thread);
            let choice = leave(me);
            follow(me, choice);
        }
        let result = (*thread).result;
        // From here on the thread ends: libc's own exit path has to run on its kernel thread.
        set_me(core::ptr::null_mut());
        handover::demote_me(Token::held_by(thread));
        set_me(thread);
        result
    }
}

/// Runs a routine in a run that will be undone, to its end; returns when the thread is given another.
///
/// # Safety
/// The routine is the thread's, which is about to run code of the program.
unsafe fn run_restored(me: &mut Token, routine: Routine) {
    let thread = me.thread();
    // SAFETY: by the caller's promise; who has the token lives.
    unsafe {
        let ended = leaving::call_until_exit(routine, (*thread).argument);
        let mut anew = true;
        if ended.from_within == 0 {
            (*thread).result = ended.result;
        } else {
            set_me(thread);
            anew = leaving::forget_end();
        }
        pool::renew(me);
        set_me(core::ptr::null_mut());
        (*thread).spent = !anew;
    }
    end_restored(me);
}

/// The main thread ended from within, in a run that will be undone: the others go on without it.
///
/// # Safety
/// The main thread makes the call, with the token; no more code of the program is to run on it but destructors.
pub(crate) unsafe fn main_left() -> ! {
    // SAFETY: by the caller's promise.
    unsafe {
        let main = (*runtime()).main;
        set_me(main);
        pool::run_destructors();
        set_me(core::ptr::null_mut());
        // Whoever joins it finds nothing that is left to libc.
        (*main).recyclable = true;
        (*main).spent = true;
        end_restored(Token::held_by(main));
    }
    unreachable!("the main thread is given no other routine")
}

/// The running thread takes no more part in a run that will be undone, until it is given another routine.
fn end_restored(me: &mut Token) {
    let choice = leave(me);
    if choice == Choice::Finished {
        Linux::all_finished(me);
    }
    let thread = me.thread();
    // SAFETY: who has the token lives.
    unsafe {
        if (*thread).detached {
            to_pool(me, thread);
        }
    }
    follow(me, choice);
}

/// Makes sure that the end of the calling thread is noticed.
///
/// # Safety
/// `thread` is the calling thread.
pub(super) unsafe fn arm_end(thread: *mut Logical) {
    // SAFETY: the key exists since the library was loaded.
    unsafe { real_thread::set_last_words(thread.cast()) };
}

/// libc allows four rounds of destructors; other keys' destructors, which are program code, run in each.
const ROUNDS: u32 = 4;

/// Destructor of our thread key.
pub(crate) unsafe extern "C" fn last_words(thread: *mut c_void) {
    let thread = thread.cast::<Logical>();
    // SAFETY: set by `arm_end` for this thread, which holds the token as long as program code may run on it.
    unsafe {
        if me() != thread {
            return;
        }
        (*thread).rounds += 1;
        if (*thread).rounds < ROUNDS {
            return arm_end(thread);
        }
        set_me(core::ptr::null_mut());
        finish(Token::held_by(thread));
    }
}

/// # Safety
/// The thread sits at home, and has the token no longer.
unsafe fn finish(me: &mut Token) {
    let thread = me.thread();
    // SAFETY: by the caller's promise; nobody uses its park stack any more.
    unsafe {
        (*thread).park_stack = None;
        (*thread).recyclable = false;
        // For the program it is gone: a signal for the process that every other thread blocks must not end here.
        sys::swap_signal_mask(carrier::ALL_SIGNALS);
        robust::pass_on(me, outside::has_started_processes());
        let choice = leave(me);
        dispatch(me, choice);
    }
}

/// Takes the running thread out of the run.
fn leave(me: &mut Token) -> Choice {
    instrument::delay::before_call(me);
    let thread = me.thread();
    // SAFETY: who has the token lives.
    unsafe {
        if (*thread).detached {
            me.run().system.handles.remove(&(*thread).handle);
            instrument::edge::ended(me, thread);
        }
    }
    super::signals::forget(me, thread);
    me.run().sched.freed(key_of(thread), Shares::ALL);
    if me.run().repeats {
        in_process::one_less(me);
    }
    me.run().sched.finish()
}

/// Libc's part of a join, once the thread has ended: a thread of the pool has none.
///
/// # Safety
/// `thread` has finished and nobody joined it before.
pub(crate) unsafe fn complete_join(me: &mut Token, thread: *mut Logical, result: *mut *mut c_void) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        let runtime = me.run();
        runtime.system.handles.remove(&(*thread).handle);
        if (*thread).recyclable {
            if !result.is_null() {
                *result = (*thread).result;
            }
            to_pool(me, thread);
            return 0;
        }
        let unmanaged = Unmanaged::enter();
        let error = real_thread::pthread_join((*thread).handle as libc::pthread_t, result);
        drop(unmanaged);
        error
    }
}

/// The thread may be used again: nobody asks for its result any more.
unsafe fn to_pool(me: &mut Token, thread: *mut Logical) {
    // SAFETY: called with the token.
    unsafe {
        if !(*thread).spent {
            (*thread).pooled = true;
            me.run().system.pool.push(thread);
        }
    }
}

/// What joiners wait for.
pub(crate) fn key_of(thread: *mut Logical) -> Key {
    Key(thread as usize)
}

/// The logical thread behind a `pthread_t`.
pub(crate) fn lookup(me: &mut Token, handle: usize) -> Option<*mut Logical> {
    me.run().system.handles.get(&handle).copied()
}

/// Waits until `thread` has ended or `deadline` passed; true when it has ended.
///
/// # Safety
/// `thread` is in the tables.
pub(crate) unsafe fn join_point(
    me: &mut Token,
    thread: *mut Logical,
    deadline: Option<crate::sched::Moment>,
) -> point::Waited {
    // SAFETY: by the caller's promise.
    unsafe {
        let event = Event::on_thread(EventKind::ThreadJoin, (*thread).id);
        let ended = |me: &mut Token| me.run().has_finished(thread);
        match point::acquire(me, event, key_of(thread), Shares::ALL, deadline, ended, |me| ended(me).then_some(())) {
            Ok(()) => {
                instrument::edge::joined(me, thread);
                point::Waited::Done
            }
            Err(outcome) => outcome,
        }
    }
}

/// The running thread is about to end by itself, with this result.
pub(crate) fn exit_point(me: &mut Token, result: *mut c_void) {
    // SAFETY: who has the token lives.
    unsafe {
        (*me.thread()).result = result;
        if snapshot::is_on() {
            return;
        }
        (*me.thread()).recyclable = false;
        if (*me.thread()).place == Place::Carrier {
            handover::demote_me(me);
        }
    }
}
