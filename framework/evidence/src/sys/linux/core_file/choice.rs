//! Which memory of a process a core holds.
//!
//! Pure: mappings, what the kernel tells of their pages and where threads are come in, ranges of pages go out. Untouched
//! pages are never kept: a thread's stack has eight mebibytes of them.

use std::collections::BTreeSet;

use crate::dump::DumpSize;
use crate::memory_map::Mapping;

use super::{MOST_SEGMENTS, PAGE, Segment};

/// Pages around what a pointer on a stack points to: mostly one.
const BEFORE: u64 = 256;
const BEHIND: u64 = 1024;
/// Most pages that pointers on stacks lead to: 16 MiB.
pub(crate) const MOST_POINTED: usize = 4096;
/// Most bytes of the variables of one module, in a small core.
const MOST_VARIABLES: u64 = 8 << 20;
/// Untouched pages between two touched ones that are kept, so that there are fewer segments.
const BRIDGED: u64 = 4;

/// What the kernel tells of a page (`/proc/PID/pagemap`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// Nobody has written to it, or it is a file's.
    Clean,
    /// The process's own.
    Own,
}

/// Asks for the pages of a range; the first is that of its start.
pub(crate) type Pages<'a> = &'a dyn Fn(u64, u64) -> Vec<Page>;

/// The chosen pages, in order of importance.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    pages: BTreeSet<u64>,
}

impl Chosen {
    /// Adds the readable pages of a range.
    pub(crate) fn add(&mut self, mappings: &[Mapping], start: u64, end: u64) {
        let first = mappings.partition_point(|mapping| mapping.end <= start);
        for mapping in mappings[first..].iter().take_while(|mapping| mapping.start < end) {
            if is_worth_reading(mapping) {
                let from = start.max(mapping.start) / PAGE;
                let to = end.min(mapping.end).div_ceil(PAGE);
                self.pages.extend(from..to);
            }
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Adds what the first words of stacks, or registers, point to in memory that the process wrote itself.
    pub(crate) fn add_pointed(&mut self, mappings: &[Mapping], words: impl Iterator<Item = u64>) {
        let before = self.pages.len();
        for word in words {
            if self.pages.len() - before >= MOST_POINTED {
                return;
            }
            if mapping_at(mappings, word).is_some_and(|mapping| mapping.writable && !mapping.shared) {
                self.add(mappings, word.saturating_sub(BEFORE), word.saturating_add(BEHIND));
            }
        }
    }

    /// The variables of every module, what tells which modules there are, and the vDSO, which is in no file.
    pub(crate) fn add_modules(&mut self, mappings: &[Mapping], pages: Pages<'_>) {
        let mut before: Option<&Mapping> = None;
        for mapping in mappings {
            let is_file = mapping.inode != 0 && !mapping.shared;
            // What follows a module's variables and has no name are its variables that began as zero.
            let is_zeroed = mapping.inode == 0
                && mapping.path.is_empty()
                && before.is_some_and(|file| {
                    file.end == mapping.start && file.inode != 0 && file.writable && !file.shared
                });
            if is_file && mapping.offset == 0 {
                self.add(mappings, mapping.start, mapping.start + PAGE);
            }
            if &*mapping.path == "[vdso]" {
                self.add(mappings, mapping.start, mapping.end);
            }
            if is_file || is_zeroed {
                let end = mapping.end.min(mapping.start + MOST_VARIABLES);
                self.add_own(mappings, mapping.start, end, pages);
            }
            before = Some(mapping);
        }
    }

    fn add_own(&mut self, mappings: &[Mapping], start: u64, end: u64, pages: Pages<'_>) {
        for (index, page) in pages(start, end).into_iter().enumerate() {
            if page == Page::Own {
                let at = start + index as u64 * PAGE;
                self.add(mappings, at, at + PAGE);
            }
        }
    }

    /// Adds the rest of what a core of that size holds, as far as the limit allows; returns the bytes that it does not.
    pub(crate) fn add_rest(
        &mut self,
        mappings: &[Mapping],
        size: DumpSize,
        limit: u64,
        pages: Pages<'_>,
    ) -> u64 {
        let mut left_out = 0;
        for mapping in mappings.iter().filter(|mapping| is_worth_reading(mapping)) {
            let (first, last) = (mapping.start / PAGE, mapping.end / PAGE);
            let mut take = |page: u64| {
                if self.bytes() < limit {
                    self.pages.insert(page);
                } else if !self.pages.contains(&page) {
                    left_out += PAGE;
                }
            };
            match size {
                DumpSize::Full if mapping.inode != 0 || mapping.shared => (first..last).for_each(take),
                DumpSize::Full | DumpSize::Heap if !mapping.shared => {
                    let own = pages(mapping.start, mapping.end);
                    (first..last)
                        .zip(own)
                        .filter(|(_, page)| *page == Page::Own)
                        .for_each(|(at, _)| take(at));
                }
                _ => {}
            }
        }
        left_out
    }

    /// The ranges, in the order of their addresses. None crosses from one mapping into another.
    pub(crate) fn segments(&self, mappings: &[Mapping]) -> Vec<Segment> {
        let mut bridged = BRIDGED;
        loop {
            let segments = self.bridged(mappings, bridged);
            if segments.len() <= MOST_SEGMENTS {
                return segments;
            }
            // Once whole mappings are bridged, there is nothing left to save: the kernel allows about as many mappings.
            if bridged > 1 << 32 {
                return segments.into_iter().take(MOST_SEGMENTS).collect();
            }
            bridged *= 4;
        }
    }

    fn bridged(&self, mappings: &[Mapping], bridged: u64) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut last: Option<&Mapping> = None;
        for page in &self.pages {
            let at = page * PAGE;
            let Some(mapping) = mapping_at(mappings, at) else { continue };
            let same = last.is_some_and(|last| last.start == mapping.start);
            match segments.last_mut() {
                Some(segment) if same && at <= segment.start + segment.bytes + bridged * PAGE => {
                    segment.bytes = at + PAGE - segment.start;
                }
                _ => segments.push(Segment {
                    start: at,
                    bytes: PAGE,
                    writable: mapping.writable,
                    executable: mapping.executable,
                }),
            }
            last = Some(mapping);
        }
        segments
    }
}

/// The mapping that holds an address.
pub(crate) fn mapping_at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    let index = mappings.partition_point(|mapping| mapping.end <= address);
    mappings.get(index).filter(|mapping| mapping.start <= address)
}

/// Whether a mapping can be read from outside. The kernel's own pages cannot, and reading a device may do something.
fn is_worth_reading(mapping: &Mapping) -> bool {
    let path = &*mapping.path;
    let is_kernel = path.starts_with("[vvar") || path == "[vsyscall]";
    let is_device =
        path.starts_with("/dev/") && !path.starts_with("/dev/shm/") && !path.starts_with("/dev/zero");
    mapping.readable && !is_kernel && !is_device
}
