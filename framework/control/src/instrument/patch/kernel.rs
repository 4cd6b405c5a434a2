//! Calls of the kernel that the program makes without libc, as runtimes with their own locks do (OpenMP's among them).
//!
//! Those that the scheduler serves are not made; the others go to the kernel as they are.

use super::stub;
use crate::instrument::copies;
use crate::interpose::serve;
use crate::me::{Unmanaged, me};
use crate::runtime::Token;

/// Serves the call, if that is ours to do; the program then finds the result where the kernel would have left it. False when
/// the kernel is to be called.
///
/// # Safety
/// `saved` is what a stub or the handler of breakpoints passed on at a site that calls the kernel.
pub(super) unsafe fn call(saved: usize) -> bool {
    let me = me();
    if me.is_null() {
        return false;
    }
    let _inside = Unmanaged::enter();
    // SAFETY: a logical thread that runs program code holds the token; the registers are by the caller's promise there.
    unsafe {
        let (number, arguments) = stub::call(saved);
        // The kernel does not know of libc's errno.
        let errno = *libc::__errno_location();
        let served = serve(Token::held_by(me), number, arguments);
        // What goes to the kernel from here is told of before it is made: as if it did all that it is asked for.
        copies::tell_of_kernel_call(me, number, &arguments, served.unwrap_or(i64::MAX));
        let Some(result) = served else { return false };
        let result = if result == -1 { -i64::from(*libc::__errno_location()) } else { result };
        *libc::__errno_location() = errno;
        let [value, _, served] = stub::results(saved);
        value.write(result as u64);
        served.write(1);
    }
    true
}
