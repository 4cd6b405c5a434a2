//! A night on an engine, watched until it is over.

use std::time::{Duration, Instant};

use waylay_driver::interrupt;
use waylay_fleet::engine::{Engine, Task, Words, local, slurm};

use crate::bucket;
use crate::output::Failed;

/// How often an engine is asked.
pub(crate) const ASK: Duration = Duration::from_secs(1);
/// How long an engine may say nothing before its night is given up.
const SILENT: Duration = Duration::from_secs(300);
/// How watching a night ended.
pub(crate) enum Driven {
    /// Nobody wanted to wait any longer, and the engine goes on.
    Left,
    /// No shard is at work any more. Those that did not end as they should, with their exit codes, as far as they are known.
    Over(Vec<(u64, Option<i32>)>),
}

/// Watches a night that was handed over, or runs it here. `tick` hears of the shards that are not over, and says whether to go on.
pub(crate) fn drive(task: &Task, tick: &mut dyn FnMut(&Words) -> bool) -> Result<Driven, Failed> {
    if task.engine == Engine::Slurm {
        return match watch(task, tick)? {
            true => Ok(Driven::Over(Vec::new())),
            false => Ok(Driven::Left),
        };
    }
    let mut stopped = false;
    let codes = local::run(task, |words| {
        let go = tick(words);
        stopped |= !go;
        go
    });
    let ended = (1..).zip(codes.map_err(Failed::Own)?);
    let wrong = ended.filter(|(_, code)| !matches!(code, Some(0 | 1)) && !stopped);
    Ok(Driven::Over(wrong.collect()))
}

/// Watches a night on Slurm; false when somebody does not want to wait any longer.
fn watch(task: &Task, tick: &mut dyn FnMut(&Words) -> bool) -> Result<bool, Failed> {
    let mut silent: Option<Instant> = None;
    loop {
        match slurm::queue(&task.jobs) {
            Ok(queue) if queue.is_empty() => return Ok(true),
            Ok(queue) => {
                silent = None;
                if !tick(&queue.shards) {
                    return Ok(false);
                }
            }
            // A controller that is started again says nothing for a while, and the night goes on.
            Err(error) => {
                if silent.get_or_insert_with(Instant::now).elapsed() > SILENT {
                    return Err(Failed::Own(error));
                }
            }
        }
        let asked = Instant::now();
        while asked.elapsed() < ASK {
            if interrupt::requested() {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Fetches what shards left in their bucket, if that is where they leave it; only the records, to see how they stand.
pub(crate) fn fetch_shards(task: &Task, records: bool) -> Result<(), Failed> {
    match &task.bucket {
        Some(_) => bucket::fetch(&task.shards_out(), &task.shards_folder(), records),
        None => Ok(()),
    }
}
