//! Fuzzing by hand: `cargo bench -p waylay --bench fuzz [-- MINUTES] [--seed SEED] [--target NAME] [--input FILE]`. The minutes
//! are for each target. It ends with 1 when something was found. See docs/robustness.md.

#[cfg(target_os = "linux")]
#[path = "mod.rs"]
mod fuzz;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::time::Duration;

    const USAGE: &str = "[MINUTES] [--seed SEED] [--target NAME] [--cases N] [--input FILE]";
    let (mut seed, mut length) = (waylay_dist::Seed::fresh(), fuzz::Length::Time(Duration::from_secs(60)));
    let (mut target, mut input) = (None, None);
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect(USAGE);
        match argument.as_str() {
            "--seed" => seed = value().parse().expect(USAGE),
            "--target" => target = Some(value()),
            "--cases" => length = fuzz::Length::Cases(value().parse().expect(USAGE)),
            "--input" => input = Some(std::fs::read(value()).expect("a readable file")),
            minutes => {
                let minutes: f64 = minutes.parse().expect(USAGE);
                length = fuzz::Length::Time(Duration::from_secs_f64(60.0 * minutes));
            }
        }
    }
    let (target, input) = (target.as_deref(), input.as_deref());
    let found = fuzz::Fuzzing { seed, length, target, input }.run();
    std::process::ExitCode::from(u8::from(!found.is_empty()))
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("readers are fuzzed on Linux only");
}
