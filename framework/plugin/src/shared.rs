//! Objects that several tests, perhaps of several plugins, work on at the same time. The host owns them.

use crate::calls::Calls;
use crate::failed::Failed;
use crate::worker::Worker;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;
use waylay_abi as abi;

/// A type whose objects the host lends; see [`Worker::acquire`].
///
/// # Safety
///
/// Objects come from whichever plugin provides the kind. The implementer promises that every plugin in the campaign that
/// speaks of this `KIND` means this type with this layout: it is `#[repr(C)]`, or all of them are built together.
pub unsafe trait Shared: Send + Sync + 'static {
    /// The name under which tests and providers meet.
    const KIND: &'static str;
}

/// A shared type that this plugin can make; listed under `kinds` in [`export!`](crate::export).
pub trait Kind: Shared + Sized {
    /// One line for people.
    const ABOUT: &'static str;

    /// Makes one object.
    fn create() -> Result<Self, Failed>;
}

/// A shared object, lent until this guard is dropped.
pub struct Lent<'w, T: Shared> {
    worker: &'w Worker<'w>,
    object: NonNull<T>,
}

impl<'w, T: Shared> Lent<'w, T> {
    /// # Safety
    ///
    /// `object` was lent to the worker's running iteration and is a `T`.
    pub(crate) unsafe fn new(worker: &'w Worker<'_>, object: NonNull<T>) -> Self {
        Self { worker, object }
    }
}

impl<T: Shared> Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: lent until `drop`, by the condition of `new`; others only ever get `&T` too.
        unsafe { self.object.as_ref() }
    }
}

impl<T: Shared> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        // SAFETY: it came from `acquire` of this worker, and the guard was the only way to it.
        unsafe { self.worker.release(self.object.as_ptr().cast()) }
    }
}

impl<T: Shared> Lent<'_, T> {
    /// Keeps the object past this iteration: it is the instance's until it is given back with
    /// [`Worker::give_back`] or [`Context::give_back`](crate::Context::give_back), or until the instance ends.
    pub fn keep(self) -> Kept<T> {
        let lent = ManuallyDrop::new(self);
        // SAFETY: it came from `acquire` of this worker's running iteration.
        let kept = unsafe { lent.worker.keep(lent.object.as_ptr().cast()) };
        assert!(kept, "the host does not know of the object");
        Kept { object: lent.object, instance: lent.worker.instance() }
    }
}

/// A shared object that an instance keeps from one iteration to the next; see [`Lent::keep`].
///
/// A handle: the object is reached through a [`Worker`] or a [`Context`](crate::Context) of the instance that keeps it,
/// so that it cannot be used when the instance, and with it the loan, is over.
pub struct Kept<T: Shared> {
    object: NonNull<T>,
    instance: u64,
}

// SAFETY: `Shared` objects are `Send` and `Sync`, and only `&T` is given out.
unsafe impl<T: Shared> Send for Kept<T> {}
// SAFETY: as above.
unsafe impl<T: Shared> Sync for Kept<T> {}

impl<T: Shared> Kept<T> {
    /// The object, for the instance with that number.
    pub(crate) fn object(&self, instance: u64) -> &T {
        assert_eq!(self.instance, instance, "the object is kept by another instance");
        // SAFETY: numbers of instances are never used again, so the asking instance, which is alive, keeps the object;
        // giving it back takes the handle away.
        unsafe { self.object.as_ref() }
    }

    /// # Safety
    ///
    /// `home` is the context of the living instance with that number.
    pub(crate) unsafe fn release(self, calls: &Calls, home: *mut abi::Context, instance: u64) {
        assert_eq!(self.instance, instance, "the object is kept by another instance");
        // SAFETY: the instance keeps the object, and the handle, the only way to it, ends here.
        unsafe { (calls.release)(home, self.object.as_ptr().cast()) }
    }
}
