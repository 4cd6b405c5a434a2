//! Code of the program that the library calls.

use crate::platform::{Platform, Thread};

/// Runs program code on behalf of `me` from within the library: an initialiser, a signal handler, an exit handler.
///
/// # Safety
/// `me` executes the call and holds the token, and the scheduler is in no operation of its own.
#[inline]
pub unsafe fn as_program<T: Thread, R>(me: *mut T, code: impl FnOnce() -> R) -> R {
    struct Back<T: Thread>(core::marker::PhantomData<T>);
    impl<T: Thread> Drop for Back<T> {
        fn drop(&mut self) {
            T::System::set_me(core::ptr::null_mut());
        }
    }
    T::System::set_me(me);
    let _back = Back::<T>(core::marker::PhantomData);
    code()
}
