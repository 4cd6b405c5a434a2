//! What has to hold of a comparison: bugs that must be found within so many schedules, rates that must be in an interval,
//! twins that must stay silent.

use crate::config::Expectation;
use crate::plan::Plan;
use crate::results::Results;

/// What does not hold, in sentences. A cell without trials says nothing, and is not accepted.
pub fn violations(plan: &Plan, results: &Results) -> Vec<String> {
    let mut violations = Vec::new();
    for (test, row) in plan.tests.iter().zip(&results.cells) {
        for cell in row {
            let mut say =
                |what: String| violations.push(format!("{} with {}: {what}", cell.test, cell.strategy));
            if cell.trials == 0 {
                say("no trial was run".to_owned());
                continue;
            }
            if test.expect == Expectation::Clean && cell.found > 0 {
                say(format!("it is correct, and {} of {} trials failed", cell.found, cell.trials));
            }
            if let Some(within) = test.within {
                let late = |first: &Option<(u64, f64)>| first.is_none_or(|(run, _)| run > within);
                let count = cell.firsts.iter().filter(|first| late(first)).count();
                if count > 0 {
                    say(format!(
                        "{count} of {} trials did not find it within {within} schedules",
                        cell.trials
                    ));
                }
            }
            if let Some(rate) = test.rate
                && !(rate.min..=rate.max).contains(&cell.rate)
            {
                say(format!(
                    "{} of {} schedules showed it, a share of {:.5}, not between {} and {}",
                    cell.failures, cell.runs, cell.rate, rate.min, rate.max
                ));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Rate;
    use crate::results::tests::small;

    #[test]
    fn what_holds_is_silent_and_what_does_not_is_said() {
        let (mut plan, results) = small();
        assert!(violations(&plan, &results).is_empty());
        plan.tests[0].within = Some(30);
        let said = violations(&plan, &results);
        assert_eq!(said, ["a<b with random: 2 of 2 trials did not find it within 30 schedules"]);
        plan.tests[0].within = None;
        plan.tests[0].rate = Some(Rate { min: 0.04, max: 0.06 });
        assert_eq!(violations(&plan, &results).len(), 1, "random's rate is 1 of 150");
        plan.tests[0].rate = None;
        plan.tests[0].expect = Expectation::Clean;
        assert_eq!(violations(&plan, &results).len(), 2);
    }
}
