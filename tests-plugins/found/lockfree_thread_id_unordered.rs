//! needs: lockfree 0.5.1
//! finds: race within 1000
//! asks: races
//!
//! lockfree 0.5.1: the number of a thread that has ended, and with it what is its own in a `ThreadLocal`, is handed on with
//! `Relaxed` to a thread that begins.

use std::cell::Cell;
use std::thread;

use lockfree::tls::ThreadLocal;

fn main() {
    let values = ThreadLocal::<Cell<u64>>::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let value = values.with_init(Cell::default);
                value.set(value.get() + 1);
            });
        }
    });
}
