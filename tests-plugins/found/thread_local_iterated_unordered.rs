//! needs: thread_local 1.1.3
//! fixed: thread_local 1.1.4
//! finds: race within 1000
//! asks: races
//!
//! thread_local 1.1.3: who iterates may see a block of values before it is initialised (RUSTSEC-2022-0006).

use std::thread;

fn main() {
    let values = thread_local::ThreadLocal::<Box<u64>>::new();
    thread::scope(|scope| {
        for number in 1..4 {
            let values = &values;
            scope.spawn(move || **values.get_or(|| Box::new(number)));
        }
        scope.spawn(|| assert!(values.iter().all(|value| **value > 0)));
    });
}
