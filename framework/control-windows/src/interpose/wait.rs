//! Waiting for kernel objects, and changing them.

use waylay_accesses::Way;
use waylay_schedule::EventKind;
use waylay_scheduler::{Key, Moment, Shares};
use windows_sys::Win32::Foundation::{
    ERROR_NOT_OWNER, HANDLE, WAIT_ABANDONED_0, WAIT_EVENT, WAIT_FAILED, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::System::Threading as real;
use windows_sys::core::BOOL;

use super::handle::{Entry, Kind, Several, is_signalled};
use super::{deadline, interpose, timer};
use crate::me::{fail, keep_error};
use crate::runtime::{
    Token, Waited, acquire, away, event_at, join_event, join_point, note_joined, outside, pool, step,
};
use crate::watch::edge;

/// What a thread announces that waits for an object, and that only tries.
fn events_of(kind: Kind) -> (EventKind, EventKind) {
    match kind {
        Kind::Mutex => (EventKind::MutexLock, EventKind::MutexTryLock),
        _ => (EventKind::SemWait, EventKind::SemTryWait),
    }
}

/// The object was taken, or somebody tried.
fn note_taken(me: &mut Token, handle: HANDLE, entry: Entry, result: WAIT_EVENT) {
    // SAFETY: what is in the table lives as long as the run.
    unsafe {
        let number = (*me.thread()).number;
        if [WAIT_OBJECT_0, WAIT_ABANDONED_0].contains(&result) {
            match entry.kind {
                Kind::Mutex => {
                    me.run().system.handles.note_owner(entry.key, Some(number));
                    edge::locked(me, entry.key, Way::Exclusive);
                }
                Kind::Thread(thread) => note_joined(me, thread),
                _ => edge::takes_over(me, entry.key),
            }
            if result == WAIT_ABANDONED_0 {
                // Whoever had it is gone and gave nothing back.
                edge::outsider(me);
            }
        }
        if let Kind::Timer(timer) = entry.kind {
            (*timer).take();
        }
        let run = me.run();
        run.system.handles.changed(handle, &mut run.sched);
    }
}

fn wait_for(me: &mut Token, handle: HANDLE, milliseconds: u32, alertable: BOOL) -> WAIT_EVENT {
    // SAFETY: who has the token lives.
    unsafe {
        let entry = me.run().system.handles.entry(handle);
        let now = || real::WaitForSingleObject(handle, 0);
        match entry.kind {
            Kind::Thread(thread) if milliseconds == 0 => {
                step(me, join_event(thread));
                if !me.run().has_finished(thread) {
                    return WAIT_TIMEOUT;
                }
                note_joined(me, thread);
                WAIT_OBJECT_0
            }
            Kind::Thread(thread) => {
                let until = deadline(me, milliseconds);
                match join_point(me, thread, until) {
                    Waited::TimedOut => WAIT_TIMEOUT,
                    Waited::Done | Waited::Interrupted => WAIT_OBJECT_0,
                }
            }
            Kind::Timer(timer) => timer::wait_for(me, entry.key, timer, milliseconds),
            Kind::Other => {
                if has_ended(handle) {
                    return WAIT_OBJECT_0;
                }
                let result = now();
                keep_error(me);
                if result != WAIT_TIMEOUT || milliseconds == 0 {
                    edge::outsider(me);
                    return result;
                }
                edge::outsiders_took_part(me);
                let result = away(me, || real::WaitForSingleObjectEx(handle, milliseconds, alertable));
                keep_error(me);
                result
            }
            kind if milliseconds == 0 => {
                step(me, event_at(events_of(kind).1, entry.key));
                let result = now();
                note_taken(me, handle, entry, result);
                result
            }
            kind => {
                let event = event_at(events_of(kind).0, entry.key);
                let free = |_: &mut Token| is_signalled(handle, kind) != Some(false);
                let attempt = |_: &mut Token| Some(now()).filter(|&result| result != WAIT_TIMEOUT);
                let until = deadline(me, milliseconds);
                match acquire(me, event, entry.key, Shares::ALL, until, free, attempt) {
                    Ok(result) => {
                        note_taken(me, handle, entry, result);
                        result
                    }
                    Err(_) => WAIT_TIMEOUT,
                }
            }
        }
    }
}

/// Takes all of several objects, or the first that can be had. Whether a logical thread has ended, the scheduler knows: its
/// kernel thread may go on for others. Timers are ours as well; who is told that one has gone off takes it.
unsafe fn take_several(list: &[HANDLE], entries: &[Entry], all: bool) -> WAIT_EVENT {
    let is_ours = |entry: &Entry| matches!(entry.kind, Kind::Thread(_) | Kind::Timer(_));
    // SAFETY: called with the token, which says whether logical threads have ended; the list is whole.
    unsafe {
        if !entries.iter().any(is_ours) {
            return real::WaitForMultipleObjects(list.len() as u32, list.as_ptr(), all.into(), 0);
        }
        let pairs = || list.iter().zip(entries);
        let signalled = |entry: &Entry| is_signalled(core::ptr::null_mut(), entry.kind) == Some(true);
        if all {
            if pairs().any(|(_, entry)| is_ours(entry) && !signalled(entry)) {
                return WAIT_TIMEOUT;
            }
            let rest: Vec<HANDLE> =
                pairs().filter(|(_, entry)| !is_ours(entry)).map(|(&handle, _)| handle).collect();
            return match rest.len() {
                0 => WAIT_OBJECT_0,
                count => real::WaitForMultipleObjects(count as u32, rest.as_ptr(), 1, 0),
            };
        }
        for (place, (&handle, entry)) in pairs().enumerate() {
            let result = match is_ours(entry) {
                true if signalled(entry) => WAIT_OBJECT_0,
                true => WAIT_TIMEOUT,
                false => real::WaitForSingleObject(handle, 0),
            };
            match result {
                WAIT_TIMEOUT => {}
                WAIT_FAILED => return WAIT_FAILED,
                result => return result + place as u32,
            }
        }
        WAIT_TIMEOUT
    }
}

/// When the next of the timers among several objects goes off.
fn next_timer(me: &mut Token, entries: &[Entry]) -> Option<Moment> {
    // SAFETY: timers live as long as their run.
    let ahead = |entry: &Entry| match entry.kind {
        Kind::Timer(timer) => unsafe { (*timer).ahead(timer::now(me)) },
        _ => None,
    };
    entries.iter().filter_map(ahead).min()
}

unsafe fn wait_for_several(
    me: &mut Token,
    (count, handles): (u32, *const HANDLE),
    all: BOOL,
    milliseconds: u32,
    alertable: BOOL,
) -> WAIT_EVENT {
    // SAFETY: by the caller's promise.
    unsafe {
        if count == 0 || count > 64 {
            let result = real::WaitForMultipleObjects(count, handles, all, 0);
            keep_error(me);
            return result;
        }
        let list = core::slice::from_raw_parts(handles, count as usize);
        let entries: Vec<Entry> = list.iter().map(|&handle| me.run().system.handles.entry(handle)).collect();
        let now = || take_several(list, &entries, all != 0);
        if entries.iter().any(|entry| entry.kind == Kind::Other) {
            let result = now();
            keep_error(me);
            if result != WAIT_TIMEOUT || milliseconds == 0 {
                edge::outsider(me);
                return result;
            }
            edge::outsiders_took_part(me);
            let work = || real::WaitForMultipleObjectsEx(count, handles, all, milliseconds, alertable);
            let result = away(me, work);
            keep_error(me);
            return result;
        }
        let object = entries[0].key;
        let result = if milliseconds == 0 {
            step(me, event_at(EventKind::SemTryWait, object));
            now()
        } else {
            let several = Several { handles: list, all: all != 0, waiter: (*me.thread()).id };
            let key = Key(&raw const several as usize);
            me.run().system.handles.add_several(&several);
            let free = |me: &mut Token| me.run().system.handles.is_satisfied(&several, None);
            let attempt = |_: &mut Token| Some(now()).filter(|&result| result != WAIT_TIMEOUT);
            let event = event_at(EventKind::SemWait, object);
            let limit = deadline(me, milliseconds);
            let result = loop {
                let until = next_timer(me, &entries).into_iter().chain(limit).min();
                match acquire(me, event, key, Shares::ALL, until, free, attempt) {
                    Ok(result) => break result,
                    // The moment that came may be that of a timer, or a timer was set.
                    Err(_) => match now() {
                        WAIT_TIMEOUT if limit.is_none_or(|limit| limit > timer::now(me)) => {}
                        result => break result,
                    },
                }
            };
            me.run().system.handles.remove_several(&several);
            result
        };
        keep_error(me);
        if (WAIT_ABANDONED_0..WAIT_ABANDONED_0 + count).contains(&result) {
            edge::outsider(me);
        }
        for (place, (&handle, &entry)) in list.iter().zip(&entries).enumerate() {
            let taken = all != 0
                || result == WAIT_OBJECT_0 + place as u32
                || result == WAIT_ABANDONED_0 + place as u32;
            if taken && result != WAIT_TIMEOUT && result != WAIT_FAILED {
                note_taken(me, handle, entry, WAIT_OBJECT_0);
            }
        }
        result
    }
}

/// Whether a handle is one of a thread of the pool that nobody uses: it has ended, as far as the program can know.
fn has_ended(handle: HANDLE) -> bool {
    // SAFETY: asks for a number.
    let number = if pool::is_empty() { 0 } else { unsafe { real::GetThreadId(handle) } };
    number != 0 && pool::has(number) && !pool::is_busy(number)
}

/// Waits on a thread that is not under control.
fn wait_outside(handle: HANDLE, milliseconds: u32, alertable: BOOL) -> WAIT_EVENT {
    // SAFETY: plain calls; a handle that is none is an error.
    unsafe {
        let begun = std::time::Instant::now();
        loop {
            if has_ended(handle) {
                return WAIT_OBJECT_0;
            }
            if pool::is_empty() || !pool::has(real::GetThreadId(handle)) {
                return real::WaitForSingleObjectEx(handle, milliseconds, alertable);
            }
            if milliseconds != real::INFINITE && begun.elapsed().as_millis() >= u128::from(milliseconds) {
                return WAIT_TIMEOUT;
            }
            real::Sleep(1);
        }
    }
}

/// The same for several objects.
unsafe fn wait_several_outside(
    (count, handles): (u32, *const HANDLE),
    all: BOOL,
    milliseconds: u32,
    alertable: BOOL,
) -> WAIT_EVENT {
    // SAFETY: by the caller's promise.
    unsafe {
        if pool::is_empty() || count == 0 || count > 64 {
            return real::WaitForMultipleObjectsEx(count, handles, all, milliseconds, alertable);
        }
        let list = core::slice::from_raw_parts(handles, count as usize);
        let begun = std::time::Instant::now();
        loop {
            let busy = list.iter().any(|&handle| pool::is_busy(real::GetThreadId(handle)));
            let ended = list.iter().position(|&handle| has_ended(handle));
            let rest: Vec<HANDLE> = list.iter().copied().filter(|&handle| !has_ended(handle)).collect();
            match ended {
                Some(place) if all == 0 => return WAIT_OBJECT_0 + place as u32,
                Some(_) if rest.is_empty() => return WAIT_OBJECT_0,
                Some(_) if !busy => {
                    let count = rest.len() as u32;
                    return real::WaitForMultipleObjectsEx(count, rest.as_ptr(), 1, milliseconds, alertable);
                }
                _ if !busy => {
                    return real::WaitForMultipleObjectsEx(count, handles, all, milliseconds, alertable);
                }
                _ => {}
            }
            // Somebody else's thread has to end first: looked at every millisecond, together with the rest.
            let result = real::WaitForMultipleObjectsEx(count, handles, all, 1, alertable);
            let over =
                milliseconds != real::INFINITE && begun.elapsed().as_millis() >= u128::from(milliseconds);
            if result != WAIT_TIMEOUT || over {
                return result;
            }
        }
    }
}

/// Changes an object for real, and tells the scheduler.
fn change(me: &mut Token, handle: HANDLE, work: impl FnOnce() -> BOOL) -> BOOL {
    let entry = me.run().system.handles.entry(handle);
    let result = work();
    keep_error(me);
    match entry.kind {
        Kind::Mutex if result != 0 => edge::unlocked(me, entry.key),
        Kind::Mutex => {}
        _ => edge::hands_over(me, entry.key),
    }
    if result != 0 && entry.kind == Kind::Mutex && is_free(handle) {
        me.run().system.handles.note_owner(entry.key, None);
    }
    let run = me.run();
    run.system.handles.changed(handle, &mut run.sched);
    let kind = if entry.kind == Kind::Mutex { EventKind::MutexUnlock } else { EventKind::SemPost };
    step(me, event_at(kind, entry.key));
    result
}

/// Whether nobody holds a mutex, the caller included: a thread that does not own it cannot give it back.
fn is_free(mutex: HANDLE) -> bool {
    // SAFETY: only the owner succeeds, and takes it back in that case.
    unsafe {
        if real::ReleaseMutex(mutex) == 0 {
            return windows_sys::Win32::Foundation::GetLastError() == ERROR_NOT_OWNER;
        }
        real::WaitForSingleObject(mutex, 0);
        false
    }
}

fn change_outside(handle: HANDLE, work: impl FnOnce() -> BOOL) -> BOOL {
    let result = work();
    outside::signalled(handle);
    result
}

interpose! {
    fn WaitForSingleObject(handle: HANDLE, milliseconds: u32) -> WAIT_EVENT
        = wait_outside(handle, milliseconds, 0), |me| { wait_for(me, handle, milliseconds, 0) }

    fn WaitForSingleObjectEx(handle: HANDLE, milliseconds: u32, alertable: BOOL) -> WAIT_EVENT
        = wait_outside(handle, milliseconds, alertable), |me| {
        wait_for(me, handle, milliseconds, alertable)
    }

    fn WaitForMultipleObjects(count: u32, handles: *const HANDLE, all: BOOL, milliseconds: u32) -> WAIT_EVENT
        = wait_several_outside((count, handles), all, milliseconds, 0), |me| {
        wait_for_several(me, (count, handles), all, milliseconds, 0)
    }

    fn WaitForMultipleObjectsEx(
        count: u32,
        handles: *const HANDLE,
        all: BOOL,
        milliseconds: u32,
        alertable: BOOL,
    ) -> WAIT_EVENT = wait_several_outside((count, handles), all, milliseconds, alertable), |me| {
        wait_for_several(me, (count, handles), all, milliseconds, alertable)
    }

    fn SetEvent(handle: HANDLE) -> BOOL = change_outside(handle, || real::SetEvent(handle)), |me| {
        change(me, handle, || real::SetEvent(handle))
    }

    fn ResetEvent(handle: HANDLE) -> BOOL = change_outside(handle, || real::ResetEvent(handle)), |me| {
        change(me, handle, || real::ResetEvent(handle))
    }

    fn ReleaseSemaphore(handle: HANDLE, count: i32, before: *mut i32) -> BOOL
        = change_outside(handle, || real::ReleaseSemaphore(handle, count, before)), |me| {
        change(me, handle, || real::ReleaseSemaphore(handle, count, before))
    }

    fn ReleaseMutex(handle: HANDLE) -> BOOL = change_outside(handle, || real::ReleaseMutex(handle)), |me| {
        change(me, handle, || real::ReleaseMutex(handle))
    }

    fn SignalObjectAndWait(signalled: HANDLE, awaited: HANDLE, milliseconds: u32, alertable: BOOL) -> WAIT_EVENT
        = real::SignalObjectAndWait(signalled, awaited, milliseconds, alertable), |me| {
        let worked = match me.run().system.handles.entry(signalled).kind {
            Kind::Semaphore => change(me, signalled, || real::ReleaseSemaphore(signalled, 1, core::ptr::null_mut())),
            Kind::Mutex => change(me, signalled, || real::ReleaseMutex(signalled)),
            _ => change(me, signalled, || real::SetEvent(signalled)),
        };
        if worked == 0 {
            return WAIT_FAILED;
        }
        fail(me, 0);
        wait_for(me, awaited, milliseconds, alertable)
    }
}
