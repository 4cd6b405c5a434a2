//! Calls that wait for a descriptor: reading, writing, accepting, polling.
//!
//! A call that could block is not made before the descriptor is ready. Until then the thread waits like for any
//! other object: an operation of another logical thread that makes the descriptor ready wakes it in the same step,
//! so pipes and sockets inside the program are as deterministic as mutexes. When nobody can run, the library waits
//! for the outside world on behalf of all.

use core::ffi::c_void;

use libc::{
    EINTR, EINVAL, EPOLLIN, O_NONBLOCK, POLLIN, POLLOUT, c_char, c_int, c_short, c_uint, epoll_event, fd_set, iovec, msghdr, nfds_t, pollfd,
    size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};

use super::clock::{is_length, moment_after, moment_of, rest_until};
use super::signal_wait::OtherMask;
use super::{fail, interpose, signal};
use crate::instrument::edge;
use crate::me::Unmanaged;
use crate::runtime::{Token, Waited, descriptors_changed, step, unknown_event, wait_for_descriptors};
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

/// Whether a call on this descriptor comes back at once: because it is to, or because it cannot be read, or written, at all.
fn never_waits(fd: c_int, events: c_short) -> bool {
    // SAFETY: only asks for flags.
    let flags = unsafe { sys::call(libc::SYS_fcntl, [fd as usize, libc::F_GETFL as usize, 0, 0, 0, 0]) } as c_int;
    let wrong = if events == POLLIN { libc::O_WRONLY } else { libc::O_RDONLY };
    flags >= 0 && (flags & O_NONBLOCK != 0 || flags & libc::O_ACCMODE == wrong)
}

/// What a socket says about itself; nothing of what is no socket.
fn option_of(fd: c_int, option: c_int) -> Option<i32> {
    let (mut value, mut len) = (0i32, size_of::<i32>() as socklen_t);
    // SAFETY: the kernel writes no more than the length says.
    let error = unsafe {
        let (to, to_len) = (&raw mut value as usize, &raw mut len as usize);
        sys::call(libc::SYS_getsockopt, [fd as usize, libc::SOL_SOCKET as usize, option as usize, to, to_len, 0])
    };
    (error == 0).then_some(value)
}

fn is_socket(fd: c_int) -> bool {
    option_of(fd, libc::SO_TYPE).is_some()
}

/// Whether a socket has others come to it.
fn listens(fd: c_int) -> bool {
    option_of(fd, libc::SO_ACCEPTCONN).is_some_and(|listens| listens != 0)
}

/// The longest message of a queue.
fn longest_message(queue: c_int) -> size_t {
    // Flags, number of messages, their size, how many there are, and a rest.
    let mut attributes = [0i64; 8];
    let args = [queue as usize, 0, attributes.as_mut_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel writes no more than that.
    unsafe { sys::call(libc::SYS_mq_getsetattr, args) };
    attributes[2] as size_t
}

/// Whether a call has to wait, and for how long.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    /// It does not wait.
    None,
    /// As long as it takes, or as the descriptor's own limit says.
    Full,
    /// Until then.
    Until(Moment),
}

/// The limit that a program sets for reading from a socket, or writing to it.
fn limit_of(me: &mut Token, fd: c_int, events: c_short) -> Option<Moment> {
    let mut limit = timeval { tv_sec: 0, tv_usec: 0 };
    let mut len = size_of_val(&limit) as socklen_t;
    let option = if events == POLLIN { libc::SO_RCVTIMEO } else { libc::SO_SNDTIMEO };
    let level = libc::SOL_SOCKET as usize;
    // SAFETY: the kernel writes no more than the length says; nothing where this is no socket.
    unsafe {
        let (to, to_len) = (&raw mut limit as usize, &raw mut len as usize);
        let error = sys::call(libc::SYS_getsockopt, [fd as usize, level, option as usize, to, to_len, 0]);
        let length = timespec { tv_sec: limit.tv_sec, tv_nsec: limit.tv_usec * 1000 };
        (error == 0 && (length.tv_sec, length.tv_nsec) != (0, 0)).then(|| moment_after(me, &length))
    }
}

/// What a call that failed returns.
pub(super) trait Failed {
    const FAILED: Self;
}

impl Failed for c_int {
    const FAILED: c_int = -1;
}

impl Failed for ssize_t {
    const FAILED: ssize_t = -1;
}

/// Makes a call on `fd` as soon as it does not block, or must not wait anyway.
pub(super) fn when_ready<R: Failed>(
    me: &mut Token,
    fd: c_int,
    events: c_short,
    patience: Patience,
    call: impl FnOnce() -> R,
) -> R {
    // A poll has nothing to say about a negative number, and the call will.
    if fd >= 0 && (connects_threads(fd) || events != POLLOUT) {
        let error = wait_until_ready(me, fd, events, patience, connects_threads(fd));
        if error != 0 {
            fail(error);
            return R::FAILED;
        }
    } else {
        signal::cancellation_point(me);
    }
    with_effect(me, call)
}

/// Makes a call on a message queue, which looks like a file, as soon as it does not block.
unsafe fn when_queue_ready<R: Failed>(
    me: &mut Token,
    queue: c_int,
    events: c_short,
    len: size_t,
    until: *const timespec,
    call: impl FnOnce() -> R,
) -> R {
    // SAFETY: by the caller's promise.
    unsafe {
        let longest = longest_message(queue);
        let patience = match until.as_ref() {
            // Whoever reads has to have room for any message, and who writes must not write more.
            _ if if events == POLLIN { len < longest } else { len > longest } => Patience::None,
            None => Patience::Full,
            // The call says what is wrong.
            Some(time) if !is_length(time) => Patience::None,
            Some(_) => Patience::Until(moment_of(me, libc::CLOCK_REALTIME, &*until)),
        };
        let error = if queue < 0 { 0 } else { wait_until_ready(me, queue, events, patience, true) };
        if error != 0 {
            fail(error);
            return R::FAILED;
        }
        with_effect(me, call)
    }
}

/// Waits until the descriptor is ready; the error of a call that has to fail, or 0.
fn wait_until_ready(
    me: &mut Token,
    fd: c_int,
    events: c_short,
    patience: Patience,
    connects: bool,
) -> c_int {
    signal::cancellation_point(me);
    if connects {
        step(me, unknown_event());
    }
    if !matches!(patience, Patience::None) && !never_waits(fd, events) {
        let mut set = [pollfd { fd, events, revents: 0 }];
        let (limit, late) = match patience {
            Patience::Until(moment) => (Some(moment), libc::ETIMEDOUT),
            _ => (limit_of(me, fd, events), libc::EAGAIN),
        };
        loop {
            match wait_for_descriptors(me, &mut set, limit) {
                Waited::Done => break,
                Waited::TimedOut => return late,
                // What has a limit does not begin again.
                Waited::Interrupted if signal::fails(me, limit.is_none()) => return EINTR,
                Waited::Interrupted => {}
            }
        }
    }
    // The call that follows is one for libc, too, which must not find anything to do.
    signal::cancellation_point(me);
    if connects && events == POLLIN {
        edge::listens(me);
    } else if connects {
        edge::talks(me);
    }
    0
}

/// Makes the call and tells those who wait for descriptors.
fn with_effect<R>(me: &mut Token, call: impl FnOnce() -> R) -> R {
    let unmanaged = Unmanaged::enter();
    let result = call();
    drop(unmanaged);
    descriptors_changed(me);
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

/// Two ends were made, unless `result` says otherwise.
unsafe fn note_pair(me: &mut Token, result: c_int, ends: *const c_int) {
    if result == 0 {
        // SAFETY: the kernel wrote both.
        me.run().system.inside.made_pair(unsafe { [*ends, *ends.add(1)] });
    }
}

/// To read or write nothing takes no wait.
pub(super) fn patience_for(len: size_t) -> Patience {
    if len == 0 { Patience::None } else { Patience::Full }
}

fn patience_of_listener(fd: c_int) -> Patience {
    if listens(fd) { Patience::Full } else { Patience::None }
}

pub(super) fn patience_of(fd: c_int, flags: c_int) -> Patience {
    if flags & libc::MSG_DONTWAIT != 0 || !is_socket(fd) { Patience::None } else { Patience::Full }
}

/// A timeout of 0 or less than nothing is no wait at all.
fn deadline_of_milliseconds(me: &mut Token, milliseconds: c_int) -> Option<Moment> {
    let milliseconds = u32::try_from(milliseconds).ok()?;
    let length = timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
    };
    Some(moment_after(me, &length))
}

/// How a wait for several descriptors ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Polled {
    /// Time to look, whether or not there is something to see.
    Look,
    /// A handler ran; none makes such a call begin again.
    Broken,
}

/// Waits until one of the descriptors is ready; with another mask of signals if one is given.
unsafe fn poll_set(
    me: &mut Token,
    set: &mut [pollfd],
    deadline: Option<Moment>,
    mask: *const c_void,
) -> Polled {
    // SAFETY: by the caller's promise.
    unsafe {
        signal::cancellation_point(me);
        step(me, unknown_event());
        let other = (!mask.is_null()).then(|| OtherMask::enter(me, mask.cast::<u64>().read_unaligned()));
        let ready = !set.is_empty() && look_at(set);
        if !ready && other.as_ref().is_some_and(OtherMask::was_interrupted) {
            return Polled::Broken;
        }
        while wait_for_descriptors(me, set, deadline) == Waited::Interrupted {
            if signal::fails(me, false) {
                return Polled::Broken;
            }
        }
        drop(other);
        signal::cancellation_point(me);
        edge::listens(me);
        Polled::Look
    }
}

/// Whether one of the descriptors is ready.
fn look_at(set: &mut [pollfd]) -> bool {
    // SAFETY: the set is whole and writable.
    looked(|| unsafe { sys::call(libc::SYS_poll, [set.as_mut_ptr() as usize, set.len(), 0, 0, 0, 0]) } as c_int) != 0
}

/// The list that a program passes; an empty one may have a null pointer.
unsafe fn list<'a>(set: *mut pollfd, count: nfds_t) -> &'a mut [pollfd] {
    // SAFETY: by the caller's promise.
    if count == 0 { &mut [] } else { unsafe { core::slice::from_raw_parts_mut(set, count as usize) } }
}

/// `poll`.
///
/// # Safety
/// As for libc's function.
pub(super) unsafe fn poll_for(me: &mut Token, set: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        if timeout != 0 {
            let deadline = deadline_of_milliseconds(me, timeout);
            if poll_set(me, list(set, count), deadline, core::ptr::null()) == Polled::Broken {
                return fail(EINTR);
            }
        }
        looked(|| real::poll(set, count, 0))
    }
}

/// `ppoll`.
///
/// # Safety
/// As for libc's function.
pub(super) unsafe fn ppoll_for(
    me: &mut Token,
    set: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const c_void,
) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        if timeout.as_ref().is_some_and(|length| !is_length(length)) {
            return fail(EINVAL);
        }
        let deadline = (!timeout.is_null()).then(|| moment_after(me, &*timeout));
        if poll_set(me, list(set, count), deadline, mask) == Polled::Broken {
            return fail(EINTR);
        }
        looked(|| real::poll(set, count, 0))
    }
}

/// Whether descriptors go along with a message.
///
/// # Safety
/// The message is whole, as for `sendmsg`, or as `recvmsg` left it.
pub(super) unsafe fn passes_descriptors(message: *const msghdr) -> bool {
    // SAFETY: by the caller's promise; libc keeps to the length that the message states.
    unsafe {
        if message.is_null() || (*message).msg_control.is_null() || (*message).msg_controllen == 0 {
            return false;
        }
        let mut at = libc::CMSG_FIRSTHDR(message);
        while let Some(part) = at.as_ref() {
            if (part.cmsg_level, part.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                return true;
            }
            at = libc::CMSG_NXTHDR(message, at);
        }
        false
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

unsafe fn select_sets(
    me: &mut Token,
    limit: c_int,
    sets: [*mut fd_set; 3],
    deadline: Option<Moment>,
    mask: *const c_void,
) -> Polled {
    let [read, write, exceptional] = sets;
    // SAFETY: by the caller's promise.
    unsafe {
        let mut list = members(limit, [(read, POLLIN), (write, POLLOUT), (exceptional, libc::POLLPRI)]);
        poll_set(me, &mut list, deadline, mask)
    }
}

/// Waits at a descriptor of `epoll_create`; `look` says what there is to see right now.
unsafe fn wait_at_epoll(
    me: &mut Token,
    fd: c_int,
    deadline: Option<Moment>,
    mask: *const c_void,
    mut look: impl FnMut() -> c_int,
) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        step(me, unknown_event());
        signal::cancellation_point(me);
        // Also what is wrong with the arguments.
        let seen = looked(&mut look);
        if seen != 0 {
            edge::listens(me);
            return seen;
        }
        let mut set = [pollfd { fd, events: EPOLLIN as c_short, revents: 0 }];
        match poll_set(me, &mut set, deadline, mask) {
            Polled::Broken => fail(EINTR),
            Polled::Look => looked(look),
        }
    }
}

interpose! {
    fn read(fd: c_int, to: *mut c_void, len: size_t) -> ssize_t, |me| {
        when_ready(me, fd, POLLIN, patience_for(len), || real::read(fd, to, len))
    }
    fn readv(fd: c_int, to: *const iovec, count: c_int) -> ssize_t, |me| {
        when_ready(me, fd, POLLIN, patience_for(count.max(0) as size_t), || real::readv(fd, to, count))
    }
    fn recv(fd: c_int, to: *mut c_void, len: size_t, flags: c_int) -> ssize_t, |me| {
        when_ready(me, fd, POLLIN, patience_of(fd, flags), || real::recv(fd, to, len, flags))
    }
    fn recvfrom(
        fd: c_int,
        to: *mut c_void,
        len: size_t,
        flags: c_int,
        from: *mut sockaddr,
        from_len: *mut socklen_t,
    ) -> ssize_t, |me| {
        when_ready(me, fd, POLLIN, patience_of(fd, flags), || real::recvfrom(fd, to, len, flags, from, from_len))
    }
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t, |me| {
        let received = when_ready(me, fd, POLLIN, patience_of(fd, flags), || real::recvmsg(fd, message, flags));
        if received >= 0 && passes_descriptors(message) {
            me.run().system.inside.exchanged();
        }
        received
    }
    fn accept(fd: c_int, peer: *mut sockaddr, len: *mut socklen_t) -> c_int, |me| {
        when_ready(me, fd, POLLIN, patience_of_listener(fd), || real::accept(fd, peer, len))
    }
    fn accept4(fd: c_int, peer: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int, |me| {
        when_ready(me, fd, POLLIN, patience_of_listener(fd), || real::accept4(fd, peer, len, flags))
    }
    fn write(fd: c_int, from: *const c_void, len: size_t) -> ssize_t, |me| {
        when_ready(me, fd, POLLOUT, patience_for(len), || real::write(fd, from, len))
    }
    fn writev(fd: c_int, from: *const iovec, count: c_int) -> ssize_t, |me| {
        when_ready(me, fd, POLLOUT, Patience::Full, || real::writev(fd, from, count))
    }
    fn send(fd: c_int, from: *const c_void, len: size_t, flags: c_int) -> ssize_t, |me| {
        when_ready(me, fd, POLLOUT, patience_of(fd, flags), || real::send(fd, from, len, flags))
    }
    fn sendto(
        fd: c_int,
        from: *const c_void,
        len: size_t,
        flags: c_int,
        to: *const sockaddr,
        to_len: socklen_t,
    ) -> ssize_t, |me| {
        when_ready(me, fd, POLLOUT, patience_of(fd, flags), || real::sendto(fd, from, len, flags, to, to_len))
    }
    fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t, |me| {
        if passes_descriptors(message) {
            me.run().system.inside.exchanged();
        }
        when_ready(me, fd, POLLOUT, patience_of(fd, flags), || real::sendmsg(fd, message, flags))
    }
    fn close(fd: c_int) -> c_int, |me| {
        signal::cancellation_point(me);
        edge::talks(me);
        me.run().system.inside.closes(fd);
        with_effect(me, || real::close(fd))
    }
    fn shutdown(fd: c_int, how: c_int) -> c_int, |me| {
        edge::talks(me);
        with_effect(me, || real::shutdown(fd, how))
    }
    fn pipe(ends: *mut c_int) -> c_int, |me| {
        let result = real::pipe(ends);
        note_pair(me, result, ends);
        result
    }
    fn pipe2(ends: *mut c_int, flags: c_int) -> c_int, |me| {
        let result = real::pipe2(ends, flags);
        note_pair(me, result, ends);
        result
    }
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int, |me| {
        let result = real::socketpair(domain, kind, protocol, ends);
        // Whoever knows a name that such a socket is given later can send to it, unless it has a connection.
        let connected = !matches!(kind & 0xf, libc::SOCK_DGRAM | libc::SOCK_RAW);
        note_pair(me, if connected { result } else { -1 }, ends);
        result
    }
    fn eventfd(value: c_uint, flags: c_int) -> c_int, |me| {
        let fd = real::eventfd(value, flags);
        if fd >= 0 {
            me.run().system.inside.made_counter(fd);
        }
        fd
    }
    fn eventfd_write(fd: c_int, value: u64) -> c_int, |me| {
        when_ready(me, fd, POLLOUT, Patience::Full, || real::eventfd_write(fd, value))
    }
    fn eventfd_read(fd: c_int, value: *mut u64) -> c_int, |me| {
        when_ready(me, fd, POLLIN, Patience::Full, || real::eventfd_read(fd, value))
    }

    fn mq_send(queue: c_int, message: *const c_char, len: size_t, priority: c_uint) -> c_int, |me| {
        when_queue_ready(me, queue, POLLOUT, len, core::ptr::null(), || real::mq_send(queue, message, len, priority))
    }
    fn mq_receive(queue: c_int, message: *mut c_char, len: size_t, priority: *mut c_uint) -> ssize_t, |me| {
        when_queue_ready(me, queue, POLLIN, len, core::ptr::null(), || real::mq_receive(queue, message, len, priority))
    }

    fn mq_timedsend(
        queue: c_int,
        message: *const c_char,
        len: size_t,
        priority: c_uint,
        until: *const timespec,
    ) -> c_int, |me| {
        when_queue_ready(me, queue, POLLOUT, len, until, || real::mq_timedsend(queue, message, len, priority, until))
    }
    fn mq_timedreceive(
        queue: c_int,
        message: *mut c_char,
        len: size_t,
        priority: *mut c_uint,
        until: *const timespec,
    ) -> ssize_t, |me| {
        when_queue_ready(me, queue, POLLIN, len, until, || real::mq_timedreceive(queue, message, len, priority, until))
    }

    fn poll(set: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int, |me| { poll_for(me, set, count, timeout) }
    fn ppoll(set: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const c_void) -> c_int, |me| {
        ppoll_for(me, set, count, timeout, mask)
    }
    fn select(
        limit: c_int,
        read: *mut fd_set,
        write: *mut fd_set,
        exceptional: *mut fd_set,
        timeout: *mut timeval,
    ) -> c_int, |me| {
        let length = timeout.as_ref().map(|time| timespec {
            tv_sec: time.tv_sec.saturating_add(time.tv_usec / 1_000_000),
            tv_nsec: time.tv_usec % 1_000_000 * 1000,
        });
        if length.as_ref().is_some_and(|length| !is_length(length)) || limit < 0 {
            return fail(EINVAL);
        }
        let deadline = length.map(|length| moment_after(me, &length));
        let polled = select_sets(me, limit, [read, write, exceptional], deadline, core::ptr::null());
        if let Some(deadline) = deadline {
            // What is left: the kernel's habit, on which nobody may rely and some do.
            let rest = rest_until(me, deadline);
            *timeout = timeval { tv_sec: rest.tv_sec, tv_usec: rest.tv_nsec / 1000 };
        }
        if polled == Polled::Broken {
            return fail(EINTR);
        }
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
        if timeout.as_ref().is_some_and(|length| !is_length(length)) || limit < 0 {
            return fail(EINVAL);
        }
        let deadline = (!timeout.is_null()).then(|| moment_after(me, &*timeout));
        if select_sets(me, limit, [read, write, exceptional], deadline, mask) == Polled::Broken {
            return fail(EINTR);
        }
        let mut now = timeval { tv_sec: 0, tv_usec: 0 };
        looked(|| real::select(limit, read, write, exceptional, &raw mut now))
    }
    fn epoll_wait(fd: c_int, events: *mut epoll_event, count: c_int, timeout: c_int) -> c_int, |me| {
        let look = || real::epoll_wait(fd, events, count, 0);
        if timeout == 0 {
            return looked(look);
        }
        let deadline = deadline_of_milliseconds(me, timeout);
        wait_at_epoll(me, fd, deadline, core::ptr::null(), look)
    }
    fn epoll_pwait(
        fd: c_int,
        events: *mut epoll_event,
        count: c_int,
        timeout: c_int,
        mask: *const c_void,
    ) -> c_int, |me| {
        let look = || real::epoll_pwait(fd, events, count, 0, core::ptr::null());
        if timeout == 0 {
            return looked(look);
        }
        let deadline = deadline_of_milliseconds(me, timeout);
        wait_at_epoll(me, fd, deadline, mask, look)
    }
    fn epoll_pwait2(
        fd: c_int,
        events: *mut epoll_event,
        count: c_int,
        timeout: *const timespec,
        mask: *const c_void,
    ) -> c_int, |me| {
        if timeout.as_ref().is_some_and(|length| !is_length(length)) {
            return fail(EINVAL);
        }
        let deadline = (!timeout.is_null()).then(|| moment_after(me, &*timeout));
        wait_at_epoll(me, fd, deadline, mask, || real::epoll_pwait(fd, events, count, 0, core::ptr::null()))
    }
}
