// depth 2: look < take, take < unwrap
// What was there under one lock is gone under the next.
use std::sync::Mutex;
static JOB: Mutex<Option<u32>> = Mutex::new(Some(3));
fn worker() {
    let there = JOB.lock().unwrap().is_some(); // @look
    if there {
        let job = JOB.lock().unwrap().take(); // @unwrap
        assert_eq!(job, Some(3));
    }
}
fn thief() {
    let _ = JOB.lock().unwrap().take(); // @take
}
fn main() {
    let (one, other) = (std::thread::spawn(worker), std::thread::spawn(thief));
    one.join().unwrap();
    other.join().unwrap();
}
