//! needs: stabby 72.1.16
//! finds: race within 200
//! asks: races
//!
//! stabby 72.1.16: owners of an `Arc` are counted down with `Relaxed`, so that the last may free what another still reads.

use std::thread;

use stabby::sync::Arc;

fn main() {
    let one: Arc<u64> = Arc::new(7);
    let other = one.clone();
    thread::scope(|scope| {
        scope.spawn(move || assert_eq!(*other, 7));
        scope.spawn(move || assert_eq!(*one, 7));
    });
}
