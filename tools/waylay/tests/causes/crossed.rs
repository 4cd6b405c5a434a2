// depth 2: left_first < left_second, right_second < right_first
// Two mutexes of the standard library in opposite order.
use std::sync::Mutex;
static LEFT: Mutex<u32> = Mutex::new(0);
static RIGHT: Mutex<u32> = Mutex::new(0);
fn first() {
    let left = LEFT.lock().unwrap(); // @left_first
    let mut right = RIGHT.lock().unwrap(); // @right_first
    *right += *left;
}
fn second() {
    let right = RIGHT.lock().unwrap(); // @right_second
    let mut left = LEFT.lock().unwrap(); // @left_second
    *left += *right;
}
fn main() {
    let (one, other) = (std::thread::spawn(first), std::thread::spawn(second));
    one.join().unwrap();
    other.join().unwrap();
}
