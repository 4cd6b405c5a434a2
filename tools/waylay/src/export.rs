//! `waylay export`: one failure as one zip.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;

use serde_json::json;
use waylay_driver::archive::{self, Since};
use waylay_driver::report::plural;
use waylay_report::html;

use crate::args::ExportOptions;
use crate::output::{CLEAN, Failed, print_json};
use crate::report::usage;

pub(crate) fn export(options: &ExportOptions, json: bool) -> Result<u8, Failed> {
    let found = archive::find_failure(&options.out, &options.failure).map_err(usage)?;
    let to = options.to.clone().unwrap_or_else(|| PathBuf::from(format!("{}.zip", found.id)));
    if to.exists() && !options.force {
        return Err(Failed::Usage(format!("{} is there already: --force replaces it", to.display())));
    }
    let own = |error: &dyn std::fmt::Display| Failed::Own(format!("cannot write {}: {error}", to.display()));
    // A page about this failure alone, for whoever gets the file and has no Waylay.
    let page = archive::night(&found.campaign, &Since::Last, jiff::Timestamp::now()).ok().map(|mut night| {
        night.failures.retain(|failure| failure.id == found.id);
        html::report(&night)
    });
    let extra: Vec<(&str, &[u8])> = page.iter().map(|page| ("report.html", page.as_bytes())).collect();
    let part = to.with_extension("zip.part");
    let file = File::create(&part).map_err(|error| own(&error))?;
    let packed = archive::bundle(&found, &extra, BufWriter::new(file));
    let moved = packed.map_err(|error| error.to_string()).and_then(|files| {
        fs::rename(&part, &to).map_err(|error| error.to_string())?;
        Ok(files)
    });
    let files = moved.map_err(|error| {
        let _ = fs::remove_file(&part);
        own(&error)
    })?;
    eprintln!("waylay: wrote {} with {}", to.display(), plural(files as u64, "file"));
    if json {
        print_json(&json!({ "file": to, "failure": found.id, "files": files }))?;
    }
    Ok(CLEAN)
}
