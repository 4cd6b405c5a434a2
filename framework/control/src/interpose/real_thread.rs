//! libc's own thread functions, for the library's own use.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

use libc::{pthread_attr_t, pthread_t};

use crate::runtime::Routine;

crate::real::real! {
    pthread_create(
        handle: *mut pthread_t,
        attributes: *const pthread_attr_t,
        routine: Routine,
        argument: *mut c_void
    ) -> i32;
    pthread_join(handle: pthread_t, result: *mut *mut c_void) -> i32;
    pthread_detach(handle: pthread_t) -> i32;
}

/// Creates a thread that nobody joins.
///
/// # Safety
/// The caller is unmanaged at the moment.
pub(crate) unsafe fn create_detached(routine: Routine) -> Result<(), i32> {
    let mut handle: pthread_t = 0;
    // SAFETY: default attributes; the routine takes no argument.
    unsafe {
        match pthread_create(&raw mut handle, core::ptr::null(), routine, core::ptr::null_mut()) {
            0 => {
                pthread_detach(handle);
                Ok(())
            }
            error => Err(error),
        }
    }
}

/// Stacks below this size get some more, because the steps of a thread are made on its own stack.
const SMALL: usize = 256 << 10;
const ROOM: usize = 128 << 10;

/// How large the stack has to be for a program that asks for so much.
pub(crate) fn with_room(stack_size: usize) -> usize {
    if stack_size < SMALL { stack_size + ROOM } else { stack_size }
}

/// Creates a thread, with a larger stack where that of the attributes is small. Stacks of the program's own stay what they
/// are.
///
/// # Safety
/// As for `pthread_create`; `stack_size` is what [`stack_size`] says of the attributes.
pub(crate) unsafe fn create_with_room(
    handle: *mut pthread_t,
    attributes: *const pthread_attr_t,
    stack_size: Option<usize>,
    routine: Routine,
    argument: *mut c_void,
) -> i32 {
    // SAFETY: by the caller's promise. The copy shares what the attributes point to, and is only read and never destroyed.
    unsafe {
        match stack_size {
            Some(size) if size > 0 && with_room(size) > size => {
                let mut larger = attributes.read();
                libc::pthread_attr_setstacksize(&raw mut larger, with_room(size));
                pthread_create(handle, &raw const larger, routine, argument)
            }
            _ => pthread_create(handle, attributes, routine, argument),
        }
    }
}

/// Whether a thread with these attributes starts detached.
///
/// # Safety
/// `attributes` is null or initialised.
pub(crate) unsafe fn is_detached(attributes: *const pthread_attr_t) -> bool {
    let mut state = libc::PTHREAD_CREATE_JOINABLE;
    // SAFETY: by the caller's promise.
    unsafe {
        !attributes.is_null()
            && pthread_attr_getdetachstate(attributes, &raw mut state) == 0
            && state == libc::PTHREAD_CREATE_DETACHED
    }
}

/// The stack size that a thread with these attributes asks for, 0 for the default; `None` when it brings a stack of its
/// own, so that no other thread can stand in for it.
///
/// # Safety
/// `attributes` is null or initialised.
pub(crate) unsafe fn stack_size(attributes: *const pthread_attr_t) -> Option<usize> {
    if attributes.is_null() {
        return Some(0);
    }
    let (mut size, mut low) = (0, core::ptr::null_mut());
    // SAFETY: by the caller's promise. glibc answers with an address below the (null) top of an unset stack.
    unsafe {
        pthread_attr_getstack(attributes, &raw mut low, &raw mut size);
        low.wrapping_byte_add(size).is_null().then_some(size)
    }
}

/// Whether a key is the one whose destructor notices the end of a thread.
pub(crate) fn is_last_words(key: u32) -> bool {
    LAST_WORDS.load(Ordering::Relaxed) == key
}

/// The key whose destructor notices the end of a thread.
static LAST_WORDS: AtomicU32 = AtomicU32::new(u32::MAX);

/// Makes the key. Called once, when the library is loaded, so that the key comes early and its value is inside the
/// thread's own block: setting it never allocates.
pub(crate) fn make_key(destructor: unsafe extern "C" fn(*mut c_void)) {
    let mut key = 0;
    // SAFETY: the destructor is a function of ours that stays loaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) } == 0 {
        LAST_WORDS.store(key, Ordering::Relaxed);
    }
}

/// Sets the calling thread's value of the key.
///
/// # Safety
/// `value` is what the destructor expects.
pub(crate) unsafe fn set_last_words(value: *const c_void) {
    // SAFETY: the key exists.
    unsafe { libc::pthread_setspecific(LAST_WORDS.load(Ordering::Relaxed), value) };
}

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: *const pthread_attr_t, state: *mut i32) -> i32;
    fn pthread_attr_getstack(
        attributes: *const pthread_attr_t,
        low: *mut *mut c_void,
        size: *mut usize,
    ) -> i32;
}
