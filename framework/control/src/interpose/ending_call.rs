//! Calls that end a thread that was asked to end, and that are nothing else to us: they wait for a disk at most.

use core::ffi::c_void;

use libc::{c_int, off_t};

use super::{interpose, signal};

interpose! {
    fn fsync(fd: c_int) -> c_int, |me| { signal::cancellation_point(me); real::fsync(fd) }
    fn fdatasync(fd: c_int) -> c_int, |me| { signal::cancellation_point(me); real::fdatasync(fd) }
    fn tcdrain(fd: c_int) -> c_int, |me| { signal::cancellation_point(me); real::tcdrain(fd) }
    fn msync(start: *mut c_void, len: usize, flags: c_int) -> c_int, |me| {
        signal::cancellation_point(me);
        real::msync(start, len, flags)
    }
    fn pread(fd: c_int, to: *mut c_void, len: usize, at: off_t) -> isize, |me| {
        signal::cancellation_point(me);
        real::pread(fd, to, len, at)
    }
    fn pread64(fd: c_int, to: *mut c_void, len: usize, at: off_t) -> isize, |me| {
        signal::cancellation_point(me);
        real::pread64(fd, to, len, at)
    }
    fn __pread_chk(fd: c_int, to: *mut c_void, len: usize, at: off_t, room: usize) -> isize, |me| {
        signal::cancellation_point(me);
        real::__pread_chk(fd, to, len, at, room)
    }
    fn __pread64_chk(fd: c_int, to: *mut c_void, len: usize, at: off_t, room: usize) -> isize, |me| {
        signal::cancellation_point(me);
        real::__pread64_chk(fd, to, len, at, room)
    }
    fn pwrite(fd: c_int, from: *const c_void, len: usize, at: off_t) -> isize, |me| {
        signal::cancellation_point(me);
        real::pwrite(fd, from, len, at)
    }
    fn pwrite64(fd: c_int, from: *const c_void, len: usize, at: off_t) -> isize, |me| {
        signal::cancellation_point(me);
        real::pwrite64(fd, from, len, at)
    }
}
