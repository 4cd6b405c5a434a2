//! Functions of the C library that read and write memory for the program: what they touch counts as accesses of the code
//! that calls them.
//!
//! libc is never patched, so calls are seen where they are made: a module's imports of these functions lead here. While nobody
//! wants to know, a call costs a comparison and a jump. A copy that is a step is made in two halves with another step in
//! between: on a real machine others can see half of it.
//!
//! Not seen are calls of libc's own, calls through pointers that were not taken from a module's tables, and what functions with
//! a format read.

use core::arch::naked_asm;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use waylay_accesses::{Access, access};
use waylay_patch::registers::KEPT_R11;
use waylay_patch::{enter_with_arguments, leave_with_arguments};
use waylay_schedule::EventKind;

use super::delay;
use super::patch::Loaded;
use super::watch::Linux;
use crate::binding;
use crate::me::{Unmanaged, as_program, me};
use crate::runtime::Token;

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

/// One of the functions.
struct Copy {
    /// libc's own. First, because assembly jumps to it; null until somebody calls it.
    real: AtomicPtr<()>,
    name: &'static CStr,
    entry: unsafe extern "C-unwind" fn(),
    shape: Shape,
}

impl Copy {
    /// Whether the process has libc's function of this name in force; a sanitizer's is left alone.
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
            if !name.starts_with(b"libc.so") && !name.starts_with(b"libc-") {
                return false;
            }
            self.real.store(found.cast(), Ordering::Relaxed);
            true
        }
    }
}

/// What a function reads and writes, by its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `(to, from, bytes)`; returns `to`, or with `end` what is behind the copy.
    Copies { end: bool },
    /// `(from, to, bytes)`.
    CopiesBack,
    /// `(to, byte, bytes)`.
    Sets,
    /// `(to, bytes)`.
    Clears,
    /// `(one, other, bytes)`.
    Compares,
    /// `(in, byte, bytes)`.
    Looks,
    /// `(text, …)`, to its end.
    Reads,
    /// `(text, byte)`, to the first such byte.
    Finds,
    /// `(text, …)`, some of its beginning.
    Begins,
    /// `(text, most)`.
    ReadsAtMost,
    /// `(one, other)`, to where they differ. In `any_case`, letters of either case are the same.
    ComparesTexts { any_case: bool },
    /// `(one, other, most)`.
    ComparesAtMost { any_case: bool },
    /// `(to, text)`.
    CopiesText,
    /// `(to, text, most)`, and what is left is cleared.
    CopiesAtMost,
    /// `(to, text)`, behind the text that is there.
    Appends,
    /// `(to, text, most)`.
    AppendsAtMost,
    /// `(base, count, bytes, …)`.
    Sorts,
    /// `(to, bytes, …)`, of which some are written; how many is not known before.
    Prints,
}

/// Up to two ranges: what is done, where, and how many bytes.
type Ranges = [(EventKind, usize, usize); 2];

const READ: EventKind = EventKind::PlainRead;
const WRITE: EventKind = EventKind::PlainWrite;
const NOTHING: (EventKind, usize, usize) = (READ, 0, 0);

unsafe fn text(at: usize) -> usize {
    // SAFETY: a text, by the caller's promise to the function that it called.
    unsafe { libc::strlen(at as *const _) + 1 }
}

/// Bytes of a text to the first one like this, or to its end.
unsafe fn until(at: usize, byte: u8) -> usize {
    // SAFETY: as above.
    let found = |&place: &usize| unsafe { matches!(*(place as *const u8), here if here == byte || here == 0) };
    (at..).find(found).map_or(1, |place| place - at + 1)
}

/// Bytes of two texts that are looked at to find out in which order they are.
unsafe fn in_common(one: usize, two: usize, most: usize, any_case: bool) -> usize {
    let fold = |byte: u8| if any_case { byte.to_ascii_lowercase() } else { byte };
    let mut bytes = 0;
    while bytes < most {
        // SAFETY: as above; both go on where they were the same so far.
        let [here, there] = unsafe { [*((one + bytes) as *const u8), *((two + bytes) as *const u8)] };
        bytes += 1;
        if here == 0 || fold(here) != fold(there) {
            break;
        }
    }
    bytes
}

unsafe fn text_at_most(at: usize, most: usize) -> usize {
    // SAFETY: as above.
    unsafe { (libc::strnlen(at as *const _, most) + 1).min(most) }
}

impl Shape {
    /// # Safety
    /// The arguments are those that a function of this shape is called with.
    unsafe fn ranges(self, &[one, two, three, ..]: &[usize; 6]) -> Ranges {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                Shape::Copies { .. } => [(READ, two, three), (WRITE, one, three)],
                Shape::CopiesBack => [(READ, one, three), (WRITE, two, three)],
                Shape::Sets => [NOTHING, (WRITE, one, three)],
                Shape::Clears => [NOTHING, (WRITE, one, two)],
                Shape::Compares => [(READ, one, three), (READ, two, three)],
                Shape::Looks => {
                    let found = libc::memchr(one as *const _, two as i32, three) as usize;
                    [(READ, one, if found == 0 { three } else { found + 1 - one }), NOTHING]
                }
                Shape::Reads => [(READ, one, text(one)), NOTHING],
                Shape::ReadsAtMost => [(READ, one, text_at_most(one, two)), NOTHING],
                Shape::Finds => [(READ, one, until(one, two as u8)), NOTHING],
                Shape::Begins => [(READ, one, 1), NOTHING],
                Shape::ComparesTexts { any_case } => {
                    let bytes = in_common(one, two, usize::MAX, any_case);
                    [(READ, one, bytes), (READ, two, bytes)]
                }
                Shape::ComparesAtMost { any_case } => {
                    let bytes = in_common(one, two, three, any_case);
                    [(READ, one, bytes), (READ, two, bytes)]
                }
                Shape::CopiesText => [(READ, two, text(two)), (WRITE, one, text(two))],
                Shape::CopiesAtMost => [(READ, two, text_at_most(two, three)), (WRITE, one, three)],
                Shape::Appends => [(READ, two, text(two)), (WRITE, one, text(one) + text(two) - 1)],
                Shape::AppendsAtMost => {
                    let more = text_at_most(two, three);
                    [(READ, two, more), (WRITE, one, text(one) + more)]
                }
                Shape::Sorts => [NOTHING, (WRITE, one, two.saturating_mul(three))],
                Shape::Prints => [NOTHING, (WRITE, one, two.min(PRINTED))],
            }
        }
    }

    /// Whether the ranges are exactly what is touched.
    fn is_exact(self) -> bool {
        !matches!(self, Shape::Prints | Shape::Appends | Shape::AppendsAtMost | Shape::CopiesAtMost)
    }
}

/// Bytes that functions with a format are taken to write at most: how many it will be is not known before.
const PRINTED: usize = 4096;

/// More bytes than any block has.
const LONGEST: usize = 1 << 40;

/// Bytes from which on a copy is made in halves.
const DIVISIBLE: usize = 16;

/// Where a call goes on: at a function, or back with a result.
#[repr(C)]
struct Onward {
    function: usize,
    result: usize,
}

/// Tells of a call.
unsafe extern "C-unwind" fn before(copy: &'static Copy, arguments: &[usize; 6], caller: usize) -> Onward {
    let real = copy.real.load(Ordering::Relaxed) as usize;
    let onward = Onward { function: real, result: 0 };
    let me = me();
    if me.is_null() {
        return onward;
    }
    // SAFETY: the arguments are the program's, for that function; what it reads itself may be read before. `me` is the calling
    // thread and, because it runs program code, has the token.
    unsafe {
        let ranges = copy.shape.ranges(arguments);
        let inside = Unmanaged::enter_from(me);
        let errno = *libc::__errno_location();
        // An address inside of the instruction that calls: no other place has it.
        let code = caller - 1;
        let mut all = [Access::reported(READ, 0, 0, code); 2];
        let mut count = 0;
        for (kind, address, bytes) in ranges {
            if bytes > 0 {
                all[count] = Access::reported(kind, address, bytes.min(LONGEST), code);
                count += 1;
            }
        }
        let accesses = &mut all[..count];
        let compared = is_close(code) && copy.shape.is_exact();
        let stepped = access::before_copy::<Linux>(me, accesses);
        if delay::is_on() && accesses.iter().any(|access| access.kind == WRITE) {
            delay::drain(Token::held_by(me));
        }
        let mut answer = onward;
        match first_half(copy.shape, arguments).filter(|_| stepped) {
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

/// How much of a call is made before others may run again; none if it is made in one.
fn first_half(shape: Shape, &[one, two, three, ..]: &[usize; 6]) -> Option<usize> {
    let bytes = match shape {
        // Where the blocks overlap the order matters.
        Shape::Copies { .. } if one.abs_diff(two) >= three => three,
        Shape::Sets => three,
        _ => return None,
    };
    (bytes >= DIVISIBLE).then_some((bytes / 2) & !7)
}

/// Makes a part of a call that can be divided.
///
/// # Safety
/// As for the function `real`, which has that shape.
unsafe fn make(shape: Shape, real: usize, &[one, two, ..]: &[usize; 6], skip: usize, bytes: usize) {
    // SAFETY: all functions that can be divided take three words.
    unsafe {
        let real: unsafe extern "C-unwind" fn(usize, usize, usize) -> usize = core::mem::transmute(real);
        real(one + skip, if shape == Shape::Sets { two } else { two + skip }, bytes);
    }
}

impl Shape {
    /// What a call that can be divided returns.
    fn result(self, &[one, _, three, ..]: &[usize; 6]) -> usize {
        if self == (Shape::Copies { end: true }) { one + three } else { one }
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
    snprintf Shape::Prints;
    vsnprintf Shape::Prints;
    __snprintf_chk Shape::Prints;
    __vsnprintf_chk Shape::Prints;
}
