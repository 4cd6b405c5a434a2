//! Directives: the formal ordering constraints of the PCT paper (definitions 5 to 7), checked by going through all
//! schedules of a small program.

use std::collections::{BTreeSet, HashMap};

use super::{Execution, Machine, Program, State};

/// An operation: thread and place in its list.
pub type Label = (u32, usize);

/// Constraints (A₁, b₁) … (A_d, b_d): each b after all of its A, and the b in order.
#[derive(Clone, Debug)]
pub struct Directive {
    pub constraints: Vec<(Vec<Label>, Label)>,
}

impl Directive {
    /// Whether executing `label` after the labels done so far violates the directive.
    fn violated_by(&self, done: &BTreeSet<Label>, label: Label) -> bool {
        let Some(place) = self.constraints.iter().position(|(_, b)| *b == label) else { return false };
        let sources_done = self.constraints[place].0.iter().all(|a| done.contains(a));
        let earlier_done = self.constraints[..place].iter().all(|(_, b)| done.contains(b));
        !(sources_done && earlier_done)
    }

    fn satisfied_by(&self, done: &BTreeSet<Label>) -> bool {
        self.constraints.iter().all(|(_, b)| done.contains(b))
    }

    /// Whether the directive guarantees the bug that consists of the executions satisfying it: no schedule that has
    /// not violated it gets stuck, and all that end without violating it satisfy it.
    pub fn guarantees_a_bug(&self, program: &Program) -> bool {
        self.leads_on(&Machine::new(program), &BTreeSet::new(), &mut HashMap::new())
    }

    fn leads_on(
        &self,
        machine: &Machine<'_>,
        done: &BTreeSet<Label>,
        known: &mut HashMap<(State, BTreeSet<Label>), bool>,
    ) -> bool {
        let key = (machine.state(), done.clone());
        if let Some(&leads) = known.get(&key) {
            return leads;
        }
        let leads = self.leads_on_from(machine, done, known);
        known.insert(key, leads);
        leads
    }

    fn leads_on_from(
        &self,
        machine: &Machine<'_>,
        done: &BTreeSet<Label>,
        known: &mut HashMap<(State, BTreeSet<Label>), bool>,
    ) -> bool {
        let enabled = machine.enabled_threads();
        if enabled.is_empty() {
            return self.satisfied_by(done);
        }
        let mut ways = 0;
        for thread in enabled {
            let label = machine.label(thread);
            if label.is_some_and(|label| self.violated_by(done, label)) {
                continue;
            }
            ways += 1;
            let (mut machine, mut done) = (machine.clone(), done.clone());
            machine.advance(thread);
            done.extend(label);
            if !self.leads_on(&machine, &done, known) {
                return false;
            }
        }
        ways > 0
    }

    /// Whether the execution satisfies the directive without having violated it.
    pub fn holds_in(&self, program: &Program, execution: &Execution) -> bool {
        let mut machine = Machine::new(program);
        let mut done = BTreeSet::new();
        for step in &execution.trace.steps {
            let label = machine.label(step.thread.index());
            if label.is_some_and(|label| self.violated_by(&done, label)) {
                return false;
            }
            machine.advance(step.thread.index());
            done.extend(label);
        }
        self.satisfied_by(&done)
    }
}
