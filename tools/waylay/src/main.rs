//! The waylay command: arguments in, exit code out. All work is done by the crates under `framework/`.

#[macro_use]
mod output;

mod aimed;
mod args;
mod bound;
mod browser;
mod bucket;
mod cargo;
mod check;
mod compare;
mod doctor;
mod drive;
mod explore;
mod export;
mod flags;
mod fleet;
mod hunt;
mod installation;
mod lines;
mod list;
mod lots;
mod manual;
mod merge;
mod minimize;
mod new;
mod nights;
mod open;
mod pack;
mod progress;
mod replay;
mod replay_strict;
mod report;
mod run;
mod sending;
mod serve;
mod shard;
mod show;
mod sites;
mod stream;
mod suite;
mod tui;
mod verify;
mod verify_program;
mod version;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command, ConfigCommand};
use output::Failed;

fn main() -> ExitCode {
    // What `--timings` tells begins here.
    waylay_explore::timings::begin();
    // Its flags are its own, `--json` and `--help` too, so they are not ours to read.
    let mut given = std::env::args_os();
    if given.nth(1).is_some_and(|first| first == "randomizer") {
        return waylay_randomizer::main(std::iter::once("waylay randomizer".into()).chain(given));
    }
    let arguments = match Arguments::try_parse_from(args::spelled_out(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(answer) => return output::refuse(&answer),
    };
    let json = arguments.json;
    let mut command = match arguments.command() {
        Ok(command) => command,
        Err(failed) => return failed.report(json),
    };
    // What tests do in a host is told by who started it.
    if !matches!(command, Command::Host { .. } | Command::Randomizer { .. }) {
        waylay_driver::interrupt::watch_for_abort(output::WAYLAY_FAILED);
    }
    if command.writes_results() {
        waylay_driver::keep_private(waylay_driver::config::FileMode::default());
    }
    // What goes into a bucket is written here first.
    let sending = match sending::Sending::begin(&mut command) {
        Ok(sending) => sending,
        Err(failed) => return failed.report(json),
    };
    let result = match command {
        Command::Run(options) => run::run(&options, json),
        Command::Explore(options) => explore::explore(&options, json),
        Command::Suite(options) => suite::suite(&options, json),
        Command::Cargo(options) => cargo::cargo(&options, json),
        Command::Compare(options) => compare::compare(&options, json),
        Command::Pack(options) => pack::pack(&options, json),
        Command::Fleet(command) => fleet::fleet(&command, json),
        Command::Merge(options) => merge::merge(&options, json),
        Command::Serve(options) => serve::serve(&options, json),
        Command::Service(command) => serve::service(&command, json),
        Command::Check(options) => check::check(&options, json),
        Command::List(options) => list::list(&options, json),
        Command::New(options) => new::command(&options, json),
        Command::Doctor(options) => doctor::doctor(&options, json),
        Command::Replay(options) => replay::replay(&options, json),
        Command::Hunt(options) => hunt::hunt(&options, json),
        Command::Minimize(options) => minimize::minimize(&options, json),
        Command::Cflags(options) => flags::compile(&options, json),
        Command::Ldflags(options) => flags::link(&options, json),
        Command::Rustflags(options) => flags::rust(&options, json),
        Command::Report(options) => report::report(&options, json),
        Command::Failures(options) => report::failures(&options, json),
        Command::Show(options) => show::show(&options, json),
        Command::Open(options) => open::open(&options, json),
        Command::Export(options) => export::export(&options, json),
        Command::Verify(options) => verify::verify(&options, json),
        Command::Bound(options) => bound::bound(&options, json),
        Command::Config(ConfigCommand::Default(whose)) => check::print_default(&whose, json),
        Command::Config(ConfigCommand::Show(options)) => check::show(&options, json),
        Command::Config(ConfigCommand::Schema(whose)) => check::schema(&whose),
        Command::Completions(options) => manual::completions(&options),
        Command::Man(options) => manual::manual(&options),
        Command::Randomizer { arguments } => {
            let name = std::iter::once("waylay randomizer".into());
            return waylay_randomizer::main(name.chain(arguments));
        }
        Command::Host { schedule: Some(schedule) } => return waylay_host::run_schedule(&schedule),
        Command::Host { schedule: None } => return waylay_host::main(),
    };
    // Results that could not be sent are worse than what they say.
    let sent = sending.map_or(Ok(()), sending::Sending::end);
    match result.and_then(|code| sent.map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(failed) => failed.report(json),
    }
}

/// The one place where an error becomes an exit code.
impl From<&Failed> for u8 {
    fn from(failed: &Failed) -> u8 {
        match failed {
            Failed::Usage(_) | Failed::Config(_) => output::BAD_USAGE,
            Failed::Own(_) => output::WAYLAY_FAILED,
        }
    }
}
