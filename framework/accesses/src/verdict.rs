//! The end of a run at a race: what is told of it.

use core::sync::atomic::Ordering;

use waylay_control_protocol::account::{Touch, Touched};
use waylay_control_protocol::race::LOCKS;
use waylay_control_protocol::{AccessReport, RaceReport, Statement};

use crate::process::Process;
use crate::races::{Race, Seen};
use crate::watch::Watch;

/// Ends the run at the access `last`, which is the second of a race, or the one at which the run was to end.
///
/// # Safety
/// The caller holds the token and is inside the library, at that access; `saved` is what the access came with.
#[cold]
pub(crate) unsafe fn end<P: Process>(
    watch: &mut Watch<P>,
    race: Option<Race>,
    last: Seen,
    saved: usize,
) -> ! {
    // SAFETY: by the caller's promise.
    unsafe {
        let report = &(*P::region()).report().race;
        tell(watch, &report.second, &last);
        if saved != 0
            && let Some(registers) = P::registers(saved)
        {
            let [instruction, rest @ ..] = &report.registers;
            instruction.store(last.code as u64, Ordering::Relaxed);
            for (to, value) in rest.iter().zip(registers) {
                to.store(value as u64, Ordering::Relaxed);
            }
        }
        if let Some(race) = race {
            tell(watch, &report.first, &race.first);
            tell_block(watch, report, race.address);
            report.address.store(race.address as u64, Ordering::Release);
        }
        P::end_at_race(race.map(|race| {
            let touched = |seen: &Seen| Touched {
                how: match seen.flags {
                    flags if flags & AccessReport::FREES != 0 => Touch::Free,
                    flags if flags & AccessReport::WRITES != 0 => Touch::Write,
                    _ => Touch::Read,
                },
                bytes: seen.bytes as u64,
                thread: seen.thread,
            };
            let told = Statement::Race(touched(&race.second), touched(&race.first));
            (told, [race.first.code, race.second.code])
        }))
    }
}

fn tell<P: Process>(watch: &mut Watch<P>, report: &AccessReport, seen: &Seen) {
    let store = |to: &core::sync::atomic::AtomicU64, value: u64| to.store(value, Ordering::Relaxed);
    store(&report.code, seen.code as u64);
    store(&report.site, watch.site(seen.code).0);
    store(&report.thread, u64::from(seen.thread));
    store(&report.bytes, seen.bytes as u64);
    store(&report.address, seen.address as u64);
    store(&report.flags, seen.flags);
    store(&report.serial, seen.serial);
    for ((lock, _), to) in watch.races.locks(seen.locks).take(LOCKS).zip(&report.locks) {
        store(to, lock as u64);
    }
}

fn tell_block<P>(watch: &Watch<P>, report: &RaceReport, address: usize) {
    let Some(block) = watch.races.block_of(address) else { return };
    report.block.store(block.start as u64, Ordering::Relaxed);
    report.block_bytes.store(block.bytes as u64, Ordering::Relaxed);
    report.block_thread.store(u64::from(block.thread), Ordering::Relaxed);
    report.block_code.store(block.code as u64, Ordering::Relaxed);
}
