//! The programs of the papers.

use super::Op::{self, *};
use super::Program;

/// Variables and locks by the names the figures use.
pub const T: u8 = 0;
const INIT: u8 = 1;
const A: u8 = 0;
const B: u8 = 1;
const E: u8 = 0;

fn locals(count: usize) -> Vec<Op> {
    vec![Local; count]
}

/// PCT paper, Fig. 1(a): thread 1 uses t before thread 0 initialises it. Depth 1.
pub fn ordering() -> Program {
    Program::flat(vec![vec![Local, Write(T, 1)], vec![Local, FailIf(T, 0)]])
}

/// PCT paper, Fig. 1(b): thread 0 clears t between the test and the use of thread 1. Depth 2.
pub fn atomicity() -> Program {
    Program::flat(vec![vec![Write(T, 1), Write(T, 0)], vec![SkipUnless(T, 1, 1), FailIf(T, 0)]])
}

/// PCT paper, Fig. 1(c): two locks in opposite order, with `gap` steps between them in thread 0. Depth 2.
pub fn deadlock(gap: usize) -> Program {
    let first = [vec![Lock(A)], locals(gap), vec![Lock(B), Unlock(B), Unlock(A)]].concat();
    Program::flat(vec![first, vec![Lock(B), Lock(A), Unlock(A), Unlock(B)]])
}

/// PCT paper, Fig. 3: as Fig. 1(a), but thread 1 waits for an event that thread 0 sets before it initialises t. Depth
/// 1, and one preemption.
pub fn ordering_after_event() -> Program {
    Program::flat(vec![vec![Local, Set(E), Write(T, 1)], vec![Wait(E), FailIf(T, 0)]])
}

/// PCT paper, Fig. 4: a flag says that t is initialised before it is; `before` and `after` steps of other work. Depth
/// 2, and the bound is tight.
pub fn flag_too_early(before: usize, after: usize) -> Program {
    let first = [locals(before), vec![Write(INIT, 1), Write(T, 1)]].concat();
    Program::flat(vec![first, [vec![SkipUnless(INIT, 1, 1), FailIf(T, 0)], locals(after)].concat()])
}

/// PCT paper, Fig. 5: two threads of m+2 steps; one bug when thread 0 ends before thread 1 begins, another the other
/// way round. Depth 1 each.
pub fn two_opposite_bugs(m: usize) -> Program {
    Program::flat(vec![
        [vec![Write(0, 1)], locals(m), vec![Write(1, 1)]].concat(),
        [vec![Read(1)], locals(m), vec![Read(0)]].concat(),
    ])
}

/// The short proof: r and s instructions, the flag set one instruction too early. Depth 2, found with probability
/// exactly 1/(2k).
pub fn file_handle(r: usize, s: usize) -> Program {
    flag_too_early(r - 2, s - 2)
}

/// A bug of depth 3 that exactly one combination finds: thread 0 stops after its first step, thread 1 after its third.
pub fn window_in_window(tail: usize) -> Program {
    const X: u8 = 0;
    const Y: u8 = 1;
    Program::flat(vec![
        [vec![Write(X, 1), FailIf(Y, 1)], locals(tail)].concat(),
        vec![SkipUnless(X, 1, 2), Write(Y, 1), Write(Y, 0), Local],
    ])
}

/// A bug of depth 1 for which one given thread must be the lowest of all n: the others hand a baton along, and the
/// last of them must use t before thread 0 initialises it.
pub fn baton(threads: u8) -> Program {
    let mut program = vec![vec![Local, Write(T, 1)]];
    for thread in 1..threads {
        let mut ops = Vec::new();
        if thread > 1 {
            ops.push(Wait(thread - 1));
        }
        ops.push(if thread + 1 < threads { Set(thread) } else { FailIf(T, 0) });
        program.push(ops);
    }
    Program::flat(program)
}

/// The buggy part of Fig. 4 several times over, on variables of their own.
pub fn flag_too_early_repeated(times: u8) -> Program {
    let mut threads = vec![Vec::new(), Vec::new()];
    for i in 0..times {
        let (init, t) = (2 * i + 1, 2 * i);
        threads[0].extend([Write(init, 1), Write(t, 1)]);
        threads[1].extend([SkipUnless(init, 1, 1), FailIf(t, 0)]);
    }
    Program::flat(threads)
}

/// Two phases of fork and join; the second has the bug of Fig. 4.
pub fn fork_join_twice() -> Program {
    Program::spawning(vec![
        vec![Spawn(1), Spawn(2), Join(1), Join(2), Spawn(3), Spawn(4), Join(3), Join(4)],
        vec![Write(5, 1)],
        vec![Write(5, 2)],
        vec![Write(INIT, 1), Write(T, 1)],
        vec![SkipUnless(INIT, 1, 1), FailIf(T, 0)],
    ])
}

/// The main thread exits while its child is about to fail.
pub fn exit_too_early(work: usize) -> Program {
    Program::spawning(vec![vec![Spawn(1), Exit], [locals(work), vec![FailIf(T, 0)]].concat()])
}

/// A waiter registers, waits and takes itself off; the other thread has seen it registered and relies on it. Found when the
/// wait expires between the two steps of the other thread.
pub fn expires_in_a_window(tail: usize) -> Program {
    Program::flat(vec![
        [vec![Write(INIT, 1), WaitFor(0), Write(INIT, 0)], locals(tail)].concat(),
        vec![SkipUnless(INIT, 1, 1), FailIf(INIT, 0), Local],
    ])
}
