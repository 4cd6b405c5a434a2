//! The same in Rust, with a cell that is shared without the compiler's consent.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock, mpsc};
use std::thread;

struct Shared(UnsafeCell<u64>);
// SAFETY: none where the program is the broken one: that is its point.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared(UnsafeCell::new(0));

fn set(value: u64) {
    // SAFETY: none where the program is the broken one: this race is what is to be found.
    unsafe { SHARED.0.get().write(black_box(value)) }
}

fn get() -> u64 {
    // SAFETY: as above.
    black_box(unsafe { SHARED.0.get().read() })
}

fn both(one: impl FnOnce() + Send, other: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(one);
        scope.spawn(other);
    });
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let broken = arguments.len() > 2;
    match arguments[1].as_str() {
        "mutex" => {
            let lock = Mutex::new(());
            let add = || {
                let held = (!broken).then(|| lock.lock().unwrap());
                set(get() + 1);
                drop(held);
            };
            both(add, add);
        }
        "rwlock" => {
            let lock = RwLock::new(());
            both(
                || {
                    let held = (!broken).then(|| lock.write().unwrap());
                    set(5);
                    drop(held);
                },
                || {
                    let _held = lock.read().unwrap();
                    get();
                },
            );
        }
        "condvar" => {
            let (lock, changed) = (Mutex::new(false), Condvar::new());
            both(
                || {
                    set(5);
                    *lock.lock().unwrap() = true;
                    changed.notify_one();
                },
                || {
                    let mut ready = lock.lock().unwrap();
                    while !*ready && !broken {
                        ready = changed.wait(ready).unwrap();
                    }
                    drop(ready);
                    get();
                },
            );
        }
        "channel" => {
            let (sender, receiver) = mpsc::channel();
            both(
                move || {
                    set(5);
                    sender.send(Box::new(1)).unwrap();
                },
                move || {
                    if !broken {
                        black_box(*receiver.recv().unwrap());
                    }
                    get();
                },
            );
        }
        "once" => {
            let once = Once::new();
            let cell = OnceLock::new();
            let start = || {
                if broken {
                    set(5);
                } else {
                    once.call_once(|| set(5));
                }
                black_box(*cell.get_or_init(|| get()));
            };
            both(start, start);
        }
        "barrier" => {
            let barrier = Barrier::new(2);
            both(
                || {
                    set(5);
                    if !broken {
                        barrier.wait();
                    }
                },
                || {
                    if !broken {
                        barrier.wait();
                    }
                    get();
                },
            );
        }
        "arc" => {
            let cells: Vec<Arc<UnsafeBox>> = vec![Arc::new(UnsafeBox(UnsafeCell::new(1))); 2];
            let mut cells = cells.into_iter();
            let (one, other) = (cells.next().unwrap(), cells.next().unwrap());
            let last = move |cell: Arc<UnsafeBox>| {
                if broken {
                    unsafe { cell.0.get().write(black_box(2)) }; // SAFETY: none, as above.
                }
                // Whoever is last may write: the count orders it after the other.
                if let Some(mut owned) = Arc::into_inner(cell) {
                    *owned.0.get_mut() = black_box(3);
                }
            };
            both(move || last(one), move || last(other));
        }
        "owners" => {
            let one = Arc::new([1_u64; 4]);
            let other = one.clone();
            let look = move |mine: Arc<[u64; 4]>| {
                let place = (&raw const *mine).cast::<u64>().addr();
                black_box(mine[black_box(1)]);
                drop(mine);
                if broken {
                    // SAFETY: none: whoever lets go of it last frees it.
                    black_box(unsafe { (place as *const u64).read() });
                }
            };
            both(move || look(one), move || look(other));
        }
        "release" => {
            let flag = AtomicBool::new(false);
            both(
                || {
                    set(5);
                    flag.store(true, Ordering::Release);
                },
                || {
                    if flag.load(Ordering::Acquire) || broken {
                        get();
                    }
                },
            );
        }
        "pointer" => {
            let place: AtomicPtr<u64> = AtomicPtr::new(std::ptr::null_mut());
            both(
                || {
                    let fresh = Box::into_raw(Box::new(black_box(5)));
                    place.store(fresh, Ordering::Release);
                    if broken {
                        unsafe { fresh.write(black_box(6)) }; // SAFETY: it lives; the race is to be found.
                    }
                },
                || {
                    let seen = place.load(Ordering::Acquire);
                    if !seen.is_null() {
                        black_box(unsafe { seen.read() }); // SAFETY: it is never freed.
                    }
                },
            );
        }
        "park" => {
            let waiting = thread::scope(|scope| {
                let turn = Arc::new(AtomicUsize::new(0));
                let theirs = turn.clone();
                let sleeper = scope.spawn(move || {
                    while theirs.load(Ordering::Acquire) == 0 && !broken {
                        thread::park();
                    }
                    get()
                });
                set(5);
                turn.store(1, Ordering::Release);
                sleeper.thread().unpark();
                sleeper.join().unwrap()
            });
            black_box(waiting);
        }
        _ => std::process::exit(2),
    }
}

struct UnsafeBox(UnsafeCell<u64>);
unsafe impl Sync for UnsafeBox {} // SAFETY: none where the program is the broken one.
unsafe impl Send for UnsafeBox {} // SAFETY: a number.
