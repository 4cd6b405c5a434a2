//! The functions we put in front of libc's, one file per family.
//!
//! Each does the same: if the caller is not a logical thread that runs program code, it calls the real function;
//! otherwise it announces the operation, lets the scheduler decide, and carries the operation out on the real object
//! where one exists (so that owners, kinds and error numbers are libc's own) without ever waiting in the kernel.

mod above;
pub(crate) mod alone;
pub(crate) mod attributes;
mod asynchronous;
mod barrier;
mod c11;
mod calls;
mod clock;
mod condition;
mod descriptor;
mod ending_call;
mod exit;
mod fork;
mod fortified;
mod futex;
mod futex_several;
mod identity;
mod join;
mod kernel_call;
pub(crate) mod keys;
mod loader;
mod mapping;
mod mutex;
mod once;
mod own_faults;
pub(crate) mod processors;
mod random;
pub(crate) mod real_thread;
mod rwlock;
mod semaphore;
mod signal;
mod signal_descriptor;
mod signal_wait;
mod sleep;
mod spin;
mod stand_aside;
mod start;
mod stream;
mod thread;
mod timer;
mod waiting_call;

pub(crate) use clock::virtual_ticks;
pub(crate) use kernel_call::serve;
pub(crate) use mutex::Mutex;
pub(crate) use signal::cancellation_point;
pub(crate) use start::take_region_for_host;
pub(crate) use timer::begin_run as forget_timers;

/// Defines interposed functions: `fn name(args) -> result, |me| { body }`. The body runs for logical threads only,
/// with `me` the calling one; `real::name` is the function behind. `before` and `outside` are evaluated before and
/// after a thread outside the schedule calls the real function.
macro_rules! interpose {
    ($(fn $name:ident($($arg:ident: $kind:ty),* $(,)?) $(-> $result:ty)?
        $(= $version:literal)? $(, before $before:expr)? $(, outside $outside:expr)?, |$me:ident| $body:block)+) => {
        /// The functions behind those of this file.
        mod real {
            #[allow(unused_imports)]
            use super::*;
            crate::real::real! { $($name($($arg: $kind),*) $(-> $result)? $(= $version)?;)+ }
        }
        $(
            /// # Safety
            /// As for libc's function of this name.
            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[allow(non_snake_case)]
            unsafe extern "C-unwind" fn $name($($arg: $kind),*) $(-> $result)? {
                let running = crate::me::me();
                if running.is_null() {
                    $($before;)?
                    // SAFETY: the caller's promise to us is the one it would have made to libc.
                    let result = unsafe { real::$name($($arg),*) };
                    $($outside;)?
                    return result;
                }
                let _inside = crate::me::Unmanaged::enter_from(running);
                #[allow(unused_unsafe)]
                // SAFETY: `me` is the calling thread, and a logical thread that runs program code has the token;
                // pointers are valid by the caller's promise to libc.
                unsafe {
                    let $me = crate::runtime::Token::held_by(running);
                    crate::instrument::delay::before_call($me);
                    $body
                }
            }
        )+
    };
}
pub(crate) use interpose;

/// Sets the calling thread's errno and returns -1.
pub(crate) fn fail(error: i32) -> i32 {
    // SAFETY: libc gives every thread an errno.
    unsafe { *libc::__errno_location() = error };
    -1
}
