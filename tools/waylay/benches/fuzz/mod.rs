//! Fuzzing: real samples, changed at random from one seed, handed to everything that reads what others wrote. No reader may
//! panic, take more memory than a limit, or more time than a limit.
//!
//! ```text
//! samples ──mutation──> input ──readers──> nothing, an error, or a panic
//!                                 └─bounds─> memory and processor time
//! ```

mod bounds;
mod memory;
mod modules;
mod mutation;
mod readers;
mod requests;
mod samples;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use waylay_dist::Seed;

use mutation::Mutator;
use readers::Target;
use samples::Samples;

/// How much is done for each target.
#[derive(Clone, Copy)]
pub(crate) enum Length {
    /// That many cases of one that costs nothing; fewer of those that cost more.
    Cases(u32),
    /// That time each.
    Time(Duration),
}

/// What is fuzzed, and how long.
pub(crate) struct Fuzzing<'a> {
    pub(crate) seed: Seed,
    pub(crate) length: Length,
    /// One target; all when absent.
    pub(crate) target: Option<&'a str>,
    /// This input instead of others.
    pub(crate) input: Option<&'a [u8]>,
}

impl Fuzzing<'_> {
    /// Feeds all targets; gives what was found, and says what was done.
    pub(crate) fn run(&self) -> Vec<String> {
        let samples = Samples::make();
        let place = tempfile::tempdir().expect("a folder");
        let mut found = Vec::new();
        // The service has a limit of its own, and may take what it needs to load.
        if self.target.is_none_or(|wanted| wanted == "http") {
            requests::feed(self, &mut found);
        }
        let targets = readers::all(&samples, place.path());
        bounds::limit_memory();
        bounds::watch_this_thread();
        for target in targets {
            if self.target.is_none_or(|wanted| wanted == target.name) {
                self.feed(&target, &mut found);
            }
        }
        bounds::watch_nobody();
        println!("seed {}: {} findings", self.seed, found.len());
        found
    }

    fn feed(&self, target: &Target, found: &mut Vec<String>) {
        assert!(!target.samples.is_empty(), "{} has no samples", target.name);
        // If this process ends, the last line says in which target; `bounds` keeps the input.
        println!("{} …", target.name);
        let (mut cases, mut time) = (0, Duration::ZERO);
        for case in self.cases(target.cost) {
            let input = match self.input {
                Some(input) => input.to_vec(),
                None => Mutator::of(self.seed, target.name, case).change(&target.samples, target.text),
            };
            let mut panicked = None;
            let used = bounds::measured(case, &input, || {
                panicked = catch_unwind(AssertUnwindSafe(|| (target.read)(&input))).err();
            });
            cases += 1;
            time = time.max(used);
            let wrong = match panicked {
                Some(words) => Some(format!("panicked: {}", message(&*words))),
                None if used > bounds::MOST_TIME => Some(format!("took {used:?}")),
                None => None,
            };
            if let Some(wrong) = wrong {
                // Samples hold times and places of the run that made them: the input itself is what makes it come back.
                let path = bounds::input_path().with_extension(format!("{}-{case}", target.name));
                std::fs::write(&path, &input).expect("a file");
                let again = "cargo bench -p waylay --bench fuzz -- --target";
                let line = format!(
                    "{}, case {case}: {wrong}\n    again: {again} {} --input {}",
                    target.name,
                    target.name,
                    path.display()
                );
                eprintln!("{line}");
                found.push(line);
            }
        }
        let peak = bounds::used("VmHWM") / 1024;
        println!("{:<14} {cases:>8} cases, at most {time:.1?} each, {peak} MiB so far", target.name);
    }

    /// The numbers of the cases of a target.
    fn cases(&self, cost: u32) -> Box<dyn Iterator<Item = u32>> {
        match self.length {
            _ if self.input.is_some() => Box::new(0..1),
            Length::Cases(count) => Box::new(0..(count / cost).max(20)),
            Length::Time(time) => {
                let end = Instant::now() + time;
                Box::new((0..u32::MAX).take_while(move |_| Instant::now() < end))
            }
        }
    }
}

fn message(words: &(dyn std::any::Any + Send)) -> String {
    let text = words.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| words.downcast_ref::<String>().cloned()).unwrap_or_default()
}
