//! The practical parts of scheduling by priority, each of which can be switched off.

/// When a new phase begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phases {
    /// Never: the whole run is one.
    None,
    /// When a thread is created after all others but its parent were joined. Joins belong to the program, not to
    /// the schedule, so the same events lie in one phase whatever the threads' order.
    #[default]
    Joined,
    /// When one thread is enabled, as the paper has it. Contention for one lock can look like this, too.
    Idle,
}

/// The practical parts that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// When a new phase begins.
    pub phases: Phases,
    /// Whether the main thread drops to the lowest priority before it exits.
    pub final_wait: bool,
    /// Whether spinning threads are lowered.
    pub starvation: bool,
}

impl Rules {
    /// None of the practical parts: Fig. 7 of the paper.
    pub const BARE: Rules = Rules { phases: Phases::None, final_wait: false, starvation: false };
}

impl Default for Rules {
    fn default() -> Self {
        Rules { phases: Phases::Joined, final_wait: true, starvation: true }
    }
}
