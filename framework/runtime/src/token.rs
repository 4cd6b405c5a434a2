//! The token as a value: who has it may touch the run, and nobody else can.
//!
//! Exactly one logical thread executes program code, and has the token. Inside the library it has it as a `&mut Token`:
//! functions that take one are called by the running thread, and the compiler sees to what had to be promised before.
//! What is borrowed of the run ends before the token is passed on, because passing it on takes all of it; work that is
//! done without the token cannot reach it; and a token stays with the kernel thread that it was given to.
//!
//! The value has no size, and lives where its thread does: a reference to it says who has the token, and costs no more
//! than a pointer to the thread.
//!
//! A token is not sent to another kernel thread, and there is no second one:
//!
//! ```compile_fail,E0277
//! fn send<T: Send>() {}
//! fn token<T: waylay_runtime::Thread>() {
//!     send::<waylay_runtime::Token<T>>();
//! }
//! ```
//!
//! ```compile_fail,E0277
//! fn copy<T: Clone>() {}
//! fn token<T: waylay_runtime::Thread>() {
//!     copy::<waylay_runtime::Token<T>>();
//! }
//! ```
//!
//! Nothing of the run is kept while others run:
//!
//! ```compile_fail,E0499
//! # use waylay_runtime::{Thread, Token, point};
//! fn look_twice<T: Thread>(me: &mut Token<T>) {
//!     let run = me.run();
//!     point::give_way(me);
//!     run.looks += 1;
//! }
//! ```
//!
//! Work that is done without the token does not reach the run:
//!
//! ```compile_fail,E0501
//! # use waylay_runtime::{Thread, Token, point};
//! # use waylay_schedule::{Event, EventKind};
//! fn look_from_afar<T: Thread>(me: &mut Token<T>) -> u32 {
//!     point::away(me, Event::local(EventKind::Yield), || me.run().looks)
//! }
//! ```
//!
//! With it, both are what they should be:
//!
//! ```
//! # use waylay_runtime::{Thread, Token, point};
//! # use waylay_schedule::{Event, EventKind};
//! fn look<T: Thread>(me: &mut Token<T>) -> u32 {
//!     point::give_way(me);
//!     point::away(me, Event::local(EventKind::Yield), || 1) + me.run().looks
//! }
//! ```

use core::marker::PhantomData;

use waylay_accesses::{Process, Watch, Who};
use waylay_schedule::ThreadId;

use crate::platform::{Platform, Thread};
use crate::run::Run;

/// The token, in the hands of a logical thread that executes the code which sees this value.
pub struct Token<T: Thread> {
    /// Neither sent to other kernel threads nor shared with them.
    thread: PhantomData<*mut T>,
}

impl<T: Thread> Token<T> {
    /// The token, which `thread` has.
    ///
    /// # Safety
    /// The calling kernel thread executes `thread`, or acts for it; the slot of the run is filled, and the token is theirs for
    /// as long as the result lives, but for calls that the result is lent to. The thread lives for as long, too.
    #[inline(always)]
    pub unsafe fn held_by<'a>(thread: *mut T) -> &'a mut Token<T> {
        const { assert!(size_of::<Token<T>>() == 0) };
        let _ = thread.expose_provenance();
        // SAFETY: a value without size, which is at every address but null.
        unsafe { &mut *thread.cast() }
    }

    /// The token of the run that goes on, whose scheduler says who has it.
    ///
    /// # Safety
    /// The calling kernel thread executes the thread that runs, which has no other value of the token in reach.
    pub unsafe fn of_the_run<'a>() -> &'a mut Token<T> {
        // SAFETY: by the caller's promise.
        unsafe {
            let run = T::System::slot().get();
            Token::held_by((&(*run).logicals)[(*run).sched.current().index()])
        }
    }

    /// The thread that has it.
    #[inline(always)]
    pub fn thread(&self) -> *mut T {
        core::ptr::with_exposed_provenance_mut((&raw const *self).addr())
    }

    /// The number of that thread in the run.
    #[inline(always)]
    pub fn id(&self) -> ThreadId {
        // SAFETY: who has the token lives.
        unsafe { T::id(self.thread()) }
    }

    /// The run.
    #[inline(always)]
    pub fn run(&mut self) -> &mut Run<T::System> {
        // SAFETY: the token is there once, so the run is borrowed once; the slot was filled before there was a token.
        unsafe { &mut *T::System::slot().get() }
    }

    /// What is known about the accesses of the run.
    #[inline]
    pub fn watch(&mut self) -> &mut Watch<T::System> {
        // SAFETY: the token is there once, so this is borrowed once.
        unsafe { &mut *T::System::watch() }
    }

    /// The run, and what is known about its accesses.
    #[inline]
    pub fn run_and_watch(&mut self) -> (&mut Run<T::System>, &mut Watch<T::System>) {
        // SAFETY: the token is there once, so each of the two is borrowed once.
        unsafe { (&mut *T::System::slot().get(), &mut *T::System::watch()) }
    }

    /// The names of the thread that has it.
    #[inline]
    pub fn who(&self) -> Who {
        // SAFETY: who has the token takes part in the run.
        unsafe { T::System::who(self.thread()) }
    }

    /// A thread of the run, by its number.
    #[inline]
    pub fn logical(&mut self, thread: ThreadId) -> *mut T {
        self.run().logicals[thread.index()]
    }
}

impl<T: Thread> core::fmt::Debug for Token<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Token({:p})", self.thread())
    }
}
