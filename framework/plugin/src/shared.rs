//! Objects that several tests, perhaps of several plugins, work on at the same time. The host owns them.

use crate::failed::Failed;
use crate::worker::Worker;
use std::ops::Deref;
use std::ptr::NonNull;

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
