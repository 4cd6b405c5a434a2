//! Tests that do not come back in time, each in another way.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker};

/// Two threads take two locks in opposite orders, and both hold their first before either takes its second.
pub struct Deadlock;

impl Test for Deadlock {
    const NAME: &'static str = "deadlock";
    const ABOUT: &'static str = "two threads wait for each other's lock";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let (left, right) = (Mutex::new(0_u64), Mutex::new(0_u64));
        let both_hold_one = Barrier::new(2);
        worker.scope(|scope| {
            scope.spawn(|_| {
                transfer(&left, &right, &both_hold_one);
                Ok(())
            })?;
            scope.spawn(|_| {
                transfer(&right, &left, &both_hold_one);
                Ok(())
            })
        })
    }
}

#[inline(never)]
fn transfer(from: &Mutex<u64>, to: &Mutex<u64>, both_hold_one: &Barrier) {
    let mut from = from.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    both_hold_one.wait();
    let mut to = to.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    *from += 1;
    *to += 1;
}

/// Two threads meet in a corridor; each steps aside whenever the other is in its way, always to the same side.
pub struct Livelock;

impl Test for Livelock {
    const NAME: &'static str = "livelock";
    const ABOUT: &'static str = "two polite threads step aside for each other for ever";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let sides = [AtomicBool::new(false), AtomicBool::new(false)];
        let steps = [AtomicU64::new(0), AtomicU64::new(0)];
        worker.scope(|scope| {
            scope.spawn(|_| {
                pass(0, &sides, &steps);
                Ok(())
            })?;
            scope.spawn(|_| {
                pass(1, &sides, &steps);
                Ok(())
            })
        })
    }
}

/// Both look, then both move: they count steps, and neither takes one before the other took the last. Spinning, as
/// lock-free code does, so that the processor is busy while nothing gets done.
#[inline(never)]
fn pass(me: usize, sides: &[AtomicBool; 2], steps: &[AtomicU64; 2]) {
    let other = 1 - me;
    let together = |step: u64| {
        steps[me].store(step, Ordering::SeqCst);
        let mut spins = 0_u32;
        while steps[other].load(Ordering::SeqCst) < step {
            std::hint::spin_loop();
            spins += 1;
            // With fewer processors than threads the other may have to get this one.
            if spins.is_multiple_of(256) {
                thread::yield_now();
            }
        }
    };
    let mut step = 0;
    loop {
        step += 1;
        together(step);
        let in_my_way = sides[other].load(Ordering::SeqCst) == sides[me].load(Ordering::SeqCst);
        step += 1;
        together(step);
        if !in_my_way {
            return;
        }
        sides[me].fetch_xor(true, Ordering::SeqCst);
    }
}

/// Gets somewhere, but takes its time.
pub struct Slow {
    work: Distribution<Duration>,
}

impl Test for Slow {
    const NAME: &'static str = "slow";
    const ABOUT: &'static str = "works longer than its hang-timeout, with progress, and returns";
    const PARAMS: &'static [Param] = &[Param::new("work", r#"{ uniform = { min = "8s", max = "12s" } }"#)
        .about("how long an iteration takes")];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self { work: context.distribution("work")? })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let until = Instant::now() + worker.draw(self.work);
        while Instant::now() < until && !worker.cancelled() {
            thread::sleep(Duration::from_millis(5));
            worker.progress();
        }
        Ok(())
    }
}

/// A lock that prefers readers, with readers that overlap: the one worker that wants to write, the first to come, never
/// gets in. Needs at least two workers.
#[derive(Default)]
pub struct Starvation {
    writer: OnceLock<ThreadId>,
    read: AtomicBool,
    readers: AtomicUsize,
    stop: AtomicBool,
}

impl Test for Starvation {
    const NAME: &'static str = "starvation";
    const ABOUT: &'static str = "a writer never gets in while readers come and go (2 workers or more)";

    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self::default())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let me = thread::current().id();
        if *self.writer.get_or_init(|| me) == me {
            self.write()
        } else {
            self.read()
        }
        Ok(())
    }

    fn on_cancelled(&self, _: &Context<'_>) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

impl Starvation {
    /// A reader enters before the last one leaves: there is always one inside.
    #[inline(never)]
    fn read(&self) {
        if !self.read.load(Ordering::SeqCst) {
            self.readers.fetch_add(1, Ordering::SeqCst);
            self.read.store(true, Ordering::SeqCst);
        }
        self.readers.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_micros(200));
        self.readers.fetch_sub(1, Ordering::SeqCst);
    }

    #[inline(never)]
    fn write(&self) {
        // Before the first reader came there is nobody to wait for.
        if !self.read.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_micros(200));
        }
        while self.readers.load(Ordering::SeqCst) > 0 && !self.stop.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_micros(500));
        }
    }
}
