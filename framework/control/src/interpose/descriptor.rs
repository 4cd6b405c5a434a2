//! Calls that wait for a descriptor: reading, writing, accepting, polling.
//!
//! A call that could block is not made before the descriptor is ready. Until then the thread waits like for any
//! other object: an operation of another logical thread that makes the descriptor ready wakes it in the same step,
//! so pipes and sockets inside the program are as deterministic as mutexes. When nobody can run, the library waits
//! for the outside world on behalf of all.

use core::ffi::c_void;

use libc::{
    EPOLLIN, O_NONBLOCK, POLLIN, POLLOUT, c_char, c_int, c_short, c_uint, epoll_event, fd_set, iovec, msghdr, nfds_t, pollfd,
    size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};

use super::clock::moment_after;
use super::{interpose, signal};
use crate::instrument::edge;
use crate::me::Unmanaged;
use crate::runtime::{Logical, Waited, descriptors_changed, step, unknown_event, wait_for_descriptors};
use crate::sched::Moment;
use crate::sys;

/// Whether threads can talk through this descriptor. Files, directories, terminals and the standard streams are
/// not scheduling points, so that a schedule does not depend on where output goes.
fn connects_threads(fd: c_int) -> bool {
    if (0..=2).contains(&fd) {
        return false;
    }
    // SAFETY: an all-zero stat is valid, and the kernel fills it.
    let mode = unsafe {
        let mut stat: libc::stat = core::mem::zeroed();
        if sys::call(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0, 0]) < 0 {
            return false;
        }
        stat.st_mode & libc::S_IFMT
    };
    !matches!(mode, libc::S_IFREG | libc::S_IFDIR | libc::S_IFCHR | libc::S_IFBLK)
}

fn is_non_blocking(fd: c_int) -> bool {
    // SAFETY: only asks for flags.
    let flags = unsafe { sys::call(libc::SYS_fcntl, [fd as usize, libc::F_GETFL as usize, 0, 0, 0, 0]) };
    flags >= 0 && flags & O_NONBLOCK as isize != 0
}

/// Returns when a call on `fd` would not block, or must not wait anyway.
unsafe fn ready(me: *mut Logical, fd: c_int, events: c_short, dont_wait: bool) {
    // A poll has nothing to say about a negative number, and the call will.
    if fd < 0 || !connects_threads(fd) && events == POLLOUT {
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe { wait_until_ready(me, fd, events, dont_wait, connects_threads(fd)) };
}

/// The same for a message queue, which looks like a file.
unsafe fn queue_ready(me: *mut Logical, queue: c_int, events: c_short) {
    if queue >= 0 {
        // SAFETY: by the caller's promise.
        unsafe { wait_until_ready(me, queue, events, false, true) };
    }
}

unsafe fn wait_until_ready(me: *mut Logical, fd: c_int, events: c_short, dont_wait: bool, connects: bool) {
    // SAFETY: called by the running thread.
    unsafe {
        signal::cancellation_point(me);
        if connects {
            step(me, unknown_event());
        }
        if !dont_wait && !is_non_blocking(fd) {
            let mut set = [pollfd { fd, events, revents: 0 }];
            while wait_for_descriptors(me, &mut set, None) == Waited::Interrupted {
                signal::cancellation_point(me);
            }
        }
        if connects && events == POLLIN {
            edge::listens(me);
        } else if connects {
            edge::talks(me);
        }
    }
}

/// Makes the call and tells those who wait for descriptors.
unsafe fn with_effect<R>(call: impl FnOnce() -> R) -> R {
    let unmanaged = Unmanaged::enter();
    let result = call();
    drop(unmanaged);
    // SAFETY: called by the running thread.
    unsafe { descriptors_changed() };
    result
}

/// A look that does not wait. The kernel breaks it off for a signal all the same if there is nothing to see; those that come in the
/// middle of a call are ours, the program's come at steps.
fn looked(mut look: impl FnMut() -> c_int) -> c_int {
    loop {
        let result = look();
        // SAFETY: libc gives every thread an errno.
        if result != -1 || unsafe { *libc::__errno_location() } != libc::EINTR {
            return result;
        }
    }
}

fn dont_wait(flags: c_int) -> bool {
    flags & libc::MSG_DONTWAIT != 0
}

/// A timeout of 0 or less than nothing is no wait at all.
unsafe fn deadline_of_milliseconds(milliseconds: c_int) -> Option<Moment> {
    let milliseconds = u32::try_from(milliseconds).ok()?;
    let length = timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
    };
    // SAFETY: called with the token.
    Some(unsafe { moment_after(&raw const length) })
}

unsafe fn poll_set(me: *mut Logical, set: *mut pollfd, count: nfds_t, deadline: Option<Moment>) -> c_int {
    // SAFETY: by the caller's promise; an empty set may have a null pointer.
    unsafe {
        signal::cancellation_point(me);
        step(me, unknown_event());
        let set = if count == 0 { &mut [] } else { core::slice::from_raw_parts_mut(set, count as usize) };
        while wait_for_descriptors(me, set, deadline) == Waited::Interrupted {
            signal::cancellation_point(me);
        }
        edge::listens(me);
        set.iter().filter(|entry| entry.revents != 0).count() as c_int
    }
}

/// The members of up to three sets as a list for poll.
unsafe fn members(limit: c_int, sets: [(*mut fd_set, c_short); 3]) -> Vec<pollfd> {
    let mut list = Vec::new();
    for fd in 0..limit {
        let mut events = 0;
        for (set, event) in sets {
            // SAFETY: by the caller's promise the sets hold `limit` descriptors.
            if !set.is_null() && unsafe { libc::FD_ISSET(fd, set) } {
                events |= event;
            }
        }
        if events != 0 {
            list.push(pollfd { fd, events, revents: 0 });
        }
    }
    list
}

unsafe fn select_sets(me: *mut Logical, limit: c_int, sets: [*mut fd_set; 3], deadline: Option<Moment>) {
    let [read, write, exceptional] = sets;
    // SAFETY: by the caller's promise.
    unsafe {
        let mut list = members(limit, [(read, POLLIN), (write, POLLOUT), (exceptional, libc::POLLPRI)]);
        poll_set(me, list.as_mut_ptr(), list.len() as nfds_t, deadline);
    }
}

interpose! {
    fn read(fd: c_int, to: *mut c_void, len: size_t) -> ssize_t, |me| {
        ready(me, fd, POLLIN, false);
        with_effect(|| real::read(fd, to, len))
    }
    fn readv(fd: c_int, to: *const iovec, count: c_int) -> ssize_t, |me| {
        ready(me, fd, POLLIN, false);
        with_effect(|| real::readv(fd, to, count))
    }
    fn recv(fd: c_int, to: *mut c_void, len: size_t, flags: c_int) -> ssize_t, |me| {
        ready(me, fd, POLLIN, dont_wait(flags));
        with_effect(|| real::recv(fd, to, len, flags))
    }
    fn recvfrom(
        fd: c_int,
        to: *mut c_void,
        len: size_t,
        flags: c_int,
        from: *mut sockaddr,
        from_len: *mut socklen_t,
    ) -> ssize_t, |me| {
        ready(me, fd, POLLIN, dont_wait(flags));
        with_effect(|| real::recvfrom(fd, to, len, flags, from, from_len))
    }
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t, |me| {
        ready(me, fd, POLLIN, dont_wait(flags));
        with_effect(|| real::recvmsg(fd, message, flags))
    }
    fn accept(fd: c_int, peer: *mut sockaddr, len: *mut socklen_t) -> c_int, |me| {
        ready(me, fd, POLLIN, false);
        with_effect(|| real::accept(fd, peer, len))
    }
    fn accept4(fd: c_int, peer: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int, |me| {
        ready(me, fd, POLLIN, false);
        with_effect(|| real::accept4(fd, peer, len, flags))
    }
    fn write(fd: c_int, from: *const c_void, len: size_t) -> ssize_t, |me| {
        ready(me, fd, POLLOUT, false);
        with_effect(|| real::write(fd, from, len))
    }
    fn writev(fd: c_int, from: *const iovec, count: c_int) -> ssize_t, |me| {
        ready(me, fd, POLLOUT, false);
        with_effect(|| real::writev(fd, from, count))
    }
    fn send(fd: c_int, from: *const c_void, len: size_t, flags: c_int) -> ssize_t, |me| {
        ready(me, fd, POLLOUT, dont_wait(flags));
        with_effect(|| real::send(fd, from, len, flags))
    }
    fn sendto(
        fd: c_int,
        from: *const c_void,
        len: size_t,
        flags: c_int,
        to: *const sockaddr,
        to_len: socklen_t,
    ) -> ssize_t, |me| {
        ready(me, fd, POLLOUT, dont_wait(flags));
        with_effect(|| real::sendto(fd, from, len, flags, to, to_len))
    }
    fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t, |me| {
        ready(me, fd, POLLOUT, dont_wait(flags));
        with_effect(|| real::sendmsg(fd, message, flags))
    }
    fn close(fd: c_int) -> c_int, |me| {
        edge::talks(me);
        with_effect(|| real::close(fd))
    }
    fn shutdown(fd: c_int, how: c_int) -> c_int, |me| {
        edge::talks(me);
        with_effect(|| real::shutdown(fd, how))
    }
    fn eventfd_write(fd: c_int, value: u64) -> c_int, |me| {
        ready(me, fd, POLLOUT, false);
        with_effect(|| real::eventfd_write(fd, value))
    }
    fn eventfd_read(fd: c_int, value: *mut u64) -> c_int, |me| {
        ready(me, fd, POLLIN, false);
        with_effect(|| real::eventfd_read(fd, value))
    }

    fn mq_send(queue: c_int, message: *const c_char, len: size_t, priority: c_uint) -> c_int, |me| {
        queue_ready(me, queue, POLLOUT);
        with_effect(|| real::mq_send(queue, message, len, priority))
    }
    fn mq_receive(queue: c_int, message: *mut c_char, len: size_t, priority: *mut c_uint) -> ssize_t, |me| {
        queue_ready(me, queue, POLLIN);
        with_effect(|| real::mq_receive(queue, message, len, priority))
    }

    fn poll(set: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int, |me| {
        if timeout != 0 {
            poll_set(me, set, count, deadline_of_milliseconds(timeout));
        }
        looked(|| real::poll(set, count, 0))
    }
    fn ppoll(set: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const c_void) -> c_int, |me| {
        let deadline = (!timeout.is_null()).then(|| moment_after(timeout));
        poll_set(me, set, count, deadline);
        let now = timespec { tv_sec: 0, tv_nsec: 0 };
        looked(|| real::ppoll(set, count, &raw const now, mask))
    }
    fn select(
        limit: c_int,
        read: *mut fd_set,
        write: *mut fd_set,
        exceptional: *mut fd_set,
        timeout: *mut timeval,
    ) -> c_int, |me| {
        let deadline = (!timeout.is_null()).then(|| {
            let length = timespec { tv_sec: (*timeout).tv_sec, tv_nsec: (*timeout).tv_usec * 1000 };
            moment_after(&raw const length)
        });
        select_sets(me, limit, [read, write, exceptional], deadline);
        let mut now = timeval { tv_sec: 0, tv_usec: 0 };
        looked(|| real::select(limit, read, write, exceptional, &raw mut now))
    }
    fn pselect(
        limit: c_int,
        read: *mut fd_set,
        write: *mut fd_set,
        exceptional: *mut fd_set,
        timeout: *const timespec,
        mask: *const c_void,
    ) -> c_int, |me| {
        let deadline = (!timeout.is_null()).then(|| moment_after(timeout));
        select_sets(me, limit, [read, write, exceptional], deadline);
        let now = timespec { tv_sec: 0, tv_nsec: 0 };
        looked(|| real::pselect(limit, read, write, exceptional, &raw const now, mask))
    }
    fn epoll_wait(fd: c_int, events: *mut epoll_event, count: c_int, timeout: c_int) -> c_int, |me| {
        if timeout != 0 {
            let mut set = pollfd { fd, events: EPOLLIN as c_short, revents: 0 };
            poll_set(me, &raw mut set, 1, deadline_of_milliseconds(timeout));
        }
        looked(|| real::epoll_wait(fd, events, count, 0))
    }
    fn epoll_pwait(
        fd: c_int,
        events: *mut epoll_event,
        count: c_int,
        timeout: c_int,
        mask: *const c_void,
    ) -> c_int, |me| {
        if timeout != 0 {
            let mut set = pollfd { fd, events: EPOLLIN as c_short, revents: 0 };
            poll_set(me, &raw mut set, 1, deadline_of_milliseconds(timeout));
        }
        looked(|| real::epoll_pwait(fd, events, count, 0, mask))
    }
    fn epoll_pwait2(
        fd: c_int,
        events: *mut epoll_event,
        count: c_int,
        timeout: *const timespec,
        mask: *const c_void,
    ) -> c_int, |me| {
        let mut set = pollfd { fd, events: EPOLLIN as c_short, revents: 0 };
        poll_set(me, &raw mut set, 1, (!timeout.is_null()).then(|| moment_after(timeout)));
        looked(|| real::epoll_pwait(fd, events, count, 0, mask))
    }
}
