//! Two halves of a buffer are filled and read through raw pointers: in Rust these are copies of the C library's.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::Mutex;
use std::thread;

struct Buffer(UnsafeCell<[u8; 256]>);

// SAFETY: that this does not hold is the bug, unless the lock is taken.
unsafe impl Sync for Buffer {}

static BUFFER: Buffer = Buffer(UnsafeCell::new([0; 256]));
static LOCK: Mutex<()> = Mutex::new(());

fn main() {
    let writer = thread::spawn(|| {
        let next = vec![1_u8; black_box(256)];
        let _held = cfg!(fixed).then(|| LOCK.lock().unwrap());
        let to = BUFFER.0.get().cast::<u8>();
        // SAFETY: both halves are inside the buffer.
        unsafe {
            to.copy_from_nonoverlapping(next.as_ptr(), black_box(128));
            to.add(128).copy_from_nonoverlapping(next.as_ptr(), black_box(128));
        }
    });
    let mut seen = vec![0_u8; black_box(256)];
    {
        let _held = cfg!(fixed).then(|| LOCK.lock().unwrap());
        // SAFETY: the buffer is as long.
        unsafe { seen.as_mut_ptr().copy_from_nonoverlapping(BUFFER.0.get().cast::<u8>(), black_box(256)) };
    }
    writer.join().unwrap();
    assert_eq!(seen[0], seen[255], "half of it");
}
