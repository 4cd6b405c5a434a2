//! As freed.c, with a box that is dropped.

use std::sync::Mutex;
use std::thread;

struct Record {
    one: u64,
    other: u64,
}

#[derive(Clone, Copy)]
struct Place(*const Record);

// SAFETY: none; that is the bug.
unsafe impl Send for Place {}

static CURRENT: Mutex<Option<Place>> = Mutex::new(None);

fn check(place: Option<Place>) {
    if let Some(Place(record)) = place {
        // SAFETY: none, unless the lock is held.
        let sum = unsafe { (&raw const (*record).one).read().wrapping_add((&raw const (*record).other).read()) };
        if sum != 30 {
            std::process::abort();
        }
    }
}

fn read() {
    let current = CURRENT.lock().unwrap();
    let place = *current;
    if cfg!(fixed) {
        check(place);
        return;
    }
    drop(current);
    check(place);
}

fn discard() {
    let place = CURRENT.lock().unwrap().take();
    if let Some(Place(record)) = place {
        // SAFETY: made by `Box::into_raw`, and nobody else takes it.
        drop(unsafe { Box::from_raw(record.cast_mut()) });
    }
}

fn main() {
    *CURRENT.lock().unwrap() = Some(Place(Box::into_raw(Box::new(Record { one: 10, other: 20 }))));
    let threads = [thread::spawn(read), thread::spawn(discard)];
    for thread in threads {
        thread.join().unwrap();
    }
}
