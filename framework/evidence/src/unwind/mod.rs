//! Walking a copied stack, offline.
//!
//! Each step asks, in this order: did the kernel put a signal frame here; do the compiler's unwind tables
//! cover the place; does the frame pointer lead on; is there a word further up that looks like a return
//! address. Every frame says which of these found it ([`Trust`]).
//!
//! The tables are evaluated here, with `gimli`, and not by a profiler's unwinder: those keep only three
//! registers and no memory operands, which loses signal frames and realigned stacks.

mod functions;
mod guess;
mod kept;
mod tables;
mod trampoline;

use crate::module::loaded::LoadedModules;
use crate::registers::Registers;
use crate::snapshot::{StackMemory, ThreadContext, ThreadSnapshot};
use crate::stack::{StackEnd, Trust};
use crate::symbol::CodeAddress;

use kept::Kept;
pub(crate) use tables::RuleCache;

/// More steps than the largest copied stack can hold frames of the smallest size, 16 bytes.
const MOST_STEPS: usize = 1 << 20;
/// How many places of a cut stack are tried as a way to its outer end.
const MOST_OUTER_STARTS: usize = 256;

/// One frame before symbolisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawFrame {
    /// Where it executes.
    pub address: CodeAddress,
    /// How it was found.
    pub trust: Trust,
}

/// A walked stack before symbolisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawStack {
    /// Innermost first.
    pub frames: Vec<RawFrame>,
    /// Index of the first frame after the gap, and how many frames are missing there at least.
    pub omitted: Option<(usize, usize)>,
    /// How it ends.
    pub end: StackEnd,
}

/// Everything a step looks at.
struct Walk<'a, 'm> {
    memory: &'a StackMemory,
    modules: &'a mut LoadedModules<'m>,
    rules: &'a mut RuleCache,
}

/// Where a step leads.
enum Step {
    Caller { registers: Registers, trust: Trust },
    Root,
}

/// Walks the stack of one thread.
pub(crate) fn walk(
    thread: &ThreadSnapshot,
    modules: &mut LoadedModules<'_>,
    rules: &mut RuleCache,
) -> RawStack {
    let Some(registers) = thread.context.registers() else {
        return RawStack { frames: Vec::new(), omitted: None, end: StackEnd::Unseen };
    };
    let trust = match thread.context {
        ThreadContext::Crashed(_) => Trust::Signal,
        _ => Trust::Registers,
    };
    let mut walk = Walk { memory: &thread.stack, modules, rules };
    let mut kept = Kept::default();
    let end = walk.follow(registers, trust, &mut kept);
    if end == StackEnd::Cut
        && let Some(outer) = walk.outer_end()
    {
        return kept.join(outer);
    }
    kept.finish(end)
}

impl Walk<'_, '_> {
    /// Walks from the given registers outwards.
    fn follow(&mut self, mut registers: Registers, mut trust: Trust, kept: &mut Kept) -> StackEnd {
        for _ in 0..MOST_STEPS {
            let Some(pc) = registers.instruction() else { return StackEnd::Lost };
            let interrupted = self.is_trampoline(pc);
            let exact = interrupted || matches!(trust, Trust::Registers | Trust::Signal);
            let address = if exact { CodeAddress::Instruction(pc) } else { CodeAddress::Return(pc) };
            kept.push(RawFrame { address, trust });
            let step = if interrupted {
                trampoline::interrupted(self.memory, &registers)
                    .map(|registers| Step::Caller { registers, trust: Trust::Signal })
            } else {
                self.step(address, &registers)
            };
            match step {
                Some(Step::Caller { registers: caller, trust: found }) => {
                    registers = caller;
                    trust = found;
                }
                Some(Step::Root) => return StackEnd::Root,
                None => return self.why_lost(&registers),
            }
        }
        StackEnd::Lost
    }

    fn step(&mut self, address: CodeAddress, registers: &Registers) -> Option<Step> {
        if let Some(located) = self.modules.find(address.for_lookup()) {
            let outcome = match &located.module.functions {
                Some(table) => {
                    let exact = matches!(address, CodeAddress::Instruction(_));
                    functions::step(&located, table, exact, registers, self.memory)
                }
                None => tables::step(self.rules, &located, registers, self.memory),
            };
            match outcome {
                tables::Outcome::Caller { registers, signal } => {
                    let trust = if signal { Trust::Signal } else { Trust::Tables };
                    return Some(Step::Caller { registers, trust });
                }
                tables::Outcome::Root => return Some(Step::Root),
                // The frame is known, but what it points to was not copied: guessing would only invent
                // frames. A thread that was not stopped has hardly any registers, and guessing is all.
                tables::Outcome::Unreadable if registers.get(Registers::FRAME_POINTER).is_some() => {
                    return None;
                }
                tables::Outcome::Unreadable => {}
                tables::Outcome::NoTables => {}
            }
        }
        guess::step(self.memory, self.modules, address, registers)
    }

    fn is_trampoline(&mut self, pc: u64) -> bool {
        self.modules.find(pc).is_some_and(|located| trampoline::is_trampoline(&located))
    }

    /// A walk that stops at the end of the first copied part, with another part further out, was cut.
    fn why_lost(&self, registers: &Registers) -> StackEnd {
        let Some(stack) = registers.stack() else { return StackEnd::Lost };
        let holds = |start: u64, bytes: &[u8]| (start..start + bytes.len() as u64).contains(&stack);
        let inner = self.memory.regions().find(|(start, bytes)| holds(*start, bytes));
        let further = |end| self.memory.regions().any(|(start, _)| start >= end);
        match inner {
            Some((start, bytes)) if further(start + bytes.len() as u64) => StackEnd::Cut,
            None if further(stack) => StackEnd::Cut,
            _ => StackEnd::Lost,
        }
    }

    /// Finds the outermost frames of a cut stack: the first return address in the outer copied part from
    /// which the tables lead to the thread's first function.
    fn outer_end(&mut self) -> Option<Kept> {
        let (start, length) = self
            .memory
            .regions()
            .map(|(start, bytes)| (start, bytes.len() as u64))
            .max_by_key(|(start, _)| *start)?;
        let words = (start.next_multiple_of(8)..start + length).step_by(8);
        let candidates: Vec<_> = words
            .filter_map(|address| Some((address, self.memory.word(address)?)))
            .filter(|(_, word)| guess::is_return_address(self.modules, *word))
            .take(MOST_OUTER_STARTS)
            .collect();
        candidates.into_iter().find_map(|(address, word)| {
            let mut kept = Kept::default();
            let end = self.follow(Registers::position(word, address + 8), Trust::Scan, &mut kept);
            (end == StackEnd::Root && kept.all_certain()).then_some(kept)
        })
    }
}
