// d = 2: looks whether there is room, and takes it later.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

fn main() {
    let taken = Arc::new(AtomicUsize::new(0));
    let takes = |taken: Arc<AtomicUsize>| {
        move || {
            if taken.load(SeqCst) < 1 {
                let now = taken.fetch_add(1, SeqCst) + 1;
                assert!(now <= 1, "{now} of 1 are taken");
            }
        }
    };
    let threads = [thread::spawn(takes(taken.clone())), thread::spawn(takes(taken))];
    if threads.into_iter().map(|thread| thread.join()).any(|ended| ended.is_err()) {
        std::process::exit(1);
    }
}
