//! RUSTSEC-2025-0024: one sender is about to make the list of messages, another has sent, and the receiver goes away: the
//! list is freed twice.
use std::thread;

fn main() {
    let (sender, receiver) = crossbeam_channel::unbounded::<u64>();
    let other = sender.clone();
    let threads = [
        thread::spawn(move || drop(sender.send(1))),
        thread::spawn(move || drop(other.send(2))),
        thread::spawn(move || drop(receiver)),
    ];
    for thread in threads {
        thread.join().unwrap();
    }
}
