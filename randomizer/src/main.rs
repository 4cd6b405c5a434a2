//! The command `waylay-randomizer`.

use std::process::ExitCode;

fn main() -> ExitCode {
    waylay_randomizer::main(std::env::args_os())
}
