//! Code of the program that the library calls.

use crate::platform::{Platform, Thread};
use crate::token::Token;

/// Runs program code on behalf of `me` from within the library: an initialiser, a signal handler, an exit handler.
/// What the program calls in there has the token on its own account.
#[inline]
pub fn as_program<T: Thread, R>(me: &mut Token<T>, code: impl FnOnce() -> R) -> R {
    struct Back<T: Thread>(core::marker::PhantomData<T>);
    impl<T: Thread> Drop for Back<T> {
        fn drop(&mut self) {
            T::System::set_me(core::ptr::null_mut());
        }
    }
    T::System::set_me(me.thread());
    let _back = Back::<T>(core::marker::PhantomData);
    code()
}
