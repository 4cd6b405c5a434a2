//! What people read while a campaign runs and when it is over.

mod block;
mod detail;
mod left_out;
mod live;
mod place_names;
mod pot;
mod running;
mod stderr;
mod summary;
mod suspensions;

pub use block::{failure_block, own_frames};
pub use detail::Detail;
pub use left_out::{Covered, ledger, left_out, steps_line};
pub use live::{Live, Silent, Terminal, Tick};
pub use place_names::{PlaceNames, libraries_at};
pub use running::{RunningNow, WorkerNow, running_text};
pub(crate) use stderr::settle;
pub use stderr::write_past;
pub use summary::{FailureLine, Summary, next_line, summary_text};
use waylay_report::numbers;
pub use waylay_report::numbers::{count, plural, span};
