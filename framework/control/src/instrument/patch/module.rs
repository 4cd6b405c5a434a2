//! One patched module: the jumps in it, which of them are in place, and the code they lead to.
//!
//! What synchronises is replaced for good. Plain accesses are replaced only while they matter: a site that is no step has
//! its own instruction and costs nothing. A jump may be taken away at any time, because no thread is ever inside the bytes
//! that it covers; it is put in place only while no thread can be.

use std::path::Path;

use iced_x86::{Instruction, InstructionInfoFactory, Register};
use waylay_accesses::Attention;
use waylay_control_protocol::Site;
use waylay_patch::plan::cache_name;
use waylay_patch::trampoline::{self, Piece};
use waylay_patch::{How, Plan, Wanted, Window, site};

use super::loaded::Loaded;
use super::memory::{Memory, PAGE, protection};
use super::table::{self, Entry, Place};
use super::{stub, trap};
use crate::message::say;
use crate::{snapshot, sys};

/// Room for the addresses that trampolines call, at the beginning of their memory.
const SLOTS: usize = 16;
/// What a trampoline needs at most: a call out for each site, each instruction in its longest form, the jump back.
const CALL_OUT: usize = 48;
const MOVED: usize = 32;
const JUMP: usize = 5;

/// A window that is replaced only while it matters.
#[derive(Debug)]
struct OnDemand {
    plan: Window,
    state: State,
    in_place: bool,
    /// One of its accesses is a step.
    chosen: bool,
    /// A thread came by it.
    reached: bool,
}

impl OnDemand {
    fn bare(plan: Window) -> OnDemand {
        OnDemand { plan, state: State::Bare, in_place: false, chosen: false, reached: false }
    }
}

#[derive(Debug)]
enum State {
    /// Nothing was made yet.
    Bare,
    /// The jump or breakpoint, what it replaces, and how many bytes of it.
    Made { jump: [u8; JUMP], original: [u8; JUMP], length: usize },
    /// It cannot be expressed elsewhere.
    Impossible,
}

/// A module.
#[derive(Debug)]
pub(super) struct Module {
    number: u16,
    orders: bool,
    base: usize,
    code: Vec<(usize, usize)>,
    memory: Option<Memory>,
    windows: Vec<OnDemand>,
    /// What was replaced for good: where, how many bytes, and what was there.
    fixed: Vec<(usize, usize, [u8; JUMP])>,
    /// Windows that nobody came by stay in place between runs that are looked at, and are taken away where somebody does: to
    /// replace all of a module's code again and again would cost more than the runs of a host.
    lying_in_wait: bool,
    /// Which windows somebody came by, and which are chosen, as long as others lie in wait.
    reached: Vec<u32>,
    chosen: Vec<u32>,
    /// Its code can be written right now.
    open: bool,
    /// A restored run loaded it: the whole of it is gone when that is undone.
    of_the_run: bool,
    /// Sites that could be replaced, and that cannot.
    pub(super) patched: u32,
    pub(super) refused: u32,
    /// Where some of the latter are.
    pub(super) refused_sites: Vec<Site>,
    factory: Factory,
}

struct Factory(InstructionInfoFactory);

impl core::fmt::Debug for Factory {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("Factory")
    }
}

impl Module {
    /// Makes steps of what synchronises in a module, and gets ready for its accesses. `number`: its place among all.
    ///
    /// `orders`: its plain accesses order threads, and are nothing else.
    pub(super) fn patch(
        module: &Loaded,
        wanted: Wanted,
        cache: Option<&Path>,
        number: u16,
        orders: bool,
    ) -> Option<Module> {
        let mut plan = plan(module, wanted, cache)?;
        plan.windows.sort_unstable_by_key(|window| window.start);
        let found: u32 = plan.counts.iter().map(|count| count.found).sum();
        let mut this = Module {
            number,
            orders,
            base: module.base,
            code: module.code.clone(),
            memory: None,
            windows: Vec::new(),
            fixed: Vec::new(),
            lying_in_wait: false,
            reached: Vec::new(),
            chosen: Vec::new(),
            open: false,
            of_the_run: snapshot::is_undoing(),
            patched: 0,
            refused: found,
            refused_sites: plan.refused.iter().filter(|&&at| at != 0).map(|&at| Site::new(module.name(), at)).collect(),
            factory: Factory(InstructionInfoFactory::new()),
        };
        if plan.windows.is_empty() || plan.wide && !stub::can_save_all() {
            return Some(this);
        }
        let room: usize = plan.windows.iter().map(size_of_window).sum();
        this.memory = Memory::near(module, room, SLOTS);
        let Some(memory) = &this.memory else {
            say(format_args!("{}: no room nearby for code: not patched", module.file()));
            return Some(this);
        };
        let stub = if plan.wide { stub::long as *const () } else { stub::short as *const () };
        // SAFETY: the slots are the first bytes of fresh memory.
        unsafe { (memory.at as *mut usize).write(stub as usize) };
        let mut writes = Vec::new();
        for window in &plan.windows {
            if window.always != 0 {
                this.fixed(window, &mut writes);
            } else {
                this.patched += window.sites.count_ones();
                this.windows.push(OnDemand::bare(*window));
            }
        }
        if this.memory.as_ref().is_none_or(|memory| !memory.open(false)) || !this.open(true) {
            say(format_args!("{}: code cannot be written: not patched", module.file()));
            (this.patched, this.memory) = (0, None);
            this.windows.clear();
            return Some(this);
        }
        for (at, len, bytes) in writes {
            let mut original = [0; JUMP];
            // SAFETY: no thread executes this module: it was just loaded, or the program has not begun.
            unsafe {
                original.as_mut_ptr().copy_from_nonoverlapping(at as *const u8, len);
                (at as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), len);
            }
            this.fixed.push((at, len, original));
        }
        this.open(false);
        this.refused = found - this.patched;
        Some(this)
    }

    /// A window that is replaced for good.
    fn fixed(&mut self, window: &Window, writes: &mut Vec<(usize, usize, [u8; JUMP])>) {
        if window.how == How::Trap {
            if let Some(at) = self.trap(window, None) {
                writes.push((at, 1, [trap::byte(); JUMP]));
                self.patched += 1;
            }
        } else if let Some(jump) = self.make(window, None) {
            writes.push((self.base + window.start as usize, JUMP, jump));
            self.patched += window.sites.count_ones();
        }
    }

    fn instructions(&self, window: &Window) -> Vec<Instruction> {
        let start = self.base + window.start as usize;
        // SAFETY: the plan was made for this file, whose code is mapped there and not replaced at this place.
        let bytes = unsafe { core::slice::from_raw_parts(start as *const u8, usize::from(window.length)) };
        trampoline::decode(bytes, start as u64)
    }

    /// Makes the code of a window; returns the jump to it.
    fn make(&mut self, window: &Window, place: Option<Place>) -> Option<[u8; JUMP]> {
        let instructions = self.instructions(window);
        let mut pieces: Vec<Piece> = Vec::with_capacity(instructions.len());
        for (index, instruction) in instructions.iter().enumerate() {
            let wanted = window.sites & 1 << index != 0;
            let always = window.always & 1 << index != 0;
            pieces.push((*instruction, wanted.then(|| self.entry(instruction, always, place))));
        }
        let start = (self.base + window.start as usize) as u64;
        let memory = self.memory.as_mut()?;
        let at = memory.next();
        let jump = trampoline::jump(start, at as u64)?;
        let made = trampoline::build(&pieces, at as u64, memory.at as u64)?;
        if !memory.put(&made.code) {
            return None;
        }
        for (offset, from) in made.moved {
            table::add_moved((at + offset) as u64, from);
        }
        Some(jump)
    }

    fn trap(&mut self, window: &Window, place: Option<Place>) -> Option<usize> {
        let instructions = self.instructions(window);
        let [instruction] = &instructions[..] else { return None };
        let site = self.entry(instruction, window.always != 0, place);
        let memory = self.memory.as_mut()?;
        let at = memory.next();
        let made = trampoline::build(&[(*instruction, None)], at as u64, memory.at as u64)?;
        if !trap::add(instruction, site, at) || !memory.put(&made.code) {
            return None;
        }
        table::add_moved(at as u64, instruction.ip());
        Some(instruction.ip() as usize)
    }

    fn entry(&mut self, instruction: &Instruction, always: bool, place: Option<Place>) -> u32 {
        table::add(Entry {
            code: instruction.ip() as usize,
            what: site::effect(instruction, &mut self.factory.0),
            length: instruction.len() as u8,
            bytes: instruction.memory_size().size() as u16,
            repeats: instruction.has_rep_prefix() || instruction.has_repne_prefix(),
            waiting: always,
            orders: self.orders && !always,
            thread_local: instruction.memory_segment() == Register::FS,
            place,
        })
    }

    /// Makes the code for every window.
    pub(super) fn get_ready(&mut self) {
        let bare = |window: &OnDemand| matches!(window.state, State::Bare);
        if self.windows.iter().any(bare) && self.memory.as_ref().is_some_and(|memory| memory.open(true)) {
            for index in 0..self.windows.len() {
                self.prepare(index);
            }
            if let Some(memory) = &self.memory {
                memory.open(false);
            }
        }
    }

    /// Puts in place the jumps that are wanted and takes away the others. `more`: no thread can be in code that would be
    /// replaced; otherwise jumps are only taken away. The code stays open to [`Module::take_away`] if wanted. `wait`: from the
    /// first time on that all are in place, those that nobody comes by stay there.
    pub(super) fn turn(&mut self, attention: Attention<'_>, more: bool, stay_open: bool, wait: bool) {
        let changes = if self.lying_in_wait && more {
            self.changes_while_lying_in_wait(attention)
        } else {
            self.lying_in_wait = wait && more && matches!(attention, Attention::All);
            self.changes(attention, more)
        };
        self.carry_out(changes, stay_open);
    }

    fn span(&self, window: &Window) -> (usize, usize) {
        let start = self.base + window.start as usize;
        (start, start + usize::from(window.length))
    }

    fn changes(&mut self, attention: Attention<'_>, more: bool) -> Vec<(usize, bool)> {
        (self.reached, self.chosen) = (Vec::new(), Vec::new());
        let mut changes: Vec<(usize, bool)> = Vec::new();
        for index in 0..self.windows.len() {
            let span = self.span(&self.windows[index].plan);
            let window = &mut self.windows[index];
            (window.chosen, window.reached) = (false, false);
            let wanted = attention.wants(span) && !matches!(window.state, State::Impossible);
            if wanted != window.in_place && (more || !wanted) {
                changes.push((index, wanted));
            }
        }
        changes
    }

    /// The same where windows lie in wait: only what somebody came by is ever missing.
    fn changes_while_lying_in_wait(&mut self, attention: Attention<'_>) -> Vec<(usize, bool)> {
        for index in core::mem::take(&mut self.chosen) {
            self.windows[index as usize].chosen = false;
        }
        if let Attention::These(codes) = attention {
            for &code in codes {
                let after = self.windows.partition_point(|window| self.base + window.plan.start as usize <= code);
                let Some(index) = after.checked_sub(1) else { continue };
                let end = self.span(&self.windows[index].plan).1;
                let window = &mut self.windows[index];
                if code < end && !core::mem::replace(&mut window.chosen, true) {
                    self.chosen.push(index as u32);
                }
            }
        }
        let all = matches!(attention, Attention::All);
        let mut changes = Vec::new();
        for &index in self.reached.iter().chain(&self.chosen) {
            let window = &self.windows[index as usize];
            let wanted = (all || window.chosen) && !matches!(window.state, State::Impossible);
            if wanted != window.in_place {
                changes.push((index as usize, wanted));
            }
        }
        changes
    }

    /// A thread came by a window.
    pub(super) fn reach(&mut self, window: u32) {
        if self.lying_in_wait
            && let Some(place) = self.windows.get_mut(window as usize)
            && !core::mem::replace(&mut place.reached, true)
        {
            self.reached.push(window);
        }
    }

    /// A thread came by a window in a run that is not looked at: it is taken away if it only lay in wait.
    pub(super) fn comes_by(&mut self, window: u32) -> bool {
        if !self.lying_in_wait || self.windows.get(window as usize).is_none_or(|place| place.chosen) {
            return false;
        }
        self.reach(window);
        self.take_away(window);
        true
    }

    fn carry_out(&mut self, changes: Vec<(usize, bool)>, stay_open: bool) {
        let bare = |&(index, wanted): &(usize, bool)| wanted && matches!(self.windows[index].state, State::Bare);
        if changes.iter().any(bare) && self.memory.as_ref().is_some_and(|memory| memory.open(true)) {
            for &(index, _) in changes.iter().filter(|(_, wanted)| *wanted) {
                self.prepare(index);
            }
            if let Some(memory) = &self.memory {
                memory.open(false);
            }
        }
        if changes.is_empty() || !self.open(true) {
            return;
        }
        for (index, wanted) in changes {
            self.set(index, wanted);
        }
        if !stay_open {
            self.open(false);
        }
    }

    fn prepare(&mut self, index: usize) {
        if !matches!(self.windows[index].state, State::Bare) {
            return;
        }
        let window = self.windows[index].plan;
        let start = (self.base + window.start as usize) as *const [u8; JUMP];
        // SAFETY: at least as many bytes of code, which are not replaced yet.
        let original = unsafe { start.read_unaligned() };
        let place = Place { module: self.number, window: index as u32 };
        let made = if window.how == How::Trap {
            self.trap(&window, Some(place)).map(|_| ([trap::byte(); JUMP], 1))
        } else {
            self.make(&window, Some(place)).map(|jump| (jump, JUMP))
        };
        self.windows[index].state = match made {
            Some((jump, length)) => State::Made { jump, original, length },
            None => {
                self.patched -= window.sites.count_ones();
                self.refused += window.sites.count_ones();
                State::Impossible
            }
        };
    }

    fn set(&mut self, index: usize, in_place: bool) {
        let window = &mut self.windows[index];
        let State::Made { jump, original, length } = &window.state else { return };
        let start = (self.base + window.plan.start as usize) as *mut u8;
        let bytes = if in_place { jump } else { original };
        // SAFETY: the code is open, and by the promise of the caller no thread is inside the bytes.
        unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), *length) };
        window.in_place = in_place;
    }

    /// Puts the program's own code back around an address; false when it is not replaced there.
    pub(super) fn put_back(&mut self, at: usize) -> bool {
        let base = self.base;
        let start_of = |window: &OnDemand| base + window.plan.start as usize;
        let covers = |window: &OnDemand| {
            window.in_place && (start_of(window)..start_of(window) + usize::from(window.plan.length)).contains(&at)
        };
        if let Some(index) = self.windows.iter().position(covers) {
            self.take_away(index as u32);
            return true;
        }
        // The last that begins at or before the address: windows do not overlap.
        let place = self.fixed.partition_point(|(start, ..)| *start <= at);
        let Some(&(start, len, original)) = place.checked_sub(1).and_then(|place| self.fixed.get(place)) else {
            return false;
        };
        if at - start >= usize::from(u8::MAX) || !self.open(true) {
            return false;
        }
        // SAFETY: the code is open, and what is written was there before.
        unsafe { (start as *mut u8).copy_from_nonoverlapping(original.as_ptr(), len) };
        self.open(false);
        true
    }

    /// Takes one jump away: its sites are no longer looked at.
    pub(super) fn take_away(&mut self, window: u32) {
        let index = window as usize;
        if !self.windows.get(index).is_some_and(|window| window.in_place) {
            return;
        }
        let was_open = self.open;
        if self.open(true) {
            self.set(index, false);
        }
        if !was_open {
            self.open(false);
        }
    }

    fn open(&mut self, writable: bool) -> bool {
        if self.open == writable {
            return true;
        }
        if !self.of_the_run {
            snapshot::cannot_undo("has its code changed");
        }
        for &(start, end) in &self.code {
            let (start, end) = (start & !(PAGE - 1), end.next_multiple_of(PAGE));
            // SAFETY: pages that the loader mapped as code; they stay executable.
            if !unsafe { sys::protect(start, end - start, protection(writable)) } {
                return false;
            }
        }
        self.open = writable;
        true
    }
}

fn size_of_window(window: &Window) -> usize {
    window.sites.count_ones() as usize * CALL_OUT + usize::from(window.length) * MOVED / 2 + MOVED
}

/// From the cache, or made and put there.
fn plan(module: &Loaded, wanted: Wanted, cache: Option<&Path>) -> Option<Plan> {
    let kept = module.build_id.as_ref().zip(cache).map(|(id, folder)| folder.join(cache_name(id, wanted)));
    if let Some(plan) = kept.as_ref().and_then(|path| Plan::from_bytes(&std::fs::read(path).ok()?)) {
        return Some(plan);
    }
    let plan = Plan::of(&std::fs::read(module.file()).ok()?, wanted).ok()?;
    if let Some(path) = kept {
        // Another process may be doing the same: the file appears as a whole or not at all.
        let part = path.with_extension(format!("part{}", std::process::id()));
        if std::fs::write(&part, plan.to_bytes()).is_err() || std::fs::rename(&part, &path).is_err() {
            let _ = std::fs::remove_file(&part);
        }
    }
    Some(plan)
}
