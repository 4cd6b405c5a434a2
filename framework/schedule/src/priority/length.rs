//! How long a run is: the steps that may count in some schedule of the program.
//!
//! Few steps count in a run whose threads happen to come one after the other, more when they are interleaved, and the
//! theorem asks for the most of any schedule. So the estimate handed on is all steps taken while some thread was not joined
//! yet: the others can count in no schedule. Left out are steps that may be those of a thread that spins, because they say
//! nothing about the program; of a thread that works, others of many runs show as much.

#[derive(Clone, Debug, Default)]
pub(super) struct Length {
    /// Counted steps of this phase.
    pub(super) counted: u64,
    /// Steps of this phase that were not counted although another thread was not joined yet.
    pub(super) alone: u64,
    /// Steps of this phase, of those and of the counted ones, that do not belong to the program's length.
    spun: u64,
    /// The length up to which steps are among those if they are at all.
    spun_until: u64,
    /// The estimate of steps for the longest earlier phase.
    longest: u64,
    /// The estimates of all earlier phases together.
    before: u64,
}

impl Length {
    /// A new phase begins.
    pub(super) fn begin_phase(&mut self) {
        *self = Length { longest: self.reach(), before: self.whole_reach(), ..Length::default() };
    }

    /// Steps of this phase that may count in another schedule, those of spinning threads among them.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.counted + self.alone
    }

    /// Up to so many steps since then do not belong to the program's length: with fewer of them it comes as far.
    pub(super) fn forget(&mut self, most: u64, since: u64) {
        self.spun += most.min(self.now() - since.max(self.spun_until));
        self.spun_until = self.now();
    }

    /// The most steps that may count in a phase of another schedule, judging by this run.
    pub(super) fn reach(&self) -> u64 {
        self.longest.max(self.now() - self.spun)
    }

    /// The most steps that may count in another schedule of one phase, judging by this run.
    pub(super) fn whole_reach(&self) -> u64 {
        self.before + self.now() - self.spun
    }
}
