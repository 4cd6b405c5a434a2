//! Asynchronous input and output, and calls when a message comes: libc makes threads of its own for it, which run beside the
//! schedule.

use core::ffi::c_void;

use libc::{c_int, mqd_t, sigevent};

use super::interpose;
use crate::runtime::outside::threads_start;

interpose! {
    fn aio_read(request: *mut c_void) -> c_int, |me| { threads_start(me, "aio_read"); real::aio_read(request) }
    fn aio_write(request: *mut c_void) -> c_int, |me| { threads_start(me, "aio_write"); real::aio_write(request) }
    fn aio_read64(request: *mut c_void) -> c_int, |me| { threads_start(me, "aio_read"); real::aio_read64(request) }
    fn aio_write64(request: *mut c_void) -> c_int, |me| { threads_start(me, "aio_write"); real::aio_write64(request) }
    fn aio_fsync(operation: c_int, request: *mut c_void) -> c_int, |me| {
        threads_start(me, "aio_fsync");
        real::aio_fsync(operation, request)
    }
    fn aio_fsync64(operation: c_int, request: *mut c_void) -> c_int, |me| {
        threads_start(me, "aio_fsync");
        real::aio_fsync64(operation, request)
    }
    fn lio_listio(mode: c_int, list: *const *mut c_void, count: c_int, told: *mut c_void) -> c_int, |me| {
        threads_start(me, "lio_listio");
        real::lio_listio(mode, list, count, told)
    }
    fn lio_listio64(mode: c_int, list: *const *mut c_void, count: c_int, told: *mut c_void) -> c_int, |me| {
        threads_start(me, "lio_listio");
        real::lio_listio64(mode, list, count, told)
    }
    fn mq_notify(queue: mqd_t, event: *const sigevent) -> c_int, |me| {
        if !event.is_null() && (*event).sigev_notify == libc::SIGEV_THREAD {
            threads_start(me, "mq_notify");
        }
        real::mq_notify(queue, event)
    }
}
