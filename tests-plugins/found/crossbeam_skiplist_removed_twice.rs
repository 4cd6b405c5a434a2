//! needs: crossbeam-skiplist 0.1.3
//! finds: assert within 1000
//!
//! Two threads that remove one key at the same time both get its entry: `remove` returns it whether or not it was the one that
//! marked it.

use std::{sync::Arc, thread};

use crossbeam_skiplist::SkipMap;

fn main() {
    let map = Arc::new(SkipMap::new());
    map.insert("key", 7);
    let removing: Vec<_> = (0..2)
        .map(|_| {
            let map = Arc::clone(&map);
            thread::spawn(move || map.remove("key").is_some())
        })
        .collect();
    let removed =
        removing.into_iter().map(|thread| thread.join().unwrap()).filter(|removed| *removed).count();
    assert_eq!(removed, 1, "{removed} threads removed the one entry");
}
