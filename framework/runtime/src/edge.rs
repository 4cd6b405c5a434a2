//! What orders the threads of a run, told by those who do it. Costs a look at one word while nobody wants to know.

use waylay_accesses::{Process, Watch, Way, Who, follows_objects, follows_order};
use waylay_scheduler::Key;

use crate::platform::Thread;
use crate::token::Token;

/// Tells whoever wants to know the order.
#[inline]
pub fn with<T: Thread>(me: &mut Token<T>, what: impl FnOnce(&mut Watch<T::System>, Who)) {
    if follows_order() {
        let who = me.who();
        what(me.watch(), who);
    }
}

/// `me` created a thread.
///
/// # Safety
/// The other lives as long as the run.
#[inline]
pub unsafe fn spawned<T: Thread>(me: &mut Token<T>, child: *mut T) {
    // SAFETY: by the caller's promise.
    with(me, |watch, me| watch.spawned(me, unsafe { T::System::who(child) }));
}

/// `me` saw that a thread has ended, as the first that did.
///
/// # Safety
/// The other lives as long as the run.
#[inline]
pub unsafe fn joined<T: Thread>(me: &mut Token<T>, ended: *mut T) {
    // SAFETY: by the caller's promise.
    with(me, |watch, me| watch.joined(me, unsafe { T::System::who(ended) }));
}

/// A thread has ended, and nobody will see that, or somebody has.
///
/// # Safety
/// It lives as long as the run.
#[inline]
pub unsafe fn ended<T: Thread>(me: &mut Token<T>, thread: *mut T) {
    // SAFETY: by the caller's promise.
    with(me, |watch, _| watch.ended(unsafe { T::System::who(thread) }));
}

/// Threads that are not seen took part, and what they order is not known.
pub fn outsiders_took_part<T: Thread>(me: &mut Token<T>) {
    outsider(me);
    me.run().note_uncontrolled();
}

/// A thread that is not under control took part.
pub fn outsider<T: Thread>(me: &mut Token<T>) {
    with(me, |watch, _| watch.lose_order());
}

/// Whether allocations are worth being told of.
#[inline(always)]
pub fn follows() -> bool {
    follows_objects()
}

/// `me` holds a lock.
#[inline]
pub fn locked<T: Thread>(me: &mut Token<T>, lock: Key, way: Way) {
    with(me, |watch, me| watch.locked(me, lock.0, way));
}

/// `me` gave a lock back.
#[inline]
pub fn unlocked<T: Thread>(me: &mut Token<T>, lock: Key) {
    with(me, |watch, me| watch.unlocked(me, lock.0));
}

/// What `me` did so far is for those who take over from the object.
#[inline]
pub fn hands_over<T: Thread>(me: &mut Token<T>, object: Key) {
    with(me, |watch, me| watch.hands_over(me, object.0));
}

/// `me` goes on after those who handed over to the object.
#[inline]
pub fn takes_over<T: Thread>(me: &mut Token<T>, object: Key) {
    with(me, |watch, me| watch.takes_over(me, object.0));
}

/// What `me` did so far is for one of those who take from the object. Which one that is may change from run to run.
#[inline]
pub fn gives<T: Thread>(me: &mut Token<T>, object: Key) {
    with(me, |watch, who| watch.gives(who, object.0));
}

/// `me` goes on after those who gave to the object.
#[inline]
pub fn takes<T: Thread>(me: &mut Token<T>, object: Key) {
    with(me, |watch, who| watch.takes(who, object.0));
}
