//! What an iteration costs on top of the call of `TestMain`, with progress and hang detection on.

use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::time::Instant;

use libloading::Library;
use waylay_abi as abi;

use crate::Line;
use crate::campaign::Campaign;

/// Calls that the bare figure is taken over.
const CALLS: u32 = 20_000_000;
/// Attempts; the best counts, because everything else that a machine does can only make one slower.
const ATTEMPTS: u32 = 3;

pub(crate) fn measure() -> Vec<Line> {
    let bare = (0..ATTEMPTS).map(|_| bare_call()).fold(f64::INFINITY, f64::min);
    [1, 2]
        .into_iter()
        .map(|workers| {
            let hosted = (0..ATTEMPTS).map(|_| hosted_iteration(workers)).fold(f64::INFINITY, f64::min);
            let added = hosted - bare;
            Line {
                what: format!("empty iteration on top of the call, {workers} worker(s)"),
                measured: format!("{added:.1} ns ({hosted:.1} - {bare:.1})"),
                promised: "at most 60 ns",
                holds: added <= 60.0,
            }
        })
        .collect()
}

fn hosted_iteration(workers: u32) -> f64 {
    let config = format!(
        "duration = '2s'\n[[scenario]]\nname = 'empty'\n[[scenario.test]]\nplugin = 'waylay_faults'\n\
         name = 'nothing'\nworkers = {workers}\n"
    );
    Campaign::run(&config).test("nothing")["average_ns"].as_f64().expect("average")
}

/// The call alone, through the same library.
fn bare_call() -> f64 {
    let plugin =
        Path::new(env!("CARGO_BIN_EXE_waylay")).parent().expect("folder").join("deps/libwaylay_faults.so");
    // SAFETY: the plugin runs nothing of its own when loaded; the contract gives the types of the two functions, the
    // order of the calls and what the arguments must hold. `nothing` asks for no service.
    unsafe {
        let library = Library::new(plugin).expect("plugin");
        let create = library.get::<abi::CreateEntry>(abi::CREATE_SYMBOL).expect("symbol");
        let destroy = library.get::<abi::DestroyEntry>(abi::DESTROY_SYMBOL).expect("symbol");
        let name = CString::new("nothing").expect("name");
        let mut context = 0u64;
        let args = abi::CreateArgs {
            size: size_of::<abi::CreateArgs>() as u32,
            abi_version: abi::ABI_VERSION,
            test: name.as_ptr(),
            services: &SERVICES,
            context: (&raw mut context).cast(),
        };
        let instance = create(&args);
        assert!(!instance.is_null(), "the plugin makes no instance");
        let main = (*instance).test_main.expect("main");
        if let Some(start) = (*instance).on_test_start {
            assert_eq!(start(instance), abi::STATUS_OK);
        }
        let began = Instant::now();
        for _ in 0..CALLS {
            std::hint::black_box(main(instance, args.context));
        }
        let took = began.elapsed();
        destroy(instance);
        took.as_nanos() as f64 / f64::from(CALLS)
    }
}

static SERVICES: abi::Services = abi::Services {
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

unsafe extern "C" fn fail(_: *mut abi::Context, _: *const abi::Failure) {
    panic!("a test that does nothing failed");
}
unsafe extern "C" fn log(_: *mut abi::Context, _: u32, _: *const c_char, _: usize) {}
unsafe extern "C" fn cancelled(_: *mut abi::Context) -> i32 {
    0
}
unsafe extern "C" fn seed(_: *mut abi::Context) -> u64 {
    0
}
unsafe extern "C" fn distribution(_: *mut abi::Context, _: *const c_char) -> *const abi::Distribution {
    std::ptr::null()
}
unsafe extern "C" fn draw_int(_: *mut abi::Context, _: *const abi::Distribution) -> i64 {
    0
}
unsafe extern "C" fn draw_float(_: *mut abi::Context, _: *const abi::Distribution) -> f64 {
    0.0
}
unsafe extern "C" fn draw_nanos(_: *mut abi::Context, _: *const abi::Distribution) -> u64 {
    0
}
unsafe extern "C" fn acquire(_: *mut abi::Context, _: *const c_char) -> *mut c_void {
    std::ptr::null_mut()
}
unsafe extern "C" fn release(_: *mut abi::Context, _: *mut c_void) {}
unsafe extern "C" fn keep(_: *mut abi::Context, _: *mut c_void) -> i32 {
    0
}
unsafe extern "C" fn progress(_: *mut abi::Context) {}
