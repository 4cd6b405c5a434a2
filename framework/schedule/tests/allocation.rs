//! Between the creation of its threads and its end a run does not allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use waylay_schedule::{Event, EventKind, ObjectId, Run, Seed, Spec, Strategy, ThreadId};

thread_local! {
    /// Allocations of this thread; tests run in threads of their own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system allocator unchanged; counting does not allocate, because the counter
// is a constant-initialised thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, hence from the system allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn event(step: u64) -> Event {
    match step % 7 {
        0 => Event::new(EventKind::MutexLock, ObjectId(0x1000 + 64 * (step % 13))),
        1 => Event::local(EventKind::Yield),
        2 => Event::access(EventKind::AtomicLoad, 0x2000 + step % 5, 8),
        3 => Event::cond_wait(ObjectId(0x3000), ObjectId(0x1000)),
        4 => Event::new(EventKind::BlockingReturn, ObjectId::UNKNOWN),
        5 => Event::access(EventKind::PlainWrite, 0x2000 + step % 11, 64),
        _ => Event::access(EventKind::AtomicRmw, 0x2000 + 8 * (step % 3), 4),
    }
}

/// Steps with threads that block and come back all the time; the allocations made meanwhile.
fn allocations(strategy: &mut impl Strategy, run: Run, threads: u32) -> u64 {
    let parameters = strategy.plan(run).unwrap();
    strategy.begin(run, &parameters);
    for thread in (0..threads).map(ThreadId) {
        strategy.spawned(thread, (thread.0 > 0).then_some(ThreadId::MAIN));
        strategy.ready(thread, Event::on_thread(EventKind::ThreadStart, thread));
    }
    let before = ALLOCATIONS.with(Cell::get);
    let mut blocked = None;
    let mut current = strategy.pick().unwrap();
    for step in 0..5000 {
        if let Some(thread) = blocked.take() {
            strategy.ready(thread, event(step));
        }
        current = if step % 5 == 0 {
            strategy.blocked(current);
            blocked = Some(current);
            strategy.pick().unwrap()
        } else {
            strategy.step(current, event(step))
        };
    }
    let made = ALLOCATIONS.with(Cell::get) - before;
    let lengths = vec![100; threads as usize];
    let outcome = waylay_schedule::Outcome::Passed;
    strategy.end(&waylay_schedule::RunReport { outcome, steps: 5000, lengths: &lengths, news: false });
    made
}

#[test]
fn steps_do_not_allocate() {
    for text in [
        "random",
        "pct:depth=4",
        "rpro",
        "stride",
        "stride:max=2",
        "pos",
        "surw",
        "idiom",
        "noise",
        "portfolio",
    ] {
        // Where two hundred threads walk at random between orders, each step draws an order of all: that takes long.
        let most = if text == "idiom" { 20 } else { 200 };
        for threads in [2, 20, 200].into_iter().filter(|&threads| threads <= most) {
            let mut strategy = text.parse::<Spec>().unwrap().build();
            for index in 0..14 {
                let made = allocations(&mut strategy, Run { seed: Seed(4), index }, threads);
                assert_eq!(made, 0, "{text} with {threads} threads, run {index}");
            }
        }
    }
}
