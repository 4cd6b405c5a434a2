//! Named distributions as typed handles.

use crate::calls::Calls;
use std::marker::PhantomData;
use std::time::Duration;
use waylay_abi as abi;

/// A named random distribution of a test, from which values of type `T` are drawn.
///
/// Belongs to the instance whose [`Context`](crate::Context) gave it; drawing with another instance's worker panics.
pub struct Distribution<T> {
    pub(crate) raw: *const abi::Distribution,
    pub(crate) instance: u64,
    pub(crate) value: PhantomData<fn() -> T>,
}

// SAFETY: a distribution never changes and lives as long as its instance; `of` refuses every other instance's.
unsafe impl<T> Send for Distribution<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Distribution<T> {}

impl<T> Clone for Distribution<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Distribution<T> {}

impl<T> Distribution<T> {
    /// The host's handle, for drawing on behalf of `instance`.
    #[inline]
    pub(crate) fn of(self, instance: u64) -> *const abi::Distribution {
        assert!(self.instance == instance, "a distribution of another test instance");
        self.raw
    }
}

/// What can be drawn. A value that does not fit into the type becomes the nearest one that does.
pub trait Value: sealed::Sealed {
    /// # Safety
    ///
    /// The context and the distribution are the host's, and this thread may draw with the context now.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    unsafe fn draw(calls: &Calls, raw: *mut abi::Context, from: *const abi::Distribution) -> Self;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for i64 {}
    impl Sealed for u64 {}
    impl Sealed for u32 {}
    impl Sealed for usize {}
    impl Sealed for f64 {}
    impl Sealed for std::time::Duration {}
}

macro_rules! drawn_as_integer {
    ($($type:ty),*) => { $(
        impl Value for $type {
            #[inline]
            #[allow(private_interfaces)]
            unsafe fn draw(calls: &Calls, raw: *mut abi::Context, from: *const abi::Distribution) -> Self {
                // SAFETY: the caller guarantees what the call needs.
                let drawn = unsafe { (calls.draw_int)(raw, from) };
                Self::try_from(drawn).unwrap_or(if drawn < 0 { Self::MIN } else { Self::MAX })
            }
        }
    )* };
}
drawn_as_integer!(i64, u64, u32, usize);

impl Value for f64 {
    #[inline]
    #[allow(private_interfaces)]
    unsafe fn draw(calls: &Calls, raw: *mut abi::Context, from: *const abi::Distribution) -> Self {
        // SAFETY: the caller guarantees what the call needs.
        unsafe { (calls.draw_float)(raw, from) }
    }
}

impl Value for Duration {
    #[inline]
    #[allow(private_interfaces)]
    unsafe fn draw(calls: &Calls, raw: *mut abi::Context, from: *const abi::Distribution) -> Self {
        // SAFETY: the caller guarantees what the call needs.
        Duration::from_nanos(unsafe { (calls.draw_nanos)(raw, from) })
    }
}
