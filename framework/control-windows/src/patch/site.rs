//! A site becomes a step.

use waylay_patch::What;
use waylay_schedule::{Event, EventKind};

use super::{stub, table};
use crate::access;
use crate::interpose::virtual_ticks;
use crate::me::{Inside, me};
use crate::runtime::step;

/// The running thread is at a site. Called by the stubs, with every register saved, if the thread is under control. `saved`
/// is where a stub saved registers.
pub(super) extern "C" fn at_site(site: u32, address: usize, saved: usize) {
    let me = me();
    let Some(entry) = table::entry(site).filter(|_| !me.is_null()) else { return };
    // SAFETY: the stub passes on where it saved registers; a logical thread that runs program code has the token, and is
    // about to access the memory itself.
    unsafe {
        stub::set_caller(saved, entry.walk);
        let _inside = Inside::enter(me);
        let address = if entry.thread_local { address.wrapping_add(block()) } else { address };
        let bytes = usize::from(entry.bytes);
        match entry.what {
            What::Atomic => access::announce(me, EventKind::AtomicRmw, address, bytes, entry.code),
            What::Fence => access::announce(me, EventKind::Fence, address, 0, entry.code),
            What::Pause => step(me, Event::local(EventKind::Yield)),
            // A loop waits for what it loads.
            What::Read => access::announce(me, EventKind::AtomicLoad, address, bytes, entry.code),
            What::Counter => {
                // RDTSCP, the longer of the two, names the processor as well.
                if let Some(ticks) = virtual_ticks(me) {
                    stub::set_counter(saved, ticks, entry.length > 2);
                }
            }
            What::Write | What::ReadWrite | What::Copy | What::Call => {}
        }
    }
}

/// The block of the calling thread, to which addresses with GS are relative.
fn block() -> usize {
    let block: usize;
    // SAFETY: the block holds its own address there; that is part of the system's ABI.
    unsafe {
        core::arch::asm!("mov {}, gs:[0x30]", out(reg) block, options(nostack, preserves_flags, readonly));
    }
    block
}
