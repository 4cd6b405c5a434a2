//! Tests for what Waylay does with many failures, and one without any.

use std::hint::black_box;
use waylay_plugin::{Context, Failed, Outcome, Test, Worker};

/// Fails in every iteration at the same place with the same stack.
pub struct Alike;
impl Test for Alike {
    const NAME: &'static str = "fail-alike";
    const ABOUT: &'static str = "fails in every iteration, always the same way";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }
    fn main(&self, _: &Worker<'_>) -> Outcome {
        Err(Failed::new("the same again"))
    }
}

/// Fails in every iteration with another stack: six calls, each of one of sixteen functions. A signature of only the
/// innermost four would still tell 65,536 apart. The path is drawn from the iteration's seed.
pub struct Differently;
impl Test for Differently {
    const NAME: &'static str = "fail-differently";
    const ABOUT: &'static str = "fails in every iteration, each time with another stack";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }
    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let path = worker.generator(0).bits();
        TURNS[(path & 15) as usize](path >> 4, 5)
    }
}

macro_rules! turns {
    ($($name:ident)*) => {
        const TURNS: [fn(u64, u32) -> Outcome; 16] = [$($name),*];
        $(
            /// The name is folded in, so that no two of these are one function to the linker, and none is a tail call.
            #[inline(never)]
            fn $name(path: u64, left: u32) -> Outcome {
                let outcome = if left == 0 {
                    Err(Failed::new("the end of a path"))
                } else {
                    TURNS[(path & 15) as usize](path >> 4, left - 1)
                };
                black_box(stringify!($name));
                outcome
            }
        )*
    };
}
turns! {
    turn_0 turn_1 turn_2 turn_3 turn_4 turn_5 turn_6 turn_7
    turn_8 turn_9 turn_a turn_b turn_c turn_d turn_e turn_f
}

/// Does nothing, and nothing wrong: what the host itself costs, and what must not be reported.
pub struct Nothing;
impl Test for Nothing {
    const NAME: &'static str = "nothing";
    const ABOUT: &'static str = "no bug at all: the iteration is empty";
    fn create(_: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self)
    }
    fn main(&self, _: &Worker<'_>) -> Outcome {
        Ok(())
    }
}
