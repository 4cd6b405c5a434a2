//! What the library says on standard error, formatted without locks and without the program's heap.

use core::fmt::{self, Write};

use crate::sys;

struct Line {
    bytes: [u8; 512],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - self.len;
        let taken = text.len().min(room);
        self.bytes[self.len..self.len + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.len += taken;
        Ok(())
    }
}

/// Writes one line, cut at 512 bytes, in one system call.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    let mut line = Line { bytes: [0; 512], len: 0 };
    let _ = writeln!(line, "waylay-control: {text}");
    sys::write(2, &line.bytes[..line.len]);
}

/// Says what the program did wrong and ends it like a failed assertion.
#[cold]
pub(crate) fn complain(text: fmt::Arguments<'_>) -> ! {
    say(text);
    let _inside = crate::me::Unmanaged::enter();
    // SAFETY: does not return; a handler of the program runs as after any other `abort`.
    unsafe { libc::abort() }
}
