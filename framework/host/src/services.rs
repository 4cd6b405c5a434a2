//! The services that the contract promises to a test: thin functions over [`CallContext`].

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::Ordering;

use waylay_abi::{
    ABI_VERSION, Context, Distribution, FAILURE_EXCEPTION, FAILURE_PANIC, Failure, LOG_DEBUG, LOG_WARN,
    Services,
};
use waylay_dist::Dist;
use waylay_page::TestPhase;
use waylay_page::record::{MAX_FRAMES, Sort};

use crate::combine::COMBINE;
use crate::context::{CallContext, RunMode};

/// The one table that every plugin of this host is given.
pub(crate) static SERVICES: Services = Services {
    size: size_of::<Services>() as u32,
    abi_version: ABI_VERSION,
    fail: Some(fail),
    log: Some(log),
    cancelled: Some(cancelled),
    seed: Some(seed),
    distribution: Some(distribution),
    draw_int: Some(draw_int),
    draw_float: Some(draw_float),
    draw_nanos: Some(draw_nanos),
    acquire: Some(acquire),
    release: Some(release),
    progress: Some(progress),
    keep: Some(keep),
    combine: std::ptr::null(),
};

/// What a test that contains others may call.
pub(crate) static COMBINER_SERVICES: Services = Services { combine: &COMBINE, ..SERVICES };

/// # Safety
///
/// `from` is null or has `length` readable bytes.
unsafe fn bytes<'a>(from: *const c_char, length: usize) -> &'a [u8] {
    if from.is_null() {
        return &[];
    }
    // SAFETY: passed on to our caller.
    unsafe { std::slice::from_raw_parts(from.cast(), length) }
}

// For every function below the contract guarantees: `context` is alive and used on the threads that it may be used
// on, texts are NUL-terminated or come with their length, distributions come from `distribution`.

unsafe extern "C" fn fail(context: *mut Context, failure: *const Failure) {
    // SAFETY: see above.
    let (context, failure) = unsafe { (CallContext::from_raw(context), &*failure) };
    // SAFETY: see above.
    let message = unsafe { bytes(failure.message, failure.message_len) };
    let phase = TestPhase::load(&context.test.slot().phase);
    if phase <= TestPhase::Starting {
        let text = String::from_utf8_lossy(message).into_owned();
        let mut refusal = context.test.refusal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        refusal.get_or_insert(text);
        return;
    }
    let sort = match failure.kind {
        FAILURE_PANIC => Sort::Panic,
        FAILURE_EXCEPTION => Sort::Exception,
        _ => Sort::Assert,
    };
    if context.test.run_mode == RunMode::Counted {
        return context.hand_over(sort, message, &[]);
    }
    let (mut buffer, mut thrown) = ([0usize; MAX_FRAMES], [0usize; MAX_FRAMES]);
    let thrown = if matches!(sort, Sort::Exception) { crate::sys::thrown(&mut thrown) } else { None };
    let frames: &[usize] = if !failure.frames.is_null() && failure.frame_count > 0 {
        // SAFETY: the contract says that non-null `frames` has `frame_count` entries.
        unsafe { std::slice::from_raw_parts(failure.frames, failure.frame_count) }
    } else if let Some(frames) = thrown {
        frames
    } else {
        crate::sys::backtrace(&mut buffer)
    };
    context.hand_over(sort, message, frames);
}

unsafe extern "C" fn log(context: *mut Context, level: u32, text: *const c_char, length: usize) {
    // SAFETY: see above.
    let (context, text) = unsafe { (CallContext::from_raw(context), bytes(text, length)) };
    let level = match level {
        LOG_DEBUG => "debug",
        LOG_WARN => "warn",
        _ => "info",
    };
    let line = format!("[{level} {}] {}\n", context.test.name, String::from_utf8_lossy(text));
    crate::sys::write_stderr(line.as_bytes());
}

unsafe extern "C" fn cancelled(context: *mut Context) -> i32 {
    // SAFETY: see above.
    i32::from(unsafe { CallContext::from_raw(context) }.test.cancelled.load(Ordering::Relaxed))
}

unsafe extern "C" fn seed(context: *mut Context) -> u64 {
    // SAFETY: see above.
    unsafe { CallContext::from_raw(context) }.current_seed().get()
}

unsafe extern "C" fn distribution(context: *mut Context, name: *const c_char) -> *const Distribution {
    // SAFETY: see above.
    let (context, name) = unsafe { (CallContext::from_raw(context), CStr::from_ptr(name)) };
    let found =
        context.test.distributions.iter().find(|(candidate, _)| candidate.as_bytes() == name.to_bytes());
    found.map_or(std::ptr::null(), |(_, dist)| std::ptr::from_ref(dist).cast())
}

/// # Safety
///
/// `raw` must come from [`distribution`] of an instance that is alive.
#[inline]
unsafe fn dist<'a>(raw: *const Distribution) -> &'a Dist {
    // SAFETY: passed on to our caller; a null handle is a missing parameter that the test ignored.
    match unsafe { raw.cast::<Dist>().as_ref() } {
        Some(dist) => dist,
        None => missing_distribution(),
    }
}

#[cold]
fn missing_distribution() -> ! {
    crate::sys::write_stderr(
        b"waylay host: a test draws from a distribution that it does not have: declare it in the test's description\n",
    );
    std::process::abort();
}

unsafe extern "C" fn draw_int(context: *mut Context, distribution: *const Distribution) -> i64 {
    // SAFETY: see above.
    unsafe { CallContext::from_raw(context).with_rng(|rng| dist(distribution).sample_int(rng)) }
}

unsafe extern "C" fn draw_float(context: *mut Context, distribution: *const Distribution) -> f64 {
    // SAFETY: see above.
    unsafe { CallContext::from_raw(context).with_rng(|rng| dist(distribution).sample_float(rng)) }
}

unsafe extern "C" fn draw_nanos(context: *mut Context, distribution: *const Distribution) -> u64 {
    // SAFETY: see above.
    let drawn =
        unsafe { CallContext::from_raw(context).with_rng(|rng| dist(distribution).sample_duration(rng)) };
    u64::try_from(drawn.as_nanos()).unwrap_or(u64::MAX)
}

unsafe extern "C" fn acquire(context: *mut Context, kind: *const c_char) -> *mut c_void {
    // SAFETY: see above.
    unsafe { CallContext::from_raw(context).acquire(CStr::from_ptr(kind)) }
}

unsafe extern "C" fn release(context: *mut Context, object: *mut c_void) {
    // SAFETY: see above.
    unsafe { CallContext::from_raw(context).release(object) }
}

unsafe extern "C" fn keep(context: *mut Context, object: *mut c_void) -> i32 {
    // SAFETY: see above.
    i32::from(unsafe { CallContext::from_raw(context).keep(object) })
}

unsafe extern "C" fn progress(context: *mut Context) {
    // SAFETY: see above.
    if let Some(slot) = unsafe { CallContext::from_raw(context) }.worker_slot() {
        slot.progress.store(slot.progress.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}
