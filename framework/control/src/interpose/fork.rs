//! New processes. The child has one thread and is left alone: it runs free.

use core::ffi::{c_char, c_void};

use libc::{gid_t, pid_t, uid_t};

use super::{interpose, signal};
use crate::me::{me, set_me};
use crate::runtime::{Token, demote_me, outside};
use crate::snapshot;

mod real_fork {
    use super::pid_t;
    crate::real::real! { fork() -> pid_t; }
}

/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn fork() -> pid_t {
    let me = me();
    set_me(core::ptr::null_mut());
    // SAFETY: a logical thread that runs program code has the token.
    let child = unsafe {
        if !me.is_null() {
            snapshot::cannot_undo("starts a process");
            // The child's only thread is the kernel thread that calls: it must be the one libc thinks it is.
            let me = Token::held_by(me);
            demote_me(me);
            signal::may_come(me);
        }
        real_fork::fork()
    };
    if child != 0 {
        set_me(me);
    }
    if child > 0 && !me.is_null() {
        // SAFETY: the thread still has the token.
        outside::process_starts(unsafe { Token::held_by(me) }, "fork");
    }
    child
}

/// As `fork`: a child that shares the memory would run program code as the thread that made it. POSIX allows both.
///
/// # Safety
/// As for libc's function of this name.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C-unwind" fn vfork() -> pid_t {
    // SAFETY: the caller's promise is stronger.
    unsafe { fork() }
}

interpose! {
    fn posix_spawn(
        process: *mut pid_t,
        path: *const c_char,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: *const *mut c_char,
        environment: *const *mut c_char,
    ) -> i32, |me| {
        outside::process_starts(me, "posix_spawn");
        signal::may_come(me);
        real::posix_spawn(process, path, actions, attributes, arguments, environment)
    }
    fn posix_spawnp(
        process: *mut pid_t,
        file: *const c_char,
        actions: *const c_void,
        attributes: *const c_void,
        arguments: *const *mut c_char,
        environment: *const *mut c_char,
    ) -> i32, |me| {
        outside::process_starts(me, "posix_spawnp");
        signal::may_come(me);
        real::posix_spawnp(process, file, actions, attributes, arguments, environment)
    }
    fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void, |me| {
        outside::process_starts(me, "popen");
        signal::may_come(me);
        real::popen(command, mode)
    }

    // These make every kernel thread of the process take part, through a signal that libc sends to each.
    fn setuid(user: uid_t) -> i32, |me| { demote_me(me); real::setuid(user) }
    fn setgid(group: gid_t) -> i32, |me| { demote_me(me); real::setgid(group) }
    fn setreuid(real_user: uid_t, user: uid_t) -> i32, |me| { demote_me(me); real::setreuid(real_user, user) }
    fn setregid(real_group: gid_t, group: gid_t) -> i32, |me| { demote_me(me); real::setregid(real_group, group) }
    fn setresuid(r: uid_t, e: uid_t, s: uid_t) -> i32, |me| { demote_me(me); real::setresuid(r, e, s) }
    fn setresgid(r: gid_t, e: gid_t, s: gid_t) -> i32, |me| { demote_me(me); real::setresgid(r, e, s) }
}
