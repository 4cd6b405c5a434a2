//! `--shard I/N`: which part of a night this process is, and what the night is called.

use std::path::Path;

use waylay_dist::Seed;
use waylay_driver::archive;
use waylay_explore::explorer::Plan;
use waylay_explore::share::Share;
use waylay_explore::suite::Suite;
use waylay_fleet::engine_variables;
use waylay_fleet::identity::{self, Identity};
use waylay_fleet::resume::{Resume, resume};
use waylay_schedule::Shard;

use crate::args::{CaseOptions, ShardOptions};
use crate::output::{CLEAN, FAILURES, Failed};

/// The part that was asked for, or that an engine told this process.
pub(crate) fn wanted(given: Option<Shard>) -> Result<Option<Shard>, Failed> {
    if given.is_some() {
        return Ok(given);
    }
    let told = engine_variables::shard(|name| std::env::var(name).ok()).map_err(Failed::Usage)?;
    if let Some((shard, variable)) = told {
        eprintln!("waylay: shard {shard}, from {variable} (--shard 1/1 runs all of it)");
    }
    Ok(told.map(|(shard, _)| shard))
}

/// The seed of a night for which none was given: every shard has to come to the same.
pub(crate) fn agreed_seed(identity: &Identity) -> Seed {
    let mut identity = identity.clone();
    for variable in ["SLURM_ARRAY_JOB_ID", "WAYLAY_NIGHT"] {
        identity.text(&std::env::var(variable).unwrap_or_default());
    }
    let seed = Seed::new(identity.number());
    eprintln!("waylay: no seed was given, so all shards of this night take {seed}, made from what is run");
    seed
}

/// What is left to do, or the exit code of what was done.
pub(crate) enum Left {
    /// From this schedule on, counted from 0.
    From(u64),
    /// Nothing.
    Nothing(u8),
}

/// Where the part goes on, if that was asked for.
pub(crate) fn left(options: &ShardOptions, out: &Path, night: &str, part: Shard) -> Left {
    if !options.resume {
        return Left::From(0);
    }
    match resume(out, night, part) {
        Resume::From(from) => Left::From(from),
        Resume::Done => {
            let records = archive::campaigns(out).into_iter().filter_map(|f| archive::read_record(&f).ok());
            let of_part =
                |shard: &waylay_driver::store::ShardRecord| shard.night == night && shard.part == part;
            let failed = records
                .filter(|record| record.shard.as_ref().is_some_and(of_part))
                .any(|record| record.failures > 0);
            Left::Nothing(if failed { FAILURES } else { CLEAN })
        }
    }
}

/// Makes a plan for cases of suites that of one part of them. Sets the seed if none was given.
pub(crate) fn share_cases(
    plan: &mut Plan,
    shard: Shard,
    seed: Option<Seed>,
    suites: &[Suite],
    cases: &CaseOptions,
) {
    let mut identity = Identity::default();
    identity
        .text("suite")
        .text(env!("CARGO_PKG_VERSION"))
        .text(&format!("{:?}", (&cases.filter, cases.exact)));
    for suite in suites {
        identity.text(&suite.name);
        for case in &suite.cases {
            identity.text(&case.name);
        }
        if let Some(case) = suite.cases.first() {
            identity.file(&case.program.file);
        }
    }
    identity
        .text(&plan.strategy.to_string())
        .text(&format!("{:?}", (plan.runs, plan.duration, &plan.conditions)));
    plan.seed = seed.unwrap_or_else(|| agreed_seed(&identity)).get();
    identity.text(&plan.seed.to_string());
    plan.share =
        Some(Share { shard, from: 0, night: identity.name(), pack: None, machine: identity::machine() });
}

/// What a shard of an exploration makes; or the exit code, when it is done already. Sets the seed if none was given.
pub(crate) fn share(
    plan: &mut Plan,
    shard: Shard,
    seed: Option<Seed>,
    options: &ShardOptions,
) -> Result<Result<Share, u8>, Failed> {
    let text = |value: &dyn std::fmt::Debug| format!("{value:?}");
    let mut identity = Identity::default();
    identity.text("explore").text(env!("CARGO_PKG_VERSION")).file(&plan.program.file);
    identity.text(&plan.program.arguments.join("\0")).text(&text(&plan.program.environment));
    identity.text(&plan.strategy.to_string()).text(&text(&plan.runs)).text(&text(&plan.duration));
    identity.text(&text(&plan.conditions)).text(&text(&plan.expected)).text(&text(&plan.stop_on_first));
    if let Some(file) = &plan.program.stdin {
        identity.file(file);
    }
    plan.seed = seed.unwrap_or_else(|| agreed_seed(&identity)).get();
    identity.text(&plan.seed.to_string());
    let night = identity.name();
    // Where a search stands is known to the process that makes it.
    let from = match left(options, &plan.out, &night, shard) {
        Left::Nothing(code) => {
            eprintln!("waylay: shard {shard} is done already");
            return Ok(Err(code));
        }
        Left::From(_) if plan.strategy.is_search() => 0,
        Left::From(from) => from,
    };
    if from > 0 {
        eprintln!("waylay: shard {shard} goes on with schedule {}", from + 1);
    }
    Ok(Ok(Share { shard, from, night, pack: None, machine: identity::machine() }))
}
