//! `pthread_once`.
//!
//! The state is kept in libc's own word, in libc's own encoding, so that threads we do not manage agree.

use core::sync::atomic::{AtomicU32, Ordering};

use libc::pthread_once_t;
use waylay_schedule::EventKind;

use super::interpose;
use crate::instrument::edge;
use crate::me::as_program;
use crate::runtime::{Token, acquire, event_at, freed, step, taken};
use crate::sched::{Key, Shares};

const FRESH: u32 = 0;
const IN_PROGRESS: u32 = 1;
const DONE: u32 = 2;

/// Leaves the word fresh when the initialiser does not return: by an exception or by cancellation.
struct Attempt<'a> {
    me: &'a mut Token,
    word: &'a AtomicU32,
    key: Key,
    after: u32,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.word.store(self.after, Ordering::Release);
        freed(self.me, self.key, Shares::ALL);
    }
}

interpose! {
    fn pthread_once(control: *mut pthread_once_t, initialise: extern "C-unwind" fn()) -> i32, |me| {
        let word = &*control.cast::<AtomicU32>();
        // Once done it stays done: nothing that others do can change what this call does.
        let key = Key(control as usize);
        if word.load(Ordering::Acquire) & DONE != 0 {
            edge::takes_over(me, key);
            return 0;
        }
        let event = event_at(EventKind::Once, key);
        let free = |_: &mut Token| word.load(Ordering::Relaxed) & IN_PROGRESS == 0;
        while acquire(me, event, key, Shares::ALL, None, free, |me| free(me).then_some(())).is_err() {}
        if word.load(Ordering::Acquire) & DONE != 0 {
            edge::takes_over(me, key);
            return 0;
        }
        word.store(IN_PROGRESS, Ordering::Relaxed);
        taken(me, key, Shares::ALL);
        let mut attempt = Attempt { me, word, key, after: FRESH };
        as_program(attempt.me, || initialise());
        attempt.after = DONE;
        edge::hands_over(attempt.me, key);
        drop(attempt);
        step(me, event);
        0
    }
}
