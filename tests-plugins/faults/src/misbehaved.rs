//! Tests that break their own life: they cannot be made, do not start, do not stop, or fail at the end.

use std::thread;
use std::time::Duration;
use waylay_plugin::{Context, Failed, Outcome, Test, Worker};

fn iterate() -> Outcome {
    thread::sleep(Duration::from_micros(100));
    Ok(())
}

/// `CreateInstance` returns null and says why. (One that says nothing is in `faults-c`.)
pub struct CreateFails;
impl Test for CreateFails {
    const NAME: &'static str = "create-fails";
    const ABOUT: &'static str = "cannot be made";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Err(Failed::new("nothing to test here"))
    }
    fn main(&self, _: &Worker<'_>) -> Outcome {
        iterate()
    }
}

/// `CreateInstance` panics.
pub struct CreatePanics;
impl Test for CreatePanics {
    const NAME: &'static str = "create-panics";
    const ABOUT: &'static str = "panics while it is made";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        panic!("a test that cannot be made")
    }
    fn main(&self, _: &Worker<'_>) -> Outcome {
        iterate()
    }
}

/// `OnTestStart` fails.
pub struct StartFails;
impl Test for StartFails {
    const NAME: &'static str = "start-fails";
    const ABOUT: &'static str = "does not start";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }
    fn on_start(&mut self, _: &Context<'_>) -> Outcome {
        Err(Failed::new("the service under test is not there"))
    }
    fn main(&self, _: &Worker<'_>) -> Outcome {
        iterate()
    }
}

/// `OnTestCancelled` never returns.
pub struct CancelHangs;
impl Test for CancelHangs {
    const NAME: &'static str = "cancel-hangs";
    const ABOUT: &'static str = "never returns from being cancelled";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }
    fn main(&self, _: &Worker<'_>) -> Outcome {
        iterate()
    }
    fn on_cancelled(&self, _: &Context<'_>) {
        loop {
            thread::park();
        }
    }
}

/// `OnTestEnd` panics.
pub struct EndPanics;
impl Test for EndPanics {
    const NAME: &'static str = "end-panics";
    const ABOUT: &'static str = "panics while it cleans up";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }
    fn main(&self, _: &Worker<'_>) -> Outcome {
        iterate()
    }
    fn on_end(&mut self, _: &Context<'_>) -> Outcome {
        panic!("something is left that should not be")
    }
}

/// `DestroyInstance` panics.
pub struct DropPanics;
impl Test for DropPanics {
    const NAME: &'static str = "drop-panics";
    const ABOUT: &'static str = "panics while it is destroyed";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }
    fn main(&self, _: &Worker<'_>) -> Outcome {
        iterate()
    }
}
impl Drop for DropPanics {
    fn drop(&mut self) {
        panic!("a destructor that fails");
    }
}
