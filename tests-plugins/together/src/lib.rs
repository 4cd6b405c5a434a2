//! A bug that needs two tests at once on a shared object, a test that holds on to objects, and hooks that count.
//!
//! The object is a [`Row`] of cells with a length. [`Resize`] changes the length under a lock and clears the cells beyond
//! it; [`Read`] reads the length and then the cells, without the lock. Each alone is right: resizing is locked, and
//! reading a row that nobody resizes finds what its length says. Together, a reader that has read the length before a
//! resize and the cells after it finds cells that are gone: the length was a promise that nothing keeps.
//!
//! How likely: any resize between the two steps of a reader makes the row shorter, and the reader fail, half of the
//! time. On one core that takes a preemption within the reader's pause, about 2 µs of a slice of 3 ms: at least 3 in
//! 10,000 reads. With two cores most reads meet a resize.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use waylay_plugin::{
    Contained, Context, Distribution, Failed, Hooks, Kept, Kind, Outcome, Param, Ran, Shared, Test, Worker,
    ensure, ensure_eq,
};

const CELLS: usize = 16;
/// In a row that is alive.
const ALIVE: u64 = 0x616c_6976_6521;

/// Cells of which the first `length` hold something.
pub struct Row {
    alive: AtomicU64,
    lock: Mutex<()>,
    length: AtomicUsize,
    cells: [AtomicU64; CELLS],
}

// SAFETY: the kind is provided and taken in this plugin only, so all mean this type.
unsafe impl Shared for Row {
    const KIND: &'static str = "row";
}

impl Kind for Row {
    const ABOUT: &'static str = "a row of cells whose length can change";

    fn create() -> Result<Self, Failed> {
        Ok(Self {
            alive: AtomicU64::new(ALIVE),
            lock: Mutex::new(()),
            length: AtomicUsize::new(CELLS),
            cells: std::array::from_fn(|cell| AtomicU64::new(cell as u64 + 1)),
        })
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        self.alive.store(0, Ordering::SeqCst);
    }
}

fn no_row() -> Failed {
    Failed::new("nobody lends a row")
}

/// Changes the length of a row, under its lock.
pub struct Resize {
    length: Distribution<usize>,
}

impl Test for Resize {
    const NAME: &'static str = "resize";
    const ABOUT: &'static str = "a cell within the length of a row that was lost in a resize";
    const PARAMS: &'static [Param] = &[Param::new("length", "{ uniform = { min = 1, max = 16 } }")
        .about("cells that hold something afterwards")];
    const TAKES: &'static [&'static str] = &[Row::KIND];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self { length: context.distribution("length")? })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let row = worker.acquire::<Row>().ok_or_else(no_row)?;
        let length = worker.draw(self.length).clamp(1, CELLS);
        let _alone = row.lock.lock()?;
        row.length.store(length, Ordering::SeqCst);
        for (cell, word) in row.cells.iter().enumerate() {
            word.store(if cell < length { cell as u64 + 1 } else { 0 }, Ordering::SeqCst);
        }
        let filled = row.cells.iter().filter(|word| word.load(Ordering::SeqCst) != 0).count();
        ensure_eq!(filled, length, "cells that hold something");
        Ok(())
    }
}

/// Reads the length of a row, and then its cells.
pub struct Read {
    pause: Distribution<Duration>,
}

impl Test for Read {
    const NAME: &'static str = "read";
    const ABOUT: &'static str = "a cell that is gone although the length says that it is there";
    const PARAMS: &'static [Param] =
        &[Param::new("pause", "{ exponential = { min = \"0us\", max = \"8us\" } }")
            .about("between the length and the cells")];
    const TAKES: &'static [&'static str] = &[Row::KIND];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self { pause: context.distribution("pause")? })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let pause = worker.draw(self.pause);
        let row = worker.acquire::<Row>().ok_or_else(no_row)?;
        let length = row.length.load(Ordering::SeqCst);
        let since = Instant::now();
        while since.elapsed() < pause {
            std::hint::spin_loop();
        }
        let gone = row.cells[..length].iter().position(|word| word.load(Ordering::SeqCst) == 0);
        ensure!(gone.is_none(), "a cell below the length of the row is gone");
        Ok(())
    }
}

/// Holds on to a row from one iteration to the next: it stays alive although the pool has replaced it long ago.
pub struct Hoard {
    iterations: Distribution<u64>,
    kept: Mutex<Option<(Kept<Row>, u64)>>,
}

impl Test for Hoard {
    const NAME: &'static str = "hoard";
    const ABOUT: &'static str = "a shared object that is destroyed while an instance keeps it";
    const PARAMS: &'static [Param] =
        &[Param::new("iterations", "{ uniform = { min = 1, max = 50 } }")
            .about("that an object is kept for")];
    const TAKES: &'static [&'static str] = &[Row::KIND];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self { iterations: context.distribution("iterations")?, kept: Mutex::default() })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let mut kept = self.kept.lock()?;
        match kept.take() {
            None => {
                let row = worker.acquire::<Row>().ok_or_else(no_row)?;
                *kept = Some((row.keep(), worker.draw(self.iterations)));
            }
            Some((row, left)) => {
                ensure_eq!(worker.kept(&row).alive.load(Ordering::SeqCst), ALIVE, "the object was destroyed");
                if left == 0 {
                    worker.give_back(row);
                } else {
                    *kept = Some((row, left - 1));
                }
            }
        }
        Ok(())
    }
}

/// Hooks that count: every start has its stop, and a test is loaded before it runs and unloaded after.
#[derive(Default)]
pub struct Count {
    loaded: AtomicUsize,
    turns: AtomicU64,
    open: AtomicUsize,
}

impl Hooks for Count {
    const NAME: &'static str = "count";
    const ABOUT: &'static str = "writes to the host's log how many tests and turns a pot had";

    fn create() -> Self {
        Self::default()
    }

    fn on_load(&self, _: &Contained) {
        self.loaded.fetch_add(1, Ordering::SeqCst);
    }

    fn on_unload(&self, test: &Contained) {
        let (left, open) = (self.loaded.fetch_sub(1, Ordering::SeqCst) - 1, self.open.load(Ordering::SeqCst));
        eprintln!("count: {} unloaded, {left} left, {open} running", test.name);
        if left == 0 {
            eprintln!("count: {} turns", self.turns.load(Ordering::SeqCst));
        }
    }

    fn on_start(&self, _: &Contained, _: u32) {
        self.open.fetch_add(1, Ordering::SeqCst);
    }

    fn on_stop(&self, _: &Contained, _: u32, ran: Ran) {
        self.open.fetch_sub(1, Ordering::SeqCst);
        self.turns.fetch_add(u64::from(ran.times > 0), Ordering::SeqCst);
    }
}

waylay_plugin::export! { name: "together", tests: [Resize, Read, Hoard], kinds: [Row], hooks: [Count] }
