//! What the library says on standard error, formatted without locks and without the program's heap.

use core::fmt;

use waylay_runtime::text::Text;

use crate::sys;

/// Writes one line, cut at 512 bytes, in one system call.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let line = Text::<512>::line(format_args!("waylay-control: {text}"));
    sys::write(2, line.bytes());
}

/// Says what the program did wrong and ends it like a failed assertion.
#[cold]
pub(crate) fn complain(text: fmt::Arguments<'_>) -> ! {
    say(text);
    let _inside = crate::me::Unmanaged::enter();
    // SAFETY: does not return; a handler of the program runs as after any other `abort`.
    unsafe { libc::abort() }
}
