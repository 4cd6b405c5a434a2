//! What functions of the C library read and write for whoever calls them, by their arguments and by what they return.

use core::sync::atomic::AtomicU64;

use waylay_schedule::EventKind;

use super::format::{self, Arguments, text_at_most};

pub(super) const READ: EventKind = EventKind::PlainRead;
pub(super) const WRITE: EventKind = EventKind::PlainWrite;

/// What a function reads and writes, by its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
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
    /// A format, at this place, and what it is filled with: behind it, or `list`ed by a `va_list` there. The result goes to the
    /// first argument if that is `Some`, which is the place of how many bytes that has, or 0 where nobody says.
    Formats { format: usize, list: bool, to: Option<usize> },
    /// `(descriptor, from, bytes, …)`.
    Sends,
    /// `(descriptor, ranges, count, …)`.
    SendsRanges,
    /// `(descriptor, message, …)`.
    SendsMessage,
    /// `(from, bytes, count, …)`.
    ReadsItems,
    /// State that the C library has only once, and the program never sees.
    Uses { state: State, writes: bool },
    /// `(text, …)`, which is cut up; without a text the one before goes on.
    Cuts,
    /// The same where the word at this place says where the last one ended.
    CutsOn { rest: usize },
    /// `(descriptor, to, bytes, …)`; returns how many were written.
    Receives,
    /// `(descriptor, ranges, count, …)`.
    ReceivesRanges,
    /// `(descriptor, message, …)`.
    ReceivesMessage,
    /// `(to, bytes, count, …)`; returns how many items were written.
    FillsItems,
    /// `(to, bytes, …)`; returns `to` if there is a text.
    FillsLine,
    /// `(at, …)`: what is there leads to a text; returns how long that is.
    FillsOwn,
    /// Returns something of so many bytes that the C library has only once; of 0: a text.
    Tells(usize),
}

/// State that the C library has only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Tokens,
    Environment,
    Random,
    Locale,
    Shift,
}

impl State {
    /// An address that stands for it. A word each, because words are told apart.
    fn address(self) -> usize {
        static ALL: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
        ALL[self as usize].as_ptr() as usize
    }
}

/// What one call reads and writes: what is done, where, and how many bytes. Of a long list, the beginning.
#[derive(Default)]
pub(super) struct Ranges {
    all: [Option<(EventKind, usize, usize)>; Ranges::MOST],
    count: usize,
}

impl Ranges {
    pub(super) const MOST: usize = 12;

    pub(super) fn add(&mut self, kind: EventKind, address: usize, bytes: usize) {
        if bytes > 0 && address != 0 && self.count < Ranges::MOST {
            self.all[self.count] = Some((kind, address, bytes));
            self.count += 1;
        }
    }

    fn of<const N: usize>(ranges: [(EventKind, usize, usize); N]) -> Ranges {
        let mut all = Ranges::default();
        ranges.into_iter().for_each(|(kind, address, bytes)| all.add(kind, address, bytes));
        all
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (EventKind, usize, usize)> + '_ {
        self.all.iter().copied().flatten()
    }
}

unsafe fn text(at: usize) -> usize {
    // SAFETY: a text, by the caller's promise to the function that it called.
    unsafe { libc::strlen(at as *const _) + 1 }
}

/// A text that may be none.
unsafe fn text_if(at: usize) -> usize {
    if at == 0 {
        return 0;
    }
    // SAFETY: as above.
    unsafe { text(at) }
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

/// A word of the program's.
unsafe fn word(at: usize) -> usize {
    if at == 0 {
        return 0;
    }
    // SAFETY: by the caller's promise to the function that it called.
    unsafe { (at as *const usize).read_unaligned() }
}

/// The first `bytes` bytes of a list of ranges.
unsafe fn listed(kind: EventKind, (list, count): (usize, usize), mut bytes: usize) -> Ranges {
    let mut ranges = Ranges::default();
    for place in 0..count.min(Ranges::MOST) {
        // SAFETY: by the caller's promise to the function that it called.
        let range = unsafe { (list as *const libc::iovec).add(place).read_unaligned() };
        let here = range.iov_len.min(bytes);
        ranges.add(kind, range.iov_base as usize, here);
        bytes -= here;
    }
    ranges
}

unsafe fn of_message(kind: EventKind, message: usize, bytes: usize) -> Ranges {
    if message == 0 {
        return Ranges::default();
    }
    // SAFETY: by the caller's promise to the function that it called.
    unsafe {
        let message = &*(message as *const libc::msghdr);
        listed(kind, (message.msg_iov as usize, message.msg_iovlen), bytes)
    }
}

impl Shape {
    /// What a call is about to read and write; where that is known only afterwards, what it may.
    ///
    /// # Safety
    /// The arguments are those that a function of this shape is called with, and those on the stack follow as
    /// [`format::Filled`] knows.
    pub(super) unsafe fn ranges(self, arguments: &Arguments) -> Ranges {
        let &[one, two, three, ..] = arguments;
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                Shape::Copies { .. } => Ranges::of([(READ, two, three), (WRITE, one, three)]),
                Shape::CopiesBack => Ranges::of([(READ, one, three), (WRITE, two, three)]),
                Shape::Sets => Ranges::of([(WRITE, one, three)]),
                Shape::Clears => Ranges::of([(WRITE, one, two)]),
                Shape::Compares => Ranges::of([(READ, one, three), (READ, two, three)]),
                Shape::Looks => {
                    let found = libc::memchr(one as *const _, two as i32, three) as usize;
                    Ranges::of([(READ, one, if found == 0 { three } else { found + 1 - one })])
                }
                Shape::Reads => Ranges::of([(READ, one, text(one))]),
                Shape::ReadsAtMost => Ranges::of([(READ, one, text_at_most(one, two))]),
                Shape::Finds => Ranges::of([(READ, one, until(one, two as u8))]),
                Shape::Begins => Ranges::of([(READ, one, 1)]),
                Shape::ComparesTexts { any_case } => {
                    let bytes = in_common(one, two, usize::MAX, any_case);
                    Ranges::of([(READ, one, bytes), (READ, two, bytes)])
                }
                Shape::ComparesAtMost { any_case } => {
                    let bytes = in_common(one, two, three, any_case);
                    Ranges::of([(READ, one, bytes), (READ, two, bytes)])
                }
                Shape::CopiesText => Ranges::of([(READ, two, text(two)), (WRITE, one, text(two))]),
                Shape::CopiesAtMost => {
                    Ranges::of([(READ, two, text_at_most(two, three)), (WRITE, one, three)])
                }
                Shape::Appends => {
                    Ranges::of([(READ, two, text(two)), (WRITE, one, text(one) + text(two) - 1)])
                }
                Shape::AppendsAtMost => {
                    let more = text_at_most(two, three);
                    Ranges::of([(READ, two, more), (WRITE, one, text(one) + more)])
                }
                Shape::Sorts => Ranges::of([(WRITE, one, two.saturating_mul(three))]),
                Shape::Formats { format, list, to } => {
                    let filled = format::Filled::of(arguments, format, list);
                    let mut ranges = Ranges::default();
                    filled.texts(|at, bytes| ranges.add(READ, at, bytes));
                    if let Some(place) = to {
                        let room = if place == 0 { usize::MAX } else { arguments[place] };
                        ranges.add(WRITE, one, filled.length().min(room));
                    }
                    ranges
                }
                Shape::Sends => Ranges::of([(READ, two, three)]),
                Shape::SendsRanges => listed(READ, (two, three as i32 as usize), usize::MAX),
                Shape::SendsMessage => of_message(READ, two, usize::MAX),
                Shape::ReadsItems => Ranges::of([(READ, one, two.saturating_mul(three))]),
                Shape::Uses { state, writes } => {
                    Ranges::of([(if writes { WRITE } else { READ }, state.address(), 1)])
                }
                Shape::Cuts => {
                    Ranges::of([(WRITE, one, text_if(one)), (WRITE, State::Tokens.address(), 1)])
                }
                Shape::CutsOn { rest } => {
                    let at = if rest > 0 && one != 0 { one } else { word(arguments[rest]) };
                    Ranges::of([(WRITE, at, text_if(at)), (WRITE, arguments[rest], size_of::<usize>())])
                }
                Shape::Receives => Ranges::of([(WRITE, two, three)]),
                Shape::ReceivesRanges => listed(WRITE, (two, three as i32 as usize), usize::MAX),
                Shape::ReceivesMessage => of_message(WRITE, two, usize::MAX),
                Shape::FillsItems => Ranges::of([(WRITE, one, two.saturating_mul(three))]),
                Shape::FillsLine => Ranges::of([(WRITE, one, two as i32 as usize)]),
                Shape::FillsOwn => {
                    let at = word(one);
                    Ranges::of([(WRITE, one, size_of::<usize>()), (WRITE, at, if at == 0 { 0 } else { word(two) })])
                }
                Shape::Tells(_) => Ranges::default(),
            }
        }
    }

    /// Whether what is touched is known only when the call is over.
    pub(super) fn shows_afterwards(self) -> bool {
        matches!(
            self,
            Shape::Receives
                | Shape::ReceivesRanges
                | Shape::ReceivesMessage
                | Shape::FillsItems
                | Shape::FillsLine
                | Shape::FillsOwn
                | Shape::Tells(_)
        )
    }

    /// What a call that is over wrote.
    ///
    /// # Safety
    /// As for [`Shape::ranges`]; the call returned `result`.
    pub(super) unsafe fn written(self, &[one, two, three, ..]: &Arguments, result: usize) -> Ranges {
        let bytes = (result as isize).max(0) as usize;
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                Shape::Receives => Ranges::of([(WRITE, two, bytes.min(three))]),
                Shape::ReceivesRanges => listed(WRITE, (two, three as i32 as usize), bytes),
                Shape::ReceivesMessage => of_message(WRITE, two, bytes),
                Shape::FillsItems => Ranges::of([(WRITE, one, two.saturating_mul(result))]),
                Shape::FillsLine => Ranges::of([(WRITE, result, text_if(result))]),
                Shape::FillsOwn if bytes > 0 => {
                    Ranges::of([(WRITE, one, size_of::<usize>()), (WRITE, word(one), bytes + 1)])
                }
                Shape::Tells(0) => Ranges::of([(WRITE, result, text_if(result))]),
                Shape::Tells(bytes) => Ranges::of([(WRITE, result, bytes)]),
                _ => Ranges::default(),
            }
        }
    }

    /// Whether the ranges are exactly what is touched.
    pub(super) fn is_exact(self) -> bool {
        matches!(
            self,
            Shape::Copies { .. }
                | Shape::CopiesBack
                | Shape::Sets
                | Shape::Clears
                | Shape::Compares
                | Shape::Looks
                | Shape::Reads
                | Shape::Finds
                | Shape::Begins
                | Shape::ReadsAtMost
                | Shape::ComparesTexts { .. }
                | Shape::ComparesAtMost { .. }
                | Shape::CopiesText
                | Shape::Sorts
        )
    }

    /// How much of a call is made before others may run again; none if it is made in one.
    pub(super) fn first_half(self, &[one, two, three, ..]: &Arguments) -> Option<usize> {
        /// Bytes from which on a copy is made in halves.
        const DIVISIBLE: usize = 16;
        let bytes = match self {
            // Where the blocks overlap the order matters.
            Shape::Copies { .. } if one.abs_diff(two) >= three => three,
            Shape::Sets => three,
            _ => return None,
        };
        (bytes >= DIVISIBLE).then_some((bytes / 2) & !7)
    }

    /// What a call that can be divided returns.
    pub(super) fn result(self, &[one, _, three, ..]: &Arguments) -> usize {
        if self == (Shape::Copies { end: true }) { one + three } else { one }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(ranges: &Ranges) -> Vec<(EventKind, usize, usize)> {
        ranges.iter().collect()
    }

    #[test]
    fn what_is_received_is_known_afterwards() {
        let mut buffer = [0u8; 8];
        let at = buffer.as_mut_ptr() as usize;
        let arguments = [3, at, 8, 0, 0, 0];
        // SAFETY: the arguments are those of a read into the buffer.
        unsafe {
            assert_eq!(written(&Shape::Receives.ranges(&arguments)), [(WRITE, at, 8)]);
            assert_eq!(written(&Shape::Receives.written(&arguments, 5)), [(WRITE, at, 5)]);
            assert!(written(&Shape::Receives.written(&arguments, usize::MAX)).is_empty(), "it failed");
            let parts = [
                libc::iovec { iov_base: at as *mut _, iov_len: 3 },
                libc::iovec { iov_base: (at + 3) as *mut _, iov_len: 5 },
            ];
            let arguments = [3, parts.as_ptr() as usize, 2, 0, 0, 0];
            let some = Shape::ReceivesRanges.written(&arguments, 4);
            assert_eq!(written(&some), [(WRITE, at, 3), (WRITE, at + 3, 1)]);
        }
    }

    #[test]
    fn a_text_that_is_cut_up_is_written() {
        let text = c"a b";
        let at = text.as_ptr() as usize;
        let state = State::Tokens.address();
        // SAFETY: the arguments are those of calls of `strtok` and `strtok_r`.
        unsafe {
            let first = Shape::Cuts.ranges(&[at, 0, 0, 0, 0, 0]);
            assert_eq!(written(&first), [(WRITE, at, 4), (WRITE, state, 1)]);
            let next = Shape::Cuts.ranges(&[0; 6]);
            assert_eq!(written(&next), [(WRITE, state, 1)]);
            let rest = at + 2;
            let place = &raw const rest as usize;
            let next = Shape::CutsOn { rest: 2 }.ranges(&[0, 0, place, 0, 0, 0]);
            assert_eq!(written(&next), [(WRITE, rest, 2), (WRITE, place, 8)]);
        }
        assert_ne!(State::Tokens.address(), State::Environment.address());
    }
}
