//! Whether accesses to memory change anything.
//!
//! A thread that writes what lies there already, or tries an exchange that fails, waits as much as one that only looks; so
//! do threads that set and clear a flag in turn, out of politeness. An access is progress unless the same instruction found
//! the same value at the same address the last time that it came by.
//!
//! That takes two: a thread that sets and clears a lock while nobody else could run is not polite but at work. Whether values
//! change at all tells it from one that waits.

/// Instructions remembered, by a hash: loops that wait have a handful.
const PLACES: usize = 64;

/// Addresses remembered, by a hash, for what lay there when it was last written.
const ADDRESSES: usize = 16;

/// What instructions found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    places: [Place; PLACES],
    last: [(usize, u64); ADDRESSES],
    changed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    code: usize,
    address: usize,
    value: Option<u64>,
}

impl Default for Found {
    fn default() -> Found {
        let places = [Place { code: 0, address: 0, value: None }; PLACES];
        Found { places, last: [(0, 0); ADDRESSES], changed: false }
    }
}

impl Found {
    /// Notes what an instruction finds before it writes; says whether that is news. `value` reads the memory, which the
    /// instruction accessed before.
    pub(crate) fn is_news(&mut self, code: usize, address: usize, value: impl FnOnce() -> u64) -> bool {
        let place = &mut self.places[(code ^ code >> 6 ^ address >> 3) % PLACES];
        if (place.code, place.address) != (code, address) {
            *place = Place { code, address, value: None };
            return true;
        }
        let found = value();
        let news = place.value.replace(found) != Some(found);
        let last = &mut self.last[(address >> 3) % ADDRESSES];
        self.changed |= last.0 == address && last.1 != found;
        *last = (address, found);
        news
    }

    /// Whether one address held different values since this was last asked.
    pub(crate) fn has_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_is_progress_and_trying_is_not() {
        let mut found = Found::default();
        assert!((0..100).all(|value| found.is_news(0x1000, 0x20, || value)));
        // One visit to know the place, one to know the value.
        let news = (0..100).filter(|_| found.is_news(0x1004, 0x20, || 1)).count();
        assert_eq!(news, 2);
    }

    #[test]
    fn politeness_is_not_progress() {
        let mut found = Found::default();
        let news = (0..100).filter(|_| found.is_news(0x10, 8, || 0) | found.is_news(0x14, 8, || 1)).count();
        assert_eq!(news, 2);
        assert!(found.has_changed() && !found.has_changed());
    }

    #[test]
    fn who_tries_in_vain_changes_nothing() {
        let mut found = Found::default();
        for _ in 0..100 {
            found.is_news(0x10, 8, || 1);
            found.is_news(0x14, 16, || 2);
        }
        assert!(!found.has_changed());
    }
}
