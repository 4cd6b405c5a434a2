//! The storm by hand: `cargo bench -p waylay --bench storm [-- MINUTES] [--seed SEED] [--lanes N] [--campaigns N]
//! [--only NUMBER]`. It ends with 1 when a rule was broken. See docs/robustness.md.

#[cfg(target_os = "linux")]
#[path = "mod.rs"]
mod storm;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::time::Duration;
    use storm::{Length, Storm};

    const USAGE: &str = "[MINUTES] [--seed SEED] [--lanes N] [--campaigns N] [--only NUMBER]";
    let mut storm = Storm {
        seed: waylay_dist::Seed::fresh(),
        length: Length::Time(Duration::from_secs(3600)),
        lanes: std::thread::available_parallelism().map_or(2, usize::from),
    };
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|value| value.parse::<u32>().ok()).expect(USAGE);
        match argument.as_str() {
            "--lanes" => storm.lanes = number() as usize,
            "--campaigns" => storm.length = Length::Campaigns(number()),
            "--only" => storm.length = Length::Only(number()),
            "--seed" => storm.seed = arguments.next().and_then(|value| value.parse().ok()).expect(USAGE),
            minutes => {
                let minutes: f64 = minutes.parse().expect(USAGE);
                storm.length = Length::Time(Duration::from_secs_f64(60.0 * minutes));
            }
        }
    }
    println!(
        "seed {}, {} kinds of faults and {} attacks by tests",
        storm.seed,
        storm::KINDS.0,
        storm::KINDS.1
    );
    let report = storm.rage();
    print!("{report}");
    std::process::ExitCode::from(u8::from(!report.violations.is_empty()))
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the storm rages on Linux only");
}
