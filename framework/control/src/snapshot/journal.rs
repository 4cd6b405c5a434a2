//! What a run did to the process that the kernel keeps, and undoing it.

use super::image::{Image, PAGE};
use super::list::List;
use super::maps::Kind;
use super::policy::Descriptors;
use crate::sys;

/// Changes of mappings that a run may make.
const CHANGES: usize = 4096;
/// How far the heap may grow, unless something is in the way.
const GROWTH: usize = 64 << 20;
const NAME: usize = 16;

/// The journal. Lies in the keeper's memory; all zero bytes are an empty one.
pub(super) struct Journal {
    /// What the run mapped, where nothing was before.
    mapped: List<(usize, usize), CHANGES>,
    /// What it did to mappings that were there.
    changed: List<(usize, usize), CHANGES>,
    /// Descriptors open when the snapshot was taken, and those that the run opened.
    pub(super) before: Descriptors,
    pub(super) opened: Descriptors,
    /// Other numbers of standard input and output, where the run closed them; 0: it did not.
    closed: [usize; 3],
    /// Position of standard input, once it moved.
    input: Option<usize>,
    /// The heap: its end when the snapshot was taken, now, and at most.
    first_break: usize,
    current_break: usize,
    last_break: usize,
    /// Something is in the way behind that, so that the kernel would not let the heap grow further.
    walled: bool,
    name: [u8; NAME],
    named: bool,
}

/// Why something cannot be noted.
pub(super) type Refusal = &'static str;

impl Journal {
    /// Notes how things are. The heap gets room to grow.
    pub(super) fn begin(&mut self) {
        // SAFETY: plain calls; the kernel writes the name to an array that is large enough.
        unsafe {
            let end = sys::call(libc::SYS_brk, [0; 6]) as usize;
            (self.first_break, self.current_break, self.last_break) = (end, end, end);
            let grows = |by: usize| sys::call(libc::SYS_brk, [end + by, 0, 0, 0, 0, 0]) as usize == end + by;
            if !grows(GROWTH) {
                self.walled = true;
                let start = end.next_multiple_of(PAGE) - end;
                let (mut most, mut too_much) = (0, GROWTH / PAGE);
                while too_much - most > 1 {
                    let middle = (most + too_much) / 2;
                    if grows(start + middle * PAGE) { most = middle } else { too_much = middle }
                }
                grows(start + most * PAGE);
            }
            self.last_break = sys::call(libc::SYS_brk, [0; 6]) as usize;
            let name = self.name.as_mut_ptr() as usize;
            sys::call(libc::SYS_prctl, [libc::PR_GET_NAME as usize, name, 0, 0, 0, 0]);
        }
        self.before = Descriptors::default();
        for fd in 0..super::policy::DESCRIPTORS {
            // SAFETY: asks for flags only.
            if unsafe { sys::call(libc::SYS_fcntl, [fd, libc::F_GETFD as usize, 0, 0, 0, 0]) } >= 0 {
                self.before.add(fd);
            }
        }
    }

    /// The run mapped something new.
    pub(super) fn mapped(&mut self, low: usize, length: usize) -> Result<(), Refusal> {
        let note = (low, length.next_multiple_of(PAGE));
        if self.mapped.push(note) { Ok(()) } else { Err("makes too many mappings") }
    }

    /// The run gives back what it mapped, as it is; false if it is anything else.
    pub(super) fn unmapped(&mut self, low: usize, length: usize) -> bool {
        let note = (low, length.next_multiple_of(PAGE));
        match self.mapped.as_slice().iter().rposition(|&mapped| mapped == note) {
            Some(place) => self.mapped.remove(place),
            None => return false,
        }
        true
    }

    /// The run is about to do something to a range. Says whether it may, and notes it: what is the run's own is free; what
    /// is of the image or reserved can be brought back.
    pub(super) fn will_change(&mut self, image: &Image, low: usize, length: usize) -> Result<(), Refusal> {
        let high = low.saturating_add(length.next_multiple_of(PAGE));
        let mut old = false;
        for piece in image.pieces_in(low, high) {
            old = true;
            if !matches!(piece.kind, Kind::Image | Kind::Hole) {
                return Err("changes memory that is not of the snapshot");
            }
        }
        if old && !self.changed.push((low, high)) {
            return Err("changes too many mappings");
        }
        Ok(())
    }

    /// Whether a range has no part in what was mapped when the snapshot was taken.
    pub(super) fn is_new(&self, image: &Image, low: usize, length: usize) -> bool {
        image.pieces_in(low, low.saturating_add(length.next_multiple_of(PAGE))).next().is_none()
    }

    /// Sets the end of the heap, as the kernel would.
    pub(super) fn set_break(&mut self, end: usize) -> Result<usize, Refusal> {
        if end == 0 || end == self.current_break {
            return Ok(self.current_break);
        }
        if end < self.first_break {
            return Err("gives back memory of the heap that it had before main");
        }
        if end > self.last_break {
            if self.walled {
                return Ok(self.current_break);
            }
            return Err("needs a heap that is larger than the one of the snapshot can grow");
        }
        if end < self.current_break {
            // Should the heap grow again, it must be zero there, as it is in the image.
            let low = end.next_multiple_of(PAGE);
            let high = self.current_break.next_multiple_of(PAGE);
            if low < high {
                // SAFETY: the program gives the range up.
                unsafe {
                    sys::call(libc::SYS_madvise, [low, high - low, libc::MADV_DONTNEED as usize, 0, 0, 0])
                };
            }
        }
        self.current_break = end;
        Ok(end)
    }

    /// The run is about to close standard input or output. Says whether it may, and keeps another number of it.
    pub(super) fn will_close(&mut self, fd: usize) -> Result<(), Refusal> {
        /// Numbers that a program hardly gets to: it must not see the one that is kept.
        const FIRST: usize = 512;
        if self.closed[fd] != 0 {
            // It is closed, and the kernel says so.
            return Ok(());
        }
        let command = libc::F_DUPFD_CLOEXEC as usize;
        // SAFETY: makes a descriptor, and touches no memory.
        match unsafe { sys::call(libc::SYS_fcntl, [fd, command, FIRST, 0, 0, 0]) } {
            kept if kept > 0 => self.closed[fd] = kept as usize,
            _ => return Err("closes a descriptor that was open before main"),
        }
        Ok(())
    }

    /// Standard input is about to move.
    pub(super) fn will_move_input(&mut self) {
        if self.input.is_none() {
            // SAFETY: asks for the position only.
            let at = unsafe { sys::call(libc::SYS_lseek, [0, 0, libc::SEEK_CUR as usize, 0, 0, 0]) };
            self.input = usize::try_from(at).ok();
        }
    }

    /// The carrier was given a name.
    pub(super) fn named(&mut self) {
        self.named = true;
    }

    /// Undoes all of it, newest first where that matters.
    ///
    /// # Safety
    /// The run is over.
    pub(super) unsafe fn undo(&mut self, image: &mut Image) {
        // SAFETY: nobody uses what the run made any more.
        unsafe {
            for &(low, length) in self.mapped.as_slice() {
                sys::call(libc::SYS_munmap, [low, length, 0, 0, 0, 0]);
            }
            self.mapped.clear();
            for &(low, high) in self.changed.as_slice() {
                image.remap(low, high);
            }
            self.changed.clear();
            self.current_break = self.first_break;
            if !self.opened.is_empty() {
                for fd in self.opened.iter() {
                    sys::call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]);
                }
                self.opened = Descriptors::default();
            }
            for fd in 0..self.closed.len() {
                let kept = core::mem::take(&mut self.closed[fd]);
                if kept != 0 {
                    sys::call(libc::SYS_dup3, [kept, fd, 0, 0, 0, 0]);
                    sys::call(libc::SYS_close, [kept, 0, 0, 0, 0, 0]);
                }
            }
            if let Some(at) = self.input.take() {
                sys::call(libc::SYS_lseek, [0, at, libc::SEEK_SET as usize, 0, 0, 0]);
            }
            if core::mem::take(&mut self.named) {
                let name = self.name.as_ptr() as usize;
                sys::call(libc::SYS_prctl, [libc::PR_SET_NAME as usize, name, 0, 0, 0, 0]);
            }
        }
    }
}
