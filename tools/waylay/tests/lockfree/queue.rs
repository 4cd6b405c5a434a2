//! A queue for many producers and one consumer, after Vyukov. The bug: the old tail is read and replaced in two steps, so
//! that of two producers one loses its link.
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};

struct Node {
    next: AtomicPtr<Node>,
}

static TAIL: AtomicPtr<Node> = AtomicPtr::new(null_mut());

fn push() {
    let node = Box::into_raw(Box::new(Node { next: AtomicPtr::new(null_mut()) }));
    #[cfg(fixed)]
    let previous = TAIL.swap(node, SeqCst);
    #[cfg(not(fixed))]
    let previous = {
        let previous = TAIL.load(SeqCst);
        TAIL.store(node, SeqCst);
        previous
    };
    // SAFETY: nodes are never freed.
    unsafe { (*previous).next.store(node, SeqCst) };
}

fn main() {
    let stub = Box::into_raw(Box::new(Node { next: AtomicPtr::new(null_mut()) }));
    TAIL.store(stub, SeqCst);
    let producers: Vec<_> = (0..2).map(|_| std::thread::spawn(push)).collect();
    for producer in producers {
        producer.join().unwrap();
    }
    let (mut at, mut count) = (stub, 0);
    loop {
        // SAFETY: nodes are never freed.
        at = unsafe { (*at).next.load(SeqCst) };
        if at.is_null() {
            break;
        }
        count += 1;
    }
    assert_eq!(count, 2, "a link is lost");
}
