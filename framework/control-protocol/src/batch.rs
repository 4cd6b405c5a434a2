//! Runs that begin by restoring a snapshot: what the driver orders, many at a time, and what became of each.
//!
//! A message to another process and back costs more than such a run, so a batch of runs is ordered with one message. The
//! process writes a record of every run: all that the region would say after a run of its own, and what the program wrote.
//! The records of a batch are read before the next is ordered.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::coded::coded;
use crate::instrumentation::Site;
use crate::possible::{impossible, impossible_schedule};
use crate::report::Report;
use crate::settings::Settings;
use crate::shared::{Area, Plain, copied_report};
use crate::sizes::{ACCOUNT, NOTES, STRETCHES};
use crate::stretch::{Note, Stretch};
use crate::told::{RunCopy, Told};

/// Bytes for the orders of a batch, and for its records.
const ORDERS: usize = 1 << 22;
/// See [`ORDERS`].
const RECORDS: usize = crate::sys::RECORDS;
/// Stack sizes for which threads are made in advance.
const SIZES: usize = 16;
/// Everything in the two areas is aligned to this.
const GRAIN: usize = 8;
/// Far more threads than are ever made in advance.
const MOST_WISHED: u32 = 1 << 16;

coded! {
    /// What became of an ordered run.
    Fate {
        /// It was made.
        Made = 1,
        /// It did something that cannot be undone, and was abandoned before that had an effect.
        Abandoned = 2,
        /// It needs more threads than the process has; [`Batch::wishes`] says which.
        MoreThreads = 3,
    }
}

/// Threads with one stack size that runs need at a time.
#[repr(C)]
#[derive(Debug)]
pub struct Wish {
    /// Bytes of stack, 0 for the default.
    pub stack: AtomicU64,
    /// How many.
    pub threads: AtomicU32,
    reserved: AtomicU32,
}

/// The part of the region that is about batches.
#[repr(C)]
pub struct Batch {
    ordered: AtomicU32,
    done: AtomicU32,
    /// 1: the rest of the batch is not wanted any more.
    pub stop: AtomicU32,
    reserved: AtomicU32,
    order_bytes: AtomicU64,
    record_bytes: AtomicU64,
    /// Threads to make in advance. The library adds to it, the driver leaves it alone.
    pub wishes: [Wish; SIZES],
    orders: [AtomicU64; ORDERS / GRAIN],
    records: [AtomicU64; RECORDS / GRAIN],
}

/// The fixed part of an order.
#[repr(C)]
#[derive(Clone, Copy)]
struct Order {
    settings: Settings,
    parameters: u64,
}

/// The fixed part of a record.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Head {
    /// Of the whole record.
    bytes: u64,
    fate: u32,
    status: i32,
    /// Lengths of what follows the report, in this order.
    stretches: u64,
    notes: u64,
    sites: u64,
    account: u64,
    stdout: u64,
    stderr: u64,
}

// SAFETY: a u64, two of 32 bits, and six u64, without a gap.
unsafe impl Plain for Head {}

// What is written as bytes must have no gap: the numbers of the settings fill it.
const _: () = assert!(size_of::<Settings>() == 168 && size_of::<Order>() == 176);

/// The record of one run.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// What became of it.
    pub fate: Fate,
    /// How the program ended, as `waitpid` would say.
    pub status: i32,
    /// The run; of one that was abandoned, the account says why.
    pub told: Told<'a>,
    /// What the program wrote.
    pub stdout: &'a [u8],
    /// What it wrote to its error output.
    pub stderr: &'a [u8],
}

/// The record of one run: see [`Record`].
#[derive(Debug)]
pub struct RecordCopy {
    /// What became of it.
    pub fate: Fate,
    /// How the program ended, as `waitpid` would say.
    pub status: i32,
    /// The run; of one that was abandoned, the account says why.
    pub told: RunCopy,
    /// What the program wrote.
    pub stdout: Vec<u8>,
    /// What it wrote to its error output.
    pub stderr: Vec<u8>,
}

impl Batch {
    /// Takes all orders and records away.
    pub fn clear(&self) {
        for word in [&self.ordered, &self.done, &self.stop] {
            word.store(0, Ordering::Relaxed);
        }
        self.order_bytes.store(0, Ordering::Relaxed);
        self.record_bytes.store(0, Ordering::Relaxed);
    }

    /// Orders a run; false when there is no room for it in this batch.
    pub fn order(&self, mut settings: Settings, parameters: &str) -> bool {
        let at = self.order_bytes.load(Ordering::Relaxed) as usize;
        let room = ORDERS.saturating_sub(at);
        let length = size_of::<Order>() + parameters.len().next_multiple_of(GRAIN);
        if !at.is_multiple_of(GRAIN) || length > room {
            return false;
        }
        settings.parameters = parameters.len() as u32;
        let order = Order { settings, parameters: parameters.len() as u64 };
        let area = Area(&self.orders);
        area.put(at, bytes_of(core::slice::from_ref(&order)));
        area.put(at + size_of::<Order>(), parameters.as_bytes());
        self.order_bytes.store((at + length) as u64, Ordering::Relaxed);
        self.ordered.fetch_add(1, Ordering::Release);
        true
    }

    /// Runs that were ordered, and runs of which there is a record.
    pub fn progress(&self) -> (u32, u32) {
        (self.ordered.load(Ordering::Acquire), self.done.load(Ordering::Acquire))
    }

    /// The order at this place (0 is the first), and the place of the next.
    pub fn ordered_at(&self, place: usize) -> Option<(Settings, &str, usize)> {
        let written = (self.order_bytes.load(Ordering::Acquire) as usize).min(ORDERS);
        if !place.is_multiple_of(GRAIN) || place + size_of::<Order>() > written {
            return None;
        }
        // SAFETY: the driver wrote an order there, inside the area.
        unsafe {
            let at = self.orders.as_ptr().cast::<u8>().add(place);
            let order = at.cast::<Order>().read();
            let length = (order.parameters as usize).min(written - place - size_of::<Order>());
            let text = core::slice::from_raw_parts(at.add(size_of::<Order>()), length);
            let next = place + size_of::<Order>() + length.next_multiple_of(GRAIN);
            Some((order.settings, core::str::from_utf8(text).unwrap_or(""), next))
        }
    }

    /// Adds the record of the next run; false when there is no room for it in this batch.
    ///
    /// # Safety
    /// The caller is the only process that writes records.
    pub unsafe fn record(&self, record: &Record<'_>) -> bool {
        let at = self.record_bytes.load(Ordering::Relaxed) as usize;
        let notes = record.told.notes.unwrap_or_default();
        let mut head = Head {
            bytes: 0,
            fate: record.fate as u32,
            status: record.status,
            stretches: record.told.schedule.len() as u64,
            notes: notes.len() as u64,
            sites: record.told.conflicting.len() as u64,
            account: record.told.account.len() as u64,
            stdout: record.stdout.len() as u64,
            stderr: record.stderr.len() as u64,
        };
        let pieces = [
            bytes_of(core::slice::from_ref(record.told.report)),
            bytes_of(record.told.schedule),
            bytes_of(notes),
            bytes_of(record.told.conflicting),
            record.told.account,
            record.stdout,
            record.stderr,
        ];
        let length: usize = pieces.iter().map(|piece| piece.len().next_multiple_of(GRAIN)).sum();
        head.bytes = (size_of::<Head>() + length) as u64;
        if !at.is_multiple_of(GRAIN) || head.bytes as usize > RECORDS.saturating_sub(at) {
            return false;
        }
        let area = Area(&self.records);
        area.put(at, bytes_of(core::slice::from_ref(&head)));
        let mut to = at + size_of::<Head>();
        for piece in pieces {
            area.put(to, piece);
            to += piece.len().next_multiple_of(GRAIN);
        }
        self.record_bytes.store(at as u64 + head.bytes, Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Release);
        true
    }

    /// The records written so far, in the order of the runs, of which so many were ordered; no run can have counted more than
    /// `most` of anything. Every word may have been written by the program: what cannot be ends the list, and says why.
    pub fn records(&self, ordered: usize, most: u64) -> impl Iterator<Item = Result<RecordCopy, String>> {
        let (_, done) = self.progress();
        let mut at = Some(0);
        let too_many = done as usize > ordered;
        (0..done as usize).map_while(move |_| {
            let place = at.take()?;
            if too_many {
                return Some(Err(format!("{done} of {ordered} schedules have a record")));
            }
            Some(self.record_at(place, most).map(|(record, next)| {
                at = Some(next);
                record
            }))
        })
    }

    /// The record that begins there, and where the next one does.
    fn record_at(&self, at: usize, most: u64) -> Result<(RecordCopy, usize), String> {
        let area = Area(&self.records);
        let wrong = || "the record of a schedule has lengths that cannot be".to_owned();
        let head =
            area.take_values::<Head>(at, 1).and_then(|heads| heads.first().copied()).ok_or_else(wrong)?;
        let within = [
            (head.stretches, STRETCHES),
            (head.notes, NOTES),
            (head.sites, crate::instrumentation::SITES),
            (head.account, ACCOUNT),
            (head.stdout, RECORDS),
            (head.stderr, RECORDS),
        ];
        if within.iter().any(|&(length, most)| length > most as u64) {
            return Err(wrong());
        }
        let report = at + size_of::<Head>();
        if RECORDS - report < size_of::<Report>() {
            return Err(wrong());
        }
        // SAFETY: it was just checked that the range lies in the area, whose words are aligned for it.
        let report = unsafe { copied_report(self.records.as_ptr().cast::<u8>().add(report).cast()) };
        let mut from = at + size_of::<Head>() + size_of::<Report>();
        let mut piece = |length: u64, size: usize| {
            let begin = from;
            // None of the lengths is more than the areas have room for, so that nothing runs over.
            from += (length as usize * size).next_multiple_of(GRAIN);
            (begin, length as usize)
        };
        let (stretches, notes) =
            (piece(head.stretches, size_of::<Stretch>()), piece(head.notes, size_of::<Note>()));
        let (sites, account) = (piece(head.sites, size_of::<Site>()), piece(head.account, 1));
        let (stdout, stderr) = (piece(head.stdout, 1), piece(head.stderr, 1));
        if from > RECORDS || head.bytes != (from - at) as u64 {
            return Err(wrong());
        }
        let fate = Fate::from_code(head.fate).ok_or_else(|| format!("of a schedule became {}", head.fate))?;
        if let Some(why) = impossible(&report, most) {
            return Err(why);
        }
        let schedule: Vec<Stretch> = area.take_values(stretches.0, stretches.1).ok_or_else(wrong)?;
        if let Some(why) = impossible_schedule(&schedule, most) {
            return Err(why);
        }
        let lost = report.notes.load(Ordering::Relaxed) != head.notes;
        let notes = area.take_values(notes.0, notes.1).ok_or_else(wrong)?;
        let bytes = |(at, length)| area.take(at, length).ok_or_else(wrong);
        let told = RunCopy {
            schedule,
            notes: (!lost).then_some(notes),
            conflicting: area.take_values(sites.0, sites.1).ok_or_else(wrong)?,
            account: bytes(account)?,
            reached: true,
            report,
        };
        let (stdout, stderr) = (bytes(stdout)?, bytes(stderr)?);
        Ok((RecordCopy { fate, status: head.status, told, stdout, stderr }, from))
    }

    /// Asks for `threads` threads with this stack size to be made in advance by the next process.
    pub fn wish(&self, stack: usize, threads: u32) {
        let fits = |wish: &&Wish| {
            wish.threads.load(Ordering::Relaxed) == 0 || wish.stack.load(Ordering::Relaxed) == stack as u64
        };
        if let Some(wish) = self.wishes.iter().find(fits) {
            wish.stack.store(stack as u64, Ordering::Relaxed);
            wish.threads.fetch_max(threads, Ordering::Relaxed);
        }
    }

    /// What was asked for: stack sizes and how many threads of each.
    pub fn wished(&self) -> impl Iterator<Item = (usize, u32)> {
        let pairs = self
            .wishes
            .iter()
            .map(|wish| (wish.stack.load(Ordering::Relaxed) as usize, wish.threads.load(Ordering::Relaxed)));
        pairs.filter(|&(_, threads)| threads > 0)
    }

    /// More threads than anybody asks for, if so many are asked for.
    pub(crate) fn impossible_wish(&self) -> Option<u32> {
        self.wished().map(|(_, threads)| threads).find(|&threads| threads > MOST_WISHED)
    }
}

fn bytes_of<T>(slice: &[T]) -> &[u8] {
    // SAFETY: the memory of a slice is readable as bytes; the types passed have no padding that is not zero.
    unsafe { core::slice::from_raw_parts(slice.as_ptr().cast(), size_of_val(slice)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RegionMap, Switching};

    const MOST: u64 = 1 << 20;

    /// Every word of the records is written over with what does harm where it is believed: they end there, and nothing else
    /// does.
    #[test]
    fn no_word_of_a_record_is_believed() {
        let region = RegionMap::create().unwrap();
        let schedule = [Stretch { thread: 1, first: 2, steps: 3 }; 2];
        let note = [1, 2, 3, 4];
        region.report().notes.store(1, Ordering::Relaxed);
        let told = Told {
            report: region.report(),
            schedule: &schedule,
            notes: Some(&[note]),
            conflicting: &[Site(5)],
            account: b"why",
            reached: true,
        };
        let record = Record { fate: Fate::Made, status: 0, told, stdout: b"out", stderr: b"err" };
        for _ in 0..2 {
            // SAFETY: nobody else writes records in this test.
            assert!(unsafe { region.batch().record(&record) });
        }
        let written = region.batch().record_bytes.load(Ordering::Relaxed) as usize / GRAIN;
        let words = &region.batch().records[..written];
        for (place, word) in words.iter().enumerate() {
            let was = word.load(Ordering::Relaxed);
            for value in [u64::MAX, 1 << 63, 1 << 40, u64::from(u32::MAX), RECORDS as u64, was + 1, 0] {
                word.store(value, Ordering::Relaxed);
                let records: Vec<_> = region.batch().records(2, MOST).collect();
                let bytes = |record: &RecordCopy| record.stdout.len() + record.stderr.len();
                assert!(records.iter().flatten().all(|record| bytes(record) < 64), "word {place}");
                assert!(records.len() <= 2);
            }
            word.store(was, Ordering::Relaxed);
        }
        assert!(region.batch().records(2, MOST).all(|record| record.is_ok()));
    }

    #[test]
    fn orders_and_records_come_back_in_order() {
        let driver = RegionMap::create().unwrap();
        let library = RegionMap::open(driver.descriptor().unwrap()).unwrap();
        for run in 0..3 {
            assert!(
                driver.batch().order(Settings::new(Switching::Carrier, 7, run), &"x".repeat(run as usize))
            );
        }
        let mut place = 0;
        for run in 0..3u64 {
            let (settings, parameters, next) = library.batch().ordered_at(place).unwrap();
            assert_eq!((settings.run, parameters.len()), (run, run as usize));
            place = next;
            library.report().steps.store(run, Ordering::Relaxed);
            let schedule = vec![Stretch { thread: 1, first: 2, steps: run }; run as usize];
            let told = Told {
                report: library.report(),
                schedule: &schedule,
                notes: None,
                conflicting: &[Site(5)],
                account: b"why",
                reached: true,
            };
            let record = Record { fate: Fate::Made, status: 256, told, stdout: b"out", stderr: b"" };
            // SAFETY: nobody else writes records in this test.
            assert!(unsafe { library.batch().record(&record) });
        }
        assert!(library.batch().ordered_at(place).is_none());
        let records: Vec<_> = driver.batch().records(3, MOST).map(Result::unwrap).collect();
        assert_eq!(records.len(), 3);
        for (run, record) in records.iter().enumerate() {
            let told = record.told.told();
            assert_eq!(told.report.steps.load(Ordering::Relaxed), run as u64);
            assert_eq!(told.schedule, vec![Stretch { thread: 1, first: 2, steps: run as u64 }; run]);
            assert_eq!(
                (told.account, record.stdout.as_slice(), record.stderr.as_slice()),
                (&b"why"[..], &b"out"[..], &b""[..])
            );
            assert_eq!(told.conflicting, [Site(5)]);
        }
        assert_eq!(driver.batch().records(2, MOST).map(|record| record.is_err()).collect::<Vec<_>>(), [true]);
        driver.batch().clear();
        assert_eq!(driver.batch().records(3, MOST).count(), 0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let region = RegionMap::create().unwrap();
        let settings = Settings::new(Switching::Carrier, 7, 0);
        assert!(!region.batch().order(settings, &"x".repeat(ORDERS)));
        let told = region.told();
        let record = Record { fate: Fate::Made, status: 0, told, stdout: &vec![0; RECORDS], stderr: b"" };
        // SAFETY: nobody else writes records in this test.
        assert!(!unsafe { region.batch().record(&record) });
        assert_eq!(region.batch().progress(), (0, 0));
    }

    #[test]
    fn wishes_add_up() {
        let region = RegionMap::create().unwrap();
        for (stack, threads) in [(0, 2), (4096, 1), (0, 5), (4096, 0)] {
            region.batch().wish(stack, threads);
        }
        assert_eq!(region.batch().wished().collect::<Vec<_>>(), [(0, 5), (4096, 1)]);
    }
}
