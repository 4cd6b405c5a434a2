//! A plan becomes code: what takes the place of a module's instructions, and the code that it leads to.

use core::sync::atomic::{AtomicU32, Ordering};
use std::path::Path;

use iced_x86::{Instruction, InstructionInfoFactory, Register};
use waylay_patch::plan::cache_name;
use waylay_patch::trampoline::{self, Piece};
use waylay_patch::{How, Plan, Wanted, Window, site};

use super::demand::OnDemand;
use super::loaded::Loaded;
use super::memory::Memory;
use super::stub;
use super::table::{self, DETOUR, Entry, Patched, Replaced};
use crate::sys::say;

/// Room for the address that trampolines call, at the beginning of their memory.
const SLOT: usize = 16;
/// What a trampoline needs at most: a call out for each site, each instruction in its longest form, the jump back, and what
/// [`place_for`] skips.
const CALL_OUT: usize = 48;
const MOVED: usize = 32;

const NOP: u8 = 0x90;
const BREAKPOINT: u8 = 0xcc;

/// Makes steps of what synchronises in a module, and says what of its plain accesses can be. None when it cannot be analysed.
///
/// # Safety
/// The module is loaded, nothing of it is replaced, and no thread is in the middle of it. The lock of the patches is held.
pub(super) unsafe fn patch(
    module: Loaded,
    wanted: Wanted,
    cache: Option<&Path>,
) -> Option<(&'static Patched, Option<OnDemand>)> {
    // SAFETY: by the caller's promise.
    let identity = unsafe { module.identity() };
    let known = table::find(module.base, identity);
    if let Some(known) = known
        && wanted == Wanted::Atomics
    {
        // SAFETY: by the caller's promise.
        unsafe { known.put_in_place() };
        return Some((known, None));
    }
    let plan = plan(&module, &identity, wanted, cache)?;
    let (always, rest): (Vec<Window>, Vec<Window>) =
        plan.windows.iter().partition(|window| window.always != 0);
    // SAFETY: by the caller's promise.
    let patched = unsafe {
        match known {
            Some(known) => {
                known.put_in_place();
                known
            }
            None => make(&module, identity, &always, plan.wide, false)?,
        }
    };
    let found: u32 = plan.counts.iter().map(|count| count.found).sum();
    let rest = (!rest.is_empty()).then(|| OnDemand::new(module, identity, plan.wide, rest));
    let later = rest.as_ref().map_or(0, OnDemand::sites);
    patched.sites_refused.store(found.saturating_sub(patched.sites_patched + later), Ordering::Relaxed);
    Some((patched, rest))
}

/// Makes the code for windows of a module and tells of it. What synchronises is put in place. None when there is no number left.
///
/// # Safety
/// As for [`patch`]; the windows are not replaced.
pub(super) unsafe fn make(
    module: &Loaded,
    identity: [u8; 16],
    windows: &[Window],
    wide: bool,
    accesses: bool,
) -> Option<&'static Patched> {
    let nothing = Patched {
        base: module.base,
        identity,
        accesses,
        code: module.code.clone(),
        memory: (0, 0),
        entries: Vec::new(),
        moved: Vec::new(),
        traps: Vec::new(),
        replaced: Vec::new(),
        sites_patched: 0,
        sites_refused: AtomicU32::new(0),
    };
    let first_site = table::first_site()?;
    let room: usize = windows.iter().map(size_of_window).sum();
    let memory = Some(room).filter(|&room| room > 0 && (!wide || stub::can_save_all()));
    let memory = memory.and_then(|room| {
        let memory = Memory::near(module, room, SLOT);
        if memory.is_none() {
            say(format_args!("{}: no room nearby for code: not patched", module.path.display()));
        }
        memory
    });
    let Some(memory) = memory else { return Some(table::publish(nothing)) };
    // SAFETY: the slot is the first bytes of fresh memory.
    unsafe { (memory.at as *mut usize).write(stub::address(wide)) };
    let mut maker = Maker {
        base: module.base,
        first_site,
        memory,
        made: nothing,
        factory: InstructionInfoFactory::new(),
    };
    for window in windows {
        if maker.made.entries.len() + usize::from(window.length) > table::MOST_SITES {
            break;
        }
        let before = maker.made.entries.len();
        match maker.make(window) {
            Some(piece) => maker.made.replaced.push(piece),
            None => maker.made.entries.truncate(before),
        }
    }
    let Maker { memory, mut made, .. } = maker;
    if !memory.close() {
        say(format_args!("{}: code cannot be made: not patched", module.path.display()));
        memory.release();
        (made.replaced, made.entries) = (Vec::new(), Vec::new());
    } else {
        made.memory = (memory.at, memory.next());
    }
    made.moved.sort_unstable();
    made.sites_patched = made.entries.len() as u32;
    let told = table::publish(made);
    // SAFETY: by the caller's promise.
    if !accesses && !unsafe { told.put_in_place() } {
        say(format_args!("{}: not all code can be written", module.path.display()));
    }
    Some(told)
}

struct Maker {
    base: usize,
    first_site: u32,
    memory: Memory,
    made: Patched,
    factory: InstructionInfoFactory,
}

impl Maker {
    /// Makes the code of a window; returns what is to be written.
    fn make(&mut self, window: &Window) -> Option<Replaced> {
        let start = self.base + window.start as usize;
        let covers = usize::from(window.length);
        // SAFETY: the plan was made for this module, whose code is there and not replaced at this place.
        let bytes = unsafe { core::slice::from_raw_parts(start as *const u8, covers) };
        let instructions = trampoline::decode(bytes, start as u64);
        let is_site = |index: usize| window.sites & 1 << index != 0;
        // Calls of the kernel are the system's own business here.
        let refused = |(index, instruction): (usize, &Instruction)| {
            instruction.is_invalid() || is_site(index) && site::calls_kernel(instruction)
        };
        if instructions.iter().enumerate().any(refused) {
            return None;
        }
        let trap = window.how == How::Trap;
        let mut pieces: Vec<Piece> = Vec::with_capacity(instructions.len());
        for (index, instruction) in instructions.iter().enumerate() {
            let always = window.always & 1 << index != 0;
            let number = is_site(index).then(|| self.add(instruction, start, trap, always));
            pieces.push((*instruction, number));
        }
        let (at, ours, length) = if trap {
            (self.memory.next(), [BREAKPOINT; DETOUR], 1)
        } else {
            let (at, ours) = place_for(start, self.memory.next())?;
            (at, ours, DETOUR)
        };
        let made = trampoline::build(&pieces, at as u64, self.memory.at as u64)?;
        if !self.memory.put(at, &made.code) {
            return None;
        }
        self.made.moved.extend(made.moved.iter().map(|&(offset, from)| (at + offset, from as usize)));
        if trap {
            self.made.traps.push((start, at));
        }
        let mut original = [0; DETOUR];
        // At the end of a function that may be more than the instructions: the padding behind it is replaced as well.
        // SAFETY: as above; the padding is code of the module, too.
        original[..length]
            .copy_from_slice(unsafe { core::slice::from_raw_parts(start as *const u8, length) });
        Some(Replaced { at: start, covers, length, ours, original })
    }

    fn add(&mut self, instruction: &Instruction, start: usize, trap: bool, always: bool) -> u32 {
        let code = instruction.ip() as usize;
        let untouched = trap || code + 1 >= start + DETOUR;
        self.made.entries.push(Entry {
            code,
            walk: if untouched { code + 1 } else { start + DISTANCE },
            what: site::effect(instruction, &mut self.factory),
            length: instruction.len() as u8,
            bytes: instruction.memory_size().size() as u16,
            repeats: instruction.has_rep_prefix() || instruction.has_repne_prefix(),
            always,
            trapped: trap,
            thread_local: instruction.memory_segment() == Register::GS,
        });
        self.first_site + self.made.entries.len() as u32 - 1
    }
}

/// Where the distance of the jump is, in what takes the place of a window.
const DISTANCE: usize = 2;

/// Where the code for a window is put, at `next` or a little further, and what leads to it.
///
/// Whoever walks the stack looks at the code from the first byte of the distance on, to see whether the function is
/// about to end; that must not look so by chance.
fn place_for(start: usize, next: usize) -> Option<(usize, [u8; DETOUR])> {
    (next..next + MOVED).find_map(|at| {
        let [a, b, c, d, e] = trampoline::jump(start as u64 + 1, at as u64)?;
        let ours = [NOP, a, b, c, d, e];
        (!may_end_function(ours[DISTANCE])).then_some((at, ours))
    })
}

/// Whether an instruction of the end of a function may begin with this byte: it corrects the stack, restores registers,
/// returns or jumps.
fn may_end_function(byte: u8) -> bool {
    matches!(byte, 0x40..=0x4f | 0x58..=0x5f | 0xc2 | 0xc3 | 0xe9 | 0xeb | 0xf2 | 0xf3 | 0xff)
}

fn size_of_window(window: &Window) -> usize {
    window.sites.count_ones() as usize * CALL_OUT + usize::from(window.length) * MOVED / 2 + 2 * MOVED
}

/// From the cache, or made and put there.
fn plan(module: &Loaded, identity: &[u8], wanted: Wanted, cache: Option<&Path>) -> Option<Plan> {
    let kept = cache.map(|folder| folder.join(cache_name(identity, wanted)));
    if let Some(plan) = kept.as_ref().and_then(|path| Plan::from_bytes(&std::fs::read(path).ok()?)) {
        return Some(plan);
    }
    let read = std::fs::read(&module.path).map_err(|error| error.to_string());
    let plan = read.and_then(|bytes| Plan::of(&bytes, wanted).map_err(|error| error.to_string()));
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => {
            say(format_args!("{}: {error}: not patched", module.path.display()));
            return None;
        }
    };
    if let Some(path) = kept {
        // Another process may be doing the same: the file appears as a whole or not at all.
        let part = path.with_extension(format!("part{}", std::process::id()));
        if std::fs::write(&part, plan.to_bytes()).is_err() || std::fs::rename(&part, &path).is_err() {
            let _ = std::fs::remove_file(&part);
        }
    }
    Some(plan)
}
