//! Tests in Rust that fail in few schedules, and their correct twins.
//!
//! A lock of the standard library that nobody else holds is taken without a call, by atomic instructions: only where
//! those are steps of strict mode, the tests `hurried` and `exchange` can fail; only where ordinary loads and stores are, `ring` and
//! `torn` can. The others need a switch at a yield, at the
//! start of a thread or at a wait. `schedules-c` and `schedules-cpp` have locks that are calls.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

use waylay_plugin::{Context, Failed, Outcome, Test, Worker, ensure_eq};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws numbers and notes which were drawn.
#[derive(Default)]
struct Tickets {
    next: Mutex<u64>,
    drawn: Mutex<Vec<u64>>,
}

impl Tickets {
    fn note(&self, number: u64) -> Outcome {
        let mut drawn = lock(&self.drawn);
        let twice = drawn.contains(&number);
        drawn.push(number);
        drop(drawn);
        ensure_eq!(twice, false, "ticket {number} was drawn twice");
        Ok(())
    }
}

/// Reads the next number, yields, and writes it back: depth 2.
#[derive(Default)]
pub struct Ticket(Tickets);

impl Test for Ticket {
    const NAME: &'static str = "ticket";
    const ABOUT: &'static str = "two threads draw the same number";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self::default())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let number = *lock(&self.0.next);
        thread::yield_now();
        *lock(&self.0.next) = number + 1;
        self.0.note(number)
    }
}

/// Tickets without the yield: between reading and writing there are only instructions.
#[derive(Default)]
pub struct Hurried(Tickets);

impl Test for Hurried {
    const NAME: &'static str = "hurried";
    const ABOUT: &'static str = "two threads draw the same number, without a call in between";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self::default())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let number = *lock(&self.0.next);
        *lock(&self.0.next) = number + 1;
        self.0.note(number)
    }
}

/// Made on first use, by atomic instructions that only the first schedule of a process executes.
static WORKERS: LazyLock<u64> = LazyLock::new(|| 2);

/// A count that threads without a lock add to.
#[derive(Default)]
struct Count {
    value: AtomicU64,
    done: AtomicU64,
}

impl Count {
    /// The last of the threads looks.
    fn finish(&self) -> Outcome {
        if self.done.fetch_add(1, Ordering::AcqRel) + 1 == *WORKERS {
            ensure_eq!(self.value.load(Ordering::Acquire), *WORKERS, "an addition was lost");
        }
        Ok(())
    }
}

/// Takes the value out and puts the next one in, by one exchange each: depth 2.
#[derive(Default)]
pub struct Exchange(Count);

impl Test for Exchange {
    const NAME: &'static str = "exchange";
    const ABOUT: &'static str = "two threads add with two exchanges each";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self::default())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let value = self.0.value.swap(0, Ordering::AcqRel);
        self.0.value.swap(value + 1, Ordering::AcqRel);
        self.0.finish()
    }
}

/// A count that is raised by one addition.
#[derive(Default)]
pub struct ExchangeFixed(Count);

impl Test for ExchangeFixed {
    const NAME: &'static str = "exchange-fixed";
    const ABOUT: &'static str = "two threads add at once";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self::default())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        self.0.value.fetch_add(1, Ordering::AcqRel);
        self.0.finish()
    }
}

/// Tickets with the lock held.
#[derive(Default)]
pub struct TicketFixed(Tickets);

impl Test for TicketFixed {
    const NAME: &'static str = "ticket-fixed";
    const ABOUT: &'static str = "no two threads draw the same number";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self::default())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let mut next = lock(&self.0.next);
        let number = *next;
        thread::yield_now();
        *next = number + 1;
        drop(next);
        self.0.note(number)
    }
}

/// A panic on a thread of its own if the answer comes before the question: depth 1.
#[derive(Default)]
pub struct Answer;

impl Test for Answer {
    const NAME: &'static str = "answer";
    const ABOUT: &'static str = "an answer is expected before the question was asked";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let (ask, asked) = mpsc::channel();
        let asker = thread::spawn(move || ask.send(42).is_ok());
        thread::yield_now();
        let answer = asked.try_recv().expect("the question was asked");
        ensure_eq!(asker.join().unwrap_or(false), true);
        ensure_eq!(answer, 42);
        Ok(())
    }
}

/// An answer that is waited for.
#[derive(Default)]
pub struct AnswerFixed;

impl Test for AnswerFixed {
    const NAME: &'static str = "answer-fixed";
    const ABOUT: &'static str = "the answer comes after the question";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let (ask, asked) = mpsc::channel();
        let asker = thread::spawn(move || ask.send(42).is_ok());
        let answer = asked.recv();
        ensure_eq!(asker.join().unwrap_or(false), true);
        ensure_eq!(answer, Ok(42));
        Ok(())
    }
}

/// A ring that several threads take from, made of an atomic that is loaded and stored: ordinary instructions both. Depth 2.
pub struct Ring {
    items: [u64; 8],
    taken: AtomicUsize,
    seen: Mutex<Vec<u64>>,
}

impl Ring {
    fn take(&self) -> Option<u64> {
        let place = self.taken.load(Ordering::Acquire);
        let item = *self.items.get(place)?;
        self.taken.store(place + 1, Ordering::Release);
        Some(item)
    }

    fn take_at_once(&self) -> Option<u64> {
        self.items.get(self.taken.fetch_add(1, Ordering::AcqRel)).copied()
    }

    fn note(&self, item: Option<u64>) -> Outcome {
        let mut seen = lock(&self.seen);
        ensure_eq!(item.is_some_and(|item| !seen.contains(&item)), true, "an item was taken twice");
        seen.extend(item);
        Ok(())
    }
}

impl Default for Ring {
    fn default() -> Self {
        Ring {
            items: std::array::from_fn(|index| index as u64),
            taken: AtomicUsize::new(0),
            seen: Mutex::default(),
        }
    }
}

impl Test for Ring {
    const NAME: &'static str = "ring";
    const ABOUT: &'static str = "two threads take one item of a ring";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self::default())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        self.note(self.take())
    }
}

/// A ring whose place is taken by one addition.
#[derive(Default)]
pub struct RingFixed(Ring);

impl Test for RingFixed {
    const NAME: &'static str = "ring-fixed";
    const ABOUT: &'static str = "two threads take an item each of a ring";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self::default())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        self.0.note(self.0.take_at_once())
    }
}

/// Two plain words that belong together, far enough apart to be no single access.
struct Words(UnsafeCell<[u64; 16]>);

// SAFETY: not so, which is the bug. No word is ever seen in part.
unsafe impl Sync for Words {}

/// One thread writes both words, the other reads both, without a lock: depth 2.
pub struct Torn {
    words: Words,
    arrived: AtomicUsize,
}

impl Test for Torn {
    const NAME: &'static str = "torn";
    const ABOUT: &'static str = "a thread reads two words between the writes of another";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Torn { words: Words(UnsafeCell::new([0; 16])), arrived: AtomicUsize::new(0) })
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let words = self.words.0.get();
        if self.arrived.fetch_add(1, Ordering::AcqRel) == 0 {
            // SAFETY: the array lives as long as the test; the other thread only reads whole words.
            unsafe {
                (*words)[0] = 7;
                (*words)[15] = 7;
            }
            return Ok(());
        }
        // SAFETY: as above, and the other thread writes whole words.
        let (first, last) = unsafe { ((*words)[0], (*words)[15]) };
        ensure_eq!(first == 7 && last == 0, false, "half of a pair was read");
        Ok(())
    }
}

/// All workers meet at a barrier made of a lock and a condition.
#[derive(Default)]
pub struct Meeting {
    here: Mutex<u32>,
    changed: Condvar,
}

impl Test for Meeting {
    const NAME: &'static str = "meeting";
    const ABOUT: &'static str = "a thread that waits for two is never told";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self::default())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let mut here = lock(&self.here);
        *here += 1;
        self.changed.notify_all();
        while *here < 2 {
            here = self.changed.wait(here).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}

waylay_plugin::export! {
    name: "schedules",
    tests: [Ticket, Hurried, TicketFixed, Exchange, ExchangeFixed, Ring, RingFixed, Answer, AnswerFixed, Torn, Meeting],
}
