//! `waylay explore --between … --and …` and `--reproduce REPORT`: a search that is aimed at pairs of places.

use std::path::Path;

use waylay_dist::Seed;
use waylay_driver::store::load_failure;
use waylay_explore::directed::accusation::{of_failure, of_text};
use waylay_explore::directed::directed;
use waylay_explore::directed::spot::Target;
use waylay_explore::program::Program;

use crate::args::{AimOptions, ExploreSettings};
use crate::explore::{Lines, plan, refused};
use crate::output::{CLEAN, FAILURES, Failed, kept, print_json};

/// What the search is aimed at; nothing when it is not.
pub(crate) fn targets(options: &AimOptions) -> Result<Option<Vec<Target>>, Failed> {
    if let (Some(one), Some(other)) = (&options.between, &options.and) {
        return Ok(Some(vec![Target { one: one.clone(), other: other.clone() }]));
    }
    let Some(report) = &options.reproduce else { return Ok(None) };
    let targets = read(report)?;
    if targets.is_empty() {
        let why = "no pair of places was found in it: it is no report of ThreadSanitizer or helgrind with files and lines, and no \
                   failure with stacks";
        return Err(Failed::Usage(format!("{}: {why}", report.display())));
    }
    Ok(Some(targets))
}

fn read(report: &Path) -> Result<Vec<Target>, Failed> {
    if report.is_dir() || report.extension().is_some_and(|extension| extension == "json") {
        let entry = load_failure(report).map_err(|error| Failed::Usage(error.to_string()))?;
        return Ok(of_failure(&entry));
    }
    let text =
        std::fs::read(report).map_err(|error| Failed::Usage(format!("{}: {error}", report.display())))?;
    Ok(of_text(&String::from_utf8_lossy(&text)))
}

/// Searches there.
pub(crate) fn explore(
    command: &[String],
    options: &ExploreSettings,
    targets: &[Target],
    json: bool,
) -> Result<u8, Failed> {
    let program =
        Program::new(command, options.cwd.as_deref()).map_err(|error| Failed::Usage(error.to_string()))?;
    if options.strategy.is_some() || options.depth.is_some() {
        let why =
            "--between and --reproduce decide themselves who runs: they take neither --strategy nor --depth";
        return Err(Failed::Usage(why.to_owned()));
    }
    let plan = plan(options, program)?;
    if !options.quiet {
        let seed = Seed::new(plan.seed);
        let all: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let file = plan.program.file.display();
        eprintln!("waylay: exploring {file}, aimed at {}, seed {seed}", all.join("; "));
    }
    let mut lines = Lines::new(options);
    let directed = directed(&plan, targets, &mut lines).map_err(refused)?;
    lines.finish();
    eprint!("\n{}", directed.text());
    if json {
        print_json(&directed)?;
    }
    match directed.runs - directed.unaimed.runs {
        0 if directed.failures == 0 => {
            Err(Failed::Usage("no two threads were seen at these places, so nothing was tried".to_owned()))
        }
        _ => Ok(kept(&directed.folder, if directed.failures > 0 { FAILURES } else { CLEAN })),
    }
}
