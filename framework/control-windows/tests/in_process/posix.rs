//! Programs of POSIX and C++ threads, which mingw has: `posix.c` and `posix.cpp`.

use std::ffi::c_int;

#[link(name = "posix_bodies", kind = "static")]
#[link(name = "steps_for_bodies", kind = "static")]
#[link(name = "pthread", kind = "dylib")]
unsafe extern "C" {
    safe fn posix_lost_update() -> c_int;
    safe fn posix_volatile() -> c_int;
    safe fn posix_atomic() -> c_int;
    safe fn posix_condition() -> c_int;
    safe fn posix_flag() -> c_int;
    safe fn posix_rwlock() -> c_int;
    safe fn posix_meeting() -> c_int;
    safe fn posix_kinds() -> c_int;
    safe fn posix_two_mutexes() -> c_int;
}

#[link(name = "cpp_bodies", kind = "static")]
#[link(name = "stdc++", kind = "dylib")]
unsafe extern "C" {
    safe fn cpp_lost_update() -> c_int;
    safe fn cpp_mixture() -> c_int;
}

/// Whether there are none.
#[allow(dead_code, reason = "the benchmark has no use for it")]
pub(crate) const IS_MISSING: bool = false;

/// Those that are right under every schedule.
#[allow(dead_code, reason = "the benchmark has no use for it")]
pub(crate) const CORRECT: [&str; 7] = [
    "posix-atomic",
    "posix-condition",
    "posix-flag",
    "posix-rwlock",
    "posix-meeting",
    "posix-kinds",
    "cpp-mixture",
];

pub(crate) fn find(name: &str) -> Option<fn() -> bool> {
    Some(match name {
        "posix-lost-update" => || posix_lost_update() != 0,
        "posix-volatile" => || posix_volatile() != 0,
        "posix-atomic" => || posix_atomic() != 0,
        "posix-condition" => || posix_condition() != 0,
        "posix-flag" => || posix_flag() != 0,
        "posix-rwlock" => || posix_rwlock() != 0,
        "posix-meeting" => || posix_meeting() != 0,
        "posix-kinds" => || posix_kinds() != 0,
        "posix-two-mutexes" => || posix_two_mutexes() != 0,
        "cpp-lost-update" => || cpp_lost_update() != 0,
        "cpp-mixture" => || cpp_mixture() != 0,
        _ => return None,
    })
}
