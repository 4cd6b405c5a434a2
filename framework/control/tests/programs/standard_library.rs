//! What Rust's standard library offers for concurrency, once each. Exits 0.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock};
use std::thread;
use std::time::{Duration, Instant};

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Counted(usize);

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0, Ordering::SeqCst);
    }
}

thread_local! {
    static LOCAL: RefCell<Vec<Counted>> = const { RefCell::new(Vec::new()) };
}

fn mutex_and_condvar() {
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                LOCAL.with(|local| local.borrow_mut().push(Counted(1)));
                let (mutex, turn) = &*shared;
                for _ in 0..3 {
                    let mut guard = turn.wait_while(mutex.lock().unwrap(), |at| *at % 3 != number).unwrap();
                    *guard += 1;
                    turn.notify_all();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*shared.0.lock().unwrap(), 9);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 3);
    let (mutex, turn) = &*shared;
    let begun = Instant::now();
    let (_guard, timeout) = turn.wait_timeout(mutex.lock().unwrap(), Duration::from_secs(3600)).unwrap();
    assert!(timeout.timed_out() && begun.elapsed() >= Duration::from_secs(3600));
}

fn channels() {
    let (sender, receiver) = channel();
    let (ping, pong) = sync_channel(0);
    thread::scope(|scope| {
        for number in 0..3 {
            let sender = sender.clone();
            scope.spawn(move || (0..5).for_each(|value| sender.send(number * 10 + value).unwrap()));
        }
        scope.spawn(move || (0..4).for_each(|value| ping.send(value).unwrap()));
        drop(sender);
        let mut seen: Vec<i32> = receiver.iter().collect();
        seen.sort_unstable();
        assert_eq!(seen.len(), 15);
        assert_eq!(pong.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    });
}

fn parking() {
    let ready = Arc::new(AtomicBool::new(false));
    let parked = thread::spawn({
        let ready = Arc::clone(&ready);
        move || {
            while !ready.load(Ordering::Acquire) {
                thread::park();
            }
            thread::park_timeout(Duration::from_secs(60));
        }
    });
    ready.store(true, Ordering::Release);
    parked.thread().unpark();
    parked.join().unwrap();
}

fn the_rest() {
    let lock = RwLock::new(0);
    let barrier = Barrier::new(2);
    let once = Once::new();
    let cell = OnceLock::new();
    let calls = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                barrier.wait();
                once.call_once(|| {
                    thread::yield_now();
                    calls.fetch_add(1, Ordering::SeqCst);
                });
                assert_eq!(*cell.get_or_init(|| 5), 5);
                for _ in 0..5 {
                    *lock.write().unwrap() += 1;
                    let _ = *lock.read().unwrap();
                }
                thread::sleep(Duration::from_secs(5));
            });
        }
    });
    assert_eq!((lock.into_inner().unwrap(), calls.into_inner()), (10, 1));
}

fn panics() {
    std::panic::set_hook(Box::new(|_| {}));
    let poisoned = Arc::new(Mutex::new(0));
    let result = thread::spawn({
        let poisoned = Arc::clone(&poisoned);
        move || {
            let _guard = poisoned.lock().unwrap();
            panic!("on purpose");
        }
    })
    .join();
    assert!(result.is_err() && poisoned.lock().is_err());
    let caught = thread::spawn(|| std::panic::catch_unwind(|| panic!("caught")).is_err()).join();
    assert!(caught.unwrap());
}

fn main() {
    mutex_and_condvar();
    channels();
    parking();
    the_rest();
    panics();
    println!("{}", thread::available_parallelism().unwrap());
}
