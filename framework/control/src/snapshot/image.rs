//! The memory of the program as it was when the snapshot was taken, and how it comes back.
//!
//! Writable memory becomes a private mapping of a file in memory, the image. A page that a run wrote to is then a copy of
//! the program's own, which the kernel can list. Such a page stays and is copied back from the image after every run: it is
//! *hot*. While the carrier had no page fault, nothing but hot pages can have changed, so nothing is listed. Pages beyond
//! what is worth copying are dropped, and read from the image again when they are next touched.

use super::list::List;
use super::maps::{Kind, Mapping, carve};
use crate::sys;

pub(super) const PAGE: usize = 4096;
/// Mappings of the process.
const PIECES: usize = 8192;
/// Pages that are copied back.
const HOT: usize = 1 << 16;
/// Bytes of address space that an image can have, and one bit for each page of it.
const LARGEST: usize = 1 << 36;
const WORDS: usize = LARGEST / PAGE / 64;
/// Entries of one answer of the kernel's.
const SCANNED: usize = 1024;
/// Bytes of the list of mappings.
const LISTING: usize = 1 << 20;
/// The stack of the main thread is mapped as far down as its limit says, but no further than this.
const STACK: usize = 64 << 20;
/// What stays free between the stack and the mapping below it.
const GAP: usize = 1 << 20;

/// A part of the address space.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Piece {
    pub(super) low: usize,
    pub(super) high: usize,
    protection: i32,
    pub(super) kind: Kind,
    file: bool,
    /// Where it is in the image.
    offset: usize,
}

/// A page that is copied back, and where from; nothing: it is all zero.
#[derive(Clone, Copy)]
struct Hot {
    at: usize,
    from: *const u8,
}

/// What the kernel says about a range of pages.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Range {
    start: u64,
    end: u64,
    categories: u64,
}

/// What it is asked.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `PAGEMAP_SCAN`, of Linux 6.7 and later.
const SCAN: usize = 0xc060_6610;
const IS_FILE: u64 = 1 << 2;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;

/// The image. Lies in the keeper's memory; all zero bytes are one that was not taken yet.
pub(super) struct Image {
    file: i32,
    pagemap: i32,
    view: *const u8,
    pieces: List<Piece, PIECES>,
    hot: List<Hot, HOT>,
    known: [u64; WORDS],
    faults: i64,
    ranges: [Range; SCANNED],
    listing: [u8; LISTING],
}

/// Why an image cannot be taken.
pub(super) type Refusal = &'static str;

impl Image {
    /// Whether the kernel can list pages.
    pub(super) fn is_possible() -> Result<(), Refusal> {
        let pagemap = open_pagemap().ok_or("the kernel does not let a process read its own page map")?;
        let mut range = Range::default();
        let here = (&raw const range as usize) & !(PAGE - 1);
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            start: here as u64,
            end: (here + PAGE) as u64,
            vec: &raw mut range as u64,
            vec_len: 1,
            category_anyof_mask: IS_PRESENT,
            return_mask: IS_PRESENT,
            ..Scan::default()
        };
        // SAFETY: the kernel writes to the two locals; the descriptor is ours.
        let found = unsafe {
            let found =
                sys::call(libc::SYS_ioctl, [pagemap as usize, SCAN, &raw mut scan as usize, 0, 0, 0]);
            sys::call(libc::SYS_close, [pagemap as usize, 0, 0, 0, 0, 0]);
            found
        };
        if found < 0 { Err("the kernel cannot list changed pages (Linux 6.7 can)") } else { Ok(()) }
    }

    /// Takes the image and maps it in place of the memory. What lies in `ours` is left alone; descriptors are made with
    /// numbers from `reserved` on.
    ///
    /// # Safety
    /// The caller runs on a stack in `ours`, with signals blocked, and no other thread runs.
    pub(super) unsafe fn take(
        &mut self,
        ours: &[(usize, usize)],
        reserved: i32,
    ) -> Result<(), Refusal> {
        // SAFETY: by the caller's promise.
        unsafe {
            self.pagemap = moved(open_pagemap().ok_or("no page map")?, reserved);
            let name = c"waylay-image".as_ptr() as usize;
            let file = sys::call(libc::SYS_memfd_create, [name, libc::MFD_CLOEXEC as usize, 0, 0, 0, 0]);
            if file < 0 {
                return Err("no memory for an image");
            }
            self.file = moved(file as i32, reserved);
            let size = self.note_pieces(ours)?;
            sys::call(libc::SYS_ftruncate, [self.file as usize, size, 0, 0, 0, 0]);
            for index in 0..self.pieces.as_slice().len() {
                let piece = self.pieces.as_slice()[index];
                if piece.kind == Kind::Image {
                    self.copy_out(piece)?;
                }
            }
            let flags = libc::MAP_SHARED as usize;
            let args = [0, size, libc::PROT_READ as usize, flags, self.file as usize, 0];
            let view = sys::call(libc::SYS_mmap, args);
            if view < 0 {
                return Err("no address space for an image");
            }
            self.view = view as *const u8;
            for index in 0..self.pieces.as_slice().len() {
                let piece = self.pieces.as_slice()[index];
                if piece.kind == Kind::Image && !self.map(piece.low, piece.high, &piece) {
                    return Err("the image could not be mapped");
                }
            }
            self.faults = -1;
        }
        Ok(())
    }

    /// Lists the mappings and says how large the image will be.
    ///
    /// # Safety
    /// As for [`Image::take`].
    unsafe fn note_pieces(&mut self, ours: &[(usize, usize)]) -> Result<usize, Refusal> {
        let length = read_file(c"/proc/self/maps", &mut self.listing).ok_or("the mappings cannot be listed")?;
        let (mut size, mut below) = (0usize, 0usize);
        let mut full = false;
        for line in self.listing[..length].split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let mapping = Mapping::parse(line).ok_or("a mapping cannot be read")?;
            let mut low = mapping.low;
            if mapping.is_stack() {
                low = stack_bottom(&mapping, below);
            }
            carve((low, mapping.high), ours, |(low, high), own| {
                let mut piece = Piece {
                    low,
                    high,
                    protection: mapping.protection,
                    kind: if own { Kind::Own } else { mapping.kind() },
                    file: mapping.is_file(),
                    offset: size,
                };
                // What was written before it was forbidden is still there.
                if piece.kind == Kind::Hole
                    && list_pages(self.pagemap, &mut self.ranges, (low, high), 0, |_, _| {}) != Some(0)
                {
                    piece.kind = Kind::Other;
                }
                size += if piece.kind == Kind::Image { high - low } else { 0 };
                full |= !self.pieces.push(piece);
            });
            below = mapping.high;
        }
        if full || size > LARGEST {
            return Err("the program has too many or too large mappings");
        }
        Ok(size)
    }

    /// Writes the content of a piece into the image's file.
    ///
    /// # Safety
    /// The piece is mapped and readable where pages are.
    unsafe fn copy_out(&mut self, piece: Piece) -> Result<(), Refusal> {
        let mut failed = false;
        let mut copy = |start: usize, end: usize| {
            for at in (start..end).step_by(PAGE) {
                // SAFETY: pages that are listed, or of a file, can be read.
                unsafe {
                    if is_zero(at) {
                        continue;
                    }
                    let to = piece.offset + (at - piece.low);
                    let args = [self.file as usize, at, PAGE, to, 0, 0];
                    failed |= sys::call(libc::SYS_pwrite64, args) != PAGE as isize;
                }
            }
        };
        if piece.file {
            copy(piece.low, piece.high);
        } else {
            list_pages(self.pagemap, &mut self.ranges, (piece.low, piece.high), 0, copy)
                .ok_or("the pages cannot be listed")?;
        }
        if failed { Err("no memory for an image") } else { Ok(()) }
    }

    /// Maps a part of a piece of the image in its place.
    ///
    /// # Safety
    /// Nobody needs what is there.
    unsafe fn map(&self, low: usize, high: usize, piece: &Piece) -> bool {
        let flags = (libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE) as usize;
        let offset = piece.offset + (low - piece.low);
        let args = [low, high - low, piece.protection as usize, flags, self.file as usize, offset];
        // SAFETY: by the caller's promise.
        unsafe { sys::call(libc::SYS_mmap, args) == low as isize }
    }

    /// Makes a range as it was mapped when the image was taken: its content, and what may be done with it.
    ///
    /// # Safety
    /// The range holds nothing but image and holes.
    pub(super) unsafe fn remap(&mut self, low: usize, high: usize) {
        for piece in self.pieces.as_slice().iter().filter(|piece| piece.low < high && low < piece.high) {
            let (from, to) = (piece.low.max(low), piece.high.min(high));
            // SAFETY: by the caller's promise.
            unsafe {
                match piece.kind {
                    Kind::Image => {
                        self.map(from, to, piece);
                    }
                    Kind::Hole => {
                        let flags =
                            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
                        let args = [from, to - from, piece.protection as usize, flags as usize, usize::MAX, 0];
                        sys::call(libc::SYS_mmap, args);
                    }
                    Kind::Other | Kind::Own => {}
                }
            }
        }
    }

    /// The pieces that a range has a part in.
    pub(super) fn pieces_in(&self, low: usize, high: usize) -> impl Iterator<Item = &Piece> {
        self.pieces.as_slice().iter().filter(move |piece| piece.low < high && low < piece.high)
    }

    /// Brings the memory back. `quiet`: only the calling thread ran since the last time.
    ///
    /// # Safety
    /// As for [`Image::take`]; nothing but image and holes was mapped or protected differently since.
    pub(super) unsafe fn restore(&mut self, quiet: bool) {
        if !quiet || faults() != self.faults {
            self.learn();
        }
        for hot in self.hot.as_slice() {
            // SAFETY: hot pages are writable pages of the image; the view is mapped for good.
            unsafe {
                let to = hot.at as *mut u8;
                if hot.from.is_null() {
                    to.write_bytes(0, PAGE);
                } else {
                    to.copy_from_nonoverlapping(hot.from, PAGE);
                }
            }
        }
        self.faults = faults();
    }

    /// Finds pages that were written to and are not hot yet.
    fn learn(&mut self) {
        let Image { pagemap, view, pieces, hot, known, ranges, .. } = self;
        for piece in pieces.as_slice().iter().filter(|piece| piece.kind == Kind::Image) {
            list_pages(*pagemap, ranges, (piece.low, piece.high), IS_FILE, |start, end| {
                for at in (start..end).step_by(PAGE) {
                    let offset = piece.offset + (at - piece.low);
                    let (word, bit) = (offset / PAGE / 64, 1 << (offset / PAGE % 64));
                    if known[word] & bit != 0 {
                        continue;
                    }
                    let source = view.wrapping_add(offset);
                    // SAFETY: the view is as large as the image.
                    let from = if unsafe { is_zero(source as usize) } { core::ptr::null() } else { source };
                    if hot.push(Hot { at, from }) {
                        known[word] |= bit;
                    } else {
                        // SAFETY: the page goes back to the image, as it should.
                        unsafe {
                            sys::call(libc::SYS_madvise, [at, PAGE, libc::MADV_DONTNEED as usize, 0, 0, 0])
                        };
                    }
                }
            });
        }
    }
}

/// How far down the stack of the main thread may grow, if `below` is where the mapping below it ends.
fn stack_bottom(stack: &Mapping, below: usize) -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to the local.
    unsafe {
        sys::call(libc::SYS_getrlimit, [libc::RLIMIT_STACK as usize, &raw mut limit as usize, 0, 0, 0, 0]);
    }
    let length = (limit.rlim_cur as usize).min(STACK) & !(PAGE - 1);
    stack.high.saturating_sub(length).max(below + GAP).min(stack.low)
}

/// Calls `visit` with the ranges of pages that are there and have none of the categories `without`; returns how many
/// ranges there were.
fn list_pages(
    pagemap: i32,
    ranges: &mut [Range; SCANNED],
    (low, high): (usize, usize),
    without: u64,
    mut visit: impl FnMut(usize, usize),
) -> Option<usize> {
    let (mut at, mut count) = (low as u64, 0);
    while at < high as u64 {
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            start: at,
            end: high as u64,
            vec: ranges.as_mut_ptr() as u64,
            vec_len: SCANNED as u64,
            category_inverted: without,
            category_mask: without,
            category_anyof_mask: IS_PRESENT | IS_SWAPPED,
            return_mask: IS_PRESENT,
            ..Scan::default()
        };
        // SAFETY: the kernel writes to the scan and to as many ranges as it is told there are.
        let found =
            unsafe { sys::call(libc::SYS_ioctl, [pagemap as usize, SCAN, &raw mut scan as usize, 0, 0, 0]) };
        let found = usize::try_from(found).ok()?;
        for range in &ranges[..found] {
            visit(range.start as usize, range.end as usize);
        }
        count += found;
        at = scan.walk_end.max(at + PAGE as u64);
    }
    Some(count)
}

/// # Safety
/// A page lies there.
unsafe fn is_zero(at: usize) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { core::slice::from_raw_parts(at as *const u64, PAGE / 8) }.iter().all(|&word| word == 0)
}

/// Page faults of the calling thread.
fn faults() -> i64 {
    const THREAD: usize = 1;
    // SAFETY: all zero is a valid structure, and the kernel fills it in.
    unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        sys::call(libc::SYS_getrusage, [THREAD, &raw mut usage as usize, 0, 0, 0, 0]);
        usage.ru_minflt + usage.ru_majflt
    }
}

fn open_pagemap() -> Option<i32> {
    open(c"/proc/self/pagemap")
}

fn open(path: &core::ffi::CStr) -> Option<i32> {
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let args = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0];
    // SAFETY: the path is NUL-terminated.
    let fd = unsafe { sys::call(libc::SYS_openat, args) };
    i32::try_from(fd).ok().filter(|&fd| fd >= 0)
}

/// Gives a descriptor a number from `reserved` on.
pub(super) fn moved(fd: i32, reserved: i32) -> i32 {
    let args = [fd as usize, libc::F_DUPFD_CLOEXEC as usize, reserved as usize, 0, 0, 0];
    // SAFETY: the descriptor is ours.
    unsafe {
        let high = sys::call(libc::SYS_fcntl, args);
        if high < 0 {
            return fd;
        }
        sys::call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
        high as i32
    }
}

/// Reads a file as far as it fits; nothing when it does not.
fn read_file(path: &core::ffi::CStr, to: &mut [u8]) -> Option<usize> {
    let fd = open(path)? as usize;
    let mut length = 0;
    let whole = loop {
        let rest = &mut to[length..];
        // SAFETY: the kernel writes at most the length of the slice.
        let n = unsafe { sys::call(libc::SYS_read, [fd, rest.as_mut_ptr() as usize, rest.len(), 0, 0, 0]) };
        match usize::try_from(n).ok()? {
            0 => break length < to.len(),
            n => length += n,
        }
    };
    // SAFETY: the descriptor is ours.
    unsafe { sys::call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]) };
    whole.then_some(length)
}
