//! `waylay show`: everything that is known about one failure.

use waylay_driver::archive;
use waylay_report::text;
use waylay_report::timeline::trace;

use crate::args::ShowOptions;
use crate::output::{CLEAN, Failed, print_json, write_file};
use crate::report::{add_builds, usage};

pub(crate) fn show(options: &ShowOptions, json: bool) -> Result<u8, Failed> {
    let found = archive::find_failure(&options.out, &options.failure).map_err(usage)?;
    let mut failure = archive::read_failure(&found).map_err(usage)?;
    if let Ok(campaign) = archive::read_campaign(&found.campaign) {
        archive::measure(&mut failure, &campaign);
    }
    add_builds(&found.campaign, std::slice::from_mut(&mut failure));
    if let Some(path) = &options.trace {
        let timeline = archive::timeline(&failure, &found.folder).ok_or_else(|| {
            let why = "neither a schedule nor a randomizer's log was kept, so who ran when is not known";
            Failed::Usage(format!("{}: {why}", failure.id))
        })?;
        write_file(path, format!("{}\n", trace::trace(&timeline)).as_bytes())?;
        eprintln!("waylay: wrote {}: open it in ui.perfetto.dev or chrome://tracing", path.display());
    }
    if json {
        print_json(&failure)?;
    } else {
        print!("{}", text::failure(&failure, options.all_frames));
    }
    Ok(CLEAN)
}
