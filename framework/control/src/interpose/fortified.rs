//! What a program calls instead when its compiler checks the lengths of buffers (`_FORTIFY_SOURCE`), and calls of several messages.
//!
//! libc's own fortified functions do not come by those that they check for, so each is here again. The check stays libc's:
//! a length that is too great is not waited for.

use core::ffi::c_void;

use libc::{
    EINVAL, MSG_DONTWAIT, POLLIN, POLLOUT, c_int, c_uint, mmsghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t, ssize_t,
    timespec,
};

use super::clock::{is_length, moment_after, rest_until};
use super::descriptor::{Patience, passes_descriptors, patience_for, patience_of, poll_for, ppoll_for, when_ready};
use super::{fail, interpose};
use crate::runtime::Token;

/// Waits for what fits; what does not ends the process in the call that follows.
fn if_it_fits(len: size_t, room: size_t, patience: Patience) -> Patience {
    if len <= room { patience } else { Patience::None }
}

fn fits(count: nfds_t, room: size_t) -> bool {
    count as usize <= room / size_of::<pollfd>()
}

/// Message after message, each a step of its own, up to the first that `ends` it, with how many are done, or that fails.
fn one_by_one(me: &mut Token, count: c_uint, mut call: impl FnMut(&mut Token, usize) -> c_int, ends: impl Fn(&mut Token) -> bool) -> c_int {
    let mut done = 0;
    while done < count {
        match call(me, done as usize) {
            1 => done += 1,
            // What failed is told when nothing else is, and otherwise by the next call.
            failed if done == 0 => return failed,
            _ => break,
        }
        if ends(me) {
            break;
        }
    }
    done as c_int
}

interpose! {
    fn __read_chk(fd: c_int, to: *mut c_void, len: size_t, room: size_t) -> ssize_t, |me| {
        let patience = if_it_fits(len, room, patience_for(len));
        when_ready(me, fd, POLLIN, patience, || real::__read_chk(fd, to, len, room))
    }
    fn __recv_chk(fd: c_int, to: *mut c_void, len: size_t, room: size_t, flags: c_int) -> ssize_t, |me| {
        let patience = if_it_fits(len, room, patience_of(fd, flags));
        when_ready(me, fd, POLLIN, patience, || real::__recv_chk(fd, to, len, room, flags))
    }
    fn __recvfrom_chk(
        fd: c_int,
        to: *mut c_void,
        len: size_t,
        room: size_t,
        flags: c_int,
        from: *mut sockaddr,
        from_len: *mut socklen_t,
    ) -> ssize_t, |me| {
        let patience = if_it_fits(len, room, patience_of(fd, flags));
        when_ready(me, fd, POLLIN, patience, || real::__recvfrom_chk(fd, to, len, room, flags, from, from_len))
    }
    fn __poll_chk(set: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int, |me| {
        if !fits(count, room) {
            return real::__poll_chk(set, count, timeout, room);
        }
        poll_for(me, set, count, timeout)
    }
    fn __ppoll_chk(
        set: *mut pollfd,
        count: nfds_t,
        timeout: *const timespec,
        mask: *const c_void,
        room: size_t,
    ) -> c_int, |me| {
        if !fits(count, room) {
            return real::__ppoll_chk(set, count, timeout, mask, room);
        }
        ppoll_for(me, set, count, timeout, mask)
    }

    fn recvmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec) -> c_int, |me| {
        if timeout.as_ref().is_some_and(|length| !is_length(length)) {
            return fail(EINVAL);
        }
        let deadline = timeout.as_ref().map(|length| moment_after(me, length));
        let first_only = flags & libc::MSG_WAITFORONE != 0;
        let receive = |me: &mut Token, number: usize| {
            let at = messages.add(number);
            let flags = flags & !libc::MSG_WAITFORONE | if first_only && number > 0 { MSG_DONTWAIT } else { 0 };
            let patience = patience_of(fd, flags);
            let result = when_ready(me, fd, POLLIN, patience, || real::recvmmsg(fd, at, 1, flags, core::ptr::null_mut()));
            if result == 1 && passes_descriptors(&(*at).msg_hdr) {
                me.run().system.inside.exchanged();
            }
            result
        };
        // The kernel looks at the time behind each message only, and so do programs expect.
        let late = |me: &mut Token| deadline.is_some_and(|deadline| me.run().sched.clock.now() >= deadline);
        let done = one_by_one(me, count, receive, late);
        if let Some(deadline) = deadline {
            *timeout = rest_until(me, deadline);
        }
        done
    }
    fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int, |me| {
        let send = |me: &mut Token, number: usize| {
            let at = messages.add(number);
            if passes_descriptors(&(*at).msg_hdr) {
                me.run().system.inside.exchanged();
            }
            when_ready(me, fd, POLLOUT, patience_of(fd, flags), || real::sendmmsg(fd, at, 1, flags))
        };
        one_by_one(me, count, send, |_| false)
    }
}
