//! Functions of the C library that read and write memory for the program: what they touch counts as accesses of the code
//! that calls them.
//!
//! libc is never patched, so calls are seen where they are made: a module's imports of these functions lead here. While nobody
//! wants to know, a call costs a comparison and a jump. A copy that is a step is made in two halves with another step in
//! between: on a real machine others can see half of it.
//!
//! What a call writes may be known only when it is over: `read` waits, and others hand over meanwhile; `localtime` returns what
//! all threads have in common. Such a call is made here, and told of afterwards. State that libc never shows (that of `rand`,
//! `strtok`, `setenv`) has an address of ours.
//!
//! Not seen are calls of libc's own, and calls through pointers that were not taken from a module's tables.

mod format;
mod shape;

use core::arch::naked_asm;
use core::ffi::{CStr, c_long};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use waylay_accesses::{Access, access};
use waylay_patch::registers::KEPT_R11;
use waylay_patch::{enter_with_arguments, leave_with_arguments};

use self::format::Arguments;
use self::shape::{Ranges, READ, Shape, State, WRITE};
use super::delay;
use super::patch::Loaded;
use super::watch::Linux;
use crate::binding;
use crate::me::{Unmanaged, as_program, me};
use crate::runtime::{Logical, Token};

/// Whether somebody wants to know. A byte, because assembly looks at it.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Somebody wants to know, or does not.
pub(super) fn tell(wanted: bool) {
    TOLD.store(wanted, Ordering::Relaxed);
}

/// Modules whose own accesses are seen as well, so that what orders their copies is known.
static CLOSE: [(AtomicUsize, AtomicUsize); 64] = [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; 64];

fn is_close(code: usize) -> bool {
    let ends = CLOSE.iter().map(|(start, end)| (start.load(Ordering::Relaxed), end.load(Ordering::Relaxed)));
    ends.take_while(|&(_, end)| end != 0).any(|(start, end)| (start..end).contains(&code))
}

/// Has the calls of a module lead here. `close`: its own accesses are seen as well.
pub(super) fn see(module: &Loaded, close: bool) {
    if close && let Some((start, end)) = CLOSE.iter().find(|(_, end)| end.load(Ordering::Relaxed) == 0) {
        start.store(module.base, Ordering::Relaxed);
        end.store(module.end, Ordering::Relaxed);
    }
    let mut instead = |name: &CStr| {
        let copy = ALL.iter().find(|copy| copy.name == name)?;
        copy.is_libcs().then_some(copy.entry as usize)
    };
    // SAFETY: the module was just loaded, or the program has not begun; each entry does what the function of its name does.
    unsafe { binding::redirect(module.base, &mut instead) };
}

/// Whether a function is one of this library.
fn is_ours(function: usize) -> bool {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let base_of = |address: usize, info: &mut core::mem::MaybeUninit<libc::Dl_info>| {
        // SAFETY: `dladdr` fills the record when it answers with a number other than 0.
        unsafe {
            let known = libc::dladdr(address as *const _, info.as_mut_ptr()) != 0;
            known.then(|| info.assume_init().dli_fbase as usize)
        }
    };
    let own = base_of(is_ours as fn(usize) -> bool as usize, &mut info);
    own.is_some() && base_of(function, &mut info) == own
}

/// One of the functions.
struct Copy {
    /// libc's own, or ours in front of it. First, because assembly jumps to it; null until somebody calls it.
    real: AtomicPtr<()>,
    name: &'static CStr,
    entry: unsafe extern "C-unwind" fn(),
    shape: Shape,
}

impl Copy {
    /// Whether the process has libc's function of this name in force, or ours that stands in front of it; a sanitizer's is left
    /// alone.
    fn is_libcs(&self) -> bool {
        let mut info = core::mem::MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: the name is NUL-terminated; `dladdr` fills the record when it answers with a number other than 0.
        unsafe {
            let found = libc::dlsym(libc::RTLD_DEFAULT, self.name.as_ptr());
            if found.is_null() || libc::dladdr(found, info.as_mut_ptr()) == 0 {
                return false;
            }
            let file = CStr::from_ptr(info.assume_init().dli_fname).to_bytes();
            let name = file.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            if !name.starts_with(b"libc.so") && !name.starts_with(b"libc-") && !is_ours(found as usize) {
                return false;
            }
            self.real.store(found.cast(), Ordering::Relaxed);
            true
        }
    }
}

/// More bytes than any block has.
const LONGEST: usize = 1 << 40;

/// Where a call goes on: at a function, or back with a result.
#[repr(C)]
struct Onward {
    function: usize,
    result: usize,
}

/// Tells of a call.
unsafe extern "C-unwind" fn before(copy: &'static Copy, arguments: &Arguments, caller: usize) -> Onward {
    let real = copy.real.load(Ordering::Relaxed) as usize;
    let onward = Onward { function: real, result: 0 };
    let me = me();
    if me.is_null() {
        return onward;
    }
    // SAFETY: the arguments are the program's, for that function; what it reads itself may be read before. `me` is the calling
    // thread and, because it runs program code, has the token.
    unsafe {
        let inside = Unmanaged::enter_from(me);
        let ranges = copy.shape.ranges(arguments);
        if copy.shape.shows_afterwards() {
            return around(copy, arguments, &ranges, Token::held_by(me), caller - 1);
        }
        let errno = *libc::__errno_location();
        // An address inside of the instruction that calls: no other place has it.
        let code = caller - 1;
        let mut all = Accesses::at(code);
        let accesses = all.take(&ranges);
        let compared = is_close(code) && copy.shape.is_exact();
        let stepped = access::before_copy::<Linux>(me, accesses);
        if delay::is_on() && accesses.iter().any(|access| access.kind == WRITE) {
            delay::drain(Token::held_by(me));
        }
        let mut answer = onward;
        match copy.shape.first_half(arguments).filter(|_| stepped) {
            Some(half) => {
                let part = |accesses: &mut [Access], skip: usize, bytes: usize| {
                    for access in accesses {
                        (access.address, access.bytes) = (access.address + skip, bytes);
                    }
                };
                let rest = accesses[0].bytes - half;
                part(accesses, 0, half);
                access::copy::<Linux>(me, accesses, compared);
                as_program(Token::held_by(me), || make(copy.shape, real, arguments, 0, half));
                part(accesses, half, rest);
                access::before_copy::<Linux>(me, accesses);
                access::copy::<Linux>(me, accesses, compared);
                as_program(Token::held_by(me), || make(copy.shape, real, arguments, half, rest));
                answer = Onward { function: 0, result: copy.shape.result(arguments) };
            }
            None => access::copy::<Linux>(me, accesses, compared),
        }
        *libc::__errno_location() = errno;
        drop(inside);
        answer
    }
}

/// The accesses of one call.
struct Accesses {
    all: [Access; Ranges::MOST],
}

impl Accesses {
    fn at(code: usize) -> Accesses {
        Accesses { all: [Access::reported(READ, 0, 0, code); Ranges::MOST] }
    }

    fn take(&mut self, ranges: &Ranges) -> &mut [Access] {
        let mut count = 0;
        for (place, (kind, address, bytes)) in self.all.iter_mut().zip(ranges.iter()) {
            *place = Access::reported(kind, address, bytes.min(LONGEST), place.code);
            count += 1;
        }
        &mut self.all[..count]
    }
}

/// Makes a call, and tells of what it wrote when it is over. `ahead` is what it may write.
///
/// # Safety
/// As for [`before`], for a function whose arguments are all in registers; `me` is inside the library.
unsafe fn around(
    copy: &'static Copy,
    arguments: &Arguments,
    ahead: &Ranges,
    me: &mut Token,
    code: usize,
) -> Onward {
    let &[one, two, three, four, five, six] = arguments;
    let mut all = Accesses::at(code);
    // SAFETY: by the caller's promise.
    unsafe {
        let thread = me.thread();
        let errno = *libc::__errno_location();
        match all.take(ahead) {
            [] => access::before_telling::<Linux>(thread, code),
            accesses => {
                access::before_copy::<Linux>(thread, accesses);
            }
        }
        if delay::is_on() {
            delay::drain(me);
        }
        *libc::__errno_location() = errno;
        let real: unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize) -> usize =
            core::mem::transmute(copy.real.load(Ordering::Relaxed));
        let result = as_program(me, || real(one, two, three, four, five, six));
        let errno = *libc::__errno_location();
        access::copy::<Linux>(thread, all.take(&copy.shape.written(arguments, result)), false);
        *libc::__errno_location() = errno;
        Onward { function: 0, result }
    }
}

/// Tells of a call of the kernel's that the program made itself, and that returned `result`. It has no place in the code that
/// could be a step: where it waits it is one already.
///
/// # Safety
/// As for the call; `me` is the running thread, inside the library.
pub(crate) unsafe fn tell_of_kernel_call(
    me: *mut Logical,
    number: c_long,
    arguments: &Arguments,
    result: c_long,
) {
    /// No code is there.
    const NOWHERE: usize = 1;
    if !TOLD.load(Ordering::Relaxed) {
        return;
    }
    let shape = match number {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => Shape::Receives,
        libc::SYS_readv | libc::SYS_preadv => Shape::ReceivesRanges,
        libc::SYS_recvmsg => Shape::ReceivesMessage,
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_sendto => Shape::Sends,
        libc::SYS_writev | libc::SYS_pwritev => Shape::SendsRanges,
        libc::SYS_sendmsg => Shape::SendsMessage,
        _ => return,
    };
    let mut all = Accesses::at(NOWHERE);
    // SAFETY: by the caller's promise.
    unsafe {
        let errno = *libc::__errno_location();
        let ranges = match shape.shows_afterwards() {
            true => shape.written(arguments, result as usize),
            false => shape.ranges(arguments),
        };
        access::copy::<Linux>(me, all.take(&ranges), false);
        *libc::__errno_location() = errno;
    }
}

/// Makes a part of a call that can be divided.
///
/// # Safety
/// As for the function `real`, which has that shape.
unsafe fn make(shape: Shape, real: usize, &[one, two, ..]: &Arguments, skip: usize, bytes: usize) {
    // SAFETY: all functions that can be divided take three words.
    unsafe {
        let real: unsafe extern "C-unwind" fn(usize, usize, usize) -> usize = core::mem::transmute(real);
        real(one + skip, if shape == Shape::Sets { two } else { two + skip }, bytes);
    }
}

macro_rules! copies {
    ($($name:ident $shape:expr;)+) => {
        static ALL: [&Copy; [$(stringify!($name)),+].len()] = [$(&$name::COPY),+];
        $(
        mod $name {
            use super::*;

            pub(super) static COPY: Copy = Copy {
                real: AtomicPtr::new(core::ptr::null_mut()),
                name: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name has no NUL inside"),
                },
                entry,
                shape: $shape,
            };

            /// # Safety
            /// As for libc's function of this name.
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn entry() {
                naked_asm!(
                    ".cfi_startproc",
                    "cmp byte ptr [rip + {told}], 0",
                    "jne 2f",
                    "jmp qword ptr [rip + {copy} + {real}]",
                    "2:",
                    enter_with_arguments!(),
                    "lea rdi, [rip + {copy}]",
                    "mov rsi, rsp",
                    "mov rdx, [rbp + 8]",
                    "call {before}",
                    "mov [rsp + {r11}], rax",
                    "test rax, rax",
                    "je 3f",
                    ".cfi_remember_state",
                    leave_with_arguments!(),
                    "jmp r11",
                    "3:",
                    ".cfi_restore_state",
                    "mov rax, rdx",
                    "leave",
                    ".cfi_def_cfa rsp, 8",
                    "ret",
                    ".cfi_endproc",
                    told = sym TOLD,
                    copy = sym COPY,
                    real = const core::mem::offset_of!(Copy, real),
                    before = sym before,
                    r11 = const KEPT_R11,
                )
            }
        }
    )+};
}

copies! {
    memcpy Shape::Copies { end: false };
    memmove Shape::Copies { end: false };
    mempcpy Shape::Copies { end: true };
    __memcpy_chk Shape::Copies { end: false };
    __memmove_chk Shape::Copies { end: false };
    __mempcpy_chk Shape::Copies { end: true };
    bcopy Shape::CopiesBack;
    memset Shape::Sets;
    __memset_chk Shape::Sets;
    bzero Shape::Clears;
    explicit_bzero Shape::Clears;
    memcmp Shape::Compares;
    bcmp Shape::Compares;
    memchr Shape::Looks;
    strlen Shape::Reads;
    strrchr Shape::Reads;
    strdup Shape::Reads;
    strchr Shape::Finds;
    strchrnul Shape::Finds;
    strstr Shape::Begins;
    strtol Shape::Begins;
    strtoul Shape::Begins;
    strtoll Shape::Begins;
    strtoull Shape::Begins;
    strtod Shape::Begins;
    atoi Shape::Begins;
    atol Shape::Begins;
    strnlen Shape::ReadsAtMost;
    strndup Shape::ReadsAtMost;
    strcmp Shape::ComparesTexts { any_case: false };
    strcasecmp Shape::ComparesTexts { any_case: true };
    strncmp Shape::ComparesAtMost { any_case: false };
    strncasecmp Shape::ComparesAtMost { any_case: true };
    strcpy Shape::CopiesText;
    stpcpy Shape::CopiesText;
    __strcpy_chk Shape::CopiesText;
    __stpcpy_chk Shape::CopiesText;
    strncpy Shape::CopiesAtMost;
    __strncpy_chk Shape::CopiesAtMost;
    strcat Shape::Appends;
    __strcat_chk Shape::Appends;
    strncat Shape::AppendsAtMost;
    __strncat_chk Shape::AppendsAtMost;
    qsort Shape::Sorts;
    printf Shape::Formats { format: 0, list: false, to: None };
    vprintf Shape::Formats { format: 0, list: true, to: None };
    fprintf Shape::Formats { format: 1, list: false, to: None };
    vfprintf Shape::Formats { format: 1, list: true, to: None };
    dprintf Shape::Formats { format: 1, list: false, to: None };
    vdprintf Shape::Formats { format: 1, list: true, to: None };
    syslog Shape::Formats { format: 1, list: false, to: None };
    asprintf Shape::Formats { format: 1, list: false, to: None };
    vasprintf Shape::Formats { format: 1, list: true, to: None };
    sprintf Shape::Formats { format: 1, list: false, to: Some(0) };
    vsprintf Shape::Formats { format: 1, list: true, to: Some(0) };
    snprintf Shape::Formats { format: 2, list: false, to: Some(1) };
    vsnprintf Shape::Formats { format: 2, list: true, to: Some(1) };
    __printf_chk Shape::Formats { format: 1, list: false, to: None };
    __vprintf_chk Shape::Formats { format: 1, list: true, to: None };
    __fprintf_chk Shape::Formats { format: 2, list: false, to: None };
    __vfprintf_chk Shape::Formats { format: 2, list: true, to: None };
    __dprintf_chk Shape::Formats { format: 2, list: false, to: None };
    __vdprintf_chk Shape::Formats { format: 2, list: true, to: None };
    __syslog_chk Shape::Formats { format: 2, list: false, to: None };
    __asprintf_chk Shape::Formats { format: 2, list: false, to: None };
    __vasprintf_chk Shape::Formats { format: 2, list: true, to: None };
    __sprintf_chk Shape::Formats { format: 3, list: false, to: Some(0) };
    __vsprintf_chk Shape::Formats { format: 3, list: true, to: Some(0) };
    __snprintf_chk Shape::Formats { format: 4, list: false, to: Some(1) };
    __vsnprintf_chk Shape::Formats { format: 4, list: true, to: Some(1) };
    puts Shape::Reads;
    fputs Shape::Reads;
    fwrite Shape::ReadsItems;
    write Shape::Sends;
    pwrite Shape::Sends;
    pwrite64 Shape::Sends;
    send Shape::Sends;
    sendto Shape::Sends;
    writev Shape::SendsRanges;
    pwritev Shape::SendsRanges;
    pwritev64 Shape::SendsRanges;
    sendmsg Shape::SendsMessage;
    read Shape::Receives;
    __read_chk Shape::Receives;
    pread Shape::Receives;
    pread64 Shape::Receives;
    __pread_chk Shape::Receives;
    __pread64_chk Shape::Receives;
    recv Shape::Receives;
    __recv_chk Shape::Receives;
    recvfrom Shape::Receives;
    __recvfrom_chk Shape::Receives;
    readlink Shape::Receives;
    __readlink_chk Shape::Receives;
    readv Shape::ReceivesRanges;
    preadv Shape::ReceivesRanges;
    preadv64 Shape::ReceivesRanges;
    recvmsg Shape::ReceivesMessage;
    fread Shape::FillsItems;
    fgets Shape::FillsLine;
    getline Shape::FillsOwn;
    getdelim Shape::FillsOwn;
    __getdelim Shape::FillsOwn;
    strtok Shape::Cuts;
    strtok_r Shape::CutsOn { rest: 2 };
    __strtok_r Shape::CutsOn { rest: 2 };
    strsep Shape::CutsOn { rest: 0 };
    getenv Shape::Uses { state: State::Environment, writes: false };
    secure_getenv Shape::Uses { state: State::Environment, writes: false };
    setenv Shape::Uses { state: State::Environment, writes: true };
    unsetenv Shape::Uses { state: State::Environment, writes: true };
    putenv Shape::Uses { state: State::Environment, writes: true };
    clearenv Shape::Uses { state: State::Environment, writes: true };
    rand Shape::Uses { state: State::Random, writes: true };
    srand Shape::Uses { state: State::Random, writes: true };
    random Shape::Uses { state: State::Random, writes: true };
    srandom Shape::Uses { state: State::Random, writes: true };
    drand48 Shape::Uses { state: State::Random, writes: true };
    lrand48 Shape::Uses { state: State::Random, writes: true };
    mrand48 Shape::Uses { state: State::Random, writes: true };
    srand48 Shape::Uses { state: State::Random, writes: true };
    setlocale Shape::Uses { state: State::Locale, writes: true };
    mblen Shape::Uses { state: State::Shift, writes: true };
    mbtowc Shape::Uses { state: State::Shift, writes: true };
    wctomb Shape::Uses { state: State::Shift, writes: true };
    localtime Shape::Tells(size_of::<libc::tm>());
    gmtime Shape::Tells(size_of::<libc::tm>());
    asctime Shape::Tells(0);
    ctime Shape::Tells(0);
    ttyname Shape::Tells(0);
    getlogin Shape::Tells(0);
    ptsname Shape::Tells(0);
    inet_ntoa Shape::Tells(0);
    l64a Shape::Tells(0);
    getcwd Shape::Tells(0);
    realpath Shape::Tells(0);
    __realpath_chk Shape::Tells(0);
    localeconv Shape::Tells(size_of::<libc::lconv>());
    readdir Shape::Tells(ENTRY);
    readdir64 Shape::Tells(ENTRY);
    getpwnam Shape::Tells(size_of::<libc::passwd>());
    getpwuid Shape::Tells(size_of::<libc::passwd>());
    getpwent Shape::Tells(size_of::<libc::passwd>());
    getgrnam Shape::Tells(size_of::<libc::group>());
    getgrgid Shape::Tells(size_of::<libc::group>());
    getgrent Shape::Tells(size_of::<libc::group>());
    gethostbyname Shape::Tells(size_of::<libc::hostent>());
    gethostbyaddr Shape::Tells(size_of::<libc::hostent>());
    getservbyname Shape::Tells(size_of::<libc::servent>());
    getservbyport Shape::Tells(size_of::<libc::servent>());
    getprotobyname Shape::Tells(size_of::<libc::protoent>());
    getprotobynumber Shape::Tells(size_of::<libc::protoent>());
}

/// Bytes of an entry of a folder that every one has: number, place, length, kind, and the begin of the name.
const ENTRY: usize = 20;
