//! x86-TSO in its four rules, and sequential consistency, for programs of a few instructions: every final state there is.
//!
//! The programs of the model are run by [`StoreBuffer`](super::StoreBuffer)s, every order of steps, to be compared.

use std::collections::BTreeSet;

use super::{Memory, StoreBuffer};

/// One instruction. Addresses are of bytes; what is loaded goes to the thread's next register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Stores so many bytes of this value.
    Store(usize, usize, u64),
    /// A store that is worth no step, so that it goes with the one before it.
    Quiet(usize, usize, u64),
    /// Loads so many bytes.
    Load(usize, usize),
    /// Orders.
    Fence,
    /// Exchanges so many bytes with memory.
    Exchange(usize, usize, u64),
}

use Instruction::*;

pub(super) const BYTES: usize = 24;

/// Memory of some bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bytes(pub(super) [u8; BYTES]);

impl Memory for Bytes {
    fn read(&mut self, address: usize, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0[address..address + bytes.len()]);
    }

    fn write(&mut self, address: usize, bytes: &[u8]) {
        self.0[address..address + bytes.len()].copy_from_slice(bytes);
    }
}

fn value(memory: &mut Bytes, address: usize, bytes: usize) -> u64 {
    let mut word = [0; 8];
    memory.read(address, &mut word[..bytes]);
    u64::from_le_bytes(word)
}

/// What every thread loaded, and what is in memory at the end.
pub(super) type Final = (Vec<Vec<u64>>, Bytes);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    at: usize,
    loaded: Vec<u64>,
    /// Address, bytes and value, oldest first.
    buffer: Vec<(usize, usize, u64)>,
}

/// All final states by the rules. `buffers`: otherwise every store goes to memory at once.
pub(super) fn by_rules(program: &[Vec<Instruction>], buffers: bool) -> BTreeSet<Final> {
    let first = Thread { at: 0, loaded: Vec::new(), buffer: Vec::new() };
    let mut open = vec![(vec![first; program.len()], Bytes([0; BYTES]))];
    let (mut seen, mut finals) = (BTreeSet::new(), BTreeSet::new());
    while let Some(state) = open.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        let mut moved = false;
        for number in 0..program.len() {
            for flush in [false, true] {
                if let Some(next) = step(&state, number, program, flush, buffers) {
                    open.push(next);
                    moved = true;
                }
            }
        }
        if !moved {
            finals.insert((state.0.iter().map(|thread| thread.loaded.clone()).collect(), state.1));
        }
    }
    finals
}

fn step(
    (threads, memory): &(Vec<Thread>, Bytes),
    number: usize,
    program: &[Vec<Instruction>],
    flush: bool,
    buffers: bool,
) -> Option<(Vec<Thread>, Bytes)> {
    let (mut threads, mut memory) = (threads.clone(), memory.clone());
    let thread = &mut threads[number];
    if flush {
        if thread.buffer.is_empty() {
            return None;
        }
        let (address, bytes, stored) = thread.buffer.remove(0);
        memory.write(address, &stored.to_le_bytes()[..bytes]);
        return Some((threads, memory));
    }
    let instruction = *program[number].get(thread.at)?;
    match instruction {
        Store(address, bytes, stored) | Quiet(address, bytes, stored) if buffers => {
            thread.buffer.push((address, bytes, stored));
        }
        Store(address, bytes, stored) | Quiet(address, bytes, stored) => {
            memory.write(address, &stored.to_le_bytes()[..bytes]);
        }
        Load(address, bytes) => {
            // The newest store to each byte from the own buffer, else memory.
            let mut view = memory.clone();
            for &(address, bytes, stored) in &thread.buffer {
                view.write(address, &stored.to_le_bytes()[..bytes]);
            }
            thread.loaded.push(value(&mut view, address, bytes));
        }
        Fence | Exchange(..) if !thread.buffer.is_empty() => return None,
        Fence => {}
        Exchange(address, bytes, stored) => {
            thread.loaded.push(value(&mut memory, address, bytes));
            memory.write(address, &stored.to_le_bytes()[..bytes]);
        }
    }
    thread.at += 1;
    Some((threads, memory))
}

/// All final states that views give: every order of the threads' steps and of flushes, each run from the beginning.
pub(super) fn by_views(program: &[Vec<Instruction>]) -> BTreeSet<Final> {
    let (mut finals, mut script) = (BTreeSet::new(), Vec::new());
    loop {
        finals.insert(run(program, &mut script));
        // The last choice that can be another one is.
        while let Some((choice, choices)) = script.pop() {
            if choice + 1 < choices {
                script.push((choice + 1, choices));
                break;
            }
        }
        if script.is_empty() {
            return finals;
        }
    }
}

fn run(program: &[Vec<Instruction>], script: &mut Vec<(usize, usize)>) -> Final {
    let mut memory = Bytes([0; BYTES]);
    let mut buffers: Vec<StoreBuffer> = program.iter().map(|_| StoreBuffer::default()).collect();
    let mut at = vec![0; program.len()];
    let mut loaded = vec![Vec::new(); program.len()];
    let mut shown: Option<usize> = None;
    let mut step = 0;
    loop {
        let threads = (0..program.len()).filter(|&number| at[number] < program[number].len());
        let flushers = (0..program.len()).filter(|&number| !buffers[number].is_empty());
        let enabled: Vec<(usize, bool)> =
            threads.map(|number| (number, false)).chain(flushers.map(|number| (number, true))).collect();
        if enabled.is_empty() {
            return (loaded, memory);
        }
        if script.len() == step {
            script.push((0, enabled.len()));
        }
        let (number, flushes) = enabled[script[step].0];
        step += 1;
        if flushes {
            if shown.is_some_and(|other| other != number) {
                shown.take().into_iter().for_each(|other: usize| buffers[other].hide(&mut memory));
            }
            buffers[number].flush(&mut memory);
            continue;
        }
        if shown != Some(number) {
            shown.into_iter().for_each(|other| buffers[other].hide(&mut memory));
            buffers[number].show(&mut memory);
            shown = Some(number);
        }
        match program[number][at[number]] {
            Store(address, bytes, stored) => {
                buffers[number].note(&mut memory, address, bytes, 0, true);
                memory.write(address, &stored.to_le_bytes()[..bytes]);
            }
            Quiet(address, bytes, stored) => {
                buffers[number].note(&mut memory, address, bytes, 0, false);
                memory.write(address, &stored.to_le_bytes()[..bytes]);
            }
            Load(address, bytes) => loaded[number].push(value(&mut memory, address, bytes)),
            Fence => buffers[number].drain(),
            Exchange(address, bytes, stored) => {
                buffers[number].drain();
                loaded[number].push(value(&mut memory, address, bytes));
                memory.write(address, &stored.to_le_bytes()[..bytes]);
            }
        }
        at[number] += 1;
    }
}
