//! `waylay fleet`: a night's shards handed to an engine, watched, and put together.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use waylay_driver::interrupt;
use waylay_driver::report::{count, span};
use waylay_fleet::engine::{Engine, Standing, Task, kubernetes, local, slurm};

use crate::args::{CollectOptions, FleetCommand, FleetFolder, FleetRunOptions, On};
use crate::merge::merge_night;
use crate::output::{CLEAN, FAILURES, Failed, print_json};
use crate::progress::Bar;

/// How often a line about progress is written: people look at terminals, machines keep logs.
const LINE_ON_TERMINAL: Duration = Duration::from_secs(2);
const LINE_IN_LOG: Duration = Duration::from_secs(10);
/// How often the line that is written over changes: folders of all shards are read for it.
const LINE_ON_BAR: Duration = Duration::from_secs(1);
/// How often an engine is asked.
const ASK: Duration = Duration::from_secs(1);
/// Subcommands that know of shards and write campaigns.
const KNOW_SHARDS: [&str; 2] = ["run", "explore"];

pub(crate) fn fleet(command: &FleetCommand, json: bool) -> Result<u8, Failed> {
    match command {
        FleetCommand::Run(options) => run(options, json),
        FleetCommand::Status(folder) => status(folder, json),
        FleetCommand::Cancel(folder) => cancel(folder),
        FleetCommand::Collect(options) => collect(options, json),
    }
}

fn run(options: &FleetRunOptions, json: bool) -> Result<u8, Failed> {
    let task = task(options)?;
    let wishes = slurm::Wishes {
        time: options.time.clone(),
        partition: options.partition.clone(),
        options: options.sbatch.clone(),
    };
    if options.on == On::Kubernetes || options.dry_run {
        return show(&task, &wishes, options);
    }
    if task.folder.join("fleet.json").exists() {
        return Err(Failed::Usage(format!(
            "{} has a night already: name another folder with --out, or see `waylay fleet status`",
            task.folder.display()
        )));
    }
    let own = |error: std::io::Error| Failed::Own(format!("cannot write {}: {error}", task.folder.display()));
    task.save().map_err(own)?;
    interrupt::watch();
    let mut line = Line::new("running shards", options.quiet);
    match options.on {
        On::Slurm => {
            let mut task = task.clone();
            let handed = slurm::submit(&task, &wishes);
            if handed.is_err() {
                let _ = std::fs::remove_file(task.folder.join("fleet.json"));
            }
            task.jobs = handed.map_err(Failed::Usage)?;
            task.save().map_err(own)?;
            eprintln!("waylay: jobs {} of Slurm", task.jobs.join(" and "));
            if options.detach || !watch(&task, &mut line)? {
                let folder = task.folder.display();
                eprintln!("waylay: the night goes on; `waylay fleet status|cancel|collect {folder}`");
                return Ok(CLEAN);
            }
        }
        _ => {
            let tick = |ended: usize| {
                line.tell(&task, Some(ended as u64), &format!("{ended} of {} shards ended", task.shards));
                !interrupt::requested()
            };
            let codes = local::run(&task, tick).map_err(Failed::Own)?;
            for (code, number) in codes.iter().zip(1..) {
                if !matches!(code, Some(0 | 1)) && !interrupt::requested() {
                    let log = task.folder.join("log").join(format!("{number}.log"));
                    let how =
                        code.map_or_else(|| "was killed".to_owned(), |code| format!("ended with {code}"));
                    eprintln!("waylay: shard {number}/{} {how}: see {}", task.shards, log.display());
                }
            }
        }
    }
    drop(line);
    finish(&task.folder, json)
}

fn task(options: &FleetRunOptions) -> Result<Task, Failed> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut arguments = match &options.config {
        Some(config) => {
            if !config.is_file() {
                return Err(Failed::Usage(format!("there is no file {}", config.display())));
            }
            vec!["run".to_owned(), absolute(config).display().to_string()]
        }
        None => options.command.clone(),
    };
    let known = arguments.first().is_some_and(|word| KNOW_SHARDS.contains(&word.as_str()));
    if !known {
        let word = arguments.first().map_or("nothing", String::as_str);
        return Err(Failed::Usage(format!(
            "`{word}` cannot be divided here: give a configuration, or `-- {} …`",
            KNOW_SHARDS.join("` or `-- ")
        )));
    }
    if let Some(seed) = options.seed {
        let behind = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
        arguments.splice(behind..behind, ["--seed".to_owned(), seed.to_string()]);
    }
    let waylay = match options.on {
        // It is the image's.
        On::Kubernetes => "waylay".into(),
        _ => std::env::current_exe()
            .map_err(|error| Failed::Own(format!("cannot find this command: {error}")))?,
    };
    let engine = match options.on {
        On::Local => Engine::Local,
        On::Slurm => Engine::Slurm,
        On::Kubernetes => Engine::Kubernetes,
    };
    let mut task = Task::new(engine, absolute(&options.out), waylay, arguments, options.shards);
    task.at_most = options.at_most;
    if options.on == On::Local && task.at_most.is_none() {
        task.at_most = Some(std::thread::available_parallelism().map_or(1, usize::from) as u64);
    }
    Ok(task)
}

/// Prints what an engine would get.
fn show(task: &Task, wishes: &slurm::Wishes, options: &FleetRunOptions) -> Result<u8, Failed> {
    match options.on {
        On::Local => {
            for number in 1..=task.shards {
                let out = task.shard_folder(&number.to_string()).display().to_string();
                let words = task.shard_arguments(&out, Some(&format!("{number}/{}", task.shards)));
                println!("{} {}", task.waylay.display(), words.join(" "));
            }
        }
        On::Slurm => {
            println!("{}\n{}", slurm::shards_script(task, wishes), slurm::merge_script(task, wishes))
        }
        On::Kubernetes => {
            let wishes = kubernetes::Wishes {
                image: options.image.clone(),
                claim: options.claim.clone(),
                name: options.name.clone(),
                cpu: options.cpu.clone(),
                memory: options.memory.clone(),
            };
            print_json(&kubernetes::manifests(task, &wishes))?;
            if !options.dry_run {
                eprintln!("waylay: nothing was handed over: pipe this into `kubectl apply -f -`");
            }
        }
    }
    Ok(CLEAN)
}

/// Watches a night on Slurm; false when somebody does not want to wait any longer.
fn watch(task: &Task, line: &mut Line) -> Result<bool, Failed> {
    loop {
        let states = slurm::states(&task.jobs).map_err(Failed::Own)?;
        if states.is_empty() {
            return Ok(true);
        }
        let of = |word: &str| states.iter().filter(|state| *state == word).count();
        line.tell(task, None, &format!("{} jobs waiting, {} running", of("PENDING"), of("RUNNING")));
        let asked = Instant::now();
        while asked.elapsed() < ASK {
            if interrupt::requested() {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Merges, and says how the night ended.
fn finish(folder: &Path, json: bool) -> Result<u8, Failed> {
    let shards = folder.join("shards");
    let (night, code) = merge_night(&[shards], &folder.join("night"))?;
    crate::merge::tell(&night);
    night.missing.iter().for_each(|sentence| eprintln!("waylay: {sentence}"));
    if json {
        crate::merge::print(&night, code)?;
    }
    Ok(code)
}

fn status(options: &FleetFolder, json: bool) -> Result<u8, Failed> {
    let task = Task::load(&options.folder).map_err(Failed::Usage)?;
    let standing = task.standing();
    let states = match task.engine {
        Engine::Slurm => slurm::states(&task.jobs).map_err(Failed::Usage)?,
        _ => Vec::new(),
    };
    if json {
        print_json(&json!({ "task": task, "standing": standing, "states": states }))?;
    } else {
        println!("{}", told(&standing));
        states.iter().for_each(|state| println!("{state}"));
    }
    Ok(if standing.failures > 0 { FAILURES } else { CLEAN })
}

fn cancel(options: &FleetFolder) -> Result<u8, Failed> {
    let task = Task::load(&options.folder).map_err(Failed::Usage)?;
    match task.engine {
        Engine::Slurm => slurm::cancel(&task.jobs).map_err(Failed::Usage)?,
        Engine::Local => {
            return Err(Failed::Usage(
                "press Ctrl-C where `waylay fleet run --on local` runs: it ends its shards".into(),
            ));
        }
        Engine::Kubernetes => return Err(Failed::Usage("delete the jobs with kubectl".into())),
    }
    Ok(CLEAN)
}

fn collect(options: &CollectOptions, json: bool) -> Result<u8, Failed> {
    if let Some(wait) = options.wait {
        interrupt::watch();
        let wanted = match options.shards {
            Some(shards) => shards,
            None => Task::load(&options.folder).map_err(Failed::Usage)?.shards,
        };
        let began = Instant::now();
        let bar = Bar::of("waiting for shards", false);
        loop {
            let done = done_below(&options.folder.join("shards"));
            bar.reach(done, Some(wanted));
            if done >= wanted || began.elapsed() >= wait || interrupt::requested() {
                break;
            }
            std::thread::sleep(ASK);
        }
    }
    finish(&options.folder, json)
}

/// How many folders of shards say that they are done.
fn done_below(shards: &Path) -> u64 {
    let entries = std::fs::read_dir(shards).into_iter().flatten().flatten();
    let is_done = |out: &Path| {
        let last = waylay_driver::archive::campaigns(out).pop();
        let record = last.and_then(|folder| waylay_driver::archive::read_record(&folder).ok());
        record.and_then(|record| record.shard).is_some_and(|shard| shard.done)
    };
    entries.filter(|entry| is_done(&entry.path())).count() as u64
}

fn told(standing: &Standing) -> String {
    format!(
        "{} shards done, {} running, {} waiting, {} cut off or not seen from here; {} iterations, {} failures",
        standing.done,
        standing.running,
        standing.waiting,
        standing.lost,
        count(standing.iterations),
        count(standing.failures)
    )
}

/// How far all shards are: one line that is written over on a terminal, a line every few seconds elsewhere.
struct Line {
    bar: Bar,
    quiet: bool,
    next: Duration,
    began: Instant,
}

impl Line {
    fn new(what: &str, quiet: bool) -> Line {
        Line { bar: Bar::of(what, quiet), quiet, next: Duration::ZERO, began: Instant::now() }
    }

    /// So many shards have ended, where that is known from here.
    fn tell(&mut self, task: &Task, ended: Option<u64>, more: &str) {
        let elapsed = self.began.elapsed();
        if self.quiet || elapsed < self.next {
            return;
        }
        let standing = task.standing();
        if self.bar.is_shown() {
            self.next = elapsed + LINE_ON_BAR;
            self.bar.reach(ended.unwrap_or(standing.done), Some(task.shards));
            self.bar.say(format!("{}; {more}", told(&standing)));
        } else {
            let first = self.next.is_zero();
            self.next =
                elapsed + if std::io::stderr().is_terminal() { LINE_ON_TERMINAL } else { LINE_IN_LOG };
            if !first {
                eprintln!("waylay: {}  {}; {more}", span(elapsed), told(&standing));
            }
        }
    }
}
