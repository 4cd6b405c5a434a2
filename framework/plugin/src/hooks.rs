//! Hooks into a combiner: called when a contained test is loaded, unloaded, and begins and ends a turn.

use crate::combine::{Contained, Ran};
use crate::panic_site;
use std::ffi::{c_char, c_void};
use waylay_abi as abi;

/// Looks into a melting pot; listed under `hooks` in [`export!`](crate::export) and named under `hooks` in the
/// configuration of a pot. One instance per pot.
///
/// A panic in a hook is written to the host's log and goes no further.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use waylay_plugin::{Contained, Hooks, Ran};
///
/// #[derive(Default)]
/// struct Longest(AtomicU64);
///
/// impl Hooks for Longest {
///     const NAME: &'static str = "longest";
///     const ABOUT: &'static str = "remembers the longest turn";
///
///     fn create() -> Self {
///         Self::default()
///     }
///
///     fn on_stop(&self, _test: &Contained, _worker: u32, ran: Ran) {
///         self.0.fetch_max(ran.time.as_nanos() as u64, Ordering::Relaxed);
///     }
/// }
/// # waylay_plugin::export! { name: "looking", tests: [], hooks: [Longest] }
/// # fn main() {}
/// ```
pub trait Hooks: Send + Sync + 'static {
    /// The name by which a configuration calls them.
    const NAME: &'static str;
    /// One line for people.
    const ABOUT: &'static str;

    /// Makes the hooks of one pot.
    fn create() -> Self
    where
        Self: Sized;

    /// A contained test was created and started. One call at a time.
    fn on_load(&self, test: &Contained) {
        let _ = test;
    }

    /// A contained test is about to be ended and destroyed. One call at a time.
    fn on_unload(&self, test: &Contained) {
        let _ = test;
    }

    /// A worker is about to run a contained test. On the worker's thread, many calls at the same time.
    fn on_start(&self, test: &Contained, worker: u32) {
        let _ = (test, worker);
    }

    /// The worker's turn is over. On the worker's thread, many calls at the same time.
    fn on_stop(&self, test: &Contained, worker: u32, ran: Ran) {
        let _ = (test, worker, ran);
    }
}

/// The description of hooks.
pub struct HooksEntry(abi::HooksInfo, &'static str, &'static str);

impl HooksEntry {
    /// The description of `H`.
    pub const fn of<H: Hooks>() -> Self {
        let info = abi::HooksInfo {
            size: size_of::<abi::HooksInfo>() as u32,
            flags: 0,
            name: std::ptr::null(),
            about: std::ptr::null(),
            create: Some(create::<H>),
            destroy: Some(destroy::<H>),
            on_load: Some(on_load::<H>),
            on_unload: Some(on_unload::<H>),
            on_start: Some(on_start::<H>),
            on_stop: Some(on_stop::<H>),
        };
        Self(info, H::NAME, H::ABOUT)
    }

    pub(crate) fn describe(&self, text: impl Fn(&str) -> *const c_char) -> abi::HooksInfo {
        abi::HooksInfo { name: text(self.1), about: text(self.2), ..self.0 }
    }
}

fn guarded<T>(name: &str, body: impl FnOnce() -> T) -> Option<T> {
    panic_site::install();
    panic_site::guard(body)
        .map_err(|failed| eprintln!("the hooks {name} panicked: {}", failed.message()))
        .ok()
}

extern "C" fn create<H: Hooks>() -> *mut c_void {
    guarded(H::NAME, || Box::into_raw(Box::new(H::create())).cast()).unwrap_or(std::ptr::null_mut())
}

/// # Safety
///
/// For this and those below: `hooks` came from [`create`] of the same `H` and is not destroyed; `test` and `ran` are
/// what the contract says.
unsafe extern "C" fn destroy<H: Hooks>(hooks: *mut c_void) {
    // SAFETY: made by `Box::into_raw`, and the caller gives it up.
    guarded(H::NAME, || drop(unsafe { Box::from_raw(hooks.cast::<H>()) }));
}

unsafe extern "C" fn on_load<H: Hooks>(hooks: *mut c_void, test: *const abi::ContainedInfo) {
    // SAFETY: see `destroy`.
    let (hooks, test) = unsafe { (&*hooks.cast::<H>(), Contained::read(&*test)) };
    guarded(H::NAME, || hooks.on_load(&test));
}

unsafe extern "C" fn on_unload<H: Hooks>(hooks: *mut c_void, test: *const abi::ContainedInfo) {
    // SAFETY: see `destroy`.
    let (hooks, test) = unsafe { (&*hooks.cast::<H>(), Contained::read(&*test)) };
    guarded(H::NAME, || hooks.on_unload(&test));
}

unsafe extern "C" fn on_start<H: Hooks>(hooks: *mut c_void, test: *const abi::ContainedInfo, worker: u32) {
    // SAFETY: see `destroy`.
    let (hooks, test) = unsafe { (&*hooks.cast::<H>(), Contained::read(&*test)) };
    guarded(H::NAME, || hooks.on_start(&test, worker));
}

unsafe extern "C" fn on_stop<H: Hooks>(
    hooks: *mut c_void,
    test: *const abi::ContainedInfo,
    worker: u32,
    ran: *const abi::Ran,
) {
    // SAFETY: see `destroy`.
    let (hooks, test, ran) = unsafe { (&*hooks.cast::<H>(), Contained::read(&*test), Ran::of(&*ran)) };
    guarded(H::NAME, || hooks.on_stop(&test, worker, ran));
}
