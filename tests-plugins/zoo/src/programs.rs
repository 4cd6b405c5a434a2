//! The programs.

use std::sync::{Condvar, Mutex, PoisonError};

use waylay_plugin::Param;

use crate::{Program, Run, Word, lock, together};

/// Each node waits to be told that it has the token, whether or not it was told before. d = 1: told -> waits, for any
/// node; deadlock.
// @token-ring: told -> waits
pub(crate) struct TokenRing;

impl Program for TokenRing {
    const NAME: &'static str = "token-ring";
    const FIXED: &'static str = "token-ring-fixed";
    const ABOUT: &'static str = "a node is told that it has the token before it waits for it";
    const PARAMS: &'static [Param] = &[Param::new("nodes", "3").about("nodes of the ring")];
    const SIZE: Option<&str> = Some("nodes");

    fn run(run: &Run) {
        struct Node {
            has: Mutex<bool>,
            told: Condvar,
            steps: Word,
        }
        let node = || Node { has: Mutex::new(false), told: Condvar::new(), steps: Word::default() };
        let nodes: Vec<Node> = (0..run.size.max(2)).map(|_| node()).collect();
        let tell = |place: usize| {
            let next = &nodes[place];
            *lock(&next.has) = true;
            next.told.notify_one(); // @told
        };
        let wait = |place: usize| {
            let mine = &nodes[place];
            let mut has = lock(&mine.has);
            if !run.fixed {
                drop(mine.told.wait(has)); // @waits
                return;
            }
            while !*has {
                has = mine.told.wait(has).unwrap_or_else(PoisonError::into_inner);
            }
        };
        std::thread::scope(|scope| {
            for place in 1..nodes.len() {
                let (tell, wait, nodes) = (&tell, &wait, &nodes);
                scope.spawn(move || {
                    nodes[place].steps.pass_time(3);
                    wait(place);
                    tell((place + 1) % nodes.len());
                });
            }
            tell(1);
            nodes[0].steps.pass_time(3);
            if run.fixed {
                wait(0);
            }
        });
    }
}

/// A message goes through two threads and overtakes a word. d = 3: first word -> the second thread reads it, second word
/// -> the third thread reads it, the third thread reads the last word -> the first thread writes it.
// @relay: first -> second-reads, second -> third-reads, third-reads -> last
pub(crate) struct Relay;

impl Program for Relay {
    const NAME: &'static str = "relay";
    const FIXED: &'static str = "relay-fixed";
    const ABOUT: &'static str = "a message that goes a long way overtakes another";
    const PARAMS: &'static [Param] = &[Param::new("length", "5").about("steps before each")];
    const SIZE: Option<&str> = Some("length");

    fn run(run: &Run) {
        let [first, second, last, one, two, three] = std::array::from_fn(|_| Word::default());
        let length = run.size;
        together(&[
            &|| {
                one.pass_time(length);
                if run.fixed {
                    last.set(1);
                }
                first.set(1); // @first
                last.set(1); // @last
            },
            &|| {
                two.pass_time(length);
                if first.get() == 1 {
                    // @second-reads
                    second.set(1); // @second
                }
            },
            &|| {
                three.pass_time(length);
                if second.get() == 1 && last.get() == 0 {
                    // @third-reads
                    run.bug("the message was faster than the word");
                }
            },
        ]);
    }
}

/// Reads and writes a sum in two steps. d = 2: one reads -> the other writes, that -> the one writes.
// @lost-update: add -> add, add -> add
pub(crate) struct LostUpdate;

impl Program for LostUpdate {
    const NAME: &'static str = "lost-update";
    const FIXED: &'static str = "lost-update-fixed";
    const ABOUT: &'static str = "reads and writes a sum in two steps";
    const PARAMS: &'static [Param] = &[Param::new("times", "3").about("updates of each thread")];
    const SIZE: Option<&str> = Some("times");

    fn run(run: &Run) {
        let sum = Word::default();
        let add = || {
            for _ in 0..run.size {
                let _held = run.twin_takes();
                sum.set(sum.get() + 1); // @add
            }
        };
        together(&[&add, &add]);
        if sum.get() != 2 * run.size {
            run.bug("an update was lost");
        }
    }
}

/// Looks whether there is enough, then withdraws. d = 2: each looks -> the other withdraws.
// @overdrawn: look -> withdraw, look -> withdraw
pub(crate) struct Overdrawn;

impl Program for Overdrawn {
    const NAME: &'static str = "overdrawn";
    const FIXED: &'static str = "overdrawn-fixed";
    const ABOUT: &'static str = "looks at the balance, then withdraws";

    fn run(run: &Run) {
        let balance = Word::new(10);
        let [one, two] = [Word::default(), Word::default()];
        let withdraw = || {
            let _held = run.twin_takes();
            if balance.get() >= 10 {
                // @look
                balance.add(10u64.wrapping_neg()); // @withdraw
            }
        };
        together(&[
            &|| {
                one.pass_time(8);
                withdraw();
            },
            &|| {
                two.pass_time(8);
                withdraw();
            },
        ]);
        if balance.get() > 10 {
            run.bug("more was withdrawn than there was");
        }
    }
}

/// Two words that belong together are written and read one by one. d = 2: first word written -> read, second read ->
/// written.
// @torn-pair: low -> read, read -> high
pub(crate) struct TornPair;

impl Program for TornPair {
    const NAME: &'static str = "torn-pair";
    const FIXED: &'static str = "torn-pair-fixed";
    const ABOUT: &'static str = "reads a pair while it is written";
    const PARAMS: &'static [Param] = &[Param::new("length", "100").about("steps before, on both sides")];
    const SIZE: Option<&str> = Some("length");

    fn run(run: &Run) {
        let [low, high, one, two] = std::array::from_fn(|_| Word::default());
        together(&[
            &|| {
                one.pass_time(run.size);
                let _held = run.twin_takes();
                low.set(1); // @low
                high.set(1); // @high
            },
            &|| {
                two.pass_time(run.size);
                let _held = run.twin_takes();
                if low.get() != high.get() {
                    // @read
                    run.bug("half of a pair was read");
                }
            },
        ]);
    }
}

/// A count of owners that is lowered in two steps. d = 2: one reads -> the other writes, that -> the one writes; then
/// nobody frees the object. Which is to say that each reads before the other writes.
// @owner-count: read -> write, write -> write
// @owner-count: read -> write, read -> write
pub(crate) struct Count;

impl Program for Count {
    const NAME: &'static str = "owner-count";
    const FIXED: &'static str = "owner-count-fixed";
    const ABOUT: &'static str = "lowers a count of owners in two steps";

    fn run(run: &Run) {
        let [owners, freed] = [Word::new(3), Word::default()];
        let release = || {
            let _held = run.twin_takes();
            let left = owners.get() - 1; // @read
            owners.set(left); // @write
            if left == 0 {
                freed.add(1);
            }
        };
        together(&[&release, &release, &release]);
        if freed.get() != 1 {
            run.bug("an object without owners was not freed once");
        }
    }
}

/// Two threads look whether the other is inside, then say that they are. d = 2: each looks -> the other one says so.
// @door: look -> say, look -> say
pub(crate) struct Door;

impl Program for Door {
    const NAME: &'static str = "door";
    const FIXED: &'static str = "door-fixed";
    const ABOUT: &'static str = "looks whether the other is inside before it says that it is";

    fn run(run: &Run) {
        let inside = [Word::default(), Word::default()];
        let entered = Word::default();
        let enter = |mine: usize| {
            // The twin says it first, and stays outside when the other one does too.
            if run.fixed {
                inside[mine].set(1);
            }
            if inside[1 - mine].get() == 0 {
                // @look
                inside[mine].set(1); // @say
                entered.add(1);
            }
        };
        together(&[&|| enter(0), &|| enter(1)]);
        if entered.get() == 2 {
            run.bug("both are inside");
        }
    }
}

/// Work is handed in while a pool closes. d = 2: the worker sees it open -> close, drain -> the worker hands in.
// @shutdown: see -> close, drain -> hand-in
pub(crate) struct Shutdown;

impl Program for Shutdown {
    const NAME: &'static str = "shutdown";
    const FIXED: &'static str = "shutdown-fixed";
    const ABOUT: &'static str = "work that comes while the pool closes is lost";
    const PARAMS: &'static [Param] = &[Param::new("length", "10").about("steps before")];
    const SIZE: Option<&str> = Some("length");

    fn run(run: &Run) {
        let [closed, waiting, done, one, two] = std::array::from_fn(|_| Word::default());
        together(&[
            &|| {
                one.pass_time(run.size);
                let _held = run.twin_takes();
                if closed.get() == 0 {
                    // @see
                    waiting.add(1); // @hand-in
                } else {
                    done.add(1);
                }
            },
            &|| {
                two.pass_time(run.size);
                let _held = run.twin_takes();
                closed.set(1); // @close
                let drained = waiting.get(); // @drain
                waiting.set(0);
                done.add(drained);
            },
        ]);
        if done.get() != 1 {
            run.bug("work was lost while the pool closed");
        }
    }
}
