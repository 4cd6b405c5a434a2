//! needs: arc-swap 1.8.0
//! fixed: arc-swap 1.8.1
//! finds: race within 30000
//! asks: races
//!
//! arc-swap 1.8.0: who replaces a value may free it while another thread still reads it (issue 195).

use std::sync::Arc;
use std::thread;

use arc_swap::ArcSwap;

fn main() {
    let shared = ArcSwap::from_pointee(1u64);
    thread::scope(|scope| {
        scope.spawn(|| (0..2).for_each(|_| assert!(**shared.load() > 0)));
        scope.spawn(|| assert!(*shared.load_full() > 0));
        scope.spawn(|| (2..4).for_each(|value| shared.store(Arc::new(value))));
    });
}
