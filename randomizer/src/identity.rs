//! Names of what is disturbed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A process of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub u32);

/// A thread of this machine; unique across processes while it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThreadId(pub u32);

/// The how-manieth thread of the target that was seen, from 0. Unlike a [`ThreadId`] it means about the same
/// in another run of the same program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ordinal(pub u32);

macro_rules! display_as_number {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
display_as_number!(ProcessId, ThreadId, Ordinal);
