//! Runs repeated inside one process, for plugin tests.
//!
//! The runtime is made once; between two runs it forgets the threads, may keep their kernel threads, and lets the
//! strategy learn. The thread that drives the runs is unmanaged between them. What becomes of threads that a run leaves running is decided in [`closing`];
//! which run comes next and what is counted, in `Series` of `waylay-scheduler`.

use waylay_control_protocol::{Begun, Ending, RunSummary};
use waylay_schedule::{Event, EventKind, Run, Seed, Source, ThreadId};

use waylay_scheduler::{Key, Shares};

use crate::platform::{Platform, Thread};
use crate::token::Token;
use crate::{closing, ending, point};

/// What `end` waits for: an address that no object of the program has.
const OTHERS: Key = Key(1);

/// Begins a run on the calling thread, if everything can be made ready for it and none goes on there.
///
/// # Safety
/// No run goes on, and the calling thread drives the runs of the process.
pub unsafe fn begin_when<P: Platform>(ready: impl FnOnce() -> bool, index: u64) -> Begun {
    if !P::me().is_null() || !ready() {
        return Begun::Refused;
    }
    // SAFETY: between runs the token belongs to the thread that drives them, which is the main thread of each.
    unsafe { begin(Token::held_by((*P::slot().get()).main), index) }
}

/// Begins a run on the calling thread, which is the main thread of the process's runs.
///
/// # Safety
/// No run goes on.
unsafe fn begin<T: Thread>(main: &mut Token<T>, index: u64) -> Begun {
    let (series, stage) = main.run().stage();
    let seed = match series.begin(index, stage) {
        Ok(begun) => begun.seed,
        Err(refusal) => return refusal,
    };
    main.run().random.begin(Run { seed: Seed(!seed.0), index });
    T::System::renew(main);
    let thread = main.thread();
    // SAFETY: the main thread outlives its runs.
    unsafe { T::System::register(main, thread) };
    T::System::begin_run(main);
    T::System::set_me(thread);
    Begun::Yes
}

/// Ends the run, as its main thread.
fn end<T: Thread>(main: &mut Token<T>, failed: bool) -> RunSummary {
    T::System::set_me(core::ptr::null_mut());
    let event = Event::on_thread(EventKind::ThreadJoin, ThreadId::MAIN);
    let alone = |me: &mut Token<T>| me.run().sched.live() == 1;
    closing::open(main);
    let waited = point::acquire(main, event, OTHERS, Shares::ALL, None, alone, |me| alone(me).then_some(()));
    closing::close(main);
    T::System::set_running(false);
    T::System::before_end(main);
    let left = if waited.is_ok() { 0 } else { main.run().sched.live() - 1 };
    let run = main.run();
    if run.series.follows(&run.region) {
        ending::finalise(main, Ending::Exited);
    }
    let (series, stage) = main.run().stage();
    let summary = series.end(failed, left, stage);
    if left == 0 {
        T::System::forget_threads(main.run());
    }
    summary
}

/// Ends the run, if the calling thread is in one, and writes down what it was.
///
/// # Safety
/// The calling thread is in no run, or is the main thread of the run that goes on; `summary` is null or writable.
pub unsafe fn end_into<P: Platform>(failed: bool, summary: *mut RunSummary) {
    let main = P::me();
    if main.is_null() {
        return;
    }
    // SAFETY: the main thread runs program code, so it has the token.
    unsafe {
        let numbers = end(Token::held_by(main), failed);
        if !summary.is_null() {
            *summary = numbers;
        }
    }
}

/// Stops the run where it is: the calling thread keeps the token for good. Works in a handler of a signal or an exception, too.
///
/// # Safety
/// The runtime is installed.
pub unsafe fn stop<P: Platform>() {
    P::set_me(core::ptr::null_mut());
    // A thread beside the schedule that fails has no token, and leaves everything as it is.
    if !P::is_held_by_caller() {
        return;
    }
    P::set_running(false);
    // SAFETY: the runtime is installed, and nobody else is at work; the caller's kernel thread executes the token's holder.
    unsafe {
        let run = &mut *P::slot().get();
        if run.logicals.is_empty() {
            // Between two runs nobody has a token.
            let (series, stage) = run.stage();
            return series.leave_off(stage);
        }
        conclude::<P::Logical>(Token::of_the_run(), Ending::Exited);
    }
}

/// Everything that the driver and the next process want to know about a run that was stopped.
pub(crate) fn conclude<T: Thread>(me: &mut Token<T>, ending: Ending) {
    let (series, stage) = me.run().stage();
    if !series.is_going() {
        series.leave_off(stage);
        return;
    }
    let looked_at = series.stop(ending, stage);
    // Last, because the driver looks as soon as it sees the ending.
    if looked_at || ending != Ending::Exited {
        ending::finalise(me, ending);
    }
}

/// A thread has finished; whoever waits to be alone looks again.
pub fn one_less<T: Thread>(me: &mut Token<T>) {
    me.run().sched.freed(OTHERS, Shares::ALL);
}
