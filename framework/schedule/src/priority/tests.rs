use super::starvation::FREE_IDLE;
use super::*;

/// Lowers whenever it may; the change point is at the step with this number, and of two threads the first is on top.
struct Fixed {
    point: u64,
    keys: u64,
}

impl Source for Fixed {
    fn begin(&mut self, _: Run) {}

    fn below(&mut self, bound: u64) -> u64 {
        if bound == LOWER_ONE_IN { 0 } else { self.point - 1 }
    }

    fn key(&mut self) -> u64 {
        self.keys -= 2;
        self.keys
    }
}

#[test]
fn a_change_point_lowers_a_thread_that_was_taken_to_spin() {
    let (one, other) = (ThreadId(0), ThreadId(1));
    let idle = Event::local(EventKind::Yield);
    let work = Event::local(EventKind::UserWrite);
    let point = 2 * u64::from(FREE_IDLE) + 6;
    let mut threads = Priorities::new(Fixed { point, keys: 100 }, Rules::default());
    threads.begin(Run::default(), Changes { depth: 2, steps: 100, radius: None }, false);
    for thread in [one, other] {
        threads.spawned(thread);
        threads.ready(thread, work);
    }
    let mut current = threads.pick().unwrap();
    assert_eq!(current, one);
    // Both idle until they are lowered: the first is on top again.
    for thread in [one, other] {
        while current == thread {
            current = threads.step(thread, idle);
        }
    }
    assert_eq!(current, one);
    let mut steps = threads.length.counted;
    while current == one {
        current = threads.step(one, work);
        steps += 1;
        assert!(steps <= point, "the change point does nothing");
    }
    assert_eq!(steps, point);
}
