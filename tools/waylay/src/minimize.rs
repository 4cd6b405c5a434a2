//! `waylay minimize`: the fewest forced switches with which a failure of strict mode still happens.

use waylay_driver::report::count;
use waylay_explore::minimize::{minimize as reduce, save};
use waylay_explore::recording;

use crate::args::MinimizeOptions;
use crate::explore::library;
use crate::output::{CLEAN, Failed, print_json};
use crate::progress::Bar;
use crate::report::failure_folder;

pub(crate) fn minimize(options: &MinimizeOptions, json: bool) -> Result<u8, Failed> {
    let usage = |error: &dyn std::fmt::Display| Failed::Usage(error.to_string());
    let failure = &failure_folder(&options.out, &options.failure)?;
    if !recording::is_strict(failure) {
        let why = "only a failure of strict mode has a schedule: give the folder of one that `waylay explore`, or a \
                   strict scenario of `waylay run`, kept";
        return Err(Failed::Usage(format!("{}: {why}", failure.display())));
    }
    let (mut record, _) = recording::load(failure).map_err(|error| usage(&error))?;
    let schedule = recording::load_found(failure).map_err(|error| usage(&error))?;
    crate::replay_strict::use_this_command(&mut record);
    record.program.check().map_err(|error| usage(&error))?;
    let library = library()?;
    let bar = Bar::within("minimizing", options.budget, false);
    let minimized = reduce(&record, &schedule, &library, options.budget);
    drop(bar);
    let minimized = minimized.map_err(|error| Failed::Own(error.to_string()))?;
    let folder = recording::folder_of(failure);
    save(&folder, &minimized).map_err(|error| Failed::Own(error.to_string()))?;
    eprintln!(
        "{} switches before, {} forced after ({} runs{})",
        count(minimized.before),
        count(minimized.after),
        count(minimized.runs),
        if minimized.minimal { "" } else { "; the time was over, there may be fewer" }
    );
    if minimized.switches.is_empty() {
        eprintln!(
            "It fails without one: each thread runs until it has to wait, in the order in which they are created."
        );
    }
    for (place, switch) in minimized.switches.iter().enumerate() {
        let heading = if switch.from == switch.to {
            format!("thread {} goes on, although it sleeps or yields", switch.from)
        } else {
            format!("thread {} is stopped, thread {} runs", switch.from, switch.to)
        };
        eprintln!("\n{}. at step {}: {heading}", place + 1, count(switch.step));
        let none = "       (no stack)".to_owned();
        eprintln!("   thread {} was about to go on here:", switch.from);
        eprintln!("{}", switch.from_stack.as_ref().unwrap_or(&none));
        if switch.from != switch.to {
            eprintln!("   thread {} goes on here:", switch.to);
            eprintln!("{}", switch.to_stack.as_ref().unwrap_or(&none));
        }
    }
    if json {
        print_json(&minimized)?;
    }
    Ok(CLEAN)
}
