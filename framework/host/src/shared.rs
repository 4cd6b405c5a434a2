//! Shared objects of a host without a melting pot: one object per kind, made when first asked for, lent to everybody.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};

use waylay_abi::KindInfo;

use crate::description::text;

/// All kinds that the loaded plugins provide, and the objects made so far.
#[derive(Default)]
pub(crate) struct SharedObjects {
    kinds: BTreeMap<Vec<u8>, Mutex<Kind>>,
}

struct Kind {
    info: &'static KindInfo,
    object: *mut c_void,
}

// SAFETY: the object pointer is only handed out and compared; the kind's provider promises that its objects can be
// used by several tests at once, which is what a shared kind is.
unsafe impl Send for Kind {}

impl SharedObjects {
    /// Adds a kind; the first plugin that provides a name wins.
    pub(crate) fn provide(&mut self, info: &'static KindInfo) {
        let name = text(info.name).into_bytes();
        self.kinds.entry(name).or_insert_with(|| Mutex::new(Kind { info, object: std::ptr::null_mut() }));
    }

    /// Lends the object of that kind, or null when nobody provides it or its maker could not.
    pub(crate) fn acquire(&self, name: &CStr) -> *mut c_void {
        let Some(kind) = self.kinds.get(name.to_bytes()) else { return std::ptr::null_mut() };
        let mut kind = kind.lock().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some(create)) = (kind.object.is_null(), kind.info.create) {
            // SAFETY: the contract lets the host make objects at any time.
            kind.object = unsafe { create() };
        }
        kind.object
    }

    /// Takes an object back. Nothing to count here: the objects live as long as the host.
    pub(crate) fn release(&self, _object: *mut c_void) {}

    /// Destroys all objects; no test may hold one any more.
    pub(crate) fn destroy_all(&self) {
        for kind in self.kinds.values() {
            let mut kind = kind.lock().unwrap_or_else(PoisonError::into_inner);
            let object = std::mem::replace(&mut kind.object, std::ptr::null_mut());
            if let (false, Some(destroy)) = (object.is_null(), kind.info.destroy) {
                // SAFETY: the object came from this kind's `create` and nobody holds it any more.
                unsafe { destroy(object) };
            }
        }
    }
}
