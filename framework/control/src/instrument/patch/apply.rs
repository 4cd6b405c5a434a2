//! A plan becomes code: trampolines near the module, and jumps to them in it.

use std::path::Path;

use waylay_patch::plan::cache_name;
use waylay_patch::trampoline::{self, Piece};
use waylay_patch::{How, Plan, Wanted, Window, site};

use iced_x86::{Instruction, InstructionInfoFactory, Register};

use super::loaded::Loaded;
use super::table::{self, Entry};
use super::{State, stub, trap};
use crate::message::say;
use crate::sys;

const PAGE: usize = 4096;
/// Room for the addresses that trampolines call, at the beginning of their memory.
const SLOTS: usize = 16;
/// What a trampoline needs at most: a call out for each site, each instruction in its longest form, the jump back.
const CALL_OUT: usize = 48;
const MOVED: usize = 32;
const TRAP: u8 = 0xcc;

/// Patches a module; returns how many sites were replaced and how many were not.
pub(super) fn apply(module: &Loaded, wanted: Wanted, state: &State) -> Option<(u32, u32)> {
    let plan = plan(module, wanted, state.wanted.cache().as_deref())?;
    let found: u32 = plan.counts.iter().map(|count| count.found).sum();
    if plan.windows.is_empty() || plan.wide && !stub::can_save_all() {
        return Some((0, found));
    }
    let room: usize = plan.windows.iter().map(size_of_window).sum();
    let Some(memory) = Memory::near(module, room + SLOTS) else {
        say(format_args!("{}: no room nearby for code: not patched", module.file()));
        return Some((0, found));
    };
    let mut writer = Writer { memory, used: SLOTS, writes: Vec::new(), base: module.base, patched: 0, only_atomics: wanted == Wanted::Atomics, factory: InstructionInfoFactory::new() };
    let stub = if plan.wide { stub::long as *const () } else { stub::short as *const () };
    // SAFETY: the slots are the first bytes of fresh memory.
    unsafe { (writer.memory.at as *mut usize).write(stub as usize) };
    for window in &plan.windows {
        writer.window(window);
    }
    if !writer.finish(module) {
        say(format_args!("{}: code cannot be written: not patched", module.file()));
        return Some((0, found));
    }
    Some((writer.patched, found - writer.patched))
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

/// Memory within reach of a jump.
struct Memory {
    at: usize,
    len: usize,
}

impl Memory {
    fn near(module: &Loaded, len: usize) -> Option<Memory> {
        const STEP: usize = 1 << 20;
        const REACH: usize = 1 << 30;
        let len = len.next_multiple_of(PAGE);
        let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as usize;
        let start = module.code.iter().map(|code| code.0).min()?;
        for far in (STEP..REACH).step_by(STEP) {
            let after = module.end.next_multiple_of(PAGE) + far;
            let before = (start & !(PAGE - 1)).checked_sub(far + len);
            for place in [Some(after), before].into_iter().flatten() {
                // SAFETY: takes free addresses only.
                let at = unsafe { sys::call(libc::SYS_mmap, [place, len, prot, flags, usize::MAX, 0]) };
                if at == place as isize {
                    return Some(Memory { at: place, len });
                }
                if at > 0 {
                    // SAFETY: a mapping of ours, made a moment ago by a kernel that took the address for a hint.
                    unsafe { sys::unmap(at as *mut u8, len) };
                }
            }
        }
        None
    }
}

struct Writer {
    memory: Memory,
    used: usize,
    /// Bytes to be written into the module, and where.
    writes: Vec<(usize, u8, [u8; 5])>,
    base: usize,
    patched: u32,
    /// Loads that are patched are those of waiting loops.
    only_atomics: bool,
    factory: InstructionInfoFactory,
}

impl Writer {
    fn window(&mut self, window: &Window) {
        let start = self.base + window.start as usize;
        // SAFETY: the plan was made for this file, whose code is mapped there.
        let bytes = unsafe { core::slice::from_raw_parts(start as *const u8, usize::from(window.length)) };
        let instructions = trampoline::decode(bytes, start as u64);
        let at = self.memory.at + self.used;
        if window.how == How::Trap {
            return self.trap(&instructions, at);
        }
        let mut pieces: Vec<Piece> = Vec::with_capacity(instructions.len());
        let mut sites = 0;
        for (index, instruction) in instructions.iter().enumerate() {
            let wanted = window.sites & 1 << index != 0;
            sites += u32::from(wanted);
            pieces.push((*instruction, wanted.then(|| self.entry(instruction))));
        }
        let jump = trampoline::jump(start as u64, at as u64);
        let made = trampoline::build(&pieces, at as u64, self.memory.at as u64);
        if let (Some(jump), Some(made)) = (jump, made)
            && self.put(&made.code)
        {
            for (offset, from) in made.moved {
                table::add_moved((at + offset) as u64, from);
            }
            self.writes.push((start, 5, jump));
            self.patched += sites;
        }
    }

    fn trap(&mut self, instructions: &[Instruction], at: usize) {
        let [instruction] = instructions else { return };
        let site = self.entry(instruction);
        let Some(made) = trampoline::build(&[(*instruction, None)], at as u64, self.memory.at as u64) else { return };
        if trap::add(instruction, site, at) && self.put(&made.code) {
            table::add_moved(at as u64, instruction.ip());
            self.writes.push((instruction.ip() as usize, 1, [TRAP; 5]));
            self.patched += 1;
        }
    }

    fn entry(&mut self, instruction: &Instruction) -> u32 {
        table::add(Entry {
            code: instruction.ip() as usize,
            what: site::effect(instruction, &mut self.factory),
            bytes: instruction.memory_size().size() as u16,
            waiting: self.only_atomics,
            thread_local: instruction.memory_segment() == Register::FS,
        })
    }

    fn put(&mut self, code: &[u8]) -> bool {
        if self.used + code.len() > self.memory.len {
            return false;
        }
        // SAFETY: inside our memory, which nobody executes yet.
        unsafe { ((self.memory.at + self.used) as *mut u8).copy_from_nonoverlapping(code.as_ptr(), code.len()) };
        self.used += code.len().next_multiple_of(16);
        true
    }

    /// Makes the trampolines executable and then the jumps to them.
    fn finish(&mut self, module: &Loaded) -> bool {
        let executable = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: no thread executes this module: it was just loaded, or the program has not begun. The pages are those
        // that the loader mapped as code, and become so again.
        unsafe {
            if !sys::protect(self.memory.at, self.memory.len, executable) {
                return false;
            }
            for &(start, end) in &module.code {
                let (start, end) = (start & !(PAGE - 1), end.next_multiple_of(PAGE));
                if !sys::protect(start, end - start, executable | libc::PROT_WRITE) {
                    return false;
                }
            }
            for &(at, len, bytes) in &self.writes {
                (at as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), usize::from(len));
            }
            for &(start, end) in &module.code {
                let (start, end) = (start & !(PAGE - 1), end.next_multiple_of(PAGE));
                sys::protect(start, end - start, executable);
            }
        }
        true
    }
}
