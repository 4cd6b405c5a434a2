//! needs: oneshot 0.1.11
//! fixed: oneshot 0.1.12
//! finds: race within 3000
//! asks: races
//!
//! oneshot 0.1.11: a channel may be freed while its other side still reads it (pull request 72).

use std::thread;
use std::time::Duration;

fn main() {
    for way in 0..3 {
        let (sender, receiver) = oneshot::channel::<Box<u64>>();
        thread::scope(|scope| {
            scope.spawn(move || drop(sender.send(Box::new(7))));
            scope.spawn(move || match way {
                0 => assert_eq!(receiver.recv().map(|value| *value), Ok(7)),
                1 => drop(receiver.recv_timeout(Duration::from_millis(1))),
                _ => drop(receiver.try_recv()),
            });
        });
    }
}
