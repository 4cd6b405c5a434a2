//! The loop around `TestMain`: no barrier, no allocation, no system call and no lock of our own per iteration.

use std::sync::atomic::Ordering;

use waylay_abi::{Instance, STATUS_DONE, STATUS_OK};
use waylay_page::{WorkerSlot, WorkerState};

use crate::context::CallContext;
use crate::plan::WorkerPlan;

/// A test instance as workers see it.
#[derive(Clone, Copy)]
pub(crate) struct SharedInstance(pub(crate) *mut Instance);

// SAFETY: the contract says that `TestMain` is called on several threads at once and `OnTestCancelled` from any.
unsafe impl Send for SharedInstance {}
// SAFETY: as above.
unsafe impl Sync for SharedInstance {}

/// Calls `TestMain` until cancelled, out of iterations, or told that there is nothing more to do.
pub(crate) fn run(
    context: &CallContext,
    instance: SharedInstance,
    plan: &WorkerPlan,
    slot: &'static WorkerSlot,
) {
    let test = context.test;
    // SAFETY: `lifecycle` checked that the instance has a main before it started workers.
    let main = unsafe { (*instance.0).test_main.unwrap_unchecked() };
    let raw = context.as_raw();
    slot.test.store(test.index, Ordering::Relaxed);
    slot.tid.store(crate::sys::thread_id(), Ordering::Relaxed);

    let mut iteration = plan.first_iteration;
    let end = plan.iterations.map_or(u64::MAX, |count| plan.first_iteration.saturating_add(count));
    let (mut finished, mut busy, mut shortest, mut longest) = (0u64, 0u64, u64::MAX, 0u64);
    let mut entered = test.clock.now();
    let mut done = WorkerState::Done;
    slot.iteration.store(iteration, Ordering::Relaxed);
    slot.entered_at.store(entered.0, Ordering::Relaxed);
    WorkerState::Running.store(&slot.state);

    while iteration < end && !test.cancelled.load(Ordering::Relaxed) {
        slot.iteration.store(iteration, Ordering::Relaxed);
        slot.entered_at.store(entered.0, Ordering::Relaxed);
        // SAFETY: this is the worker's own thread and `TestMain` is not running on it.
        unsafe { context.begin(if plan.repeat { plan.first_iteration } else { iteration }) };
        // SAFETY: the instance lives until `lifecycle` has joined all workers; the context until this loop ends.
        let status = unsafe { main(instance.0, raw) };
        // SAFETY: as for `begin`.
        unsafe { context.end() };

        let left = test.clock.now();
        // The time that the driver looked at a failure inside the iteration does not count.
        let took = left.since(entered).saturating_sub(context.aside());
        finished += 1;
        busy += took;
        shortest = shortest.min(took);
        longest = longest.max(took);
        slot.finished.store(finished, Ordering::Relaxed);
        slot.busy.store(busy, Ordering::Relaxed);
        slot.shortest.store(shortest, Ordering::Relaxed);
        slot.longest.store(longest, Ordering::Relaxed);
        entered = left;
        iteration += 1;
        if status != STATUS_OK {
            if status == STATUS_DONE {
                done = WorkerState::Finished;
                break;
            }
            context.fail_without_words();
            entered = test.clock.now();
        }
    }
    done.store(&slot.state);
}

#[cfg(test)]
mod tests;
