//! Which instructions of unmodified x86-64 code are to be steps, and how each can be replaced by a jump.
//!
//! Pure: bytes of an ELF or PE file in, a plan out; and from a plan and two addresses, bytes to write. Who writes them, and
//! when, is the control libraries' business. In the order in which data flows:
//!
//! - [`image`]: the file: its code, its functions, and every place that something outside a function points to
//! - [`site`]: what an instruction does to memory that others may see
//! - [`code`]: the functions, decoded, with every place that a jump may lead to
//! - `leaf`: functions that no table of a PE file names
//! - `waiting`: loops that wait for another thread
//! - [`window`]: the bytes around a site that a jump can take the place of
//! - [`plan`]: all windows of a module, and what could not be done
//! - [`trampoline`]: the code that is jumped to
//!
//! [`registers`] are saved by what a trampoline calls.
//! [`reports`] finds the calls by which compiled code reports its accesses.
//! [`scope`] says which modules of a process are looked at, and how closely.

pub mod code;
pub mod image;
mod landing;
mod leaf;
pub mod plan;
pub mod registers;
pub mod reports;
pub mod scope;
pub mod site;
pub mod trampoline;
mod waiting;
pub mod window;

pub use plan::{Plan, Wanted};
pub use site::{Kind, What};
pub use window::{How, Window};
