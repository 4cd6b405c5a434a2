//! What orders the threads of a run, told by those who do it. Costs a look at one word while nobody wants to know.
//!
//! All of them are called by the running thread, which is inside the library.

use waylay_accesses::{Process, Watch, Way, follows_objects, follows_order};
use waylay_scheduler::Key;

use crate::platform::{Platform, Thread};

/// Tells whoever wants to know the order.
#[inline]
pub fn with<P: Platform>(what: impl FnOnce(&mut Watch<P>)) {
    if follows_order() {
        // SAFETY: the running thread has the token.
        what(unsafe { &mut *P::watch() });
    }
}

/// `me` created a thread.
///
/// # Safety
/// Both live as long as the run.
#[inline]
pub unsafe fn spawned<T: Thread>(me: *mut T, child: *mut T) {
    // SAFETY: by the caller's promise.
    with::<T::System>(|watch| unsafe { watch.spawned(T::System::who(me), T::System::who(child)) });
}

/// `me` saw that a thread has ended, as the first that did.
///
/// # Safety
/// Both live as long as the run.
#[inline]
pub unsafe fn joined<T: Thread>(me: *mut T, ended: *mut T) {
    // SAFETY: by the caller's promise.
    with::<T::System>(|watch| unsafe { watch.joined(T::System::who(me), T::System::who(ended)) });
}

/// A thread has ended, and nobody will see that, or somebody has.
///
/// # Safety
/// It lives as long as the run.
#[inline]
pub unsafe fn ended<T: Thread>(thread: *mut T) {
    // SAFETY: by the caller's promise.
    with::<T::System>(|watch| unsafe { watch.ended(T::System::who(thread)) });
}

/// A thread that is not under control took part.
pub fn outsider<P: Platform>() {
    with::<P>(|watch| watch.lose_order());
}

/// Whether allocations are worth being told of.
#[inline(always)]
pub fn follows() -> bool {
    follows_objects()
}

/// `me` holds a lock.
///
/// # Safety
/// It lives as long as the run.
#[inline]
pub unsafe fn locked<T: Thread>(me: *mut T, lock: Key, way: Way) {
    // SAFETY: by the caller's promise.
    with::<T::System>(|watch| unsafe { watch.locked(T::System::who(me), lock.0, way) });
}

/// `me` gave a lock back.
///
/// # Safety
/// It lives as long as the run.
#[inline]
pub unsafe fn unlocked<T: Thread>(me: *mut T, lock: Key) {
    // SAFETY: by the caller's promise.
    with::<T::System>(|watch| unsafe { watch.unlocked(T::System::who(me), lock.0) });
}

/// What `me` did so far is for those who take over from the object.
///
/// # Safety
/// It lives as long as the run.
#[inline]
pub unsafe fn hands_over<T: Thread>(me: *mut T, object: Key) {
    // SAFETY: by the caller's promise.
    with::<T::System>(|watch| unsafe { watch.hands_over(T::System::who(me), object.0) });
}

/// `me` goes on after those who handed over to the object.
///
/// # Safety
/// It lives as long as the run.
#[inline]
pub unsafe fn takes_over<T: Thread>(me: *mut T, object: Key) {
    // SAFETY: by the caller's promise.
    with::<T::System>(|watch| unsafe { watch.takes_over(T::System::who(me), object.0) });
}

/// What `me` did so far is for one of those who take from the object. Which one that is may change from run to run.
///
/// # Safety
/// It lives as long as the run.
#[inline]
pub unsafe fn gives<T: Thread>(me: *mut T, object: Key) {
    // SAFETY: by the caller's promise.
    with::<T::System>(|watch| unsafe { watch.gives(T::System::who(me), object.0) });
}

/// `me` goes on after those who gave to the object.
///
/// # Safety
/// It lives as long as the run.
#[inline]
pub unsafe fn takes<T: Thread>(me: *mut T, object: Key) {
    // SAFETY: by the caller's promise.
    with::<T::System>(|watch| unsafe { watch.takes(T::System::who(me), object.0) });
}
