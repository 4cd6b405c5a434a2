//! What a run promises, in the words and numbers of a report.
//!
//! A pure function of the parameters a run was given. Where a report knows better numbers of threads and steps than
//! were planned with, it puts those into the parameters first.

use crate::bound::{self, Chance};
use crate::priority::{Phases, Rules};
use crate::run::RunParameters;
use crate::spec::Spec;

/// The least probability of finding a bug in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Guarantee {
    /// In one run.
    pub per_run: Chance,
    /// For bugs up to this depth; for stride, this many orders of event pairs.
    pub depth: u32,
    /// What else must hold of the bug.
    pub conditions: Vec<&'static str>,
}

/// The conditions that the practical parts of PCT put on a bug; a bare run has none of them.
fn conditions(rules: Rules, bare: bool) -> Vec<&'static str> {
    let mut conditions = Vec::new();
    if bare {
        return conditions;
    }
    match rules.phases {
        Phases::None => {}
        Phases::Joined => {
            conditions.push("its events lie between two points at which all other threads were joined")
        }
        Phases::Idle => conditions.push("its events lie between two points at which one thread was enabled"),
    }
    if rules.final_wait {
        conditions.push("it does not need the main thread to exit while others could run");
    }
    if rules.starvation {
        conditions.push("it does not need a thread to spin on");
    }
    conditions
}

impl Guarantee {
    /// What a run with these parameters promises; `None` where the strategy promises nothing by depth, or while the
    /// number of threads is not known.
    pub fn of(parameters: &RunParameters) -> Option<Guarantee> {
        let RunParameters { threads, steps, depth, .. } = *parameters;
        let threads = u64::from(threads);
        match parameters.strategy.parse().ok()? {
            // Depth 1 is an order of events of two threads: one thread has none.
            Spec::Pct(_) | Spec::RPro(_) if threads < 2 || depth == 0 => None,
            Spec::Pct(options) => Some(Guarantee {
                per_run: bound::pct(threads, steps, depth),
                depth,
                conditions: conditions(options.rules, parameters.bare),
            }),
            Spec::RPro(options) => {
                let mut conditions = conditions(options.rules, parameters.bare);
                if depth > 2 {
                    conditions.push("its change points lie within the radius, the first first");
                }
                let per_run = bound::rpro(threads, steps, depth, options.radius);
                Some(Guarantee { per_run, depth, conditions })
            }
            Spec::Stride(limit) if !parameters.profiling && threads != 1 => {
                let orders = match limit {
                    crate::stride::StrideLimit::Confident { orders, .. } => orders,
                    _ => 1,
                };
                let per_run = bound::stride::per_run(limit.ratio()?, orders);
                let conditions = vec![
                    "it is an order of events of two threads each, which do not block each other",
                    "no thread is longer than in the profiling runs",
                ];
                Some(Guarantee { per_run, depth: orders, conditions })
            }
            // Runs that aim at a depth are those of the one member that aims; the others promise nothing by depth.
            Spec::Portfolio(members) if depth > 0 => {
                let mut aiming = members
                    .iter()
                    .map(|(member, _)| member)
                    .filter(|member| matches!(member, Spec::Pct(_) | Spec::RPro(_)));
                let (Some(one), None) = (aiming.next(), aiming.next()) else { return None };
                Guarantee::of(&RunParameters { strategy: one.to_string(), ..parameters.clone() })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_run() {
        let parameters = |strategy: &str, depth| RunParameters {
            threads: 4,
            steps: 100,
            depth,
            ..RunParameters::of(strategy)
        };
        let pct = Guarantee::of(&parameters("pct:depth=2", 2)).unwrap();
        assert!((pct.per_run.value() - 1.0 / 400.0).abs() < 1e-15);
        assert_eq!(pct.conditions.len(), 3);
        let bare = "pct:depth=2,phases=none,final-wait=off,starvation=off";
        assert!(Guarantee::of(&parameters(bare, 2)).unwrap().conditions.is_empty());
        let drawn = RunParameters { bare: true, ..parameters("pct:depth=2", 2) };
        assert!(Guarantee::of(&drawn).unwrap().conditions.is_empty(), "a run without the practical parts");
        let rpro = Guarantee::of(&parameters("rpro:radius=10,depth=3", 3)).unwrap();
        assert!((rpro.per_run.value() - 1.0 / 4000.0).abs() < 1e-15);
        assert!(Guarantee::of(&parameters("stride:ratio=6.6", 0)).is_some());
        let unknown = RunParameters { threads: 0, ..parameters("pct", 1) };
        assert_eq!(Guarantee::of(&unknown), None);
        for strategy in ["pct", "rpro", "stride", "portfolio"] {
            let alone = RunParameters { threads: 1, ..parameters(strategy, 1) };
            assert_eq!(Guarantee::of(&alone), None, "one thread has one schedule");
        }
        let several = Guarantee::of(&parameters("portfolio:pct+surw", 2)).unwrap();
        assert_eq!(several.per_run, pct.per_run, "those runs of a portfolio that aim at the depth are PCT's");
        assert_eq!(Guarantee::of(&parameters("portfolio:pct+surw", 0)), None, "and the others are not");
        assert_eq!(Guarantee::of(&parameters("portfolio:pct+rpro", 2)), None, "whose they are is not known");
        for none in ["random", "pos", "surw", "dfs", "stride:max=2", "nonsense"] {
            assert_eq!(Guarantee::of(&parameters(none, 0)), None);
        }
    }
}
