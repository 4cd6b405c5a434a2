//! `waylay show`: everything that is known about one failure.

use waylay_driver::archive;
use waylay_report::text;

use crate::args::ShowOptions;
use crate::output::{CLEAN, Failed, print_json};
use crate::report::usage;

pub(crate) fn show(options: &ShowOptions, json: bool) -> Result<u8, Failed> {
    let found = archive::find_failure(&options.out, &options.failure).map_err(usage)?;
    let mut failure = archive::read_failure(&found).map_err(usage)?;
    if let Ok(campaign) = archive::read_campaign(&found.campaign) {
        failure.rate = archive::rate_in(&failure, &campaign);
    }
    if json {
        print_json(&failure)?;
    } else {
        print!("{}", text::failure(&failure, options.all_frames));
    }
    Ok(CLEAN)
}
