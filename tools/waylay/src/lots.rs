//! `waylay run --shard I/N`: the lots of a night that one shard has, each a campaign of its own.

use std::time::Instant;

use serde_json::json;
use waylay_dist::Seed;
use waylay_driver::campaign::{Options, Scenario};
use waylay_driver::config::Loaded;
use waylay_driver::interrupt;
use waylay_driver::report::{Summary, plural};
use waylay_driver::store::{Outcomes, ShardRecord, Unit};
use waylay_fleet::identity::{Identity, machine};
use waylay_fleet::lots::{self, Lots};
use waylay_schedule::{Shard, Spec};

use crate::args::ShardOptions;
use crate::output::{BAD_USAGE, CLEAN, FAILURES, Failed, print_json};
use crate::shard::{self, Left};

/// The shard's part of a night of a mix.
pub(crate) struct Night {
    shard: Shard,
    lots: Lots,
    name: String,
    seed: Seed,
    planned: Option<u64>,
    pack: Option<String>,
}

impl Night {
    /// What the night of these scenarios is, and how it is divided.
    pub(crate) fn new(shard: Shard, loaded: &Loaded, scenarios: &[Scenario], pack: Option<String>) -> Night {
        let mut identity = Identity::default();
        // Where files lie differs between machines; what is in the plugins is looked at below.
        let mut config = loaded.config.clone();
        (config.out, config.seed) = (Default::default(), None);
        config.plugin_path.clear();
        identity.text("run").text(env!("CARGO_PKG_VERSION")).text(&config.to_string());
        for test in scenarios.iter().flat_map(|scenario| &scenario.tests) {
            identity.text(&test.name).file(&test.plugin);
        }
        let seed = loaded.config.seed.unwrap_or_else(|| shard::agreed_seed(&identity));
        identity.text(&seed.to_string());
        let bounded = loaded.config.duration.is_none() && scenarios.iter().all(is_bounded);
        let tests = || scenarios.iter().flat_map(|scenario| &scenario.tests);
        let most = tests().filter_map(|test| test.iterations).max().filter(|_| bounded);
        Night {
            shard,
            lots: Lots::of(most, shard.of),
            name: identity.name(),
            seed,
            planned: most.map(|_| tests().filter_map(|test| test.iterations).sum()),
            pack,
        }
    }

    /// Runs the lots of the shard one after the other. `run` runs a campaign.
    pub(crate) fn run(
        &self,
        scenarios: &[Scenario],
        options: &Options,
        asked: &ShardOptions,
        json: bool,
        mut run: impl FnMut(Vec<Scenario>, &Options) -> Result<Summary, Failed>,
    ) -> Result<u8, Failed> {
        let began = Instant::now();
        let mine: Vec<u64> = self.lots.of_shard(self.shard).collect();
        if mine.is_empty() {
            let few = plural(self.lots.count, "lot");
            eprintln!("waylay: shard {} has nothing to do: the night has {few}", self.shard);
            if json {
                print_json(&json!({ "shard": self.shard.to_string(), "lots": [] }))?;
            }
            return Ok(CLEAN);
        }
        let mut minimized = vec![false; scenarios.len()];
        let mut summaries = Vec::new();
        let mut code = CLEAN;
        for (place, &lot) in mine.iter().enumerate() {
            let part = Shard { number: lot + 1, of: self.lots.count };
            if let Left::Nothing(before) = shard::left(asked, &options.out, &self.name, part) {
                code = worse(code, before);
                continue;
            }
            if interrupt::requested() {
                break;
            }
            let late = options.duration.is_some_and(|time| began.elapsed() >= time);
            if late {
                break;
            }
            if mine.len() > 1 {
                let of = mine.len();
                eprintln!(
                    "waylay: shard {}: lot {} of {of}, number {} of the night",
                    self.shard,
                    place + 1,
                    lot + 1
                );
            }
            let options = Options {
                seed: lots::seed(self.seed, lot),
                shard: Some(self.record(part)),
                duration: options.duration.map(|time| time.saturating_sub(began.elapsed())),
                ..options.clone()
            };
            let summary = run(self.scenarios(scenarios, lot, &minimized), &options)?;
            // One failure of a scenario that was made small will do; the others of this shard are as good as unminimised.
            for (minimized, scenario) in minimized.iter_mut().zip(scenarios) {
                let failed = |name: &str| scenario.tests.iter().any(|test| test.name == name);
                *minimized |= summary.failures.iter().any(|line| line.test.as_deref().is_some_and(failed));
            }
            code = worse(code, summary.exit_code);
            summaries.push(summary);
        }
        if json {
            match &summaries[..] {
                [summary] if mine.len() == 1 => print_json(summary)?,
                _ => print_json(
                    &json!({ "shard": self.shard.to_string(), "lots": summaries, "exit_code": code }),
                )?,
            }
        }
        Ok(code)
    }

    fn record(&self, part: Shard) -> ShardRecord {
        ShardRecord {
            night: self.name.clone(),
            pack: self.pack.clone(),
            part,
            unit: Unit::Lots,
            machine: machine(),
            from: 0,
            to: 0,
            planned: self.planned,
            done: false,
            why: None,
            exhausted: false,
            steps: String::new(),
            outcomes: Outcomes::default().to_string(),
            failures: Default::default(),
        }
    }

    /// What a lot runs of the scenarios.
    fn scenarios(&self, scenarios: &[Scenario], lot: u64, minimized: &[bool]) -> Vec<Scenario> {
        let mut all = scenarios.to_vec();
        for (scenario, minimized) in all.iter_mut().zip(minimized) {
            if let Some(strict) = scenario.strict.as_mut().filter(|_| *minimized) {
                strict.minimize.0 = None;
            }
            if !self.lots.bounded {
                continue;
            }
            // A search begins with the same schedule whatever the seed: the first lot has all of it.
            let whole = scenario.strict.as_ref().is_some_and(|strict| searches(&strict.strategy));
            for test in &mut scenario.tests {
                let share = |all| match whole {
                    true => {
                        if lot == 0 {
                            all
                        } else {
                            0
                        }
                    }
                    false => self.lots.share(all, lot),
                };
                test.iterations = test.iterations.map(share);
            }
            scenario.tests.retain(|test| test.iterations != Some(0));
        }
        all.retain(|scenario| !scenario.tests.is_empty());
        all
    }
}

/// Whether it ends by itself, and its tests can be told apart.
fn is_bounded(scenario: &Scenario) -> bool {
    let one = |test: &waylay_driver::campaign::ScenarioTest| {
        test.iterations.is_some() && test.inside.is_none() && test.combination.is_none()
    };
    scenario.duration.is_none() && scenario.tests.iter().all(one)
}

fn searches(strategy: &Spec) -> bool {
    match strategy {
        Spec::Portfolio(members) => members.iter().any(|(member, _)| searches(member)),
        other => other.is_search(),
    }
}

/// Failures before what could not run, and that before nothing.
fn worse(one: u8, other: u8) -> u8 {
    let rank = |code: u8| match code {
        CLEAN => 0,
        BAD_USAGE => 1,
        FAILURES => 2,
        _ => 3,
    };
    if rank(other) > rank(one) { other } else { one }
}
