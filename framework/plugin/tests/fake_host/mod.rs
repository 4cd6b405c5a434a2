//! A host that is just large enough to run a test: services over plain Rust values, and what they were asked to do.

#![allow(dead_code, reason = "each test file uses another part of the fake host")]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use waylay_abi as abi;

unsafe extern "C" {
    pub(crate) safe fn WaylayPlugin() -> *const abi::PluginInfo;
    fn CreateInstance(args: *const abi::CreateArgs) -> *mut abi::Instance;
    fn DestroyInstance(instance: *mut abi::Instance);
}

/// What a test reported.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    pub(crate) kind: u32,
    pub(crate) message: String,
    pub(crate) frames: Vec<usize>,
}

/// Everything behind a context pointer; the instance and all workers share it.
#[derive(Default)]
pub(crate) struct Host {
    pub(crate) failures: Mutex<Vec<Reported>>,
    pub(crate) log: Mutex<Vec<(u32, String)>>,
    pub(crate) cancelled: AtomicBool,
    pub(crate) seed: AtomicU64,
    pub(crate) progressed: AtomicU64,
    /// What each distribution yields, in a circle.
    pub(crate) values: HashMap<&'static str, Box<Circle>>,
    /// What `acquire` lends, by kind.
    pub(crate) objects: Mutex<HashMap<String, usize>>,
    pub(crate) released: Mutex<Vec<usize>>,
    pub(crate) kept: Mutex<Vec<usize>>,
}

#[derive(Default)]
pub(crate) struct Circle {
    values: Vec<i64>,
    next: AtomicU64,
}

impl Host {
    pub(crate) fn with(values: &[(&'static str, &[i64])]) -> Self {
        let values = values
            .iter()
            .map(|(name, values)| {
                (*name, Box::new(Circle { values: values.to_vec(), next: AtomicU64::new(0) }))
            })
            .collect();
        Self { values, ..Self::default() }
    }

    pub(crate) fn raw(&self) -> *mut abi::Context {
        (&raw const *self).cast_mut().cast()
    }

    pub(crate) fn failures(&self) -> Vec<Reported> {
        std::mem::take(&mut self.failures.lock().unwrap())
    }

    /// Makes an instance of the test.
    pub(crate) fn create(&self, test: &str) -> Option<Live<'_>> {
        self.create_with(test, &SERVICES)
    }

    pub(crate) fn create_with(&self, test: &str, services: &abi::Services) -> Option<Live<'_>> {
        // SAFETY: the functions of the linked plugin, which is never unloaded.
        unsafe { self.create_from(CreateInstance, DestroyInstance, test, services) }
    }

    /// Makes an instance of a test in a plugin that was loaded.
    ///
    /// # Safety
    ///
    /// The functions are those of one plugin, which stays loaded longer than the instance lives.
    pub(crate) unsafe fn create_from(
        &self,
        create: abi::CreateEntry,
        destroy: abi::DestroyEntry,
        test: &str,
        services: &abi::Services,
    ) -> Option<Live<'_>> {
        let test = CString::new(test).unwrap();
        let args = abi::CreateArgs {
            size: size_of::<abi::CreateArgs>() as u32,
            abi_version: abi::ABI_VERSION,
            test: test.as_ptr(),
            services,
            context: self.raw(),
        };
        // SAFETY: `args` is as the contract says; `self` outlives the `Live`.
        let instance = unsafe { create(&raw const args) };
        (!instance.is_null()).then(|| Live { host: self, destroy, instance })
    }
}

/// An instance; destroyed when dropped.
pub(crate) struct Live<'h> {
    host: &'h Host,
    destroy: abi::DestroyEntry,
    pub(crate) instance: *mut abi::Instance,
}

// SAFETY: an instance takes calls from any thread.
unsafe impl Sync for Live<'_> {}

impl Live<'_> {
    fn calls(&self) -> &abi::Instance {
        // SAFETY: the instance lives until `self` is dropped.
        unsafe { &*self.instance }
    }
    pub(crate) fn start(&self) -> i32 {
        // SAFETY: the instance lives; the tests call in the order of the contract, here and below.
        self.calls().on_test_start.map_or(abi::STATUS_OK, |call| unsafe { call(self.instance) })
    }
    pub(crate) fn main(&self) -> i32 {
        // SAFETY: as in `start`.
        unsafe { (self.calls().test_main.unwrap())(self.instance, self.host.raw()) }
    }
    pub(crate) fn cancel(&self) {
        if let Some(call) = self.calls().on_test_cancelled {
            // SAFETY: as in `start`.
            unsafe { call(self.instance) }
        }
    }
    pub(crate) fn end(&self) {
        if let Some(call) = self.calls().on_test_end {
            // SAFETY: as in `start`.
            unsafe { call(self.instance) }
        }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `CreateInstance`, destroyed once.
        unsafe { (self.destroy)(self.instance) }
    }
}

unsafe fn host<'h>(context: *mut abi::Context) -> &'h Host {
    // SAFETY: every context in these tests is a `Host`.
    unsafe { &*context.cast::<Host>() }
}

unsafe fn text(from: *const c_char, length: usize) -> String {
    // SAFETY: the SDK passes a pointer and its length.
    String::from_utf8(unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) }.to_vec()).unwrap()
}

unsafe extern "C" fn fail(context: *mut abi::Context, failure: *const abi::Failure) {
    // SAFETY: the SDK passes a failure as the contract says.
    let reported = unsafe {
        let failure = &*failure;
        let frames = if failure.frames.is_null() {
            Vec::new()
        } else {
            std::slice::from_raw_parts(failure.frames, failure.frame_count).to_vec()
        };
        Reported { kind: failure.kind, message: text(failure.message, failure.message_len), frames }
    };
    // SAFETY: a context of ours.
    unsafe { host(context) }.failures.lock().unwrap().push(reported);
}

unsafe extern "C" fn log(context: *mut abi::Context, level: u32, from: *const c_char, length: usize) {
    // SAFETY: a context of ours, and a text with its length.
    unsafe { host(context).log.lock().unwrap().push((level, text(from, length))) }
}

unsafe extern "C" fn cancelled(context: *mut abi::Context) -> i32 {
    // SAFETY: a context of ours.
    i32::from(unsafe { host(context) }.cancelled.load(Ordering::Relaxed))
}

unsafe extern "C" fn seed(context: *mut abi::Context) -> u64 {
    // SAFETY: a context of ours.
    unsafe { host(context) }.seed.load(Ordering::Relaxed)
}

unsafe extern "C" fn distribution(
    context: *mut abi::Context,
    name: *const c_char,
) -> *const abi::Distribution {
    // SAFETY: a context of ours, and a name as the contract says.
    let (host, name) = unsafe { (host(context), CStr::from_ptr(name)) };
    match host.values.get(name.to_str().unwrap()) {
        Some(circle) => (&raw const **circle).cast(),
        None => std::ptr::null(),
    }
}

unsafe extern "C" fn draw_int(_: *mut abi::Context, from: *const abi::Distribution) -> i64 {
    // SAFETY: `distribution` gave it.
    let circle = unsafe { &*from.cast::<Circle>() };
    let at = circle.next.fetch_add(1, Ordering::Relaxed) as usize;
    circle.values[at % circle.values.len()]
}

unsafe extern "C" fn draw_float(context: *mut abi::Context, from: *const abi::Distribution) -> f64 {
    // SAFETY: as `draw_int`.
    unsafe { draw_int(context, from) as f64 / 2.0 }
}

unsafe extern "C" fn draw_nanos(context: *mut abi::Context, from: *const abi::Distribution) -> u64 {
    // SAFETY: as `draw_int`.
    unsafe { draw_int(context, from) as u64 }
}

unsafe extern "C" fn acquire(context: *mut abi::Context, kind: *const c_char) -> *mut c_void {
    // SAFETY: a context of ours, and a name as the contract says.
    let (host, kind) = unsafe { (host(context), CStr::from_ptr(kind)) };
    host.objects.lock().unwrap().get(kind.to_str().unwrap()).copied().unwrap_or(0) as *mut c_void
}

unsafe extern "C" fn release(context: *mut abi::Context, object: *mut c_void) {
    // SAFETY: a context of ours.
    unsafe { host(context) }.released.lock().unwrap().push(object as usize);
}

unsafe extern "C" fn keep(context: *mut abi::Context, object: *mut c_void) -> i32 {
    // SAFETY: as above.
    unsafe { host(context) }.kept.lock().unwrap().push(object as usize);
    1
}
unsafe extern "C" fn progress(context: *mut abi::Context) {
    // SAFETY: a context of ours.
    unsafe { host(context) }.progressed.fetch_add(1, Ordering::Relaxed);
}

pub(crate) static SERVICES: abi::Services = abi::Services {
    size: size_of::<abi::Services>() as u32,
    abi_version: abi::ABI_VERSION,
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
