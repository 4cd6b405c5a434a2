//! The library that is loaded first into host or program: heap accounting and, in strict mode, the scheduler.
//!
//! # Strict mode
//!
//! One logical thread of the program runs at a time, and a strategy of `waylay_schedule` decides which. The rooms, from
//! the mechanism up:
//!
//! - `sys`, `arena`, `message`, `me`, `real`: system calls, memory and identity of the library's own
//! - `switch`: the context switch and the signal between kernel threads
//! - `sched` (the crate `waylay-scheduler`): threads, waiting, virtual time, recording; pure
//! - `runtime`: carries choices out, on the carrier or by baton
//! - `interpose`: the functions of libc that become steps, one file per family
//! - `instrument`: accesses and atomic operations that become steps
//! - `fork_server`: a child per schedule for whole programs
//! - `snapshot`: schedule after schedule of a whole program in one process, put back in between
//! - `in_process`: schedule after schedule inside a host
//!
//! What driver and library tell each other is in `waylay-control-protocol`. Without a region in the environment the
//! library passes every call on.
//!
//! Nobody links this crate: it defines `malloc` and `pthread_mutex_lock`, which would take effect in whoever does. As a
//! dependency it only makes Cargo build the shared library.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod heap;

/// Strict mode knows the registers of one architecture and the structures of one libc.
macro_rules! strict {
    ($($item:item)+) => {$(
        #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
        #[cfg_attr(test, allow(dead_code, reason = "unit tests do not interpose anything"))]
        $item
    )+};
}

strict! {
    mod arena;
    mod binding;
    mod fork_server;
    mod in_process;
    mod instrument;
    mod interpose;
    mod me;
    mod message;
    mod real;
    mod runtime;
    mod snapshot;
    mod switch;
    mod sys;

    use waylay_scheduler as sched;

    #[global_allocator]
    static ARENA: arena::Arena = arena::Arena::new();
}
