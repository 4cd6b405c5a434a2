//! What a format of `printf`'s is filled with: which texts are read, and how long the result is.
//!
//! Arguments that do not fit into registers are on the caller's stack. A format with numbered arguments (`%1$s`) is not followed.

use core::ffi::{c_char, c_int, c_void};

/// The words that a function may be passed.
pub(super) type Arguments = [usize; 6];

/// Where the words of `enter_with_arguments` keep the vector registers, and how far behind them the caller's stack begins:
/// behind the frame, the saved RBP and the return address.
const VECTORS: usize = 80;
const STACK: usize = 208 + 2 * size_of::<usize>();

/// Bytes of the registers that arguments are passed in, as a `va_list` has them: general ones, and with the vectors.
const GENERAL: usize = 48;
const REGISTERS: usize = GENERAL + 8 * 16;

/// A `va_list` of System V's.
#[repr(C)]
#[derive(Clone, Copy)]
struct List {
    general: u32,
    vectors: u32,
    stack: usize,
    registers: usize,
}

impl List {
    unsafe fn word(&mut self) -> usize {
        // SAFETY: by the promise of whoever gave the list.
        unsafe {
            if (self.general as usize) < GENERAL {
                let at = self.registers + self.general as usize;
                self.general += 8;
                (at as *const usize).read()
            } else {
                let at = self.stack;
                self.stack += 8;
                (at as *const usize).read()
            }
        }
    }

    fn skip_vector(&mut self) {
        if (self.vectors as usize) < REGISTERS {
            self.vectors += 16;
        } else {
            self.stack += 8;
        }
    }

    /// One of 80 bits, which is always on the stack.
    fn skip_long_vector(&mut self) {
        self.stack = self.stack.next_multiple_of(16) + 16;
    }
}

/// Bytes of a text, with what ends it, that are read by who reads so many at most.
///
/// # Safety
/// A text is there, or so many bytes.
pub(super) unsafe fn text_at_most(at: usize, most: usize) -> usize {
    // SAFETY: by the caller's promise.
    unsafe { (libc::strnlen(at as *const _, most) + 1).min(most) }
}

/// A format and what it is filled with.
pub(super) struct Filled {
    format: usize,
    list: List,
    /// What the list names as registers, if these were saved in another order.
    registers: [u8; REGISTERS],
    own: bool,
}

unsafe extern "C" {
    fn vsnprintf(to: *mut c_char, room: usize, format: *const c_char, list: *mut c_void) -> c_int;
}

impl Filled {
    /// The format at `format` of these arguments; `listed`: a `va_list` follows, and not what it is filled with.
    ///
    /// # Safety
    /// The arguments are those of a call of such a function, kept by `enter_with_arguments`.
    pub(super) unsafe fn of(arguments: &Arguments, format: usize, listed: bool) -> Filled {
        let saved = arguments.as_ptr() as usize;
        let mut registers = [0; REGISTERS];
        // SAFETY: by the caller's promise.
        let list = unsafe {
            if listed {
                *(arguments[format + 1] as *const List)
            } else {
                let (general, vectors) = registers.split_at_mut(GENERAL);
                general.copy_from_slice(core::slice::from_raw_parts(saved as *const u8, GENERAL));
                let kept = (saved + VECTORS) as *const u8;
                vectors.copy_from_slice(core::slice::from_raw_parts(kept, REGISTERS - GENERAL));
                let general = (format as u32 + 1) * 8;
                List { general, vectors: GENERAL as u32, stack: saved + STACK, registers: 0 }
            }
        };
        Filled { format: arguments[format], list, registers, own: !listed }
    }

    fn list(&self) -> List {
        let registers = if self.own { self.registers.as_ptr() as usize } else { self.list.registers };
        List { registers, ..self.list }
    }

    /// Whether to follow it changes nothing, and is possible: `%n` writes.
    unsafe fn is_plain(&self) -> bool {
        let mut at = self.format as *const u8;
        // SAFETY: a text, by the caller's promise.
        unsafe {
            while *at != 0 {
                if *at == b'%' {
                    at = at.add(1);
                    while matches!(*at, b'0'..=b'9' | b' ' | b'-' | b'+' | b'#' | b'\'' | b'*' | b'.' | b'h' | b'l' | b'q' | b'j' | b'z' | b't' | b'L')
                    {
                        at = at.add(1);
                    }
                    if !matches!(*at, b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'c' | b's' | b'p' | b'%' | b'm' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A')
                    {
                        return false;
                    }
                }
                at = at.add(1);
            }
        }
        true
    }

    /// How many bytes the result has, with what ends it.
    ///
    /// # Safety
    /// As for [`Filled::of`].
    pub(super) unsafe fn length(&self) -> usize {
        // SAFETY: the format and what it is filled with are the program's, for such a function; nothing is written.
        unsafe {
            if self.format == 0 || !self.is_plain() {
                return 1;
            }
            let mut list = self.list();
            let bytes = vsnprintf(core::ptr::null_mut(), 0, self.format as *const c_char, (&raw mut list).cast());
            bytes.max(0) as usize + 1
        }
    }

    /// Tells of the texts that are read: where each begins, and its bytes.
    ///
    /// # Safety
    /// As for [`Filled::of`].
    pub(super) unsafe fn texts(&self, mut text: impl FnMut(usize, usize)) {
        // SAFETY: the format is a text, and the list has what it asks for.
        unsafe {
            if self.format == 0 || !self.is_plain() {
                return;
            }
            let mut list = self.list();
            let mut at = self.format as *const u8;
            while *at != 0 {
                let here = *at;
                at = at.add(1);
                if here != b'%' {
                    continue;
                }
                // The greatest number of bytes, behind a dot.
                let (mut most, mut dot, mut long, mut double) = (None, false, false, false);
                loop {
                    match *at {
                        b'.' => (dot, most) = (true, Some(0)),
                        digit @ b'0'..=b'9' if dot => {
                            most = most.map(|most: usize| most.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
                        }
                        b'*' => {
                            let given = list.word() as i32;
                            if dot {
                                most = usize::try_from(given).ok();
                            }
                        }
                        b'l' => long = true,
                        b'L' => double = true,
                        b'0'..=b'9' | b' ' | b'-' | b'+' | b'#' | b'\'' | b'h' | b'q' | b'j' | b'z' | b't' => {}
                        _ => break,
                    }
                    at = at.add(1);
                }
                match *at {
                    b's' => {
                        let from = list.word();
                        // Wide characters are left aside.
                        if from != 0 && !long {
                            text(from, text_at_most(from, most.unwrap_or(usize::MAX >> 1)));
                        }
                    }
                    b'%' | b'm' => {}
                    b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                        if double { list.skip_long_vector() } else { list.skip_vector() }
                    }
                    _ => {
                        list.word();
                    }
                }
                at = at.add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::CStr;

    use super::*;

    /// The registers and the stack of a call, as they are kept.
    #[repr(C, align(16))]
    struct Call([usize; 40]);

    fn call(general: [usize; 6], stack: &[usize]) -> Call {
        let mut kept = [0; 40];
        kept[..6].copy_from_slice(&general);
        kept[STACK / 8..STACK / 8 + stack.len()].copy_from_slice(stack);
        Call(kept)
    }

    fn texts(format: &CStr, place: usize, general: [usize; 6], stack: &[usize]) -> (Vec<(usize, usize)>, usize) {
        let mut call = call(general, stack);
        call.0[place] = format.as_ptr() as usize;
        let mut all = Vec::new();
        // SAFETY: the words are laid out as those of a call, with what the format asks for.
        unsafe {
            let filled = Filled::of(&*call.0.as_ptr().cast::<Arguments>(), place, false);
            filled.texts(|at, bytes| all.push((at, bytes)));
            (all, filled.length())
        }
    }

    #[test]
    fn texts_are_found_in_registers_and_on_the_stack() {
        let (one, two) = (c"one".as_ptr() as usize, c"twenty".as_ptr() as usize);
        let (read, length) = texts(c"<%s|%d|%.3s>", 0, [0, one, 7, two, 0, 0], &[]);
        assert_eq!((read, length), (vec![(one, 4), (two, 3)], "<one|7|twe>".len() + 1));
        let (read, length) = texts(c"%d%d%s %-9s", 2, [0, 0, 0, 1, 2, one], &[two]);
        assert_eq!((read, length), (vec![(one, 4), (two, 7)], "12one twenty   ".len() + 1));
        let (read, _) = texts(c"%*d%.*s%%%s", 0, [0, 3, 5, 2, two, one], &[]);
        assert_eq!(read, [(two, 2), (one, 4)]);
        let (read, _) = texts(c"%f %Lf%s", 0, [0, one, 0, 0, 0, 0], &[0, 0]);
        assert_eq!(read, [(one, 4)]);
    }

    #[test]
    fn what_cannot_be_followed_is_left_alone() {
        let one = c"one".as_ptr() as usize;
        assert_eq!(texts(c"%1$s", 0, [0, one, 0, 0, 0, 0], &[]), (Vec::new(), 1));
        assert_eq!(texts(c"%s%n", 0, [0, one, 0, 0, 0, 0], &[]), (Vec::new(), 1));
    }
}
