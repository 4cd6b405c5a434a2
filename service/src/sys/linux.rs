//! Linux.

/// A command that makes a token that nobody guesses.
pub(crate) const MAKE_TOKEN: &str = "head -c 32 /dev/urandom | base64 > token";

/// Lets other threads go first: those that run campaigns.
pub(crate) fn step_back() {
    // SAFETY: a plain call; 0 is this thread. When it is refused, nothing is lost but a little speed elsewhere.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
}
