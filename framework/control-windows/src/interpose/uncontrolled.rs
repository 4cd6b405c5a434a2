//! What makes threads or wake-ups that are not under control: the run says so and goes on.

use core::ffi::c_void;

use windows_sys::Win32::Foundation::{GetLastError, HANDLE, WAIT_TIMEOUT};
use windows_sys::core::BOOL;

use super::interpose_foreign;
use crate::me::keep_error;
use crate::runtime::away;
use crate::watch::edge;

/// Notes that something outside takes part, calls the real function and keeps its error number.
macro_rules! noted {
    ($me:ident, $call:expr) => {{
        edge::outsiders_took_part($me);
        let result = $call;
        keep_error($me);
        result
    }};
}

type Word = *mut c_void;

/// Whether a wait ended because its time was over.
fn is_over() -> bool {
    // SAFETY: plain call.
    unsafe { GetLastError() == WAIT_TIMEOUT }
}

interpose_foreign! {
    fn SubmitThreadpoolWork(work: Word) -> () = real::SubmitThreadpoolWork(work), |me| {
        noted!(me, real::SubmitThreadpoolWork(work))
    }
    fn TrySubmitThreadpoolCallback(function: Word, context: Word, environment: Word) -> BOOL
        = real::TrySubmitThreadpoolCallback(function, context, environment), |me| {
        noted!(me, real::TrySubmitThreadpoolCallback(function, context, environment))
    }
    fn QueueUserWorkItem(function: Word, context: Word, flags: u32) -> BOOL
        = real::QueueUserWorkItem(function, context, flags), |me| {
        noted!(me, real::QueueUserWorkItem(function, context, flags))
    }
    fn QueueUserAPC(function: Word, thread: HANDLE, data: usize) -> u32
        = real::QueueUserAPC(function, thread, data), |me| {
        noted!(me, real::QueueUserAPC(function, thread, data))
    }
    fn SetThreadpoolTimer(timer: Word, due: Word, period: u32, window: u32) -> ()
        = real::SetThreadpoolTimer(timer, due, period, window), |me| {
        noted!(me, real::SetThreadpoolTimer(timer, due, period, window))
    }
    fn SetThreadpoolWait(wait: Word, handle: HANDLE, timeout: Word) -> ()
        = real::SetThreadpoolWait(wait, handle, timeout), |me| {
        noted!(me, real::SetThreadpoolWait(wait, handle, timeout))
    }
    fn CreateTimerQueueTimer(
        timer: Word,
        queue: HANDLE,
        function: Word,
        context: Word,
        due: u32,
        period: u32,
        flags: u32,
    ) -> BOOL = real::CreateTimerQueueTimer(timer, queue, function, context, due, period, flags), |me| {
        noted!(me, real::CreateTimerQueueTimer(timer, queue, function, context, due, period, flags))
    }
    fn RegisterWaitForSingleObject(
        wait: Word,
        object: HANDLE,
        function: Word,
        context: Word,
        milliseconds: u32,
        flags: u32,
    ) -> BOOL = real::RegisterWaitForSingleObject(wait, object, function, context, milliseconds, flags), |me| {
        noted!(me, real::RegisterWaitForSingleObject(wait, object, function, context, milliseconds, flags))
    }
    fn timeSetEvent(delay: u32, resolution: u32, function: Word, user: usize, kind: u32) -> u32
        = real::timeSetEvent(delay, resolution, function, user, kind), |me| {
        noted!(me, real::timeSetEvent(delay, resolution, function, user, kind))
    }
    fn PulseEvent(event: HANDLE) -> BOOL = real::PulseEvent(event), |me| { noted!(me, real::PulseEvent(event)) }
    fn SuspendThread(thread: HANDLE) -> u32 = real::SuspendThread(thread), |me| {
        noted!(me, real::SuspendThread(thread))
    }
    fn TerminateThread(thread: HANDLE, code: u32) -> BOOL = real::TerminateThread(thread, code), |me| {
        noted!(me, real::TerminateThread(thread, code))
    }
    fn GetQueuedCompletionStatus(port: HANDLE, bytes: Word, key: Word, overlapped: Word, milliseconds: u32) -> BOOL
        = real::GetQueuedCompletionStatus(port, bytes, key, overlapped, milliseconds), |me| {
        let mut result = real::GetQueuedCompletionStatus(port, bytes, key, overlapped, 0);
        keep_error(me);
        if result == 0 && milliseconds != 0 && is_over() {
            me.run().note_uncontrolled();
            result = away(me, || real::GetQueuedCompletionStatus(port, bytes, key, overlapped, milliseconds));
            keep_error(me);
        }
        result
    }
    fn GetQueuedCompletionStatusEx(
        port: HANDLE,
        entries: Word,
        count: u32,
        removed: Word,
        milliseconds: u32,
        alertable: BOOL,
    ) -> BOOL
        = real::GetQueuedCompletionStatusEx(port, entries, count, removed, milliseconds, alertable), |me| {
        let mut result = real::GetQueuedCompletionStatusEx(port, entries, count, removed, 0, alertable);
        keep_error(me);
        if result == 0 && milliseconds != 0 && is_over() {
            me.run().note_uncontrolled();
            let work = || real::GetQueuedCompletionStatusEx(port, entries, count, removed, milliseconds, alertable);
            result = away(me, work);
            keep_error(me);
        }
        result
    }
    fn WaitForThreadpoolWorkCallbacks(work: Word, cancel: BOOL) -> ()
        = real::WaitForThreadpoolWorkCallbacks(work, cancel), |me| {
        edge::outsiders_took_part(me);
        away(me, || real::WaitForThreadpoolWorkCallbacks(work, cancel))
    }
    fn WaitForThreadpoolTimerCallbacks(timer: Word, cancel: BOOL) -> ()
        = real::WaitForThreadpoolTimerCallbacks(timer, cancel), |me| {
        edge::outsiders_took_part(me);
        away(me, || real::WaitForThreadpoolTimerCallbacks(timer, cancel))
    }
}
