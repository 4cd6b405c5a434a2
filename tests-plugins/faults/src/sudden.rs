//! Failures that come at once, after a number of good iterations that a distribution draws.

use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure_eq};

/// Something that goes wrong when it is struck.
pub trait Fault: Send + Sync + 'static {
    /// The test's name.
    const NAME: &'static str;
    /// What goes wrong.
    const ABOUT: &'static str;
    /// Goes wrong.
    fn strike(worker: &Worker<'_>) -> Outcome;
}

/// Runs well a number of times, over all workers, and then strikes in every iteration.
pub struct After<F> {
    after: Distribution<u64>,
    left: AtomicU64,
    fault: PhantomData<F>,
}

impl<F: Fault> Test for After<F> {
    const NAME: &'static str = F::NAME;
    const ABOUT: &'static str = F::ABOUT;
    const PARAMS: &'static [Param] =
        &[Param::new("after", "{ uniform = { min = 0, max = 20 } }").about("iterations that go well first")];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self { after: context.distribution("after")?, left: AtomicU64::new(0), fault: PhantomData })
    }

    fn on_start(&mut self, context: &Context<'_>) -> Outcome {
        *self.left.get_mut() = context.draw(self.after);
        Ok(())
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        match self.left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => Ok(()),
            Err(_) => F::strike(worker),
        }
    }
}

/// Writes to a field of an object that is not there.
pub struct Crash;
impl Fault for Crash {
    const NAME: &'static str = "crash";
    const ABOUT: &'static str = "writes through a null pointer";
    fn strike(_: &Worker<'_>) -> Outcome {
        let field = black_box(std::ptr::without_provenance_mut::<u32>(16));
        // SAFETY: none; the first page is never mapped, so the write always faults, which is the point.
        unsafe { field.write_volatile(1) };
        Ok(())
    }
}

/// Calls `abort`.
pub struct Abort;
impl Fault for Abort {
    const NAME: &'static str = "abort";
    const ABOUT: &'static str = "calls abort";
    fn strike(_: &Worker<'_>) -> Outcome {
        std::process::abort()
    }
}

/// Calls `exit`, and with success at that.
pub struct Exit;
impl Fault for Exit {
    const NAME: &'static str = "exit";
    const ABOUT: &'static str = "ends the process with status 0";
    fn strike(_: &Worker<'_>) -> Outcome {
        std::process::exit(0)
    }
}

/// Recurses without an end.
pub struct StackOverflow;
impl Fault for StackOverflow {
    const NAME: &'static str = "stack-overflow";
    const ABOUT: &'static str = "recurses until the stack ends";
    fn strike(_: &Worker<'_>) -> Outcome {
        black_box(descend(1));
        Ok(())
    }
}

#[inline(never)]
fn descend(depth: u64) -> u64 {
    let here = black_box([depth; 64]);
    if here[0] == 0 { 0 } else { descend(black_box(depth + 1)) + here[63] }
}

/// Panics on the worker.
pub struct Panic;
impl Fault for Panic {
    const NAME: &'static str = "panic";
    const ABOUT: &'static str = "panics";
    fn strike(_: &Worker<'_>) -> Outcome {
        let missing = black_box(None::<u32>);
        black_box(missing.expect("an entry that should be there"));
        Ok(())
    }
}

/// Panics on a thread that the iteration started.
pub struct ThreadPanic;
impl Fault for ThreadPanic {
    const NAME: &'static str = "thread-panic";
    const ABOUT: &'static str = "panics on a thread that the iteration started";
    fn strike(worker: &Worker<'_>) -> Outcome {
        worker.threads(2, |thread| {
            let index = black_box(thread.index() as usize);
            black_box([7][index]);
            Ok(())
        })
    }
}

/// Notices by itself that something is wrong.
pub struct Assert;
impl Fault for Assert {
    const NAME: &'static str = "assert";
    const ABOUT: &'static str = "finds a sum that is wrong";
    fn strike(_: &Worker<'_>) -> Outcome {
        let sum = black_box(3) + black_box(4);
        ensure_eq!(sum, 8, "a sum of two parts");
        Ok(())
    }
}
