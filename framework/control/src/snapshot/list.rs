//! A list of fixed capacity that lies where it is put: the keeper's memory must not come from an allocator that is
//! restored with the rest.

use core::mem::MaybeUninit;

/// Up to `N` values. All zero bytes are an empty list.
pub(super) struct List<T, const N: usize> {
    len: usize,
    items: [MaybeUninit<T>; N],
}

impl<T: Copy, const N: usize> List<T, N> {
    /// Adds a value; false when the list is full.
    #[must_use]
    pub(super) fn push(&mut self, value: T) -> bool {
        let Some(place) = self.items.get_mut(self.len) else { return false };
        place.write(value);
        self.len += 1;
        true
    }

    /// Takes a value out; the last one takes its place.
    pub(super) fn remove(&mut self, place: usize) {
        assert!(place < self.len);
        self.len -= 1;
        self.items[place] = self.items[self.len];
    }

    /// Forgets all values.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// The values.
    pub(super) fn as_slice(&self) -> &[T] {
        // SAFETY: the first `len` items were written.
        unsafe { core::slice::from_raw_parts(self.items.as_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_takes_what_fits() {
        let mut list: List<u32, 2> = List { len: 0, items: [MaybeUninit::uninit(); 2] };
        assert!(list.push(1) && list.push(2) && !list.push(3));
        assert_eq!(list.as_slice(), [1, 2]);
        list.remove(0);
        assert_eq!(list.as_slice(), [2]);
        list.clear();
        assert!(list.as_slice().is_empty());
    }
}
