//! There are no ELF cores here: the minidump is what debuggers of Windows open.

use std::path::Path;

use crate::dump::{CoreInfo, CoreOptions, DumpError};
use crate::identity::{ProcessId, ThreadId};

/// Whether cores can be written here.
pub(crate) const KNOWS_CORES: bool = false;

/// Says that there is none.
pub(crate) fn write_core(
    pid: ProcessId,
    path: &Path,
    _options: &CoreOptions<'_>,
) -> Result<(CoreInfo, Vec<ThreadId>), DumpError> {
    Err(DumpError::Write { pid, path: path.into(), reason: "ELF cores are written on Linux only".into() })
}
