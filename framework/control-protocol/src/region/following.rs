//! What a run is to follow: a schedule, forced switches, orders of events, or the runs before it.

use super::{ORDERED, PARAMETERS, RegionError, RegionMap, STRETCHES};
use crate::in_process::Earlier;
use crate::settings::Settings;
use crate::stretch::Stretch;

impl RegionMap {
    /// Sets what the next run is to do: follow this schedule.
    pub fn prepare_replay(
        &mut self,
        mut settings: Settings,
        schedule: &[Stretch],
    ) -> Result<(), RegionError> {
        if schedule.len() > STRETCHES {
            return Err(RegionError::TooManySwitches(schedule.len()));
        }
        settings.replay = schedule.len() as u64;
        settings.guided = 0;
        self.follow(settings, schedule)
    }

    /// Sets what the next run is to do: these switches, each a thread that runs, the one it takes over from, and how many
    /// steps that one has made; and no other preemption.
    pub fn prepare_guided(
        &mut self,
        mut settings: Settings,
        switches: &[(u32, u32, u64)],
    ) -> Result<(), RegionError> {
        if switches.len() > STRETCHES {
            return Err(RegionError::TooManySwitches(switches.len()));
        }
        settings.replay = switches.len() as u64;
        settings.guided = 1;
        let stretch = |&(thread, first, steps): &(u32, u32, u64)| Stretch { thread, first, steps };
        self.follow(settings, &switches.iter().map(stretch).collect::<Vec<_>>())
    }

    /// Sets what the next run is to do: what these pairs of words say to who makes its strategy.
    pub fn prepare_ordered(&mut self, mut settings: Settings, words: &[[u64; 2]]) -> Result<(), RegionError> {
        if words.len() > STRETCHES {
            return Err(RegionError::TooManySwitches(words.len()));
        }
        settings.replay = words.len() as u64;
        settings.guided = ORDERED;
        let stretch = |&[one, other]: &[u64; 2]| Stretch {
            thread: one as u32,
            first: (one >> 32) as u32,
            steps: other,
        };
        self.follow(settings, &words.iter().map(stretch).collect::<Vec<_>>())
    }

    /// The words that were given to [`RegionMap::prepare_ordered`], if the run is made by some.
    pub fn ordered(&self) -> Option<Vec<[u64; 2]>> {
        let words =
            |stretch: &Stretch| [u64::from(stretch.thread) | u64::from(stretch.first) << 32, stretch.steps];
        (self.settings().guided == ORDERED).then(|| self.followed().iter().map(words).collect())
    }

    /// Has these runs made before one that follows a schedule, if its settings are made with this call: by the strategy
    /// that these parameters name, from them on. What does not fit is not recalled at all.
    pub fn recall(&mut self, settings: &mut Settings, earlier: Earlier, parameters: &str) {
        if parameters.is_empty() || parameters.len() > PARAMETERS || earlier.count() == 0 {
            return;
        }
        (settings.past, settings.earlier) = (parameters.len() as u32, earlier);
        // SAFETY: no run is going on, so nobody else touches the region; the length was checked. A run that follows a schedule
        // has no parameters of its own.
        unsafe {
            let to = (&raw mut (*self.at).parameters).cast::<u8>();
            to.copy_from_nonoverlapping(parameters.as_ptr(), parameters.len());
        }
    }

    /// What was named by [`recall`](RegionMap::recall), with the parameters.
    pub fn recalled(&self) -> Option<(Earlier, &str)> {
        let settings = self.settings();
        (settings.past != 0).then(|| (settings.earlier, self.text_of_parameters(settings.past)))
    }

    /// The same without the parameters.
    pub(crate) fn recalls(&self) -> Option<Earlier> {
        let settings = self.settings();
        (settings.past != 0).then_some(settings.earlier)
    }

    fn follow(&mut self, settings: Settings, schedule: &[Stretch]) -> Result<(), RegionError> {
        // SAFETY: no run is going on, so nobody else touches the region; the length was checked.
        unsafe {
            let to = (&raw mut (*self.at).replay).cast::<Stretch>();
            to.copy_from_nonoverlapping(schedule.as_ptr(), schedule.len());
        }
        self.prepare(settings, "")
    }

    /// The switches to make, if the run is guided by some: as they were given to [`RegionMap::prepare_guided`]. Of a run whose
    /// events are [ordered](RegionMap::ordered) this says only that it is guided, too.
    pub fn guidance(&self) -> Option<impl Iterator<Item = (u32, u32, u64)> + '_> {
        let turn = |stretch: &Stretch| (stretch.thread, stretch.first, stretch.steps);
        (self.settings().guided != 0).then(|| self.followed().iter().map(turn))
    }

    /// The schedule to follow, if there is one.
    pub fn replay(&self) -> Option<&[Stretch]> {
        Some(self.followed()).filter(|all| self.settings().guided == 0 && !all.is_empty())
    }

    fn followed(&self) -> &[Stretch] {
        let len = (self.settings().replay as usize).min(STRETCHES);
        // SAFETY: inside the mapping; constant during a run.
        unsafe { core::slice::from_raw_parts((&raw const (*self.at).replay).cast::<Stretch>(), len) }
    }
}
