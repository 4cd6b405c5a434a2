//! What a reader may use: the memory of this process is limited by the kernel, time is the processor time of the thread that
//! reads.
//!
//! Where a reader would take the machine's memory or never come back, the process says which case that was and ends at once,
//! because nothing else can stop it. So fuzzing runs in a process of its own.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Most memory beyond what this process has before: enough for what is made of the largest sample, far from a machine's.
const MOST_MEMORY: u64 = 512 << 20;
/// Most processor time of one case, in a build without optimisation.
pub(crate) const MOST_TIME: Duration = Duration::from_secs(10);
/// Beyond this it is taken never to come back.
const TOO_LONG: Duration = Duration::from_secs(60);

static CASE: AtomicU64 = AtomicU64::new(0);
/// The input of the case, kept where it can be written down without allocating.
static INPUT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static PATH: OnceLock<CString> = OnceLock::new();
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Where the input goes that ended this process.
pub(crate) fn input_path() -> PathBuf {
    std::env::temp_dir().join(format!("waylay-fuzz-{}", std::process::id()))
}

/// Limits the memory of this process from now on. A reader that asks for more ends it with the number of the case.
pub(crate) fn limit_memory() {
    PATH.get_or_init(|| CString::new(input_path().as_os_str().as_bytes()).expect("a plain path"));
    let most = used("VmSize") * 1024 + MOST_MEMORY;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: libc::RLIM_INFINITY };
    let handler: extern "C" fn(libc::c_int) = on_abort;
    // SAFETY: the limit is read only; the handler makes async-signal-safe calls only.
    unsafe {
        libc::setrlimit(libc::RLIMIT_AS, &raw const limit);
        libc::signal(libc::SIGABRT, handler as libc::sighandler_t);
    }
}

extern "C" fn on_abort(_: libc::c_int) {
    give_up(b"a reader asked for more memory than any needs in case ");
}

/// KiB that the kernel tells of this process.
pub(crate) fn used(what: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Says the number of the case and writes its input down, without allocating, and ends the process.
fn give_up(words: &[u8]) -> ! {
    let mut digits = [0; 21];
    let mut at = digits.len() - 1;
    digits[at] = b'\n';
    let mut number = CASE.load(Ordering::Relaxed);
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    // SAFETY: all pieces are valid for their lengths, the input for as long as its case runs; opening, writing and ending need
    // nothing else.
    unsafe {
        if let Some(path) = PATH.get() {
            let file = libc::open(path.as_ptr(), libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, 0o600);
            libc::write(file, INPUT.load(Ordering::Relaxed).cast(), LENGTH.load(Ordering::Relaxed));
        }
        libc::write(2, words.as_ptr().cast(), words.len());
        libc::write(2, digits[at..].as_ptr().cast(), digits.len() - at);
        libc::_exit(1)
    }
}

fn time_of(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a value of this frame; a clock that is gone leaves it as it is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Runs one case; gives the processor time that it took.
pub(crate) fn measured(case: u32, input: &[u8], work: impl FnOnce()) -> Duration {
    INPUT.store(input.as_ptr().cast_mut(), Ordering::Relaxed);
    LENGTH.store(input.len(), Ordering::Relaxed);
    CASE.store(u64::from(case), Ordering::Relaxed);
    let began = time_of(libc::CLOCK_THREAD_CPUTIME_ID);
    work();
    LENGTH.store(0, Ordering::Relaxed);
    time_of(libc::CLOCK_THREAD_CPUTIME_ID) - began
}

/// Watches this thread from another one: a case that never comes back ends the process with its number.
pub(crate) fn watch_this_thread() {
    let mut clock = 0;
    // SAFETY: the pointer is to a value of this frame, and this thread lives.
    let got = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    assert_eq!(got, 0, "a clock of this thread");
    WATCHED.store(true, Ordering::Relaxed);
    std::thread::spawn(move || {
        let (mut case, mut since) = (u64::MAX, Duration::ZERO);
        while WATCHED.load(Ordering::Relaxed) {
            let (now, used) = (CASE.load(Ordering::Relaxed), time_of(clock));
            if now != case {
                (case, since) = (now, used);
            } else if used.saturating_sub(since) > TOO_LONG {
                give_up(b"a reader does not come back in case ");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    });
}

/// Nobody is watched any more.
pub(crate) fn watch_nobody() {
    WATCHED.store(false, Ordering::Relaxed);
}
