//! The plain accesses of a module, which are replaced only while they matter: one that is no step has its own instruction and
//! costs nothing.
//!
//! A jump may be taken away while no thread is between its two instructions; it is put in place only while no thread can be
//! inside the bytes that it covers.

use waylay_accesses::Attention;
use waylay_patch::Window;

use super::loaded::Loaded;
use super::memory::with_code_open;
use super::module;
use super::table::Patched;

/// All of them.
#[derive(Debug)]
pub(super) struct OnDemand {
    module: Loaded,
    identity: [u8; 16],
    wide: bool,
    /// By address.
    places: Vec<Place>,
    impossible: u32,
}

#[derive(Debug)]
struct Place {
    plan: Window,
    state: State,
    in_place: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing was made yet.
    Bare,
    /// What takes its place, and which piece of that.
    Made(&'static Patched, usize),
    /// It cannot be expressed elsewhere.
    Impossible,
}

impl OnDemand {
    /// Nothing is made yet.
    pub(super) fn new(module: Loaded, identity: [u8; 16], wide: bool, windows: Vec<Window>) -> OnDemand {
        let place = |plan| Place { plan, state: State::Bare, in_place: false };
        OnDemand { module, identity, wide, places: windows.into_iter().map(place).collect(), impossible: 0 }
    }

    /// How many accesses can be replaced, as far as is known.
    pub(super) fn sites(&self) -> u32 {
        self.places.iter().map(|place| place.plan.sites.count_ones()).sum::<u32>() - self.impossible
    }

    /// How many turned out to be impossible.
    pub(super) fn impossible(&self) -> u32 {
        self.impossible
    }

    fn start_of(&self, place: &Place) -> usize {
        self.module.base + place.plan.start as usize
    }

    /// Puts in place the jumps that are wanted and takes away the others. `more`: no thread can be in code that would be
    /// replaced; otherwise jumps are only taken away.
    ///
    /// # Safety
    /// The module is loaded, and the lock of the patches is held.
    pub(super) unsafe fn turn(&mut self, attention: Attention<'_>, more: bool) {
        let mut changes: Vec<(usize, bool)> = Vec::new();
        let mut bare: Vec<Window> = Vec::new();
        for (index, place) in self.places.iter().enumerate() {
            let start = self.start_of(place);
            let wanted = attention.wants((start, start + usize::from(place.plan.length)))
                && !matches!(place.state, State::Impossible);
            if wanted != place.in_place && (more || !wanted) {
                changes.push((index, wanted));
                if wanted && matches!(place.state, State::Bare) {
                    bare.push(place.plan);
                }
            }
        }
        if !bare.is_empty() {
            // SAFETY: by the caller's promise; what is bare is not replaced.
            let made = unsafe { module::make(&self.module, self.identity, &bare, self.wide, true) };
            for &(index, _) in changes.iter().filter(|(_, wanted)| *wanted) {
                self.note_made(index, made);
            }
        }
        for section in self.module.code.clone() {
            let inside = |index: usize| (section.0..section.1).contains(&self.start_of(&self.places[index]));
            let inside: Vec<(usize, bool)> =
                changes.iter().copied().filter(|(index, _)| inside(*index)).collect();
            if !inside.is_empty() {
                // SAFETY: by the caller's promise.
                unsafe {
                    with_code_open(section, || inside.iter().for_each(|&(index, to)| self.set(index, to)))
                };
            }
        }
    }

    fn note_made(&mut self, index: usize, made: Option<&'static Patched>) {
        let start = self.start_of(&self.places[index]);
        let place = &mut self.places[index];
        if !matches!(place.state, State::Bare) {
            return;
        }
        place.state = match made.and_then(|made| Some((made, made.piece_at(start)?))) {
            Some((made, piece)) => State::Made(made, piece),
            None => {
                self.impossible += place.plan.sites.count_ones();
                State::Impossible
            }
        };
    }

    /// Writes one jump, or what was there. The code is open.
    fn set(&mut self, index: usize, in_place: bool) {
        let place = &mut self.places[index];
        let State::Made(made, piece) = place.state else { return };
        let piece = &made.replaced[piece];
        let bytes = if in_place { &piece.ours } else { &piece.original };
        // SAFETY: as many bytes of code are there, which are open, and no thread is inside them.
        unsafe { (piece.at as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), piece.length) };
        place.in_place = in_place;
    }

    /// Takes the jump away that covers an address: its sites are no longer looked at. False when there is none.
    ///
    /// # Safety
    /// As for [`OnDemand::turn`].
    pub(super) unsafe fn take_away(&mut self, at: usize) -> bool {
        let place = self.places.partition_point(|place| self.module.base + place.plan.start as usize <= at);
        let Some(index) = place.checked_sub(1).filter(|&index| self.places[index].in_place) else {
            return false;
        };
        let start = self.start_of(&self.places[index]);
        let length = usize::from(self.places[index].plan.length);
        // SAFETY: by the caller's promise.
        at - start < length && unsafe { with_code_open((start, start + length), || self.set(index, false)) }
    }
}
