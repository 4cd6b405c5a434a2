//! `waylay report` and `waylay failures`: what a campaign found and guarantees, at any later time.

use std::path::{Path, PathBuf};

use serde_json::json;
use waylay_driver::archive::{self, ArchiveError, Since};
use waylay_driver::report::count;
use waylay_history::History;
use waylay_report::model::{Failure, Night};
use waylay_report::{html, junit, markdown, sarif, text};

use crate::args::{FailuresOptions, ReportOptions};
use crate::browser;
use crate::output::{CLEAN, Failed, print_json, write_file};

/// The page that is made to be opened.
const PAGE: &str = "report.html";

pub(crate) fn usage(error: ArchiveError) -> Failed {
    Failed::Usage(error.to_string())
}

/// Reads a campaign, and those beside it.
fn night(
    campaign: Option<&Path>,
    out: &Path,
    since: &str,
    suppressions: Option<&Path>,
) -> Result<Night, Failed> {
    let folder = archive::find_campaign(out, campaign).map_err(usage)?;
    let compared = match since {
        "last" => Since::Last,
        "none" => Since::Nothing,
        name => {
            // Beside the campaign, wherever that is.
            let beside = folder.parent().unwrap_or(out);
            Since::Campaign(archive::find_campaign(beside, Some(Path::new(name))).map_err(usage)?)
        }
    };
    let now = jiff::Timestamp::now();
    let mut night = archive::night(&folder, &compared, now).map_err(|error| match error {
        ArchiveError::Damaged { .. } => usage(error),
        error => Failed::Own(error.to_string()),
    })?;
    if since != "none" {
        add_builds(&folder, &mut night.failures);
    }
    if let Some(path) = suppressions {
        let config = crate::serve::load_service(path)?;
        for failure in &mut night.failures {
            let hit =
                config.suppressions.find(now, &failure.id, failure.test.as_deref(), failure.kind.word());
            failure.suppressed = hit.map(|hit| format!("{}, until {}", hit.reason, hit.until));
        }
    }
    Ok(night)
}

/// Adds which builds had failures of a campaign and which did not, where the history beside it knows. A history that is not there,
/// or of another version, leaves it out: the rest is in the folders.
pub(crate) fn add_builds(campaign: &Path, failures: &mut [Failure]) {
    let Some(history) = campaign.parent().and_then(|out| History::open_to_read(out).ok()) else { return };
    for failure in failures {
        failure.builds = history.build_range(&failure.id).unwrap_or_default();
    }
}

/// Writes the reports that are wanted of a campaign that is over.
pub(crate) fn files(campaign: &Path, junit: Option<&Path>, sarif: Option<&Path>) -> Result<(), Failed> {
    if junit.is_none() && sarif.is_none() {
        return Ok(());
    }
    let night = night(Some(campaign), campaign.parent().unwrap_or(campaign), "last", None)?;
    for (path, content) in
        [(junit, junit::report as fn(&Night) -> String), (sarif, |night| sarif_of(night, None))]
            .into_iter()
            .filter_map(|(path, content)| Some((path?, content)))
    {
        write_file(path, content(&night).as_bytes())?;
        eprintln!("waylay: wrote {}", path.display());
    }
    Ok(())
}

/// SARIF, with names of code below a folder relative to it; below the current one if none is named.
fn sarif_of(night: &Night, root: Option<&Path>) -> String {
    let root = root.map(Path::to_owned).or_else(|| std::env::current_dir().ok());
    let root = root.and_then(|root| std::path::absolute(root).ok()).map(|root| root.display().to_string());
    format!("{:#}\n", sarif::report(night, root.as_deref()))
}

pub(crate) fn report(options: &ReportOptions, json: bool) -> Result<u8, Failed> {
    let suppressions = options.suppressions.as_deref();
    let night = night(options.campaign.as_deref(), &options.out, &options.since, suppressions)?;
    let mut written = Vec::new();
    let mut write = |path: &Path, content: String| -> Result<(), Failed> {
        write_file(path, content.as_bytes())?;
        written.push(path.display().to_string());
        Ok(())
    };
    let page = match &options.html {
        None if options.open => {
            let campaign =
                archive::find_campaign(&options.out, options.campaign.as_deref()).map_err(usage)?;
            Some(campaign.join(PAGE))
        }
        page => page.clone(),
    };
    if let Some(path) = &page {
        write(path, html::report(&night))?;
    }
    if let Some(path) = &options.junit {
        write(path, junit::report(&night))?;
    }
    if let Some(path) = &options.sarif {
        write(path, sarif_of(&night, options.source_root.as_deref()))?;
    }
    if let Some(path) = &options.json_file {
        write(path, format!("{:#}\n", json!(night)))?;
    }
    match &options.markdown {
        Some(path) if path.as_os_str() == "-" => print!("{}", markdown::report(&night)),
        Some(path) => write(path, markdown::report(&night))?,
        None => {}
    }
    if json {
        print_json(&night)?;
    }
    if written.is_empty() && options.markdown.is_none() && !json {
        print!("{}", text::report(&night));
    }
    for path in written {
        eprintln!("waylay: wrote {path}");
    }
    if let Some(page) = page.filter(|_| options.open) {
        browser::open(&page)?;
    }
    Ok(CLEAN)
}

/// The folder of a failure that is named by it, or by the beginning of its signature.
pub(crate) fn failure_folder(out: &Path, failure: &Path) -> Result<PathBuf, Failed> {
    match failure.exists() {
        true => Ok(failure.to_owned()),
        false => archive::find_failure(out, failure).map(|found| found.folder).map_err(usage),
    }
}

pub(crate) fn failures(options: &FailuresOptions, json: bool) -> Result<u8, Failed> {
    let suppressions = options.suppressions.as_deref();
    let night = night(options.campaign.as_deref(), &options.out, &options.since, suppressions)?;
    if json {
        print_json(&json!({ "campaign": night.campaign.name, "failures": night.failures }))?;
        return Ok(CLEAN);
    }
    print!("{}", text::failures(&night));
    let different = night.here().count() as u64;
    let name = &night.campaign.name;
    match night.failures.is_empty() {
        true => eprintln!("waylay: no failures in campaign {name}"),
        false => {
            eprintln!(
                "waylay: {} different in campaign {name}; `waylay show ID` tells more",
                count(different)
            );
        }
    }
    Ok(CLEAN)
}
