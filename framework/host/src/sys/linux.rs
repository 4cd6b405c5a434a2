//! Linux: signal handlers on their own stacks, the ELF header, and small system calls.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use waylay_page::SharedHandle;

use crate::fatal::{FatalSignal, note_thread_of_test, on_fatal_signal};

/// Signals whose default action ends the process and that a bug in a test can cause. SIGPIPE is not among them: Rust
/// programs ignore it.
const FATAL: [c_int; 17] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];

/// Signals by which people and service managers ask a program to end. When they reach the host, too, because all
/// processes of a service are asked, it is the driver that ends everything in order.
const REQUESTS: [c_int; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// Signal stack of each thread: the kernel's frame with AVX-512 state takes almost 4 KiB, our handler copies another
/// 4 KiB, and unoptimised builds are generous with stack.
const SIGNAL_STACK: usize = 64 * 1024;

/// Size of the FXSAVE area that `fpregs` points to.
const FPREGS_BYTES: usize = 512;

/// # Safety
///
/// `raw` must be an open descriptor that nothing else in this process owns.
pub(crate) unsafe fn file_from_raw(raw: i64) -> File {
    // SAFETY: passed on to our caller.
    let file = unsafe { File::from_raw_fd(raw as c_int) };
    keep_from_children(raw as c_int);
    file
}

/// # Safety
///
/// As [`file_from_raw`].
pub(crate) unsafe fn shared_handle(raw: i64) -> SharedHandle {
    keep_from_children(raw as c_int);
    // SAFETY: passed on to our caller.
    unsafe { SharedHandle::from_raw(raw as c_int) }
}

/// A process that a test starts must not inherit our descriptors: it would keep the driver's pipes open.
fn keep_from_children(fd: c_int) {
    // SAFETY: plain call on a descriptor that the driver gave us.
    unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// Takes what we told this process through its environment out of it: programs that tests start are not ours.
pub(crate) fn forget_what_we_were_told() {
    let ours = |path: &str| path.rsplit('/').next().is_some_and(|file| file.starts_with(CONTROL_LIBRARY));
    let rest = std::env::var("LD_PRELOAD").ok().map(|list| {
        list.split([':', ' ']).filter(|path| !path.is_empty() && !ours(path)).collect::<Vec<_>>().join(":")
    });
    // SAFETY: this process has one thread until it has loaded a plugin, which comes later.
    unsafe {
        match rest {
            Some(rest) if !rest.is_empty() => std::env::set_var("LD_PRELOAD", rest),
            Some(_) => std::env::remove_var("LD_PRELOAD"),
            None => {}
        }
        for name in OUR_VARIABLES {
            std::env::remove_var(name);
        }
    }
}

/// How the file of the control library begins.
const CONTROL_LIBRARY: &str = "libwaylay_control";
/// Variables by which the libraries in this process find the memory that they share with the driver.
const OUR_VARIABLES: [&str; 4] =
    ["WAYLAY_HEAP", "WAYLAY_CONTROL_REGION", "WAYLAY_CONTROL_SERVER", "WAYLAY_CONTROL_SHIFT"];

pub(crate) fn make_stdin_empty() -> io::Result<()> {
    let null = File::open("/dev/null")?;
    // SAFETY: both descriptors are open; dup2 replaces ours atomically.
    let result = unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), libc::STDIN_FILENO) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Loads a library with everything that it needs bound at once: a function that is missing is an error now, and not the
/// end of the host when it is called.
///
/// # Safety
///
/// Runs the library's constructors.
pub(crate) unsafe fn open_library(path: &Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: passed on to our caller.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// Why the dynamic linker cannot load this file, in words for people; none when it looks right.
pub(crate) fn why_not_loadable(path: &Path) -> Option<String> {
    const ELF_CLASS: usize = 4;
    const ELF_TYPE: usize = 16;
    const ELF_MACHINE: usize = 18;
    const CLASS_64: u8 = 2;
    const SHARED_OBJECT: u16 = 3;
    const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

    let mut header = [0; 20];
    if let Err(error) = File::open(path).and_then(|mut file| file.read_exact(&mut header)) {
        return Some(match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                "is too short to be a dynamic library (not an ELF file)".to_owned()
            }
            _ => format!("cannot be read: {error}"),
        });
    }
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    if header[..4] != *b"\x7fELF" {
        Some("is not an ELF file; a plugin is a dynamic library (.so)".to_owned())
    } else if header[ELF_CLASS] != CLASS_64 {
        Some("is a 32-bit library; build the plugin for this 64-bit machine".to_owned())
    } else if half(ELF_MACHINE) != MACHINE {
        Some(format!(
            "is built for another processor (ELF machine {}, this is {MACHINE} {}); build it for this machine",
            half(ELF_MACHINE),
            std::env::consts::ARCH
        ))
    } else if half(ELF_TYPE) != SHARED_OBJECT {
        Some("is an ELF file but not a dynamic library; link it with -shared".to_owned())
    } else {
        None
    }
}

/// None: the dynamic linker itself says which libraries a file lacks.
pub(crate) fn missing_libraries(_: &Path) -> Option<String> {
    None
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::gettid() as u32 }
}

static DRIVER: AtomicI32 = AtomicI32::new(0);

/// Lets the driver, our parent, take evidence; with `die_together`, the kernel kills this process when it dies.
pub(crate) fn belong_to_parent(die_together: bool) {
    // SAFETY: plain system calls.
    unsafe {
        let parent = libc::getppid();
        DRIVER.store(parent, Ordering::Release);
        // The driver takes evidence with ptrace; where Yama restricts that, allow our parent.
        libc::prctl(libc::PR_SET_PTRACER, parent as libc::c_ulong, 0, 0, 0);
        libc::prctl(libc::PR_SET_PDEATHSIG, if die_together { libc::SIGKILL } else { 0 });
    }
    // The driver may have died before the kernel knew that we want to follow.
    leave_if_orphaned();
}

/// Ends this process when the driver is gone. A host that hangs does not get here: it stays for a debugger if that was
/// wanted, and is killed by the kernel if not.
pub(crate) fn leave_if_orphaned() {
    // SAFETY: plain system calls.
    unsafe {
        if libc::getppid() != DRIVER.load(Ordering::Acquire) {
            libc::_exit(1);
        }
    }
}

pub(crate) fn write_stderr(line: &[u8]) {
    // One call per line keeps lines of different threads apart.
    // SAFETY: the slice is readable for its length.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

pub(crate) fn leave_at_once() -> ! {
    // SAFETY: flushing all C streams, then leaving without exit handlers.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(0)
    }
}

pub(crate) fn at_exit(handler: extern "C" fn()) {
    // SAFETY: the handler is a static function.
    unsafe { libc::atexit(handler) };
}

pub(crate) fn wait_for_the_end() -> ! {
    loop {
        // SAFETY: waits for a signal; the driver sends the last one.
        unsafe { libc::pause() };
    }
}

// ---- memory accounting: present only when the control library was loaded before us ----

/// What no thread is tagged with.
pub(crate) const NO_TAG: u32 = u32::MAX;

type SetTag = unsafe extern "C" fn(u32) -> u32;

fn heap_tag_function() -> Option<SetTag> {
    static FOUND: OnceLock<Option<SetTag>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: looks the name up among all loaded libraries.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"waylay_heap_tag".as_ptr()) };
        // SAFETY: the control library exports the name with this type.
        (!address.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, SetTag>(address) })
    })
}

/// Charges what this thread allocates from now on to that tag; returns the tag before.
pub(crate) fn set_heap_tag(tag: u32) -> u32 {
    // SAFETY: the control library allows any value on any thread.
    heap_tag_function().map_or(0, |set| unsafe { set(tag) })
}

/// The tag that this thread's allocations are charged to.
pub(crate) fn heap_tag() -> u32 {
    let tag = set_heap_tag(0);
    set_heap_tag(tag);
    tag
}

// ---- backtraces of the calling thread ----

#[repr(C)]
struct UnwindContext {
    _opaque: [u8; 0],
}

type UnwindStep = extern "C" fn(*mut UnwindContext, *mut c_void) -> c_int;

unsafe extern "C" {
    fn _Unwind_Backtrace(step: UnwindStep, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
}

struct Frames<'a> {
    buffer: &'a mut [usize],
    count: usize,
}

extern "C" fn note_frame(context: *mut UnwindContext, argument: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const END_OF_STACK: c_int = 5;
    // SAFETY: `backtrace` passes its own `Frames`, which lives across the walk.
    let frames = unsafe { &mut *argument.cast::<Frames<'_>>() };
    let Some(place) = frames.buffer.get_mut(frames.count) else { return END_OF_STACK };
    // SAFETY: the unwinder hands us a valid context.
    *place = unsafe { _Unwind_GetIP(context) };
    frames.count += 1;
    GO_ON
}

/// Return addresses of the calling thread, innermost first.
/// Where the last exception of this thread was thrown: plugins note it themselves.
pub(crate) fn thrown(_buffer: &mut [usize]) -> Option<&[usize]> {
    None
}

pub(crate) fn backtrace(buffer: &mut [usize]) -> &[usize] {
    let mut frames = Frames { buffer, count: 0 };
    // SAFETY: the callback matches the type and the argument lives across the call.
    unsafe { _Unwind_Backtrace(note_frame, std::ptr::from_mut(&mut frames).cast()) };
    let count = frames.count;
    &frames.buffer[..count]
}

// ---- fatal signals ----

/// glibc's private text about why it aborts (assert, heap corruption, stack smashing).
#[repr(C)]
struct AbortMessage {
    size: u32,
    text: [u8; 0],
}

static ABORT_MESSAGE: AtomicPtr<*const AbortMessage> = AtomicPtr::new(std::ptr::null_mut());

pub(crate) fn install_fatal_handlers() {
    // SAFETY: looks up a data symbol of libc; null when this libc has none.
    let abort_message =
        unsafe { libc::dlvsym(libc::RTLD_DEFAULT, c"__abort_msg".as_ptr(), c"GLIBC_PRIVATE".as_ptr()) };
    ABORT_MESSAGE.store(abort_message.cast(), Ordering::Release);
    // SAFETY: an all-zero sigaction is a valid value to fill in.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_signal;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    for signal in FATAL {
        // SAFETY: the action is complete and its handler is async-signal-safe (see `fatal`).
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
    // A request that is not for us interrupts nothing.
    action.sa_flags |= libc::SA_RESTART;
    for signal in REQUESTS {
        // SAFETY: as above.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
}

/// Signal stacks of threads that ended, for the next ones.
static SPARE_STACKS: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static STACK_KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Gives every thread that a test starts a signal stack, where the control library tells us about such threads.
pub(crate) fn prepare_threads_of_tests() {
    type SetHook = unsafe extern "C" fn(extern "C" fn());
    // SAFETY: looks the name up among all loaded libraries.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"waylay_thread_hook".as_ptr()) };
    if !address.is_null() {
        // SAFETY: the control library exports the name with this type.
        unsafe { std::mem::transmute::<*mut c_void, SetHook>(address)(prepare_thread_of_test) };
    }
}

extern "C" fn prepare_thread_of_test() {
    prepare_thread();
    note_thread_of_test();
}

/// Gives the calling thread a signal stack, so that a stack overflow can be reported too. It is passed on to another
/// thread when this one ends.
pub(crate) fn prepare_thread() {
    let key = *STACK_KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: makes a key; the destructor is a static function.
        unsafe { libc::pthread_key_create(&mut key, Some(give_stack_back)) };
        key
    });
    let spare = SPARE_STACKS.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let stack = spare.map_or_else(map_stack, |address| address as *mut c_void);
    if stack == libc::MAP_FAILED {
        return;
    }
    let description = libc::stack_t { ss_sp: stack, ss_flags: 0, ss_size: SIGNAL_STACK };
    // SAFETY: the stack is ours alone: fresh, or given back by a thread that ended.
    unsafe {
        libc::sigaltstack(&description, std::ptr::null_mut());
        libc::pthread_setspecific(key, stack);
    }
}

fn map_stack() -> *mut c_void {
    // SAFETY: a fresh anonymous mapping that nothing else knows.
    unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            SIGNAL_STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    }
}

/// Runs when a thread that was given a signal stack ends.
unsafe extern "C" fn give_stack_back(stack: *mut c_void) {
    // SAFETY: an all-zero description is a valid place for the answer, and one to disable with.
    unsafe {
        let mut current: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &mut current);
        // Rust's own threads replace ours by theirs and free that themselves.
        if current.ss_sp == stack {
            let off = libc::stack_t { ss_flags: libc::SS_DISABLE, ..std::mem::zeroed() };
            libc::sigaltstack(&off, std::ptr::null_mut());
        }
    }
    SPARE_STACKS.lock().unwrap_or_else(PoisonError::into_inner).push(stack as usize);
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let mut machine = [0u8; size_of::<libc::ucontext_t>() + FPREGS_BYTES];
    // SAFETY: the kernel hands a signal handler with SA_SIGINFO valid siginfo and ucontext; `fpregs` is null or points
    // to the FXSAVE area inside the same signal frame.
    let (siginfo, address, sender, machine_len) = unsafe {
        let ucontext = context.cast::<libc::ucontext_t>();
        std::ptr::copy_nonoverlapping(
            context.cast::<u8>(),
            machine.as_mut_ptr(),
            size_of::<libc::ucontext_t>(),
        );
        let mut length = size_of::<libc::ucontext_t>();
        #[cfg(target_arch = "x86_64")]
        {
            let fpregs = (*ucontext).uc_mcontext.fpregs.cast::<u8>();
            if !fpregs.is_null() {
                std::ptr::copy_nonoverlapping(fpregs, machine.as_mut_ptr().add(length), FPREGS_BYTES);
                length += FPREGS_BYTES;
            }
        }
        let bytes = std::slice::from_raw_parts(info.cast::<u8>(), size_of::<libc::siginfo_t>());
        let sender = ((*info).si_code <= 0).then(|| (*info).si_pid() as u32);
        (bytes, (*info).si_addr() as u64, sender, length)
    };
    let faulted = matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE);
    on_fatal_signal(&FatalSignal {
        signal: signal as u32,
        sender,
        is_request: REQUESTS.contains(&signal),
        address: if faulted && sender.is_none() { address } else { 0 },
        message: if signal == libc::SIGABRT { abort_message() } else { &[] },
        siginfo,
        machine: &machine[..machine_len],
    });
}

/// Gives the signal its default action again, which ends the process. A fault comes again when the handler returns; what
/// was sent is sent again.
pub(crate) fn take_default_action(signal: &FatalSignal<'_>) {
    // SAFETY: resets the disposition of one signal, and sends it to this thread; both may be done in a handler.
    unsafe {
        libc::signal(signal.signal as c_int, libc::SIG_DFL);
        if signal.address == 0 {
            libc::raise(signal.signal as c_int);
        }
    }
}

/// What libc said before it aborted.
fn abort_message() -> &'static [u8] {
    let place = ABORT_MESSAGE.load(Ordering::Acquire);
    // SAFETY: the symbol is a pointer variable of libc that is null or points to a mapping made for this message,
    // which begins with the size of the whole mapping and holds a NUL-terminated text.
    unsafe {
        let Some(message) = place.as_ref().and_then(|pointer| pointer.as_ref()) else { return &[] };
        let text = message.text.as_ptr();
        let length = libc::strnlen(text.cast(), (message.size as usize).saturating_sub(size_of::<u32>()));
        std::slice::from_raw_parts(text, length).trim_ascii()
    }
}
