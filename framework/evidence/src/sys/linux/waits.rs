//! Which system calls wait, for what, and whether for ever.
//!
//! The table covers the calls a test can be found blocked in; anything else counts as not waiting.

use crate::snapshot::{Syscall, Wait};

/// Where a call's timeout is and how "for ever" is written there.
enum Timeout {
    /// There is none.
    Never,
    /// A pointer in this argument; null waits for ever.
    Pointer(usize),
    /// Milliseconds in this argument, as a 32-bit integer; negative waits for ever.
    Milliseconds(usize),
}

enum Subject {
    Thread,
    Sleep,
    Input,
}

/// Names a call and says what it waits for.
pub(super) fn describe(number: u64, arguments: [u64; 6]) -> (Syscall, Wait) {
    let entry = i64::try_from(number).ok().and_then(|number| lookup(number, &arguments));
    let wait = match &entry {
        None => Wait::No,
        Some((_, Subject::Sleep, _)) => Wait::Sleep,
        Some((_, subject, timeout)) => {
            let timed = match *timeout {
                Timeout::Never => false,
                Timeout::Pointer(index) => arguments[index] != 0,
                Timeout::Milliseconds(index) => arguments[index] as u32 as i32 >= 0,
            };
            match (subject, timed) {
                (Subject::Thread, false) => Wait::ThreadUntimed,
                (Subject::Thread, true) => Wait::ThreadTimed,
                (_, false) => Wait::InputUntimed,
                (_, true) => Wait::InputTimed,
            }
        }
    };
    (Syscall { number, name: entry.map(|(name, ..)| name.to_owned()), arguments }, wait)
}

fn lookup(number: i64, arguments: &[u64; 6]) -> Option<(&'static str, Subject, Timeout)> {
    use Subject::{Input, Sleep, Thread};
    use Timeout::{Milliseconds, Never, Pointer};
    Some(match number {
        libc::SYS_futex => {
            // Only the waiting operations block; the private and clock flags sit above the low 7 bits.
            const WAIT: u64 = 0;
            const LOCK_PI: u64 = 6;
            const WAIT_BITSET: u64 = 9;
            const WAIT_REQUEUE_PI: u64 = 11;
            const LOCK_PI2: u64 = 13;
            match arguments[1] & 0x7f {
                WAIT | WAIT_BITSET | WAIT_REQUEUE_PI | LOCK_PI | LOCK_PI2 => ("futex", Thread, Pointer(3)),
                _ => return None,
            }
        }
        libc::SYS_futex_waitv => ("futex_waitv", Thread, Pointer(3)),
        libc::SYS_nanosleep => ("nanosleep", Sleep, Never),
        libc::SYS_clock_nanosleep => ("clock_nanosleep", Sleep, Never),
        // A timed wait that was interrupted by a stop continues under this number; which one it was is
        // no longer known. Calls without a timeout restart under their own number, poll excepted.
        libc::SYS_restart_syscall => ("restart_syscall", Sleep, Never),
        libc::SYS_poll => ("poll", Input, Milliseconds(2)),
        libc::SYS_ppoll => ("ppoll", Input, Pointer(2)),
        libc::SYS_select => ("select", Input, Pointer(4)),
        libc::SYS_pselect6 => ("pselect6", Input, Pointer(4)),
        libc::SYS_epoll_wait => ("epoll_wait", Input, Milliseconds(3)),
        libc::SYS_epoll_pwait => ("epoll_pwait", Input, Milliseconds(3)),
        libc::SYS_epoll_pwait2 => ("epoll_pwait2", Input, Pointer(3)),
        libc::SYS_rt_sigtimedwait => ("rt_sigtimedwait", Input, Pointer(2)),
        libc::SYS_semtimedop => ("semtimedop", Input, Pointer(3)),
        libc::SYS_mq_timedreceive => ("mq_timedreceive", Input, Pointer(4)),
        libc::SYS_mq_timedsend => ("mq_timedsend", Input, Pointer(4)),
        libc::SYS_recvmmsg => ("recvmmsg", Input, Pointer(4)),
        libc::SYS_io_getevents => ("io_getevents", Input, Pointer(4)),
        libc::SYS_io_uring_enter => ("io_uring_enter", Input, Never),
        libc::SYS_read => ("read", Input, Never),
        libc::SYS_readv => ("readv", Input, Never),
        libc::SYS_write => ("write", Input, Never),
        libc::SYS_writev => ("writev", Input, Never),
        libc::SYS_accept => ("accept", Input, Never),
        libc::SYS_accept4 => ("accept4", Input, Never),
        libc::SYS_connect => ("connect", Input, Never),
        libc::SYS_recvfrom => ("recvfrom", Input, Never),
        libc::SYS_recvmsg => ("recvmsg", Input, Never),
        libc::SYS_sendto => ("sendto", Input, Never),
        libc::SYS_sendmsg => ("sendmsg", Input, Never),
        libc::SYS_semop => ("semop", Input, Never),
        libc::SYS_msgrcv => ("msgrcv", Input, Never),
        libc::SYS_msgsnd => ("msgsnd", Input, Never),
        libc::SYS_flock => ("flock", Input, Never),
        libc::SYS_fcntl => ("fcntl", Input, Never),
        libc::SYS_open => ("open", Input, Never),
        libc::SYS_openat => ("openat", Input, Never),
        libc::SYS_wait4 => ("wait4", Input, Never),
        libc::SYS_waitid => ("waitid", Input, Never),
        libc::SYS_pause => ("pause", Input, Never),
        libc::SYS_rt_sigsuspend => ("rt_sigsuspend", Input, Never),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_found_where_each_call_keeps_them() {
        let forever = u64::from(u32::MAX);
        let table = [
            (libc::SYS_futex, [1, 0x80, 2, 0, 0, 0], "futex", Wait::ThreadUntimed),
            (libc::SYS_futex, [1, 0x189, 0, 0x7ff0, 0, forever], "futex", Wait::ThreadTimed),
            (libc::SYS_nanosleep, [1, 0, 0, 0, 0, 0], "nanosleep", Wait::Sleep),
            (libc::SYS_restart_syscall, [0; 6], "restart_syscall", Wait::Sleep),
            (libc::SYS_poll, [1, 1, forever, 0, 0, 0], "poll", Wait::InputUntimed),
            (libc::SYS_poll, [1, 1, 100, 0, 0, 0], "poll", Wait::InputTimed),
            (libc::SYS_epoll_wait, [1, 1, 1, u64::MAX, 0, 0], "epoll_wait", Wait::InputUntimed),
            (libc::SYS_select, [1, 0, 0, 0, 0x10, 0], "select", Wait::InputTimed),
            (libc::SYS_read, [0, 1, 1, 0, 0, 0], "read", Wait::InputUntimed),
        ];
        for (number, arguments, name, wait) in table {
            let (call, found) = describe(number as u64, arguments);
            assert_eq!((call.name.as_deref(), found), (Some(name), wait));
        }
    }

    #[test]
    fn waking_a_futex_is_not_waiting() {
        let (call, wait) = describe(libc::SYS_futex as u64, [1, 0x81, 1, 0, 0, 0]);
        assert_eq!((call.name, wait), (None, Wait::No));
    }
}
