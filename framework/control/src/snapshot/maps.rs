//! The mappings of the process, and what a snapshot does with each. Pure.

/// What a snapshot does with a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// It is left alone: the program cannot change it, or shares it with others, as it would after a fork.
    #[default]
    Other = 0,
    /// Its content is in the image, and goes back to that.
    Image = 1,
    /// Nothing is there until the program asks for it: reserved addresses.
    Hole = 2,
    /// It is the keeper's, and outlives every run.
    Own = 3,
}

/// A mapping as the kernel lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) low: usize,
    pub(super) high: usize,
    /// `PROT_READ` and its like.
    pub(super) protection: i32,
    shared: bool,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Anonymous,
    File,
    Stack,
    Heap,
    Kernel,
}

impl Mapping {
    /// Reads one line of `/proc/self/maps`.
    pub(super) fn parse(line: &[u8]) -> Option<Mapping> {
        let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
        let (range, modes) = (fields.next()?, fields.next()?);
        let dash = range.iter().position(|&byte| byte == b'-')?;
        let (low, high) = (hexadecimal(&range[..dash])?, hexadecimal(&range[dash + 1..])?);
        let &[read, write, execute, shared] = modes else { return None };
        let mut protection = 0;
        for (mode, letter, bit) in [
            (read, b'r', libc::PROT_READ),
            (write, b'w', libc::PROT_WRITE),
            (execute, b'x', libc::PROT_EXEC),
        ] {
            protection |= if mode == letter { bit } else { 0 };
        }
        // Offset, device and inode come before the name.
        let what = match fields.nth(3).unwrap_or_default() {
            name if name.starts_with(b"/") => What::File,
            b"[stack]" => What::Stack,
            b"[heap]" => What::Heap,
            name if name.starts_with(b"[v") => What::Kernel,
            _ => What::Anonymous,
        };
        Some(Mapping { low, high, protection, shared: shared == b's', what })
    }

    /// What a snapshot does with it, unless it is the keeper's.
    pub(super) fn kind(&self) -> Kind {
        match self.what {
            _ if self.shared => Kind::Other,
            What::Kernel => Kind::Other,
            _ if self.protection & libc::PROT_WRITE != 0 => Kind::Image,
            What::Anonymous if self.protection == libc::PROT_NONE => Kind::Hole,
            _ => Kind::Other,
        }
    }

    /// Whether its pages have content before they are touched.
    pub(super) fn is_file(&self) -> bool {
        self.what == What::File
    }

    /// Whether it is the stack of the main thread, which grows.
    pub(super) fn is_stack(&self) -> bool {
        self.what == What::Stack
    }
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    usize::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// Calls `visit` for the pieces of `low..high`, in order, and whether each lies in one of the ranges. The kernel merges
/// neighbours that look alike, so a mapping may be partly ours.
pub(super) fn carve(
    (low, high): (usize, usize),
    ours: &[(usize, usize)],
    mut visit: impl FnMut((usize, usize), bool),
) {
    let mut at = low;
    while at < high {
        let inside = ours.iter().find(|&&(from, to)| from <= at && at < to);
        let next = match inside {
            Some(&(_, to)) => to.min(high),
            None => ours
                .iter()
                .map(|&(from, _)| from)
                .filter(|&from| from > at && from < high)
                .min()
                .unwrap_or(high),
        };
        visit((at, next), inside.is_some());
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> Kind {
        Mapping::parse(line.as_bytes()).expect("a line").kind()
    }

    #[test]
    fn lines_are_read() {
        let line = b"7ffff7dc7000-7ffff7dcb000 rw-p 001d0000 fe:00 1234    /usr/lib/x y/libc.so.6";
        let mapping = Mapping::parse(line).unwrap();
        assert_eq!((mapping.low, mapping.high), (0x7fff_f7dc_7000, 0x7fff_f7dc_b000));
        assert_eq!(mapping.protection, libc::PROT_READ | libc::PROT_WRITE);
        assert!(mapping.is_file() && !mapping.is_stack());
        assert_eq!(Mapping::parse(b"nonsense"), None);
        assert_eq!(Mapping::parse(b""), None);
    }

    #[test]
    fn what_the_program_can_change_is_in_the_image() {
        assert_eq!(kind("1000-2000 rw-p 0 00:00 0"), Kind::Image);
        assert_eq!(kind("1000-2000 rw-p 0 00:00 0    [heap]"), Kind::Image);
        assert_eq!(kind("1000-2000 rw-p 0 00:00 0    [stack]"), Kind::Image);
        assert_eq!(kind("1000-2000 rw-p 0 fe:00 9    /lib/a.so"), Kind::Image);
        assert_eq!(kind("1000-2000 r--p 0 fe:00 9    /lib/a.so"), Kind::Other);
        assert_eq!(kind("1000-2000 r--p 0 00:00 0"), Kind::Other);
        assert_eq!(kind("1000-2000 rw-s 0 00:01 9    /memfd:x (deleted)"), Kind::Other);
        assert_eq!(kind("1000-2000 ---p 0 00:00 0"), Kind::Hole);
        assert_eq!(kind("1000-2000 ---p 0 fe:00 9    /lib/a.so"), Kind::Other);
        assert_eq!(kind("1000-2000 r-xp 0 00:00 0    [vdso]"), Kind::Other);
    }

    #[test]
    fn our_own_parts_are_carved_out() {
        let mut pieces = Vec::new();
        carve((0, 100), &[(20, 30), (30, 40), (90, 200)], |range, ours| pieces.push((range, ours)));
        let expected =
            [((0, 20), false), ((20, 30), true), ((30, 40), true), ((40, 90), false), ((90, 100), true)];
        assert_eq!(pieces, expected);
    }
}
