//! Nights of `waylay serve` on an engine.

use std::path::Path;
use std::time::{Duration, Instant};

use waylay_fleet::engine::{Engine, Task, Words, slurm};
use waylay_fleet::merge::merge;
use waylay_service::config::{Fleet, Mix};
use waylay_service::runner::{Ended, Watcher, Wish};

use crate::bucket;
use crate::drive::{Driven, drive, fetch_shards};
use crate::output::Failed;

/// How often it is looked how shards stand.
const LOOK: Duration = Duration::from_secs(1);
/// How often what they left in a bucket is looked at.
const LOOK_AFAR: Duration = Duration::from_secs(10);

fn words(failed: Failed) -> String {
    match failed {
        Failed::Usage(text) | Failed::Own(text) | Failed::Config(text) => text,
    }
}

/// Whether an engine can be used from here.
pub(crate) fn check(fleet: &Fleet) -> Result<(), String> {
    if fleet.engine == Engine::Slurm {
        slurm::check()?;
    }
    fleet.bucket.as_deref().map_or(Ok(()), |address| bucket::check(address).map_err(words))
}

/// Runs a night, or goes on with the one that is in the folder.
pub(crate) fn run(
    fleet: &Fleet,
    mix: &Mix,
    (folder, night): (&Path, &Path),
    watcher: &mut dyn Watcher,
) -> Result<Ended, String> {
    let task = begin(fleet, mix, folder)?;
    let mut wish = Wish::GoOn;
    let mut looked: Option<Instant> = None;
    let every = if task.bucket.is_some() { LOOK_AFAR } else { LOOK };
    let mut look = |words: &Words, watcher: &mut dyn Watcher| {
        if looked.is_none_or(|at| at.elapsed() >= every) {
            // What cannot be seen now is seen the next time.
            let _ = fetch_shards(&task, true);
            watcher.stands(task.shard_standings(Some(words)));
            looked = Some(Instant::now());
        }
    };
    let driven = drive(&task, &mut |words| {
        look(words, watcher);
        wish = watcher.wish();
        wish == Wish::GoOn
    });
    match driven.map_err(words)? {
        // Shards of this machine end with the service, and go on with its next start.
        _ if wish == Wish::Leave => return Ok(Ended::Left),
        Driven::Left if wish == Wish::End => {
            slurm::cancel(&task.jobs)?;
            // What they found is written before they end.
            let mut tick = |words: &Words| {
                look(words, watcher);
                watcher.wish() != Wish::Leave
            };
            if matches!(drive(&task, &mut tick).map_err(words)?, Driven::Left) {
                return Ok(Ended::Left);
            }
        }
        Driven::Left => return Ok(Ended::Left),
        Driven::Over(_) => {}
    }
    fetch_shards(&task, false).map_err(words)?;
    watcher.stands(task.shard_standings(Some(&Words::new())));
    let merged = merge(&[task.shards_folder()], night).map_err(|error| error.to_string())?;
    Ok(Ended::Merged(merged.missing))
}

fn begin(fleet: &Fleet, mix: &Mix, folder: &Path) -> Result<Task, String> {
    if folder.join("fleet.json").is_file() {
        return Task::load(folder);
    }
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut arguments =
        vec!["run".to_owned(), absolute(&mix.config).display().to_string(), "--quiet".to_owned()];
    if let Some(profile) = &mix.profile {
        arguments.extend(["--profile".to_owned(), profile.clone()]);
    }
    if let Some(duration) = mix.duration {
        arguments.extend(["--duration".to_owned(), format!("{}ms", duration.as_millis())]);
    }
    let waylay = std::env::current_exe().map_err(|error| format!("cannot find this command: {error}"))?;
    let mut task = Task::new(fleet.engine, absolute(folder), waylay, arguments, fleet.shards);
    task.at_most = fleet.at_most;
    if fleet.engine == Engine::Local && task.at_most.is_none() {
        task.at_most = Some(std::thread::available_parallelism().map_or(1, usize::from) as u64);
    }
    // Nights of a bucket are apart.
    let name = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    task.bucket = fleet.bucket.as_deref().map(|address| waylay_fleet::engine::below(address, &name));
    let own = |error: std::io::Error| format!("cannot write {}: {error}", task.folder.display());
    // Handed over before it is written down that it was: a service that dies in between hands over another night, and that one's
    // results lie where nobody looks. The other way round there would be a night that nobody runs.
    std::fs::create_dir_all(task.folder.join("log")).map_err(own)?;
    if fleet.engine == Engine::Slurm {
        let wishes = slurm::Wishes {
            time: fleet.time.clone(),
            partition: fleet.partition.clone(),
            options: fleet.options.clone(),
        };
        let job = slurm::submit_shards(&task, &wishes)?;
        task.jobs = vec![job];
    }
    let own = |error: std::io::Error| format!("cannot write {}: {error}", task.folder.display());
    task.save().map_err(own)?;
    Ok(task)
}
