//! The contract between a test plugin and the host that runs it: ISTS, the individual stress test structure.
//!
//! A plugin is a dynamic library that exports three C functions:
//!
//! | symbol | type | meaning |
//! |---|---|---|
//! | `WaylayPlugin` | [`PluginEntry`] | which tests and shared kinds are inside; carries version and size |
//! | `CreateInstance` | [`CreateEntry`] | makes one test instance |
//! | `DestroyInstance` | [`DestroyEntry`] | destroys it |
//!
//! # The life of an instance
//!
//! | call | when | on which thread |
//! |---|---|---|
//! | `CreateInstance` | first; should be cheap | any |
//! | `OnTestStart` | once; when it fails only `DestroyInstance` follows | any |
//! | `TestMain` | again and again after a start that went well | all workers, at the same time |
//! | `OnTestCancelled` | at most once, after the start, while workers may be inside `TestMain`; must be quick | any |
//! | `OnTestEnd` | once, after the last `TestMain` and `OnTestCancelled` returned | any |
//! | `DestroyInstance` | last | any |
//!
//! So a test needs no lock of its own between `OnTestStart`, `OnTestEnd` and the rest: the host orders them.
//!
//! This crate is types only. `include/waylay.h` says the same in C11 and `include/waylay.hpp` wraps it for C++17;
//! `tests/layout.rs` compiles both and compares every size and offset with the ones here.
//!
//! # How the contract may grow
//!
//! Every struct begins with its own size. A later host reads only the bytes that an older plugin declared, and a
//! later plugin asks `size` before it uses a field that an older host may lack. [`ABI_VERSION`] changes only when
//! that rule cannot hold; a host refuses any other version and names the file.

#![no_std]

use core::ffi::{c_char, c_void};

/// The version of this contract. See the crate documentation for when it changes.
pub const ABI_VERSION: u32 = 1;

/// Name of the exported [`PluginEntry`] function.
pub const PLUGIN_SYMBOL: &str = "WaylayPlugin";
/// Name of the exported [`CreateEntry`] function.
pub const CREATE_SYMBOL: &str = "CreateInstance";
/// Name of the exported [`DestroyEntry`] function.
pub const DESTROY_SYMBOL: &str = "DestroyInstance";

/// `OnTestStart` and `TestMain`: went well.
pub const STATUS_OK: i32 = 0;
/// `OnTestStart`: cannot run; `TestMain`: this iteration failed. Say why with [`Services::fail`] first.
pub const STATUS_FAILED: i32 = 1;
/// `TestMain`: nothing more to do, do not call this worker again. Not a failure.
pub const STATUS_DONE: i32 = 2;

/// A failure that the test itself noticed.
pub const FAILURE_ASSERT: u32 = 0;
/// A Rust panic that reached the boundary.
pub const FAILURE_PANIC: u32 = 1;
/// A C++ exception that reached the boundary.
pub const FAILURE_EXCEPTION: u32 = 2;

/// Log level: detail that only matters when something broke.
pub const LOG_DEBUG: u32 = 0;
/// Log level: worth a line.
pub const LOG_INFO: u32 = 1;
/// Log level: a person should look.
pub const LOG_WARN: u32 = 2;

/// [`TestInfo::flags`]: this test runs other tests, which the configuration names under `contains`. Only such a test
/// may use [`Services::combine`].
pub const TEST_COMBINES: u32 = 1;

/// [`Turn::flags`]: run the iteration [`Turn::iteration`] again and again instead of going on to the next.
pub const TURN_REPEAT: u32 = 1;

/// State of a contained test: not loaded yet, or unloaded.
pub const CONTAINED_UNLOADED: u32 = 0;
/// State of a contained test: can be run.
pub const CONTAINED_READY: u32 = 1;
/// State of a contained test: failed too often, had nothing more to do, could not be loaded, or is cancelled.
pub const CONTAINED_RETIRED: u32 = 2;

/// What the host knows about a caller; only the host looks inside.
///
/// There are two sorts. The *instance* context, handed over in [`CreateArgs`], may be used from any thread at any
/// time until `DestroyInstance` returns. A *worker* context, handed to `TestMain`, is for the thread that received it
/// and only until that call returns; drawing from it takes no lock, and what it draws depends on nothing but the seed,
/// the test's name, the worker's number and the iteration's number. [`Services::fail`], [`Services::log`],
/// [`Services::cancelled`] and [`Services::progress`] accept a worker context on other threads too, for threads that
/// the iteration started itself and joins before it returns.
#[repr(C)]
pub struct Context {
    _opaque: [u8; 0],
}

/// A named random distribution of a test; only the host looks inside. Lives as long as the instance.
#[repr(C)]
pub struct Distribution {
    _opaque: [u8; 0],
}

/// What `WaylayPlugin` returns: a static that describes the whole plugin.
#[repr(C)]
pub struct PluginInfo {
    /// `size_of::<PluginInfo>()` as the plugin was compiled.
    pub size: u32,
    /// [`ABI_VERSION`] as the plugin was compiled.
    pub abi_version: u32,
    /// The plugin's name, UTF-8, NUL-terminated.
    pub name: *const c_char,
    /// `test_count` pointers to descriptions.
    pub tests: *const *const TestInfo,
    /// `kind_count` pointers to descriptions of shared kinds that this plugin can make.
    pub kinds: *const *const KindInfo,
    /// How many tests.
    pub test_count: u32,
    /// How many shared kinds.
    pub kind_count: u32,
    /// `hook_count` pointers to descriptions of hooks that a combiner may be given. There only if `size` reaches past
    /// `hook_count`: plugins of before it have none.
    pub hooks: *const *const HooksInfo,
    /// How many hooks.
    pub hook_count: u32,
    /// Zero; for later.
    pub reserved: u32,
}

/// Bytes that a [`PluginInfo`] has at least: those before [`PluginInfo::hooks`].
pub const PLUGIN_INFO_LEAST: usize = core::mem::offset_of!(PluginInfo, hooks);

/// One test of a plugin.
#[repr(C)]
pub struct TestInfo {
    /// `size_of::<TestInfo>()` as the plugin was compiled.
    pub size: u32,
    /// Zero, or [`TEST_COMBINES`].
    pub flags: u32,
    /// The test's name, unique in the plugin, UTF-8, NUL-terminated.
    pub name: *const c_char,
    /// One line: what bug this test would notice. May be null.
    pub about: *const c_char,
    /// `param_count` pointers to the distributions that the test draws from.
    pub params: *const *const ParamInfo,
    /// `take_count` names of the shared kinds that the test can take.
    pub takes: *const *const c_char,
    /// How many parameters.
    pub param_count: u32,
    /// How many kinds.
    pub take_count: u32,
}

/// One parameter of a test: a distribution that the configuration may replace.
#[repr(C)]
pub struct ParamInfo {
    /// `size_of::<ParamInfo>()` as the plugin was compiled.
    pub size: u32,
    /// Zero; for later.
    pub flags: u32,
    /// The parameter's name, as in the configuration.
    pub name: *const c_char,
    /// The default as one TOML value, for example `{ uniform = { min = 1, max = 64 } }`. May be null: then the
    /// configuration must give one.
    pub default_value: *const c_char,
    /// One line for people. May be null.
    pub about: *const c_char,
}

/// A kind of object that several tests can work on at the same time.
///
/// Who owns what, and for how long:
///
/// - The host owns every object, from `create` to `destroy`; nobody else calls either. Tests outside of a combiner
///   share one object per kind. A combiner has a pool of each kind that its tests take: as many objects as the
///   configuration says, each replaced by a new one after it was lent as often as the configuration says.
/// - A test that was lent an object by [`Services::acquire`] may use it, at the same time as others, until it gives it
///   back with [`Services::release`] or `TestMain` returns, whichever is first.
/// - A test that wants an object for longer says so with [`Services::keep`]: the object is then the instance's, until
///   the instance releases it or is destroyed.
/// - An object that was replaced is lent to nobody any more and destroyed when the last holder has given it back.
#[repr(C)]
pub struct KindInfo {
    /// `size_of::<KindInfo>()` as the plugin was compiled.
    pub size: u32,
    /// Zero; for later.
    pub flags: u32,
    /// The kind's name; tests of any plugin ask for it by this name.
    pub name: *const c_char,
    /// One line for people. May be null.
    pub about: *const c_char,
    /// Makes one object, or returns null. Must not unwind.
    pub create: Option<unsafe extern "C" fn() -> *mut c_void>,
    /// Destroys one object. Must not unwind.
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
}

/// What `CreateInstance` is told.
#[repr(C)]
pub struct CreateArgs {
    /// `size_of::<CreateArgs>()` as the host was compiled.
    pub size: u32,
    /// [`ABI_VERSION`] of the host.
    pub abi_version: u32,
    /// Which of the plugin's tests to make.
    pub test: *const c_char,
    /// What the host does for the test. Lives until `DestroyInstance` returns.
    pub services: *const Services,
    /// The instance context.
    pub context: *mut Context,
}

/// One live test: made by `CreateInstance`, destroyed by `DestroyInstance`.
#[repr(C)]
pub struct Instance {
    /// `size_of::<Instance>()` as the plugin was compiled.
    pub size: u32,
    /// Zero; for later.
    pub flags: u32,
    /// Called once, before any `TestMain`. A status. May be `None`.
    pub on_test_start: Option<unsafe extern "C" fn(*mut Instance) -> i32>,
    /// Called again and again on every worker, with the worker's context. A status. Required.
    pub test_main: Option<unsafe extern "C" fn(*mut Instance, *mut Context) -> i32>,
    /// Called at most once, from any thread, when the test is to stop. May be `None`.
    pub on_test_cancelled: Option<unsafe extern "C" fn(*mut Instance)>,
    /// Called once, after the last `TestMain` returned. May be `None`.
    pub on_test_end: Option<unsafe extern "C" fn(*mut Instance)>,
    /// The plugin's own.
    pub state: *mut c_void,
}

/// A failure as a test reports it.
#[repr(C)]
pub struct Failure {
    /// `size_of::<Failure>()` as the plugin was compiled.
    pub size: u32,
    /// One of `FAILURE_*`.
    pub kind: u32,
    /// What is wrong, UTF-8, `message_len` bytes.
    pub message: *const c_char,
    /// Length of `message`.
    pub message_len: usize,
    /// Return addresses of the place that failed, innermost first, when they are known better than from where
    /// [`Services::fail`] is called. May be null.
    pub frames: *const usize,
    /// How many `frames`.
    pub frame_count: usize,
}

/// What the host does for a test. All functions may be called as [`Context`] says; none unwinds.
#[repr(C)]
pub struct Services {
    /// `size_of::<Services>()` as the host was compiled.
    pub size: u32,
    /// [`ABI_VERSION`] of the host.
    pub abi_version: u32,
    /// Reports a failure. Returns after the evidence was taken; the test then goes on to return from `TestMain`.
    pub fail: Option<unsafe extern "C" fn(*mut Context, *const Failure)>,
    /// Writes a line (`level`, text, length) to the host's log.
    pub log: Option<unsafe extern "C" fn(*mut Context, u32, *const c_char, usize)>,
    /// 1 once the test is to stop, else 0.
    pub cancelled: Option<unsafe extern "C" fn(*mut Context) -> i32>,
    /// The seed of this iteration (worker context) or of this test (instance context).
    pub seed: Option<unsafe extern "C" fn(*mut Context) -> u64>,
    /// The distribution of that name, or null if the test has none of that name.
    pub distribution: Option<unsafe extern "C" fn(*mut Context, *const c_char) -> *const Distribution>,
    /// Draws an integer.
    pub draw_int: Option<unsafe extern "C" fn(*mut Context, *const Distribution) -> i64>,
    /// Draws a real number.
    pub draw_float: Option<unsafe extern "C" fn(*mut Context, *const Distribution) -> f64>,
    /// Draws a duration in nanoseconds.
    pub draw_nanos: Option<unsafe extern "C" fn(*mut Context, *const Distribution) -> u64>,
    /// Lends an object of that kind, or null when nobody provides the kind. Held until released, or until this
    /// iteration's `TestMain` returns.
    pub acquire: Option<unsafe extern "C" fn(*mut Context, *const c_char) -> *mut c_void>,
    /// Gives an object back: with a worker context one that this iteration holds, with the instance context one that
    /// was kept. Anything else is ignored.
    pub release: Option<unsafe extern "C" fn(*mut Context, *mut c_void)>,
    /// Says that the iteration is getting somewhere: a long iteration that does is slow, not stuck.
    pub progress: Option<unsafe extern "C" fn(*mut Context)>,
    /// Keeps an object that this iteration holds (worker context) past its end: it is the instance's until it is
    /// released with the instance context, or until the instance is destroyed. 1, or 0 when the iteration does not
    /// hold it.
    pub keep: Option<unsafe extern "C" fn(*mut Context, *mut c_void) -> i32>,
    /// For tests with [`TEST_COMBINES`], else null.
    pub combine: *const Combine,
}

// SAFETY: a table of functions that is never changed.
unsafe impl Sync for Services {}

/// What the host does for a test that runs other tests. Lives as long as the [`Services`]; none unwinds.
///
/// The contained tests are counted from 0. Each is loaded once (`CreateInstance`, `OnTestStart`), run on the workers of
/// the combiner in any mix, cancelled, and unloaded (`OnTestEnd`, `DestroyInstance`) when nobody runs it. What goes
/// wrong inside is the contained test's: its failures, its memory, its time.
#[repr(C)]
pub struct Combine {
    /// `size_of::<Combine>()` as the host was compiled.
    pub size: u32,
    /// Zero; for later.
    pub reserved: u32,
    /// Describes the combiner itself: how many tests, how many workers, its settings. Instance or worker context.
    pub container: Option<unsafe extern "C" fn(*mut Context, *mut ContainerInfo)>,
    /// Describes a contained test; 0 when there is none of that number. Instance or worker context.
    pub contained: Option<unsafe extern "C" fn(*mut Context, u32, *mut ContainedInfo) -> i32>,
    /// Creates and starts a contained test. A status; after a failure, which was reported, it is retired.
    pub load: Option<unsafe extern "C" fn(*mut Context, u32) -> i32>,
    /// Runs a contained test on this worker, as [`Turn`] says, and tells in [`Ran`] what came of it. Only with a worker
    /// context, on its thread. Returns early when the test is cancelled or retired.
    pub run: Option<unsafe extern "C" fn(*mut Context, *const Turn, *mut Ran)>,
    /// 1: this worker waits for other workers from now on, so it is not late; 0: no longer. Worker context.
    pub waiting: Option<unsafe extern "C" fn(*mut Context, i32)>,
    /// Tells the share of the time that a contained test is meant to get, for the report. Instance context.
    pub ask: Option<unsafe extern "C" fn(*mut Context, u32, f64)>,
    /// Cancels a contained test: `cancelled` becomes true for it, and its `OnTestCancelled` is called, once.
    pub cancel: Option<unsafe extern "C" fn(*mut Context, u32)>,
    /// Ends and destroys a contained test. Nobody may be running it.
    pub unload: Option<unsafe extern "C" fn(*mut Context, u32)>,
}

/// The combiner as the configuration describes it.
#[repr(C)]
pub struct ContainerInfo {
    /// `size_of::<ContainerInfo>()` as the plugin was compiled; the host fills no more.
    pub size: u32,
    /// How many tests it contains.
    pub tests: u32,
    /// How many threads call its `TestMain` at the same time.
    pub workers: u32,
    /// Number of the calling worker; 0 with an instance context.
    pub worker: u32,
    /// The `pot` table of the configuration as one JSON object, NUL-terminated. Lives as long as the instance.
    pub settings: *const c_char,
}

/// One contained test.
#[repr(C)]
pub struct ContainedInfo {
    /// `size_of::<ContainedInfo>()` as the plugin was compiled; the host fills no more.
    pub size: u32,
    /// One of `CONTAINED_*`.
    pub state: u32,
    /// Its name. Lives as long as the combiner's instance.
    pub name: *const c_char,
    /// The share of the time that the configuration asks for, relative to the others; 1 unless it says otherwise.
    pub share: f64,
    /// Average duration of an iteration in nanoseconds from before this process, 0 when it is not known.
    pub average_nanos: f64,
    /// Time that it was given in this campaign before this process, in nanoseconds.
    pub given_nanos: f64,
}

/// What a combiner asks [`Combine::run`] for.
#[repr(C)]
pub struct Turn {
    /// `size_of::<Turn>()` as the plugin was compiled.
    pub size: u32,
    /// Which contained test.
    pub test: u32,
    /// At most so many iterations.
    pub times: u64,
    /// No further iteration begins after so many nanoseconds; 0 means no limit.
    pub limit_nanos: u64,
    /// Zero, or [`TURN_REPEAT`].
    pub flags: u32,
    /// Zero; for later.
    pub reserved: u32,
    /// With [`TURN_REPEAT`]: number of the iteration whose random numbers are used.
    pub iteration: u64,
}

/// What came of a [`Turn`].
#[repr(C)]
pub struct Ran {
    /// `size_of::<Ran>()` as the plugin was compiled; the host fills no more.
    pub size: u32,
    /// One of `CONTAINED_*`, after the turn.
    pub state: u32,
    /// Iterations that were run.
    pub times: u64,
    /// Time inside the test's `TestMain`, in nanoseconds.
    pub nanos: u64,
    /// Iterations that failed.
    pub failures: u64,
}

/// Hooks into a combiner: a plugin describes them, the configuration gives them to a combiner under `hooks`, and the
/// host calls them for every test that the combiner contains. Every function but `create` and `destroy` may be `None`.
/// None may unwind.
#[repr(C)]
pub struct HooksInfo {
    /// `size_of::<HooksInfo>()` as the plugin was compiled.
    pub size: u32,
    /// Zero; for later.
    pub flags: u32,
    /// The name by which the configuration calls them; unique among the hooks of the plugin.
    pub name: *const c_char,
    /// One line for people. May be null.
    pub about: *const c_char,
    /// Makes the hooks' own state, once per combiner, or returns null: then the combiner cannot run.
    pub create: Option<unsafe extern "C" fn() -> *mut c_void>,
    /// Destroys it, after the last test was unloaded.
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    /// A contained test was created and started. One thread at a time.
    pub on_load: Option<unsafe extern "C" fn(*mut c_void, *const ContainedInfo)>,
    /// A contained test is about to be ended and destroyed. One thread at a time.
    pub on_unload: Option<unsafe extern "C" fn(*mut c_void, *const ContainedInfo)>,
    /// A worker is about to run a contained test: first of its turn. On the worker's thread, many at the same time.
    pub on_start: Option<unsafe extern "C" fn(*mut c_void, *const ContainedInfo, u32)>,
    /// The turn is over. On the worker's thread, many at the same time.
    pub on_stop: Option<unsafe extern "C" fn(*mut c_void, *const ContainedInfo, u32, *const Ran)>,
}

/// Type of `WaylayPlugin`.
pub type PluginEntry = unsafe extern "C" fn() -> *const PluginInfo;
/// Type of `CreateInstance`.
pub type CreateEntry = unsafe extern "C" fn(*const CreateArgs) -> *mut Instance;
/// Type of `DestroyInstance`.
pub type DestroyEntry = unsafe extern "C" fn(*mut Instance);

/// Wraps a pointer-holding static description so that it can be a `static`.
#[repr(transparent)]
pub struct Static<T>(pub T);

// SAFETY: the wrapped descriptions are immutable after construction and their pointers refer to other statics;
// whoever constructs one guarantees that.
unsafe impl<T> Sync for Static<T> {}
