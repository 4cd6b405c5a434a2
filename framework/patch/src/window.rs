//! The bytes around a site that a jump can take the place of.
//!
//! The site alone if it is long enough; else with instructions after it, or before it, that can be executed elsewhere and
//! into which nothing jumps. What does not fit is replaced by a breakpoint of one byte, if that is wanted, or left.

use iced_x86::{FlowControl, Instruction, Mnemonic};

use crate::code::{Code, Function};

/// Instructions of a window at most: as many as the mask of sites has bits.
const MOST: usize = 16;

/// How a site is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum How {
    /// By a jump in its own place.
    Alone = 0,
    /// By a jump that also covers what follows.
    Forward = 1,
    /// By a jump that begins before it.
    Backward = 2,
    /// By a breakpoint.
    Trap = 3,
}

/// Consecutive instructions that are executed elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Address of the first, in the file's own numbering.
    pub start: u32,
    /// Bytes of all of them.
    pub length: u8,
    /// How.
    pub how: How,
    /// Which of them are sites: bit n is the n-th.
    pub sites: u16,
    /// Which of the sites synchronise or wait: they are steps whether or not plain accesses are.
    pub always: u16,
}

/// What is known of an instruction that is to be replaced.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Index of the instruction.
    pub index: usize,
    /// It is a step whether or not plain accesses are.
    pub always: bool,
    /// It is replaced by a breakpoint if no jump fits; otherwise it is left.
    pub trap: bool,
}

/// The windows of one function for these instructions, in order.
pub fn windows(code: &Code, function: &Function, sites: &[Wish]) -> Vec<Window> {
    let mut planner = Planner { code, function, windows: Vec::new(), last: None };
    for &site in sites {
        planner.place(site);
    }
    planner.windows
}

struct Planner<'a> {
    code: &'a Code,
    function: &'a Function,
    windows: Vec<Window>,
    /// First and last instruction of the latest window.
    last: Option<(usize, usize)>,
}

impl Planner<'_> {
    fn instruction(&self, index: usize) -> &Instruction {
        &self.code.instructions[index]
    }

    /// Bytes that are needed.
    fn enough(&self) -> usize {
        self.code.detour.length()
    }

    fn place(&mut self, wish: Wish) {
        let site = wish.index;
        if let (Some((first, last)), Some(window)) = (self.last, self.windows.last_mut())
            && site <= last
        {
            window.sites |= 1 << (site - first);
            window.always |= u16::from(wish.always) << (site - first);
            return;
        }
        if self.instruction(site).len() >= self.enough() {
            return self.add(site, site, How::Alone, wish);
        }
        if !self.function.unresolved {
            if let Some(last) = self.forward(site) {
                return self.add(site, last, How::Forward, wish);
            }
            if let Some((first, last)) = self.backward(site) {
                return self.add(first, last, How::Backward, wish);
            }
        }
        if wish.trap {
            self.add(site, site, How::Trap, wish);
        }
    }

    fn add(&mut self, first: usize, last: usize, how: How, wish: Wish) {
        let start = self.instruction(first).ip();
        let length = self.instruction(last).next_ip() - start;
        let (Ok(start), Ok(length)) = (u32::try_from(start), u8::try_from(length)) else { return };
        let bit = wish.index - first;
        self.windows.push(Window {
            start,
            length,
            how,
            sites: 1 << bit,
            always: u16::from(wish.always) << bit,
        });
        self.last = Some((first, last));
    }

    /// The last instruction of a window that begins with the site.
    fn forward(&self, site: usize) -> Option<usize> {
        let mut length = self.instruction(site).len();
        let mut last = site;
        while length < self.enough() {
            let next = last + 1;
            if next >= self.function.instructions.end {
                // The padding behind a function is as good as instructions that are never reached.
                let ends = matches!(
                    self.instruction(last).flow_control(),
                    FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
                );
                return (ends && length + self.function.padding >= self.enough()).then_some(last);
            }
            if !self.can_follow(next) || next - site >= MOST {
                return None;
            }
            length += self.instruction(next).len();
            last = next;
        }
        Some(last)
    }

    /// First and last instruction of a window that begins before the site.
    fn backward(&self, site: usize) -> Option<(usize, usize)> {
        let barrier = self.last.map_or(self.function.instructions.start, |(_, last)| last + 1);
        let mut first = site;
        let mut length = self.instruction(site).len();
        while length < self.enough() {
            let at = self.instruction(first).ip();
            if first <= barrier || at <= self.function.body || self.code.is_target(at) {
                break;
            }
            let before = self.instruction(first - 1);
            if !is_movable(before) || before.flow_control() != FlowControl::Next || site - first + 1 >= MOST {
                break;
            }
            length += before.len();
            first -= 1;
        }
        let mut last = site;
        while first < site && length < self.enough() && last + 1 < self.function.instructions.end {
            if !self.can_follow(last + 1) || last + 1 - first >= MOST {
                break;
            }
            last += 1;
            length += self.instruction(last).len();
        }
        (first < site && length >= self.enough()).then_some((first, last))
    }

    /// Whether an instruction can be part of a window that begins before it.
    fn can_follow(&self, index: usize) -> bool {
        let instruction = self.instruction(index);
        is_movable(instruction) && !self.code.is_target(instruction.ip())
    }
}

/// Whether an instruction means the same elsewhere. A call does not: what it calls may look for the return address.
fn is_movable(instruction: &Instruction) -> bool {
    !instruction.is_invalid()
        && !matches!(
            instruction.flow_control(),
            FlowControl::Call
                | FlowControl::IndirectCall
                | FlowControl::Interrupt
                | FlowControl::Exception
                | FlowControl::XbeginXabortXend
        )
        && !matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Endbr64)
}
