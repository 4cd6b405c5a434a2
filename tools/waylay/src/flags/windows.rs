//! Windows: a program must start without our library, so the functions that compiled code calls are linked into it
//! (`waylay_steps.c` of the headers). They come with the command and are put where a linker finds them.

use std::fs;
use std::path::Path;

use waylay_explore::cache_folder;

use crate::output::Failed;

/// The compiler unless another is named: not every distribution of GNU tools has a `cc`.
pub(super) const COMPILER: &str = "gcc";

/// `waylay_steps.c`, compiled; empty when this command was built by tools that cannot compile it.
static STEPS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libwaylay_steps.a"));
const FILE: &str = "libwaylay_steps.a";

/// What to link with. Where the control library is makes no difference.
pub(super) fn link_flags(_: &Path) -> Result<Vec<String>, Failed> {
    if STEPS.is_empty() {
        let what = "compile waylay_steps.c, which `waylay new` puts beside waylay.h, with gcc or clang and without these \
                    flags, and link it in";
        return Err(Failed::Usage(format!("this command was not built with GNU tools: {what}")));
    }
    let folder = cache_folder()
        .ok_or_else(|| Failed::Own("there is no folder for the user's data: set LOCALAPPDATA".to_owned()))?;
    let path = folder.join(FILE);
    if fs::read(&path).ok().as_deref() != Some(STEPS) {
        // Two commands may do so at once: neither leaves half a file.
        let part = folder.join(format!("{FILE}.{}", std::process::id()));
        fs::write(&part, STEPS)
            .and_then(|()| fs::rename(&part, &path))
            .map_err(|error| Failed::Own(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(vec![format!("-L{}", folder.display()), "-lwaylay_steps".to_owned()])
}
