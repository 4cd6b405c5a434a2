//! What the configuration says about a pot: the `pot` table, checked by the driver, as JSON.

use serde::Deserialize;
use waylay_plugin::Failed;

use crate::fairness::{Policy, Rule};

/// The settings of one pot.
#[derive(Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Settings {
    rule: RuleName,
    /// Whether a round ends when its last turn does; else every thread takes its next turn at once.
    pub(crate) barrier: bool,
    /// In nanoseconds.
    shortest_turn: u64,
    longest_turn: u64,
    /// A turn is one iteration, whatever it takes, and a test is loaded when it is drawn: in strict mode, where time is
    /// virtual and every schedule is a whole life of the pot.
    pub(crate) single_turns: bool,
    /// A replay: what each worker runs again and again.
    pub(crate) mix: Vec<Part>,
}

/// What one worker of a replay runs.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Part {
    /// Number of the contained test; none for a worker that ran nothing.
    pub(crate) test: Option<usize>,
    /// Number of its iteration.
    pub(crate) iteration: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RuleName {
    Fair,
    Literal,
}

impl Default for Settings {
    fn default() -> Settings {
        let policy = Policy::default();
        Settings {
            rule: RuleName::Fair,
            barrier: true,
            shortest_turn: (policy.shortest_turn * 1e9) as u64,
            longest_turn: (policy.longest_turn * 1e9) as u64,
            single_turns: false,
            mix: Vec::new(),
        }
    }
}

impl Settings {
    pub(crate) fn read(json: &str) -> Result<Settings, Failed> {
        serde_json::from_str(json)
            .map_err(|error| Failed::new(format_args!("the settings of the pot are wrong: {error}")))
    }

    pub(crate) fn policy(&self) -> Policy {
        Policy {
            rule: match self.rule {
                RuleName::Fair => Rule::Fair,
                RuleName::Literal => Rule::Literal,
            },
            shortest_turn: self.shortest_turn as f64 / 1e9,
            longest_turn: self.longest_turn as f64 / 1e9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_a_default_and_what_is_unknown_is_an_error() {
        let settings =
            Settings::read(r#"{"rule":"literal","barrier":false,"shortest-turn":5000000}"#).unwrap();
        assert_eq!(settings.policy().rule, Rule::Literal);
        assert!(!settings.barrier);
        assert_eq!(settings.policy().shortest_turn, 0.005);
        assert_eq!(settings.policy().longest_turn, Policy::default().longest_turn);
        assert!(Settings::read(r#"{"rules":"fair"}"#).is_err());
    }
}
