//! A recorded failure under a debugger: there is none here that follows a schedule.

use std::io;
use std::path::Path;
use std::process::Command;

use waylay_control_protocol::RegionMap;
use waylay_schedule::Schedule;

use crate::recording::StrictRecord;
use crate::server::{RunError, doing};

/// Always refuses.
pub fn under_gdb(_: &StrictRecord, _: &Schedule, _: &Path) -> Result<(Command, RegionMap), RunError> {
    let unsupported =
        io::Error::new(io::ErrorKind::Unsupported, "a schedule is followed under gdb on Linux only");
    doing("follow a schedule under gdb", Err(unsupported))
}
