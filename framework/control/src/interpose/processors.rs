//! Which processors a thread may use. Baton mode binds every thread to one; the program must not notice, or it would
//! start fewer threads.
//!
//! So what a thread asked for is kept here, and nothing of it reaches the kernel: a mask is checked as the kernel would, a new
//! thread has its creator's, and a thread is always on the first processor of its mask.

use core::ffi::{c_uint, c_void};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use libc::{EFAULT, EINVAL, ESRCH, c_int, pid_t, pthread_attr_t, pthread_t, size_t};

use super::{fail, interpose};
use crate::runtime::{Logical, Token, lookup};
use crate::sys;

/// Processors, by number.
pub(crate) type Mask = [u64; 16];

/// Bytes of a word of a mask: the kernel takes whole ones.
const WORD: usize = size_of::<u64>();

type Words = [AtomicU64; 16];
/// The processors that the process could use before it was bound to one.
static BEFORE: Words = [const { AtomicU64::new(0) }; 16];
/// Those that it could be given.
static POSSIBLE: Words = [const { AtomicU64::new(0) }; 16];
/// Bytes of the kernel's own masks, and the fewest in which it tells them.
static BYTES: AtomicUsize = AtomicUsize::new(WORD);
static FEWEST: AtomicUsize = AtomicUsize::new(WORD);
static BOUND: AtomicBool = AtomicBool::new(false);

/// Binds the calling kernel thread, and those it will create, to the processor it is on, unless it is bound already.
pub(crate) fn bind() {
    if BOUND.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut mask: Mask = [0; 16];
    let bytes = ask(&mut mask, size_of::<Mask>());
    keep(&BEFORE, &mask);
    BYTES.store(usize::try_from(bytes).unwrap_or(WORD), Ordering::Relaxed);
    let tells = |&bytes: &usize| ask(&mut [0; 16], bytes) >= 0;
    let fewest = (WORD..=size_of::<Mask>()).step_by(WORD).find(tells);
    FEWEST.store(fewest.unwrap_or(WORD), Ordering::Relaxed);
    // Of all the kernel takes those that there are and that the process may have.
    let mut possible = mask;
    set(&[u64::MAX; 16]);
    ask(&mut possible, size_of::<Mask>());
    keep(&POSSIBLE, &possible);
    set(&mask);
    sys::pin_to_current_processor();
}

/// Undoes [`bind`].
pub(crate) fn release() {
    if BOUND.swap(false, Ordering::Relaxed) {
        set(&kept(&BEFORE));
    }
}

/// Has the kernel tell the mask of the calling kernel thread; the bytes written, or a negative error number.
fn ask(mask: &mut Mask, bytes: usize) -> isize {
    // SAFETY: the kernel writes at most the length passed, which is none beyond the mask's.
    unsafe { sys::call(libc::SYS_sched_getaffinity, [0, bytes, mask.as_mut_ptr() as usize, 0, 0, 0]) }
}

fn set(mask: &Mask) {
    // SAFETY: the mask is readable for the length passed.
    unsafe {
        sys::call(libc::SYS_sched_setaffinity, [0, size_of_val(mask), mask.as_ptr() as usize, 0, 0, 0]);
    }
}

fn keep(words: &Words, mask: &Mask) {
    for (word, value) in words.iter().zip(mask) {
        word.store(*value, Ordering::Relaxed);
    }
}

fn kept(words: &Words) -> Mask {
    core::array::from_fn(|word| words[word].load(Ordering::Relaxed))
}

/// What of a wish can be had; EINVAL if nothing of it can.
fn granted(wish: &Mask) -> Result<Mask, i32> {
    let possible = kept(&POSSIBLE);
    let mask: Mask = core::array::from_fn(|word| wish[word] & possible[word]);
    if mask == [0; 16] { Err(EINVAL) } else { Ok(mask) }
}

/// The mask of a thread that is created with these attributes; none: that of the process.
///
/// # Safety
/// As for `pthread_create`.
pub(crate) unsafe fn of_new(
    creator: Option<Mask>,
    attributes: *const pthread_attr_t,
) -> Result<Option<Mask>, i32> {
    let mut wish: Mask = [u64::MAX; 16];
    // SAFETY: by the caller's promise; the mask is writable for the length passed.
    let told = !attributes.is_null()
        && unsafe {
            libc::pthread_attr_getaffinity_np(attributes, size_of::<Mask>(), wish.as_mut_ptr().cast()) == 0
        };
    // Attributes of which nobody said it have all that a mask can have.
    if told && wish != [u64::MAX; 16] { granted(&wish).map(Some) } else { Ok(creator) }
}

/// The thread that a number of the kernel's means, as system calls take it: 0 is the caller. None: not ours, or it has ended.
unsafe fn of_number(me: &mut Token, number: usize) -> Option<*mut Logical> {
    if number == 0 {
        return Some(me.thread());
    }
    let run = me.run();
    // SAFETY: threads in the list live as long as the run.
    unsafe {
        let is_it = |&&thread: &&*mut Logical| (*thread).kernel_id as usize == number;
        run.logicals.iter().rev().find(is_it).copied().filter(|&thread| !run.has_finished(thread))
    }
}

/// Writes a thread's mask as the kernel would; the bytes written or an error number.
unsafe fn tell(thread: *const Logical, len: usize, to: *mut u8) -> Result<usize, i32> {
    if !len.is_multiple_of(WORD) || len < FEWEST.load(Ordering::Relaxed) {
        return Err(EINVAL);
    }
    if to.is_null() {
        return Err(EFAULT);
    }
    // SAFETY: the thread lives; `to` is writable for `len` bytes by the promise of the program.
    unsafe {
        let mask = (*thread).affinity.unwrap_or_else(|| kept(&BEFORE));
        let taken = len.min(BYTES.load(Ordering::Relaxed));
        let known = taken.min(size_of::<Mask>());
        to.copy_from_nonoverlapping(mask.as_ptr().cast(), known);
        to.add(known).write_bytes(0, taken - known);
        Ok(taken)
    }
}

/// The same with zeroes behind the kernel's mask, as libc does it.
unsafe fn tell_whole(thread: *const Logical, len: usize, to: *mut u8) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe {
        match tell(thread, len, to) {
            Ok(taken) => {
                to.add(taken).write_bytes(0, len - taken);
                0
            }
            Err(error) => error,
        }
    }
}

/// Takes over what a thread is to have; an error number, or 0. A short mask has zeroes behind its end.
unsafe fn take(thread: *mut Logical, len: usize, from: *const u8) -> i32 {
    if from.is_null() && len > 0 {
        return EFAULT;
    }
    let mut wish: Mask = [0; 16];
    // SAFETY: the thread lives; `from` is readable for `len` bytes by the promise of the program.
    unsafe {
        wish.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from, len.min(size_of::<Mask>()));
        match granted(&wish) {
            Ok(mask) => {
                (*thread).affinity = Some(mask);
                0
            }
            Err(error) => error,
        }
    }
}

/// `sched_getaffinity` as a system call; none when it is about somebody else.
///
/// # Safety
/// As for the system call.
pub(super) unsafe fn get_by_number(me: &mut Token, number: usize, len: usize, to: *mut u8) -> Option<isize> {
    // SAFETY: by the caller's promise.
    unsafe {
        let thread = of_number(me, number)?;
        Some(tell(thread, len, to).map_or_else(|error| -(error as isize), |taken| taken as isize))
    }
}

/// `sched_setaffinity` as a system call; none when it is about somebody else.
///
/// # Safety
/// As for the system call.
pub(super) unsafe fn set_by_number(
    me: &mut Token,
    number: usize,
    len: usize,
    from: *const u8,
) -> Option<isize> {
    // SAFETY: by the caller's promise.
    unsafe {
        let thread = of_number(me, number)?;
        Some(-(take(thread, len, from) as isize))
    }
}

/// The processor that a thread is on: the first of those that it may use. Where a fiber runs means nothing to the program.
pub(crate) fn of_thread(me: &mut Token) -> u32 {
    // SAFETY: who has the token lives.
    let mask = unsafe { (*me.thread()).affinity }.unwrap_or_else(|| kept(&BEFORE));
    let first = mask.iter().enumerate().find(|(_, word)| **word != 0);
    first.map_or(0, |(place, word)| place as u32 * 64 + word.trailing_zeros())
}

interpose! {
    fn sched_getaffinity(process: pid_t, len: size_t, to: *mut c_void) -> c_int, |me| {
        match of_number(me, process as usize) {
            Some(thread) => match tell_whole(thread, len, to.cast()) {
                0 => 0,
                error => fail(error),
            },
            None => real::sched_getaffinity(process, len, to),
        }
    }

    fn sched_setaffinity(process: pid_t, len: size_t, from: *const c_void) -> c_int, |me| {
        match of_number(me, process as usize) {
            Some(thread) => match take(thread, len, from.cast()) {
                0 => 0,
                error => fail(error),
            },
            None => real::sched_setaffinity(process, len, from),
        }
    }

    fn pthread_setaffinity_np(handle: pthread_t, len: size_t, from: *const c_void) -> c_int, |me| {
        match lookup(me, handle as usize) {
            Some(thread) if me.run().has_finished(thread) => ESRCH,
            Some(thread) => take(thread, len, from.cast()),
            None => real::pthread_setaffinity_np(handle, len, from),
        }
    }

    fn pthread_getaffinity_np(handle: pthread_t, len: size_t, to: *mut c_void) -> c_int, |me| {
        match lookup(me, handle as usize) {
            Some(thread) if me.run().has_finished(thread) => ESRCH,
            Some(thread) => tell_whole(thread, len, to.cast()),
            None => real::pthread_getaffinity_np(handle, len, to),
        }
    }

    fn sched_getcpu() -> c_int, |me| { of_thread(me) as c_int }

    fn getcpu(processor: *mut c_uint, node: *mut c_uint) -> c_int, |me| {
        where_it_is(me, processor, node);
        0
    }
}

/// Writes where the calling thread is, on machines of one node.
///
/// # Safety
/// Both are null or writable.
pub(super) unsafe fn where_it_is(me: &mut Token, processor: *mut c_uint, node: *mut c_uint) {
    // SAFETY: by the caller's promise.
    unsafe {
        if let Some(processor) = processor.as_mut() {
            *processor = of_thread(me);
        }
        if let Some(node) = node.as_mut() {
            *node = 0;
        }
    }
}
