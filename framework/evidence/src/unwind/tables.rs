//! One step by the compiler's unwind tables (DWARF call frame information in `.eh_frame`).

use std::collections::HashMap;

use gimli::{
    CfaRule, EhFrame, EhFrameHdr, Encoding, EndianSlice, Evaluation, EvaluationResult, Expression,
    LittleEndian, Location, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection, Value,
};

use crate::module::Module;
use crate::module::loaded::{Located, ModuleId};
use crate::registers::Registers;
use crate::snapshot::StackMemory;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Registers a call may destroy (System V ABI), by DWARF number: unknown in the caller unless a table says
/// where they are.
const CALLER_SAVED: [u16; 9] = [0, 1, 2, 4, 5, 8, 9, 10, 11];
/// Rules kept; a recursion or a second thread at the same place then costs no parsing.
const MOST_RULES: usize = 1 << 16;

/// What the tables say for one place.
#[derive(Clone)]
struct Rule {
    cfa: CfaRule<usize>,
    registers: Vec<(Register, RegisterRule<usize>)>,
    return_register: Register,
    encoding: Encoding,
    signal: bool,
}

/// Rules by module and address.
#[derive(Default)]
pub(crate) struct RuleCache {
    rules: HashMap<(ModuleId, u64), Option<Rule>>,
    context: UnwindContext<usize>,
}

pub(super) enum Outcome {
    /// The caller's registers. `signal`: the caller was interrupted, its address is exact.
    Caller { registers: Registers, signal: bool },
    /// The thread's first function.
    Root,
    /// The tables cover the place, but need memory that was not copied.
    Unreadable,
    /// No table covers the place.
    NoTables,
}

pub(super) fn step(
    cache: &mut RuleCache,
    located: &Located,
    registers: &Registers,
    memory: &StackMemory,
) -> Outcome {
    let Some(section) = located.module.eh_frame.as_ref().map(|part| frames(located.module.slice(part)))
    else {
        return Outcome::NoTables;
    };
    let key = (located.id, located.address);
    if !cache.rules.contains_key(&key) {
        if cache.rules.len() >= MOST_RULES {
            cache.rules.clear();
        }
        let rule = find_rule(&located.module, &section, located.address, &mut cache.context);
        cache.rules.insert(key, rule);
    }
    match cache.rules.get(&key) {
        Some(Some(rule)) => apply(rule, &section, registers, memory),
        _ => Outcome::NoTables,
    }
}

fn frames(bytes: &[u8]) -> EhFrame<Bytes<'_>> {
    let mut section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    section
}

fn find_rule(
    module: &Module,
    section: &EhFrame<Bytes<'_>>,
    address: u64,
    context: &mut UnwindContext<usize>,
) -> Option<Rule> {
    let bases = &module.bases;
    let header = module
        .eh_frame_header
        .as_ref()
        .and_then(|part| EhFrameHdr::new(module.slice(part), LittleEndian).parse(bases, 8).ok());
    let fde = match header.as_ref().and_then(|header| header.table()) {
        Some(table) => table.fde_for_address(section, bases, address, EhFrame::cie_from_offset).ok()?,
        None => section.fde_for_address(bases, address, EhFrame::cie_from_offset).ok()?,
    };
    let row = fde.unwind_info_for_address(section, bases, context, address).ok()?;
    Some(Rule {
        cfa: row.cfa().clone(),
        registers: row.registers().map(|(register, rule)| (*register, rule.clone())).collect(),
        return_register: fde.cie().return_address_register(),
        encoding: fde.cie().encoding(),
        signal: fde.is_signal_trampoline(),
    })
}

fn apply(rule: &Rule, section: &EhFrame<Bytes<'_>>, registers: &Registers, memory: &StackMemory) -> Outcome {
    let evaluate = Evaluate { section, encoding: rule.encoding, registers, memory };
    let Some(cfa) = evaluate.cfa(&rule.cfa) else { return Outcome::Unreadable };
    let mut caller = *registers;
    if !rule.signal {
        CALLER_SAVED.iter().for_each(|number| caller.forget(*number));
    }
    caller.forget(Registers::INSTRUCTION_POINTER);
    caller.set(Registers::STACK_POINTER, cfa);
    let mut returns = false;
    for (register, how) in &rule.registers {
        let is_return = *register == rule.return_register;
        let number = if is_return { Registers::INSTRUCTION_POINTER } else { register.0 };
        match how {
            RegisterRule::Undefined => caller.forget(number),
            how => match evaluate.register(*register, how, cfa) {
                Some(value) => caller.set(number, value),
                None if is_return => return Outcome::Unreadable,
                None => caller.forget(number),
            },
        }
        returns |= is_return && !matches!(how, RegisterRule::Undefined);
    }
    // A return address that is nowhere, or zero, marks the first function of a thread.
    if !returns || caller.instruction() == Some(0) {
        return Outcome::Root;
    }
    let inwards = registers.stack().is_some_and(|stack| cfa <= stack);
    if inwards && !rule.signal {
        return Outcome::NoTables;
    }
    Outcome::Caller { registers: caller, signal: rule.signal }
}

/// Evaluates the rules of one frame.
struct Evaluate<'a, 'b> {
    section: &'a EhFrame<Bytes<'b>>,
    encoding: Encoding,
    registers: &'a Registers,
    memory: &'a StackMemory,
}

impl Evaluate<'_, '_> {
    fn cfa(&self, rule: &CfaRule<usize>) -> Option<u64> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                Some(self.registers.get(register.0)?.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.expression(expression, None),
        }
    }

    fn register(&self, register: Register, rule: &RegisterRule<usize>, cfa: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => self.registers.get(register.0),
            RegisterRule::Offset(offset) => self.memory.word(cfa.wrapping_add_signed(*offset)),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(*offset)),
            RegisterRule::Register(other) => self.registers.get(other.0),
            RegisterRule::Expression(expression) => self.memory.word(self.expression(expression, Some(cfa))?),
            RegisterRule::ValExpression(expression) => self.expression(expression, Some(cfa)),
            RegisterRule::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// Runs a DWARF expression; register rules start with the frame address on its stack.
    fn expression(&self, expression: &UnwindExpression<usize>, initial: Option<u64>) -> Option<u64> {
        let Expression(code) = expression.get(self.section).ok()?;
        let mut evaluation = Evaluation::new(code, self.encoding);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        // Tables come from files that anyone may have written.
        evaluation.set_max_iterations(1000);
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.registers.get(register.0)?)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    evaluation.resume_with_memory(Value::Generic(self.memory.word(address)?)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().last()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}
