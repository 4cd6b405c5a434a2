//! Objects of POSIX threads, which glibc and winpthreads have alike. The real objects are used throughout, through the
//! functions that only try; what a system knows about them is asked of it, by a trait for each kind of object.
//!
//! A value that stands for an object says that the object exists for as long as the value does: making one is what is unsafe.

pub mod barrier;
pub mod condition;
pub mod mutex;
pub mod rwlock;
pub mod semaphore;
