//! What atomic operations hand over by the memory orders that they name, as C and C++ define it; Rust has the same.
//!
//! A store that releases begins a release sequence: who reads from it, or from an update that read from it, and acquires comes
//! after what was before the store. Later stores of the same thread continue it, as until C++17, because programs count on that.
//! A fence that releases lets later stores of its thread hand over what was before the fence; one that acquires takes over
//! what earlier loads read. Runs are sequentially consistent, so that a load reads from the last store.

use waylay_schedule::ThreadId;

use super::{Clock, Order};

/// What an atomic operation promises about the accesses around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Who wrote what it reads comes before what follows it.
    pub acquires: bool,
    /// What is before it comes before what those do who read what it writes.
    pub releases: bool,
}

impl Promise {
    /// Whatever is promised: also where it is not known how much that is.
    pub const ALL: Promise = Promise { acquires: true, releases: true };

    /// Of a number that compilers pass for `memory_order`; what they add above the first byte is for processors.
    pub fn of_compiler(order: i32) -> Promise {
        match order & 0xff {
            0 => Promise { acquires: false, releases: false },
            // Consuming is no weaker than acquiring for any compiler.
            1 | 2 => Promise { acquires: true, releases: false },
            3 => Promise { acquires: false, releases: true },
            _ => Promise::ALL,
        }
    }
}

/// What those take over who read an atomic variable and acquire.
#[derive(Debug, Default)]
pub(super) struct Published {
    clock: Clock,
    /// Whose store began the sequence.
    by: Option<ThreadId>,
}

impl Order {
    /// The thread reads an atomic variable.
    pub(crate) fn loads(&mut self, thread: ThreadId, variable: usize, promise: Promise) {
        self.thread(thread);
        let Some(published) = self.published.get(&variable) else { return };
        let thread = &mut self.threads[thread.index()];
        thread.glimpsed.join(&published.clock);
        if promise.acquires {
            thread.clock.join(&published.clock);
        }
    }

    /// The thread writes an atomic variable; `updates`: what it read there.
    pub(crate) fn stores(&mut self, thread: ThreadId, variable: usize, promise: Promise, updates: bool) {
        self.thread(thread);
        let published = self.published.entry(variable).or_default();
        if !updates && published.by != Some(thread) {
            *published = Published { clock: Clock::default(), by: Some(thread) };
        }
        let giver = &self.threads[thread.index()];
        published.clock.join(if promise.releases { &giver.clock } else { &giver.fenced });
        if promise.releases {
            self.tick(thread);
        }
    }

    /// The thread executes a fence.
    pub(crate) fn fences(&mut self, thread: ThreadId, promise: Promise) {
        let entry = self.thread(thread);
        if promise.acquires {
            let glimpsed = core::mem::take(&mut entry.glimpsed);
            entry.clock.join(&glimpsed);
        }
        if promise.releases {
            entry.fenced = entry.clock.clone();
            self.tick(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Locks;
    use super::*;

    const MAIN: ThreadId = ThreadId(0);
    const ONE: ThreadId = ThreadId(1);
    const TWO: ThreadId = ThreadId(2);
    const RELAXED: i32 = 0;
    const ACQUIRE: i32 = 2;
    const RELEASE: i32 = 3;
    const FLAG: usize = 64;

    fn scene() -> Order {
        let mut order = Order::new(Locks::Order);
        order.spawned(MAIN, ONE);
        order.spawned(MAIN, TWO);
        order
    }

    /// Whether what thread one did first comes before what thread two does after these operations of both.
    fn is_ordered(one: impl FnOnce(&mut Order), two: impl FnOnce(&mut Order)) -> bool {
        let mut order = scene();
        let before = order.now(ONE);
        one(&mut order);
        two(&mut order);
        order.is_before(before, TWO)
    }

    fn store(order: i32) -> impl Fn(&mut Order) {
        move |all| all.stores(ONE, FLAG, Promise::of_compiler(order), false)
    }

    fn load(order: i32) -> impl Fn(&mut Order) {
        move |all| all.loads(TWO, FLAG, Promise::of_compiler(order))
    }

    #[test]
    fn both_sides_have_to_promise() {
        assert!(is_ordered(store(RELEASE), load(ACQUIRE)));
        assert!(!is_ordered(store(RELAXED), load(ACQUIRE)));
        assert!(!is_ordered(store(RELEASE), load(RELAXED)));
        assert!(is_ordered(store(5), load(5)) && is_ordered(store(4), load(1)));
        assert!(is_ordered(store(0x1_0003), load(0x1_0002)), "what is added for processors");
    }

    #[test]
    fn fences_promise_for_what_is_around_them() {
        let fence = |thread, order| move |all: &mut Order| all.fences(thread, Promise::of_compiler(order));
        let released = |all: &mut Order| {
            fence(ONE, RELEASE)(all);
            store(RELAXED)(all);
        };
        let acquired = |all: &mut Order| {
            load(RELAXED)(all);
            fence(TWO, ACQUIRE)(all);
        };
        assert!(is_ordered(released, acquired) && is_ordered(released, load(ACQUIRE)));
        assert!(is_ordered(store(RELEASE), acquired));
        assert!(!is_ordered(store(RELAXED), acquired) && !is_ordered(released, load(RELAXED)));
        assert!(!is_ordered(
            |all| {
                store(RELAXED)(all);
                fence(ONE, RELEASE)(all);
            },
            acquired
        ));
        assert!(!is_ordered(released, |all| {
            fence(TWO, ACQUIRE)(all);
            load(RELAXED)(all);
        }));
    }

    #[test]
    fn what_follows_a_promise_is_not_handed_over() {
        for fenced in [false, true] {
            let mut order = scene();
            if fenced {
                order.fences(ONE, Promise::ALL);
            } else {
                store(RELEASE)(&mut order);
            }
            let after = order.now(ONE);
            store(RELAXED)(&mut order);
            load(ACQUIRE)(&mut order);
            assert!(!order.is_before(after, TWO));
        }
    }

    #[test]
    fn updates_continue_what_a_store_began_and_stores_of_others_end_it() {
        let relaxed = Promise::of_compiler(RELAXED);
        let updated = |all: &mut Order| {
            store(RELEASE)(all);
            all.stores(MAIN, FLAG, relaxed, true);
        };
        assert!(is_ordered(updated, load(ACQUIRE)));
        let stored = |all: &mut Order| {
            store(RELEASE)(all);
            all.stores(MAIN, FLAG, relaxed, false);
        };
        assert!(!is_ordered(stored, load(ACQUIRE)));
        let stored_again = |all: &mut Order| {
            store(RELEASE)(all);
            store(RELAXED)(all);
        };
        assert!(is_ordered(stored_again, load(ACQUIRE)), "by the same thread");
    }

    #[test]
    fn memory_that_is_given_again_hands_nothing_over() {
        let reused = |all: &mut Order| {
            store(RELEASE)(all);
            all.forget(FLAG - 8, 16);
        };
        assert!(!is_ordered(reused, load(ACQUIRE)));
    }
}
