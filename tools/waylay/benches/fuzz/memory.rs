//! Memory that a host shares with the driver, overwritten here and there, and everything that reads it.

use std::sync::atomic::Ordering;

use waylay_control_protocol::{RegionMap, RunCopy, Settings, Switching};
use waylay_evidence::{CrashContext, ThreadId};
use waylay_explore::observed::Observed;
use waylay_page::{Clock, Layout, Page};

use super::readers::{AGE, Reader};

/// Bytes of an input: places and values, eight bytes each.
pub(crate) const PAGE: usize = 16 * 40;
pub(crate) const REGION: usize = 16 * 20;

/// Overwrites words: the first half of an input says where, the second with what.
fn scribble(bytes: &[u8], size: usize, mut put: impl FnMut(usize, [u8; 8])) {
    let words: Vec<[u8; 8]> =
        bytes.chunks_exact(8).map(|word| word.try_into().expect("eight bytes")).collect();
    let (places, values) = words.split_at(words.len() / 2);
    for (place, value) in places.iter().zip(values) {
        // Small numbers are places near the beginning, where most of what is read lies.
        put(u64::from_le_bytes(*place) as usize % (size - 8) / 4 * 4, *value);
    }
}

/// The page of a host, as the driver reads it: records, slots, threads.
pub(crate) fn page() -> Reader {
    let clock = Clock::calibrate();
    Box::new(move |bytes| {
        let page = Page::create(&clock).expect("a page");
        let layout = page.layout();
        let start = std::ptr::from_ref(layout).cast::<u8>().cast_mut();
        scribble(bytes, size_of::<Layout>(), |at, word| {
            // SAFETY: inside the page, which is shared memory of atomics and cells that nobody else has.
            unsafe { std::ptr::copy_nonoverlapping(word.as_ptr(), start.add(at), 8) };
        });
        let _ = (page.is_intact(), layout.guards_are_intact(), layout.any_record_in_use());
        let _ = (layout.impossible_record(1, 2), layout.test_of_thread(7));
        for slot in &layout.workers {
            let _ = (slot.running(), slot.contained());
        }
        for record in layout.pending() {
            let failure = &record.failure;
            let context =
                CrashContext::from_bytes(ThreadId(failure.tid as _), &failure.siginfo, &failure.machine);
            if let Ok(context) = context {
                let _ = (context.signal_name(), context.crash_address(), context.registers());
            }
        }
    })
}

/// Where everything lies that is read before a list: settings and report.
const HEAD: usize = 1 << 14;

/// The region of a strict host, as the driver reads it. It is large, so there is one, whose head is made new for each case.
pub(crate) fn region() -> Reader {
    let mut region = RegionMap::create().expect("a region");
    region.prepare(Settings::new(Switching::Carrier, 7, 3), "{}").expect("prepared");
    let file = region.descriptor().expect("a descriptor");
    let mut head = vec![0; HEAD];
    // SAFETY: the descriptor is the region's, which lives; the buffer has room.
    unsafe { libc::pread(file, head.as_mut_ptr().cast(), HEAD, 0) };
    Box::new(move |bytes| {
        // SAFETY: the descriptor is the region's, which lives; the buffer is that long.
        unsafe { libc::pwrite(file, head.as_ptr().cast(), HEAD, 0) };
        // The report lies behind the settings at the beginning; what is far behind are lists.
        scribble(bytes, HEAD, |at, word| {
            // SAFETY: the descriptor is the region's, which lives; the word is valid for eight bytes.
            unsafe { libc::pwrite(file, word.as_ptr().cast(), 8, at as i64) };
        });
        let _ = (region.contradiction(AGE), region.text(), region.handed(), region.ending());
        let _ = (region.parameters().len(), region.recalled().is_some(), region.replay().map(<[_]>::len));
        let _ =
            (region.conflicting().len(), region.forgiven(), region.chosen().map(<[_]>::len), region.level());
        let _ = (region.learns_from(), region.instrumentation());
        let heard = region.copied(AGE);
        if let Ok(heard) = &heard {
            let told = heard.told();
            let _ = (told.reached, told.account(), told.report.steps.load(Ordering::Relaxed));
            let _ = waylay_explore::observed::to_schedule(told.schedule);
            let race = waylay_explore::race::Race::of(&told.report.race);
            let _ = race.map(|race| (race.first.verb(), race.pair()));
            let _ = waylay_explore::race::registers(&told.report.race);
        }
        let lent = heard.as_ref().map(RunCopy::told).map_err(String::as_str);
        let observed = Observed::of(lent, 0, (Vec::new(), Vec::new()), None);
        let _ = waylay_explore::oracle::judge(&observed, &waylay_explore::oracle::Expected::default());
        let _ = (region.contradiction_of_batch(), region.batch().records(8, 1 << 20).count());
    })
}
