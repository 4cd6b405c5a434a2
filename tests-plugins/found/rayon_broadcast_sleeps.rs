//! needs: rayon-core 1.10.0
//! fixed: rayon-core 1.10.1
//! finds: deadlock within 50000
//!
//! A worker goes to sleep while a broadcast for it begins, and nobody wakes it (changelog of rayon-core 1.10.1).

use rayon_core::ThreadPoolBuilder;

fn main() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    pool.broadcast(|context| context.index());
}
