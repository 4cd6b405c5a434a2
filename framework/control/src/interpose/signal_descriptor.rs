//! `signalfd`: signals that are read from a descriptor (`runtime::signals` says where they wait for that).

use libc::{c_int, sigset_t};

use super::interpose;
use super::signal_wait::signals_in;
use crate::runtime::signals::{kernel_keeps, kernel_will_keep};
use crate::snapshot;

/// There is no run yet, or the calling thread is none of it.
fn noticed(mask: *const sigset_t) {
    // SAFETY: the caller of libc's function vouches for the set.
    kernel_will_keep(unsafe { signals_in(mask) });
}

interpose! {
    fn signalfd(fd: c_int, mask: *const sigset_t, flags: c_int) -> c_int, outside noticed(mask), |me| {
        snapshot::cannot_undo("reads signals");
        let made = real::signalfd(fd, mask, flags);
        if made >= 0 {
            kernel_keeps(me, signals_in(mask));
        }
        made
    }
}
