//! The memory that driver and host share: one page (in truth a few hundred KiB, touched lazily) per host process.
//!
//! The host writes what each of its threads is doing with plain atomics, so an iteration costs no system call; the
//! driver reads it at its own pace and so sees a hang while the host is frozen, and what every worker was doing when
//! the host died. The page also carries failures from host to driver ([`record`]) and the few words by which the
//! driver steers the host and the randomizer ([`layout::Header`]).
//!
//! Not here: what any of it means. The host decides what to write, the driver what to conclude.
//!
//! - [`layout`]: the structs, versioned and size-checked on attach
//! - [`record`]: handing one failure over, and waiting until it was looked at
//! - [`clock`]: ticks that both processes read alike, without a system call
//! - [`Page`]: making, passing on and attaching the mapping

pub mod clock;
mod handing;
pub mod layout;
mod mapping;
pub mod record;
mod sys;

pub use clock::{Clock, Ticks};
pub use layout::{
    Command, Header, HostPhase, Layout, OBJECTS_SHOWN, ObjectNumber, TestPhase, TestSlot, WorkerSlot,
    WorkerState,
};
pub use mapping::{AttachError, Page};
pub use sys::{SharedHandle, wait_until_changed, wake_all};
