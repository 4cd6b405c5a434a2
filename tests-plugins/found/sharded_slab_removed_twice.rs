//! needs: sharded-slab 0.1.7
//! finds: assert within 1000
//!
//! sharded-slab 0.1.7: two threads that remove one key at the same time are both told that they removed it.

use std::{sync::Arc, thread};

use sharded_slab::Slab;

fn main() {
    let slab = Arc::new(Slab::new());
    let key = slab.insert(7).expect("the slab has room");
    let removing: Vec<_> = (0..2)
        .map(|_| {
            let slab = Arc::clone(&slab);
            thread::spawn(move || slab.remove(key))
        })
        .collect();
    let removed =
        removing.into_iter().map(|thread| thread.join().unwrap()).filter(|removed| *removed).count();
    assert_eq!(removed, 1, "{removed} threads were told that they removed the one value");
}
