//! Objects of POSIX threads, which glibc and winpthreads have alike. The real objects are used throughout, through the
//! functions that only try; what a system knows about them is asked of it.

pub mod rwlock;
