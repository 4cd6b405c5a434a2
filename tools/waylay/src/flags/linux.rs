//! Linux: the loader finds the functions that compiled code calls in our library.

use std::path::Path;

use crate::output::Failed;

/// The compiler unless another is named.
pub(super) const COMPILER: &str = "cc";

/// What to link with, where the control library is this file.
pub(super) fn link_flags(library: &Path) -> Result<Vec<String>, Failed> {
    let folder = library.parent().unwrap_or(Path::new(".")).display();
    Ok(vec![format!("-L{folder}"), format!("-Wl,-rpath,{folder}"), "-lwaylay_control".to_owned()])
}
