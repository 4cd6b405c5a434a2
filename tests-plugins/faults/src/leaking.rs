//! Tests that leave things behind. None of them exhausts the machine: memory grows slowly, files and threads stop at a
//! number that a distribution draws.

use std::fs::File;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker};

/// Of a hundred blocks, forgets one.
pub struct Memory {
    size: Distribution<usize>,
    pause: Distribution<Duration>,
}

const BLOCKS: usize = 100;

impl Test for Memory {
    const NAME: &'static str = "memory-leak";
    const ABOUT: &'static str = "forgets one of a hundred blocks that it allocates";
    const PARAMS: &'static [Param] = &[
        Param::new("size", "{ uniform = { min = 64, max = 960 } }").about("bytes of a block"),
        Param::new("pause", r#"{ uniform = { min = "1ms", max = "3ms" } }"#).about("between two hundreds"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self { size: context.distribution("size")?, pause: context.distribution("pause")? })
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let blocks: Vec<_> = (1..BLOCKS).map(|_| allocates(worker.draw(self.size))).collect();
        black_box(&blocks);
        std::mem::forget(forgets(worker.draw(self.size)));
        thread::sleep(worker.draw(self.pause));
        Ok(())
    }
}

#[inline(never)]
fn allocates(size: usize) -> Vec<u8> {
    black_box(vec![1; size])
}

/// Apart from [`allocates`], so that the leaking stack has a name of its own.
#[inline(never)]
fn forgets(size: usize) -> Vec<u8> {
    black_box(vec![2; size])
}

/// Counts down over all workers; at zero the leak stops growing.
struct Allowance {
    most: Distribution<u64>,
    left: AtomicU64,
}

impl Allowance {
    fn new(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self { most: context.distribution("most")?, left: AtomicU64::new(0) })
    }

    fn start(&mut self, context: &Context<'_>) {
        *self.left.get_mut() = context.draw(self.most);
    }

    fn take(&self) -> bool {
        self.left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

/// Opens its own executable and never closes it.
pub struct Files(Allowance);

impl Test for Files {
    const NAME: &'static str = "fd-leak";
    const ABOUT: &'static str = "opens files and never closes them";
    const PARAMS: &'static [Param] =
        &[Param::new("most", "{ uniform = { min = 20, max = 60 } }").about("how many stay open")];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self(Allowance::new(context)?))
    }

    fn on_start(&mut self, context: &Context<'_>) -> Outcome {
        self.0.start(context);
        Ok(())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        let file = File::open(std::env::current_exe()?)?;
        if self.0.take() {
            std::mem::forget(file);
        }
        thread::sleep(Duration::from_millis(1));
        Ok(())
    }
}

/// Starts threads that wait for something that never comes.
pub struct Threads(Allowance);

impl Test for Threads {
    const NAME: &'static str = "thread-leak";
    const ABOUT: &'static str = "starts threads and never stops them";
    const PARAMS: &'static [Param] =
        &[Param::new("most", "{ uniform = { min = 4, max = 12 } }").about("how many stay behind")];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self(Allowance::new(context)?))
    }

    fn on_start(&mut self, context: &Context<'_>) -> Outcome {
        self.0.start(context);
        Ok(())
    }

    fn main(&self, _: &Worker<'_>) -> Outcome {
        if self.0.take() {
            thread::Builder::new().name("left-behind".to_owned()).spawn(waits_for_ever)?;
        }
        thread::sleep(Duration::from_millis(1));
        Ok(())
    }
}

#[inline(never)]
fn waits_for_ever() {
    loop {
        thread::park();
    }
}
