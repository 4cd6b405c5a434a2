//! What the library says on standard error, formatted without locks and without the program's heap.

use core::fmt;

use waylay_control_protocol::Statement;
use waylay_control_protocol::account::Misuse;
use waylay_runtime::text::Text;

use crate::runtime::runtime;
use crate::sys;

/// Writes one line, cut at 512 bytes, in one system call.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let line = Text::<512>::line(format_args!("waylay-control: {text}"));
    sys::write(2, line.bytes());
}

/// Says what the program did wrong and ends it like a failed assertion.
#[cold]
pub(crate) fn complain(misuse: Misuse) -> ! {
    say(format_args!("{misuse}"));
    // SAFETY: the heap is looked at in a run only. A thread without the token looks at nothing but the region, which stays; what
    // another thread tells at the same moment may be lost.
    unsafe { (*runtime()).region.tell(&Statement::Misuse(misuse)) };
    let _inside = crate::me::Unmanaged::enter();
    // SAFETY: does not return; a handler of the program runs as after any other `abort`.
    unsafe { libc::abort() }
}
