// Known bugs in Rust and their correct twins: the same commands as the other zoos (see zoo.h). Safe code: what goes wrong
// is the order. Uncontended locks of the standard library never leave user space, so yields cut what a switch has to cut.
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{spawn, yield_now};

static FIXED: AtomicBool = AtomicBool::new(false);

fn fixed() -> bool {
    FIXED.load(SeqCst)
}

/// Depth 2: read and write under the lock, but not at once.
fn lost_update() -> bool {
    let balance = Arc::new(Mutex::new(10));
    let threads = [(); 2].map(|()| {
        let balance = balance.clone();
        spawn(move || {
            if fixed() {
                yield_now();
                *balance.lock().unwrap() -= 1;
            } else {
                let seen = *balance.lock().unwrap();
                yield_now();
                *balance.lock().unwrap() = seen - 1;
            }
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    *balance.lock().unwrap() != 8
}

/// Depth 2: two locks in either order.
fn lock_order() -> bool {
    let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
    let threads = [false, true].map(|backwards| {
        let locks = locks.clone();
        spawn(move || {
            let (mut first, mut second) = (&locks.0, &locks.1);
            if backwards && !fixed() {
                (first, second) = (second, first);
            }
            yield_now();
            let mut a = first.lock().unwrap();
            yield_now();
            let mut b = second.lock().unwrap();
            *a += 1;
            *b += 1;
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    false
}

/// Depth 2: the flag is looked at, then waited for without looking again.
fn lost_wake_up() -> bool {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let waiter = {
        let shared = shared.clone();
        spawn(move || {
            if fixed() {
                let mut ready = shared.0.lock().unwrap();
                while !*ready {
                    ready = shared.1.wait(ready).unwrap();
                }
            } else {
                let ready = *shared.0.lock().unwrap();
                if !ready {
                    yield_now();
                    drop(shared.1.wait(shared.0.lock().unwrap()).unwrap());
                }
            }
        })
    };
    let waker = spawn(move || {
        yield_now();
        *shared.0.lock().unwrap() = true;
        shared.1.notify_one();
    });
    waiter.join().unwrap();
    waker.join().unwrap();
    false
}

/// Depth 1: the answer is read before it was sent.
fn read_too_early() -> bool {
    let answer = Arc::new(AtomicI64::new(0));
    let (sender, receiver) = channel::<()>();
    let writer = {
        let answer = answer.clone();
        spawn(move || {
            yield_now();
            answer.store(42, SeqCst);
            let _ = sender.send(());
        })
    };
    let reader = spawn(move || {
        if fixed() {
            receiver.recv().unwrap();
        } else {
            yield_now();
        }
        answer.load(SeqCst)
    });
    writer.join().unwrap();
    reader.join().unwrap() != 42
}

/// Depth 2: a reference count that is checked and changed in two steps.
fn freed_twice() -> bool {
    let (count, frees) = (Arc::new(AtomicI64::new(2)), Arc::new(AtomicI64::new(0)));
    let threads = [(); 2].map(|()| {
        let (count, frees) = (count.clone(), frees.clone());
        spawn(move || {
            let left = if fixed() {
                yield_now();
                count.fetch_sub(1, SeqCst) - 1
            } else {
                count.fetch_sub(1, SeqCst);
                yield_now();
                count.load(SeqCst)
            };
            if left == 0 {
                frees.fetch_add(1, SeqCst);
            }
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    frees.load(SeqCst) != 1
}

type Animal = fn() -> bool;
const ZOO: [(&str, Animal); 5] = [
    ("lost_update", lost_update),
    ("lock_order", lock_order),
    ("lost_wake_up", lost_wake_up),
    ("read_too_early", read_too_early),
    ("freed_twice", freed_twice),
];

#[repr(C)]
#[derive(Default)]
struct RunSummary {
    steps: u64,
    switches: u64,
    stretches: u64,
    threads: u32,
    partly_controlled: u32,
}

#[repr(C)]
struct Tally {
    next: AtomicU64,
    failures: AtomicU64,
    deadlocks: AtomicU64,
    steps: AtomicU64,
    threads: AtomicU32,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn mmap(at: *mut c_void, len: usize, access: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

const DEADLOCKED: c_int = 86 << 8;

fn repeat(animal: Animal, runs: u64) -> i32 {
    // SAFETY: the name is a C string that lives through the call.
    let find = |name: &str| unsafe { dlsym(std::ptr::null_mut(), CString::new(name).unwrap().as_ptr()) };
    let (begin, end) = (find("waylay_control_begin_run"), find("waylay_control_end_run"));
    assert!(!begin.is_null() && !end.is_null());
    // SAFETY: both symbols were found, and the library defines them with these types.
    let (begin_run, end_run) = unsafe {
        (
            std::mem::transmute::<*mut c_void, extern "C" fn(u64) -> i32>(begin),
            std::mem::transmute::<*mut c_void, extern "C" fn(i32, *mut RunSummary)>(end),
        )
    };
    // Readable and writable, shared and anonymous.
    // SAFETY: a fresh page of zeros, which are valid counters; it stays mapped to the end.
    let tally = unsafe { &*mmap(std::ptr::null_mut(), 4096, 3, 0x21, -1, 0).cast::<Tally>() };
    while tally.next.load(SeqCst) < runs {
        // SAFETY: this process has one thread.
        let child = unsafe { fork() };
        if child == 0 {
            loop {
                let number = tally.next.load(SeqCst);
                if number >= runs {
                    // SAFETY: takes no pointer; the child leaves without the parent's clean-up.
                    unsafe { _exit(0) };
                }
                tally.next.store(number + 1, SeqCst);
                assert_eq!(begin_run(number), 0);
                let bug = animal();
                let mut summary = RunSummary::default();
                end_run(i32::from(bug), &mut summary);
                tally.failures.fetch_add(u64::from(bug), SeqCst);
                tally.steps.fetch_max(summary.steps, SeqCst);
                tally.threads.fetch_max(summary.threads, SeqCst);
            }
        }
        let mut status = 0;
        // SAFETY: the kernel writes the status that is passed.
        assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
        match status {
            0 => break,
            DEADLOCKED => {
                tally.failures.fetch_add(1, SeqCst);
                tally.deadlocks.fetch_add(1, SeqCst);
            }
            other => panic!("run {}: status {other:x}", tally.next.load(SeqCst) - 1),
        }
    }
    let [failures, deadlocks, steps] = [&tally.failures, &tally.deadlocks, &tally.steps].map(|n| n.load(SeqCst));
    println!("{failures} {deadlocks} {} {steps}", tally.threads.load(SeqCst));
    0
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    FIXED.store(arguments.get(1).is_some_and(|how| how == "fixed"), SeqCst);
    let animal = ZOO.iter().find(|(name, _)| arguments.first().is_some_and(|wanted| wanted == name));
    let Some(&(_, animal)) = animal else { std::process::exit(2) };
    std::process::exit(match arguments.get(2) {
        Some(runs) => repeat(animal, runs.parse().unwrap()),
        None => i32::from(animal()),
    });
}
