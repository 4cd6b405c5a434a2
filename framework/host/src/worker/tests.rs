use std::alloc::{GlobalAlloc, Layout as Block, System};
use std::cell::{Cell, RefCell};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use waylay_abi::{Context, Distribution};
use waylay_dist::{Dist, Seed};
use waylay_page::{Clock, Page};

use super::*;
use crate::context::{RunMode, TestRuntime};
use crate::services::SERVICES;
use crate::shared::{Kinds, SharedObjects};

thread_local! {
    /// Allocations of this thread; tests run in threads of their own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// What the iterations saw: allocations so far, and their seed.
    static SEEN: RefCell<Vec<(u64, u64)>> = const { RefCell::new(Vec::new()) };
}

struct Counting;

// SAFETY: every call is passed on to the system allocator unchanged; counting does not allocate, because the counter
// is a constant-initialised thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, block: Block) {
        // SAFETY: the pointer came from `alloc` above, hence from the system allocator, with this layout.
        unsafe { System.dealloc(pointer, block) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Asks for everything that an ordinary iteration asks for.
unsafe extern "C" fn ordinary(_: *mut Instance, worker: *mut Context) -> i32 {
    // SAFETY: the worker's context, on its own thread, and a distribution of its test.
    let seed = unsafe {
        let batch: *const Distribution = SERVICES.distribution.unwrap()(worker, c"batch".as_ptr());
        for _ in 0..20 {
            SERVICES.draw_int.unwrap()(worker, batch);
        }
        SERVICES.draw_float.unwrap()(worker, batch);
        SERVICES.progress.unwrap()(worker);
        assert_eq!(SERVICES.cancelled.unwrap()(worker), 0);
        SERVICES.seed.unwrap()(worker)
    };
    SEEN.with_borrow_mut(|seen| seen.push((ALLOCATIONS.get(), seed)));
    STATUS_OK
}

/// Runs so many ordinary iterations and returns what they saw.
fn iterations(count: u64, repeat: bool) -> Vec<(u64, u64)> {
    let page: &'static Page = Box::leak(Box::new(Page::create(&Clock::calibrate()).unwrap()));
    let batch = Dist::new(&"{ gaussian = { mean = 8, sigma = 2, min = 1 } }".parse().unwrap()).unwrap();
    let test: &'static TestRuntime = Box::leak(Box::new(TestRuntime {
        index: 0,
        name: "ordinary".to_owned(),
        seed: Seed::new(7),
        page: page.layout(),
        clock: page.source(),
        distributions: vec![("batch".to_owned(), batch)],
        shared: Box::leak(Box::new(SharedObjects::single(&Kinds::default(), Seed::new(7)))),
        kept: Mutex::default(),
        container: None,
        cancelled: AtomicBool::new(false),
        refusal: Mutex::new(None),
        run_mode: RunMode::Free,
    }));
    let plan = WorkerPlan { slot: 0, first_iteration: 5, iterations: Some(count), repeat };
    let slot = &page.layout().workers[0];
    let context = CallContext::worker(test, 0, slot);
    let mut instance = Instance {
        size: size_of::<Instance>() as u32,
        flags: 0,
        on_test_start: None,
        test_main: Some(ordinary),
        on_test_cancelled: None,
        on_test_end: None,
        state: std::ptr::null_mut(),
    };
    SEEN.with_borrow_mut(|seen| seen.reserve(count as usize));
    run(&context, SharedInstance(&mut instance), &plan, slot);
    assert_eq!(slot.finished.load(Ordering::Relaxed), count);
    SEEN.take()
}

#[test]
fn iterations_do_not_allocate() {
    let seen = iterations(10_000, false);
    assert_eq!(seen.len(), 10_000);
    let (first, last) = (seen[0].0, seen[9_999].0);
    assert!(first > 0, "allocations are counted");
    assert_eq!(last, first);
}

#[test]
fn each_iteration_has_its_seed_and_a_repeated_one_the_same() {
    let seeds = |repeat| iterations(100, repeat).into_iter().map(|(_, seed)| seed).collect::<Vec<_>>();
    let (ordinary, repeated) = (seeds(false), seeds(true));
    assert_eq!(repeated, vec![ordinary[0]; 100]);
    let mut different = ordinary;
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 100);
}
