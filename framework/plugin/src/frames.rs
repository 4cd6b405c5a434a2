//! Raw return addresses of the calling thread, innermost first. Naming them is the driver's work, from outside.

#[cfg(unix)]
#[path = "frames/unix.rs"]
mod sys;
#[cfg(windows)]
#[path = "frames/windows.rs"]
mod sys;

/// Deep enough to reach the test from inside of a library, small enough to copy without thought.
pub(crate) const DEEPEST: usize = 64;

/// The return addresses from here outwards, at most [`DEEPEST`].
#[inline(never)]
pub(crate) fn here() -> Box<[usize]> {
    let mut addresses = [0; DEEPEST];
    let count = sys::fill(&mut addresses);
    addresses[..count].into()
}

/// [`here`] without `function`, which is on the stack, without what it called, and without its caller. All of them if
/// it cannot be found.
#[inline(never)]
pub(crate) fn outside_of_caller_of(function: *const ()) -> Box<[usize]> {
    let frames = here();
    match frames.iter().position(|address| sys::function_of(*address) == function) {
        Some(at) => frames.get(at + 2..).unwrap_or_default().into(),
        None => frames,
    }
}
