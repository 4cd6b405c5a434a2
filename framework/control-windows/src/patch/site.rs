//! A site becomes a step.

use waylay_accesses::{Access, Promise, access};
use waylay_patch::What;
use waylay_schedule::EventKind;

use super::{stub, table};
use crate::interpose::virtual_ticks;
use crate::me::{Inside, me};
use crate::runtime::Token;
use crate::watch::Windows;

/// The running thread is at a site. Called by the stubs, with every register saved, if the thread is under control. `saved`
/// is where a stub saved registers, and `origin` what RSI holds: where a copy reads.
pub(super) extern "C" fn at_site(site: u32, address: usize, saved: usize, origin: usize) {
    let me = me();
    let Some(entry) = table::entry(site).filter(|_| !me.is_null()) else { return };
    // SAFETY: the stub passes on where it saved registers; a logical thread that runs program code has the token, and is
    // about to access the memory itself.
    unsafe {
        stub::set_caller(saved, entry.walk);
        let _inside = Inside::enter(me);
        let address = if entry.thread_local { address.wrapping_add(block()) } else { address };
        let mut bytes = usize::from(entry.bytes);
        if entry.repeats {
            bytes = bytes.saturating_mul(stub::count(saved));
            if bytes == 0 {
                return;
            }
        }
        let (code, trapped, site) = (entry.code, entry.trapped, Some(site));
        let at = |kind| Access {
            kind,
            address,
            bytes,
            code,
            site,
            trapped,
            saved,
            promise: Promise::ALL,
            expects: None,
        };
        match entry.what {
            What::Atomic => access::atomic::<Windows>(me, at(EventKind::AtomicRmw)),
            What::Fence => access::atomic::<Windows>(me, Access { bytes: 0, ..at(EventKind::Fence) }),
            What::Pause => access::pause::<Windows>(me, code),
            // A loop waits for what it loads.
            What::Read if entry.always => access::atomic::<Windows>(me, at(EventKind::AtomicLoad)),
            What::Read => access::plain::<Windows>(me, at(EventKind::PlainRead)),
            What::Write => access::plain::<Windows>(me, at(EventKind::PlainWrite)),
            What::ReadWrite => access::read_write::<Windows>(me, at(EventKind::PlainWrite)),
            What::Copy => {
                access::plain::<Windows>(me, Access { address: origin, ..at(EventKind::PlainRead) });
                access::plain::<Windows>(me, at(EventKind::PlainWrite));
            }
            What::Counter => {
                // RDTSCP, the longer of the two, names the processor as well.
                if let Some(ticks) = virtual_ticks(Token::held_by(me)) {
                    stub::set_counter(saved, ticks, entry.length > 2);
                }
            }
            What::Call => {}
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
