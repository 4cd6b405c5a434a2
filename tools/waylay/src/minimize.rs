//! `waylay minimize`: the fewest forced switches with which a failure of strict mode still happens.

use waylay_driver::report::{count, plural};
use waylay_explore::minimize::{ForcedSwitch, minimize as reduce, save};
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
    let (deciding, going_on): (Vec<_>, Vec<_>) =
        minimized.switches.iter().partition(|switch| switch.from != switch.to);
    if deciding.is_empty() {
        eprintln!(
            "It fails without one: each thread runs until it has to wait, in the order in which they are created."
        );
    }
    let none = "       (no stack)".to_owned();
    for (place, switch) in deciding.iter().enumerate() {
        let (from, to) = (switch.from, switch.to);
        eprintln!(
            "\n{}. at step {}: thread {from} is stopped, thread {to} runs",
            place + 1,
            count(switch.step)
        );
        eprintln!("   thread {from} was about to go on here:");
        eprintln!("{}", switch.from_stack.as_ref().unwrap_or(&none));
        eprintln!("   thread {to} goes on here:");
        eprintln!("{}", switch.to_stack.as_ref().unwrap_or(&none));
    }
    // A thread that waits in a loop gives way in each round, and has to be kept from it in each round.
    let mut waits: Vec<(&ForcedSwitch, u64)> = Vec::new();
    for switch in going_on {
        match waits.iter_mut().find(|(first, _)| first.from == switch.from) {
            Some((_, times)) => *times += 1,
            None => waits.push((switch, 1)),
        }
    }
    for (switch, times) in waits {
        let how_often = plural(times, "time");
        eprintln!(
            "\nThread {} goes on {how_often}, although it sleeps or yields, the first time here:",
            switch.from
        );
        eprintln!("{}", switch.from_stack.as_ref().unwrap_or(&none));
    }
    if json {
        print_json(&minimized)?;
    }
    Ok(CLEAN)
}
