//! Which plain accesses are steps, which races are known, and what a run learned of both.

use std::sync::atomic::Ordering;

use super::RegionMap;
use crate::instrumentation::{SITES, Site};
use crate::race::{Pair, RACES};
use crate::report::Report;
use crate::settings::Settings;
use crate::shared::copied;

impl RegionMap {
    /// Chooses the code sites that are steps in runs whose settings were made with `choose`; as many as fit.
    pub fn choose(&mut self, settings: &mut Settings, sites: &[Site]) {
        let count = sites.len().min(SITES);
        settings.chosen = count as u32 + 1;
        // SAFETY: no run is going on, so nobody else touches the region; the count was checked.
        unsafe {
            let to = (&raw mut (*self.at).chosen).cast::<Site>();
            to.copy_from_nonoverlapping(sites.as_ptr(), count);
        }
        self.written.chosen = sites[..count].to_vec();
    }

    /// The sites chosen; none when all are steps. For the library, which alone writes them while runs go on.
    pub fn chosen(&self) -> Option<&[Site]> {
        let count = (self.settings().chosen as usize).checked_sub(1)?.min(SITES);
        // SAFETY: inside the mapping; constant during a run.
        Some(unsafe { core::slice::from_raw_parts((&raw const (*self.at).chosen).cast::<Site>(), count) })
    }

    /// The same as they are now, for the driver.
    pub fn chosen_now(&self) -> Option<Vec<Site>> {
        let count = (self.settings().chosen as usize).checked_sub(1)?.min(SITES);
        // SAFETY: inside the mapping, which lives as long as `self`.
        Some(unsafe { copied((&raw const (*self.at).chosen).cast::<Site>(), count) })
    }

    /// Has runs that are repeated in the process learn which sites are steps: they begin with the first so many of those
    /// chosen, and each adds what it shows.
    pub fn learn(&mut self, settings: &mut Settings, first: usize) {
        settings.learn = first.min(SITES) as u32 + 1;
    }

    /// With how many of the chosen sites runs begin that learn; none when they do not.
    pub fn learns_from(&self) -> Option<usize> {
        (self.settings().learn as usize).checked_sub(1)
    }

    /// Chooses the sites of the next run, and whether it is looked at. For the library, between runs that it repeats.
    pub fn choose_again(&self, sites: &[Site], looked_at: bool) {
        let count = sites.len().min(SITES);
        // SAFETY: inside the mapping; no run goes on, and of both sides only the library writes meanwhile. The driver may read:
        // the count is written last.
        unsafe {
            let to = (&raw mut (*self.at).chosen).cast::<Site>();
            to.copy_from_nonoverlapping(sites.as_ptr(), count);
            (&raw mut (*self.at).settings.chosen).write_volatile(count as u32 + 1);
        }
        self.look_at(looked_at);
    }

    /// Adds a site to those chosen, as far as there is room. For the library, between runs that it repeats.
    pub fn choose_also(&self, site: Site) {
        let count = self.chosen().map_or(0, <[Site]>::len);
        if count < SITES {
            // SAFETY: as in `choose_again`.
            unsafe {
                (&raw mut (*self.at).chosen).cast::<Site>().add(count).write(site);
                (&raw mut (*self.at).settings.chosen).write_volatile(count as u32 + 2);
            }
        }
    }

    /// Says whether the next run is looked at. For the library, between runs that it repeats.
    pub fn look_at(&self, looked_at: bool) {
        self.make(looked_at, false);
    }

    /// The same, and whether accesses to what is handed over are steps in it.
    pub fn make(&self, looked_at: bool, handed: bool) {
        let mut settings = self.settings();
        settings.set_profile(looked_at, handed);
        // SAFETY: as in `choose_again`.
        unsafe { (&raw mut (*self.at).settings.profile).write_volatile(settings.profile) };
    }

    /// Names races that do not end runs whose settings were made with this call, and sites whose plain accesses are atomic
    /// ones in a form that does not show it; as many as fit.
    pub fn forgive(&mut self, settings: &mut Settings, races: &[Pair], deliberate: &[Site]) {
        let (pairs, sites) = (races.len().min(RACES), deliberate.len().min(SITES));
        (settings.forgiven, settings.deliberate) = (pairs as u32, sites as u32);
        // SAFETY: no run is going on, so nobody else touches the region; the counts were checked.
        unsafe {
            (&raw mut (*self.at).forgiven).cast::<Pair>().copy_from_nonoverlapping(races.as_ptr(), pairs);
            (&raw mut (*self.at).deliberate)
                .cast::<Site>()
                .copy_from_nonoverlapping(deliberate.as_ptr(), sites);
        }
        self.written.forgiven = races[..pairs].to_vec();
        self.written.deliberate = deliberate[..sites].to_vec();
    }

    /// What was named by [`forgive`](RegionMap::forgive).
    pub fn forgiven(&self) -> (&[Pair], &[Site]) {
        let settings = self.settings();
        let (pairs, sites) =
            ((settings.forgiven as usize).min(RACES), (settings.deliberate as usize).min(SITES));
        // SAFETY: inside the mapping; constant during a run.
        unsafe {
            (
                core::slice::from_raw_parts((&raw const (*self.at).forgiven).cast::<Pair>(), pairs),
                core::slice::from_raw_parts((&raw const (*self.at).deliberate).cast::<Site>(), sites),
            )
        }
    }

    /// The sites that the last run found to access shared memory. For the library, which alone writes them.
    pub fn conflicting(&self) -> &[Site] {
        let count = (self.report().conflicting.load(Ordering::Acquire) as usize).min(SITES);
        // SAFETY: inside the mapping; what lies below the count is written before the count is.
        unsafe { core::slice::from_raw_parts((&raw const (*self.at).conflicting).cast::<Site>(), count) }
    }

    /// The same as they are now, for the driver.
    pub fn conflicting_now(&self) -> Vec<Site> {
        self.conflicting_of(self.report())
    }

    pub(crate) fn conflicting_of(&self, report: &Report) -> Vec<Site> {
        let count = (report.conflicting.load(Ordering::Acquire) as usize).min(SITES);
        // SAFETY: inside the mapping, which lives as long as `self`; what lies below the count is written before it is.
        unsafe { copied((&raw const (*self.at).conflicting).cast::<Site>(), count) }
    }

    /// Adds a site that accesses shared memory, as far as there is room.
    pub fn add_conflicting(&self, site: Site) {
        let count = &self.report().conflicting;
        let place = count.load(Ordering::Relaxed) as usize;
        if place < SITES {
            // SAFETY: inside the array; only the library writes there.
            unsafe { (&raw mut (*self.at).conflicting).cast::<Site>().add(place).write(site) };
        }
        count.store((place as u32).saturating_add(1), Ordering::Release);
    }
}
