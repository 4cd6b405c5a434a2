//! needs: parking_lot 0.12.0
//! fixed: parking_lot 0.12.1
//! finds: race within 30000
//! asks: races
//!
//! parking_lot 0.12.0: a writer that waits for readers may see that they have gone without what they did (pull request 344).

use std::thread;

use parking_lot::RwLock;

fn main() {
    let lock = RwLock::new(1u64);
    thread::scope(|scope| {
        scope.spawn(|| assert!(*lock.read() > 0));
        scope.spawn(|| *lock.write() += 1);
    });
}
