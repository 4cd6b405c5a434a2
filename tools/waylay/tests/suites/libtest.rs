//! A suite of Rust's own harness: bugs are seeded unless `FIXED` is set in the environment.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

fn fixed() -> bool {
    std::env::var_os("FIXED").is_some()
}

#[test]
fn adds() {
    assert_eq!(1 + 1, 2);
}

#[test]
#[ignore]
fn is_not_run() {
    panic!("it was run");
}

mod counter {
    use super::*;

    fn add(counter: &AtomicU32) {
        if fixed() {
            counter.fetch_add(1, Ordering::SeqCst);
        } else {
            let seen = counter.load(Ordering::SeqCst);
            counter.store(seen + 1, Ordering::SeqCst);
        }
    }

    #[test]
    fn loses_nothing() {
        let counter = Arc::new(AtomicU32::new(0));
        let shared = counter.clone();
        let other = thread::spawn(move || add(&shared));
        add(&counter);
        other.join().unwrap();
        let seen = counter.load(Ordering::SeqCst);
        assert_eq!(seen, 2, "one was lost");
    }
}

mod account {
    use super::*;

    fn transfer(from: &Mutex<i32>, to: &Mutex<i32>, amount: i32) {
        *from.lock().unwrap() -= amount;
        *to.lock().unwrap() += amount;
    }

    fn transfer_at_once(from: &Mutex<i32>, to: &Mutex<i32>, amount: i32) {
        let mut one = from.lock().unwrap();
        let mut two = to.lock().unwrap();
        (*one, *two) = (*one - amount, *two + amount);
    }

    #[test]
    fn transfers_both_ways() {
        let transfer = if fixed() { transfer } else { transfer_at_once };
        let (here, there) = (Arc::new(Mutex::new(10)), Arc::new(Mutex::new(10)));
        let (his_here, his_there) = (here.clone(), there.clone());
        let other = thread::spawn(move || transfer(&his_there, &his_here, 2));
        transfer(&here, &there, 3);
        other.join().unwrap();
        assert_eq!(*here.lock().unwrap() + *there.lock().unwrap(), 20);
    }
}

mod given {
    use super::*;

    #[test]
    fn is_there() -> Result<(), String> {
        let shared = Arc::new(Mutex::new(None));
        let mine = shared.clone();
        let giver = thread::spawn(move || *mine.lock().unwrap() = Some(7));
        if fixed() {
            giver.join().unwrap();
            return shared.lock().unwrap().map(drop).ok_or_else(|| "nothing is there".to_owned());
        }
        let seen = *shared.lock().unwrap();
        giver.join().unwrap();
        seen.map(drop).ok_or_else(|| "nothing is there".to_owned())
    }
}
