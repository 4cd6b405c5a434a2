//! Shards as processes of this machine, for laptops and tests.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Task, Word, Words};
use crate::sys;

/// How often it is looked whether a shard has ended.
const LOOK: Duration = Duration::from_millis(50);
/// What a shard gets to end in order.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs all shards, at most so many at a time. `tick` is called every now and then with those that have not ended; when it returns
/// false, those at work are asked to end and no others are started. Returns the exit codes, by shard; none where there is none.
///
/// # Errors
/// When a shard cannot be started.
pub fn run(task: &Task, mut tick: impl FnMut(&Words) -> bool) -> Result<Vec<Option<i32>>, String> {
    let at_once = task.at_most.unwrap_or(u64::MAX).min(task.shards);
    let mut codes: Vec<Option<i32>> = vec![None; task.shards as usize];
    let mut working: Vec<(u64, Child)> = Vec::new();
    let (mut next, mut asked) = (1, None);
    while (next <= task.shards && asked.is_none()) || !working.is_empty() {
        while asked.is_none() && next <= task.shards && (working.len() as u64) < at_once {
            working.push((next, start(task, next)?));
            next += 1;
        }
        working.retain_mut(|(number, child)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                codes[*number as usize - 1] = status.code();
                false
            }
            Err(_) => false,
        });
        let mut words: Words = working.iter().map(|(number, _)| (*number, Word::Running)).collect();
        if asked.is_none() {
            words.extend((next..=task.shards).map(|number| (number, Word::Waiting)));
        }
        if !tick(&words) && asked.is_none() {
            asked = Some(Instant::now());
            working.iter().for_each(|(_, child)| sys::ask_to_end(child));
        }
        if asked.is_some_and(|since| since.elapsed() > PATIENCE) {
            for (_, child) in &mut working {
                let _ = child.kill();
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(codes)
}

fn start(task: &Task, number: u64) -> Result<Child, String> {
    let shard = format!("{number}/{}", task.shards);
    let out = task.shard_out(&number.to_string());
    let log = task.folder.join("log").join(format!("{number}.log"));
    let file = File::options().create(true).append(true).open(&log);
    let file = file.map_err(|error| format!("{}: {error}", log.display()))?;
    let other = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
    let mut command = Command::new(&task.waylay);
    // It restricts what it writes itself, and its tests not at all.
    waylay_driver::give_back_mask(&mut command);
    sys::set_apart(&mut command)
        .args(task.shard_arguments(&out, Some(&shard)))
        .env("WAYLAY_NIGHT", &task.night)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(other)
        .spawn()
        .map_err(|error| format!("cannot start shard {shard}: {error}"))
}
