//! What becomes of a system call that a program makes in a run that will be undone. Pure.
//!
//! Three answers: it has no effect that outlives the run, or only one that it would have after a fork as well (files that
//! are written); it has one that can be undone, and is noted; or it cannot be undone, and the run is abandoned before it is
//! made. Whatever is not listed belongs to the last kind.

/// Descriptors below this number are told apart.
pub(super) const DESCRIPTORS: usize = 1024;

/// A set of descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Descriptors([u64; DESCRIPTORS / 64]);

impl Descriptors {
    /// Whether the descriptor is in the set.
    pub(super) fn contains(&self, fd: usize) -> bool {
        self.0.get(fd / 64).is_some_and(|word| word >> (fd % 64) & 1 != 0)
    }

    /// Adds a descriptor; false when it is too large a number.
    pub(super) fn add(&mut self, fd: usize) -> bool {
        let Some(word) = self.0.get_mut(fd / 64) else { return false };
        *word |= 1 << (fd % 64);
        true
    }

    /// Takes a descriptor out.
    pub(super) fn remove(&mut self, fd: usize) {
        if let Some(word) = self.0.get_mut(fd / 64) {
            *word &= !(1 << (fd % 64));
        }
    }

    /// Those in the set.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..DESCRIPTORS).filter(|&fd| self.contains(fd))
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
}

/// When a system call is let through without a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pass {
    Always,
    /// When this argument is zero.
    IfZero(u8),
    /// When this argument has this value.
    IfEqual(u8, u32),
    /// When the first argument is a descriptor that the run opened.
    OnOwnDescriptor,
}

/// The system calls that may pass, and when. Several entries for one call are alternatives.
pub(super) const PASSES: &[(i64, Pass)] = &[
    (libc::SYS_futex, Pass::Always),
    (libc::SYS_clock_gettime, Pass::Always),
    (libc::SYS_clock_getres, Pass::Always),
    (libc::SYS_gettimeofday, Pass::Always),
    (libc::SYS_time, Pass::Always),
    (libc::SYS_times, Pass::Always),
    (libc::SYS_getpid, Pass::Always),
    (libc::SYS_gettid, Pass::Always),
    (libc::SYS_getppid, Pass::Always),
    (libc::SYS_getpgrp, Pass::Always),
    (libc::SYS_getuid, Pass::Always),
    (libc::SYS_geteuid, Pass::Always),
    (libc::SYS_getgid, Pass::Always),
    (libc::SYS_getegid, Pass::Always),
    (libc::SYS_rt_sigreturn, Pass::Always),
    (libc::SYS_restart_syscall, Pass::Always),
    (libc::SYS_rt_sigpending, Pass::Always),
    (libc::SYS_nanosleep, Pass::Always),
    (libc::SYS_clock_nanosleep, Pass::Always),
    (libc::SYS_sched_yield, Pass::Always),
    (libc::SYS_poll, Pass::Always),
    (libc::SYS_ppoll, Pass::Always),
    (libc::SYS_select, Pass::Always),
    (libc::SYS_pselect6, Pass::Always),
    (libc::SYS_fstat, Pass::Always),
    (libc::SYS_newfstatat, Pass::Always),
    (libc::SYS_stat, Pass::Always),
    (libc::SYS_lstat, Pass::Always),
    (libc::SYS_statx, Pass::Always),
    (libc::SYS_statfs, Pass::Always),
    (libc::SYS_fstatfs, Pass::Always),
    (libc::SYS_access, Pass::Always),
    (libc::SYS_faccessat, Pass::Always),
    (libc::SYS_faccessat2, Pass::Always),
    (libc::SYS_readlink, Pass::Always),
    (libc::SYS_readlinkat, Pass::Always),
    (libc::SYS_getcwd, Pass::Always),
    (libc::SYS_uname, Pass::Always),
    (libc::SYS_sysinfo, Pass::Always),
    (libc::SYS_getrusage, Pass::Always),
    (libc::SYS_getrlimit, Pass::Always),
    (libc::SYS_getrandom, Pass::Always),
    (libc::SYS_getcpu, Pass::Always),
    (libc::SYS_sched_getaffinity, Pass::Always),
    (libc::SYS_sched_getparam, Pass::Always),
    (libc::SYS_sched_getscheduler, Pass::Always),
    (libc::SYS_getitimer, Pass::Always),
    (libc::SYS_mincore, Pass::Always),
    (libc::SYS_membarrier, Pass::Always),
    // What is done to files stays after a fork, too.
    (libc::SYS_unlink, Pass::Always),
    (libc::SYS_unlinkat, Pass::Always),
    (libc::SYS_mkdir, Pass::Always),
    (libc::SYS_mkdirat, Pass::Always),
    (libc::SYS_rmdir, Pass::Always),
    (libc::SYS_rename, Pass::Always),
    (libc::SYS_renameat, Pass::Always),
    (libc::SYS_renameat2, Pass::Always),
    (libc::SYS_link, Pass::Always),
    (libc::SYS_linkat, Pass::Always),
    (libc::SYS_symlink, Pass::Always),
    (libc::SYS_symlinkat, Pass::Always),
    (libc::SYS_chmod, Pass::Always),
    (libc::SYS_fchmodat, Pass::Always),
    (libc::SYS_truncate, Pass::Always),
    (libc::SYS_utimensat, Pass::Always),
    // Asking, not telling.
    (libc::SYS_rt_sigprocmask, Pass::IfZero(1)),
    (libc::SYS_prlimit64, Pass::IfZero(2)),
    (libc::SYS_prctl, Pass::IfEqual(0, libc::PR_GET_NAME as u32)),
    (libc::SYS_fcntl, Pass::IfEqual(1, libc::F_GETFD as u32)),
    (libc::SYS_fcntl, Pass::IfEqual(1, libc::F_GETFL as u32)),
    (libc::SYS_ioctl, Pass::IfEqual(1, libc::TCGETS as u32)),
    (libc::SYS_ioctl, Pass::IfEqual(1, libc::TIOCGWINSZ as u32)),
    // Standard output and error output are files that the driver reads and empties.
    (libc::SYS_write, Pass::IfEqual(0, 1)),
    (libc::SYS_write, Pass::IfEqual(0, 2)),
    (libc::SYS_writev, Pass::IfEqual(0, 1)),
    (libc::SYS_writev, Pass::IfEqual(0, 2)),
    (libc::SYS_read, Pass::OnOwnDescriptor),
    (libc::SYS_write, Pass::OnOwnDescriptor),
    (libc::SYS_readv, Pass::OnOwnDescriptor),
    (libc::SYS_writev, Pass::OnOwnDescriptor),
    (libc::SYS_pread64, Pass::OnOwnDescriptor),
    (libc::SYS_pwrite64, Pass::OnOwnDescriptor),
    (libc::SYS_lseek, Pass::OnOwnDescriptor),
    (libc::SYS_fsync, Pass::OnOwnDescriptor),
    (libc::SYS_fdatasync, Pass::OnOwnDescriptor),
    (libc::SYS_ftruncate, Pass::OnOwnDescriptor),
    (libc::SYS_fallocate, Pass::OnOwnDescriptor),
    (libc::SYS_fadvise64, Pass::OnOwnDescriptor),
    (libc::SYS_getdents64, Pass::OnOwnDescriptor),
    (libc::SYS_fchmod, Pass::OnOwnDescriptor),
    (libc::SYS_ioctl, Pass::OnOwnDescriptor),
    (libc::SYS_sendto, Pass::OnOwnDescriptor),
    (libc::SYS_recvfrom, Pass::OnOwnDescriptor),
    (libc::SYS_sendmsg, Pass::OnOwnDescriptor),
    (libc::SYS_shutdown, Pass::OnOwnDescriptor),
    (libc::SYS_bind, Pass::OnOwnDescriptor),
    (libc::SYS_listen, Pass::OnOwnDescriptor),
    (libc::SYS_connect, Pass::OnOwnDescriptor),
    (libc::SYS_getsockname, Pass::OnOwnDescriptor),
    (libc::SYS_getpeername, Pass::OnOwnDescriptor),
    (libc::SYS_getsockopt, Pass::OnOwnDescriptor),
    (libc::SYS_setsockopt, Pass::OnOwnDescriptor),
    (libc::SYS_epoll_ctl, Pass::OnOwnDescriptor),
    (libc::SYS_epoll_wait, Pass::OnOwnDescriptor),
    (libc::SYS_epoll_pwait, Pass::OnOwnDescriptor),
    (libc::SYS_timerfd_settime, Pass::OnOwnDescriptor),
    (libc::SYS_timerfd_gettime, Pass::OnOwnDescriptor),
];

/// What is done about a system call that was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is made.
    Make,
    /// It is made, and its result is a descriptor that will be closed.
    Opens,
    /// It is made, and writes two such descriptors to where this argument points.
    OpensTwo(usize),
    /// It closes input or output, as programs do that look whether all was written; another number of it is kept.
    ClosesStandard,
    /// It closes the descriptor.
    Closes,
    /// It moves the position in standard input, which will be put back.
    MovesInput,
    /// Memory: mapping, unmapping, protecting, moving, advising, and the end of the heap.
    Maps,
    Unmaps,
    Protects,
    Remaps,
    Advises,
    Breaks,
    /// It sets or asks for the action on a signal.
    SetsAction,
    /// It changes the mask of the carrier. (A thread that asks for a mask of its own does not get here.)
    Masks,
    /// It names the thread.
    Names,
    /// The program ends, with this status.
    Ends(i32),
    /// The thread sends itself this signal.
    Raises(i32),
    /// It cannot be undone.
    Refused(&'static str),
}

const BEFORE_MAIN: &str = "uses a descriptor that was open before main";

/// What to do about a system call that did not pass.
pub(super) fn verdict(number: i64, args: &[usize; 6], before: &Descriptors) -> Verdict {
    let on_own = |then: Verdict| {
        if before.contains(args[0]) { Verdict::Refused(BEFORE_MAIN) } else { then }
    };
    match number {
        libc::SYS_exit_group => Verdict::Ends(args[0] as i32),
        libc::SYS_mmap => Verdict::Maps,
        libc::SYS_munmap => Verdict::Unmaps,
        libc::SYS_mprotect => Verdict::Protects,
        libc::SYS_mremap => Verdict::Remaps,
        libc::SYS_madvise => Verdict::Advises,
        libc::SYS_brk => Verdict::Breaks,
        libc::SYS_rt_sigaction => Verdict::SetsAction,
        libc::SYS_rt_sigprocmask => Verdict::Masks,
        libc::SYS_open
        | libc::SYS_openat
        | libc::SYS_creat
        | libc::SYS_eventfd
        | libc::SYS_eventfd2
        | libc::SYS_epoll_create
        | libc::SYS_epoll_create1
        | libc::SYS_timerfd_create
        | libc::SYS_memfd_create
        | libc::SYS_socket => Verdict::Opens,
        // Output through another number is the same output.
        libc::SYS_dup if args[0] <= 2 => Verdict::Opens,
        libc::SYS_dup | libc::SYS_accept | libc::SYS_accept4 => on_own(Verdict::Opens),
        libc::SYS_dup2 | libc::SYS_dup3 if before.contains(args[1]) => {
            Verdict::Refused("replaces a descriptor that was open before main")
        }
        libc::SYS_dup2 | libc::SYS_dup3 if args[0] <= 2 || !before.contains(args[0]) => Verdict::Opens,
        libc::SYS_pipe | libc::SYS_pipe2 => Verdict::OpensTwo(0),
        libc::SYS_socketpair => Verdict::OpensTwo(3),
        libc::SYS_close if args[0] <= 2 && before.contains(args[0]) => Verdict::ClosesStandard,
        libc::SYS_close => on_own(Verdict::Closes),
        libc::SYS_fcntl => match args[1] as i32 {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => on_own(Verdict::Opens),
            libc::F_SETFD | libc::F_SETFL => on_own(Verdict::Make),
            libc::F_SETLK | libc::F_SETLKW | libc::F_GETLK => on_own(Verdict::Make),
            _ => Verdict::Refused("makes an uncommon request about a descriptor"),
        },
        libc::SYS_read | libc::SYS_readv | libc::SYS_lseek | libc::SYS_pread64 if args[0] == 0 => {
            Verdict::MovesInput
        }
        // Asking where it is: output appends, so it has no position that could be moved.
        libc::SYS_lseek if args[0] <= 2 => Verdict::Make,
        libc::SYS_prctl if args[0] == libc::PR_SET_NAME as usize => Verdict::Names,
        libc::SYS_tgkill => Verdict::Raises(args[2] as i32),
        libc::SYS_tkill => Verdict::Raises(args[1] as i32),
        _ => Verdict::Refused(reason(number, args)),
    }
}

/// Why a system call cannot be undone, in words.
fn reason(number: i64, args: &[usize; 6]) -> &'static str {
    match number {
        libc::SYS_clone if args[0] & libc::CLONE_THREAD as usize != 0 => "starts a thread of its own",
        libc::SYS_clone | libc::SYS_clone3 | libc::SYS_fork | libc::SYS_vfork => "starts a process",
        libc::SYS_execve | libc::SYS_execveat => "becomes another program",
        libc::SYS_wait4 | libc::SYS_waitid => "waits for a process",
        libc::SYS_kill | libc::SYS_rt_sigqueueinfo | libc::SYS_rt_tgsigqueueinfo => "sends a signal",
        libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait | libc::SYS_pause => "waits for a signal",
        libc::SYS_signalfd | libc::SYS_signalfd4 => "reads signals",
        libc::SYS_setitimer | libc::SYS_alarm | libc::SYS_timer_create => "sets a timer",
        libc::SYS_chdir | libc::SYS_fchdir => "changes its folder",
        libc::SYS_umask => "changes its file mode mask",
        libc::SYS_setrlimit | libc::SYS_prlimit64 => "changes its limits",
        libc::SYS_setuid | libc::SYS_setgid | libc::SYS_setresuid | libc::SYS_setresgid => "changes its user",
        libc::SYS_io_uring_setup => "uses io_uring",
        libc::SYS_exit => "ends a kernel thread",
        libc::SYS_recvmsg | libc::SYS_recvmmsg => "may receive descriptors",
        libc::SYS_sched_setaffinity | libc::SYS_sched_setscheduler | libc::SYS_setpriority => {
            "changes how it is scheduled"
        }
        libc::SYS_read | libc::SYS_write | libc::SYS_readv | libc::SYS_writev | libc::SYS_lseek => BEFORE_MAIN,
        _ => "makes a system call that cannot be undone",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standard() -> Descriptors {
        let mut before = Descriptors::default();
        for fd in [0, 1, 2, 5] {
            assert!(before.add(fd));
        }
        before
    }

    #[test]
    fn descriptors_are_a_set() {
        let mut set = standard();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 1, 2, 5]);
        set.remove(5);
        assert!(!set.contains(5) && !set.contains(DESCRIPTORS) && !set.add(DESCRIPTORS));
        assert!(!set.is_empty() && Descriptors::default().is_empty());
    }

    #[test]
    fn what_was_open_before_main_stays_as_it_is() {
        let before = standard();
        let of = |number, args: [usize; 3]| {
            verdict(number, &[args[0], args[1], args[2], 0, 0, 0], &before)
        };
        assert_eq!(of(libc::SYS_close, [7, 0, 0]), Verdict::Closes);
        assert_eq!(of(libc::SYS_close, [1, 0, 0]), Verdict::ClosesStandard);
        assert_eq!(of(libc::SYS_read, [0, 0, 0]), Verdict::MovesInput);
        assert_eq!(of(libc::SYS_dup2, [1, 9, 0]), Verdict::Opens);
        for (number, args) in [
            (libc::SYS_close, [5, 0, 0]),
            (libc::SYS_dup2, [7, 1, 0]),
            (libc::SYS_dup2, [5, 9, 0]),
            (libc::SYS_read, [5, 0, 0]),
            (libc::SYS_write, [5, 0, 0]),
            (libc::SYS_fcntl, [1, libc::F_SETFL as usize, 0]),
        ] {
            assert!(matches!(of(number, args), Verdict::Refused(_)), "{number} {args:?}");
        }
    }

    #[test]
    fn whatever_is_not_listed_is_refused() {
        let before = standard();
        for number in 0..600 {
            let listed = PASSES.iter().any(|&(passes, _)| passes == number);
            let answer = verdict(number, &[7; 6], &before);
            if number > 470 {
                assert!(!listed && matches!(answer, Verdict::Refused(_)), "{number}");
            }
        }
        for number in [libc::SYS_fork, libc::SYS_execve, libc::SYS_kill, libc::SYS_timer_create, libc::SYS_chdir] {
            assert!(matches!(verdict(number, &[0; 6], &before), Verdict::Refused(_)));
        }
    }
}
