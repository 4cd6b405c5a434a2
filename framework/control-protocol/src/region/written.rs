//! What the driver wrote into the region beside the settings of a run, kept where no program gets at it.

use super::{RegionError, RegionMap};
use crate::instrumentation::{Instrumentation, Site};
use crate::race::Pair;
use crate::settings::{Settings, Switching};
use crate::shared::{Plain, copied};

/// Those parts of it.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) instrumentation: Instrumentation,
    pub(super) chosen: Vec<Site>,
    pub(super) forgiven: Vec<Pair>,
    pub(super) deliberate: Vec<Site>,
}

impl RegionMap {
    /// What is not as it was written any more.
    pub(crate) fn changed(&self) -> Option<&'static str> {
        let Written { instrumentation, chosen, forgiven, deliberate } = &*self.written;
        // A process that learns chooses sites itself.
        let learns = self.prepared.is_some_and(|prepared| prepared.learn != 0);
        // SAFETY: inside the mapping, which lives as long as `self`; as many were written as the arrays have room for.
        unsafe {
            if *instrumentation != self.instrumentation() {
                Some("the instructions that are steps")
            } else if !learns && !is_still(&raw const (*self.at).chosen, chosen) {
                Some("the places that are steps")
            } else if !is_still(&raw const (*self.at).forgiven, forgiven) {
                Some("the known races")
            } else if !is_still(&raw const (*self.at).deliberate, deliberate) {
                Some("the places that are atomic")
            } else {
                None
            }
        }
    }

    /// Lays the region down anew, in other memory and under another descriptor, because a program wrote over it. What was said
    /// for all runs is said again; runs are prepared from there on as before.
    pub fn renew(&mut self) -> Result<(), RegionError> {
        let anew = RegionMap::create()?;
        let Written { instrumentation, chosen, forgiven, deliberate } =
            *std::mem::replace(self, anew).written;
        self.set_instrumentation(instrumentation);
        // Settings that were made before say how many there are.
        let mut known = Settings::new(Switching::Free, 0, 0);
        self.choose(&mut known, &chosen);
        self.forgive(&mut known, &forgiven, &deliberate);
        Ok(())
    }
}

/// Whether an array still begins with these values.
///
/// # Safety
/// It is mapped, and has room for them.
unsafe fn is_still<T: Plain + PartialEq, const N: usize>(array: *const [T; N], values: &[T]) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { copied(array.cast::<T>(), values.len()) == values }
}
