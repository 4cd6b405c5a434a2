//! `waylay fleet`: a night's shards handed to an engine, watched, and put together.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use waylay_driver::interrupt;
use waylay_driver::report::{count, span};
use waylay_fleet::engine::{Engine, Standing, State, Task, Words, below, kubernetes, slurm};
use waylay_fleet::merge::Night;

use crate::args::{CollectOptions, FleetCommand, FleetFolder, FleetRunOptions, On};
use crate::bucket::{self, Scratch};
use crate::drive::{ASK, Driven, drive, fetch_shards};
use crate::merge::merge_night;
use crate::output::{CLEAN, FAILURES, Failed, print_json};
use crate::progress::Bar;

/// How often a line about progress is written: people look at terminals, machines keep logs.
const LINE_ON_TERMINAL: Duration = Duration::from_secs(2);
const LINE_IN_LOG: Duration = Duration::from_secs(10);
/// Subcommands that know of shards and write campaigns.
const KNOW_SHARDS: [&str; 3] = ["run", "explore", "suite"];

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
    if let Some(address) = &task.bucket {
        bucket::check(address)?;
    }
    let folder = task.folder.display().to_string();
    let own = |error: std::io::Error| Failed::Own(format!("cannot write {folder}: {error}"));
    task.save().map_err(own)?;
    interrupt::watch();
    let mut line = Line::new("running shards", options.quiet);
    let mut task = task;
    if options.on == On::Slurm {
        let handed = slurm::submit(&task, &wishes);
        if handed.is_err() {
            let _ = std::fs::remove_file(task.folder.join("fleet.json"));
        }
        task.jobs = handed.map_err(Failed::Usage)?;
        task.save().map_err(own)?;
        eprintln!("waylay: jobs {} of Slurm", task.jobs.join(" and "));
        if options.detach {
            say_how_to_look_after(&task);
            return Ok(CLEAN);
        }
    }
    let mut tick = |words: &Words| {
        line.tell(&task, words);
        !interrupt::requested()
    };
    let driven = drive(&task, &mut tick)?;
    drop(line);
    match driven {
        // The jobs of an engine are left alone: it is others who wait for them.
        Driven::Left => {
            say_how_to_look_after(&task);
            Ok(CLEAN)
        }
        Driven::Over(codes) => {
            for (number, code) in codes {
                let log = task.folder.join("log").join(format!("{number}.log"));
                let how = code.map_or_else(|| "was killed".to_owned(), |code| format!("ended with {code}"));
                eprintln!("waylay: shard {number}/{} {how}: see {}", task.shards, log.display());
            }
            finish(&task.folder, json)
        }
    }
}

fn say_how_to_look_after(task: &Task) {
    let folder = task.folder.display();
    eprintln!("waylay: the night goes on; `waylay fleet status|cancel|collect {folder}`");
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
    task.bucket.clone_from(&options.bucket);
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
                let out = task.shard_out(&number.to_string());
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
                secret: options.secret.clone(),
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

/// Merges, and says how the night ended. A night whose shards went to a bucket goes there, too.
fn finish(folder: &Path, json: bool) -> Result<u8, Failed> {
    // A folder of shards alone is enough, where nothing was handed over from here.
    let task = Task::load(folder).ok();
    if let Some(task) = &task {
        fetch_shards(task, false)?;
    }
    let (night, code) = merge_night(&[folder.join("shards")], &folder.join("night"))?;
    if let Some(address) = task.and_then(|task| task.bucket) {
        bucket::replace(&night.folder, &below(&address, "night"))?;
    }
    end_of_night(&night, code, json)
}

fn end_of_night(night: &Night, code: u8, json: bool) -> Result<u8, Failed> {
    crate::merge::tell(night);
    night.missing.iter().for_each(|sentence| eprintln!("waylay: {sentence}"));
    if json {
        crate::merge::print(night, code)?;
    }
    Ok(code)
}

fn status(options: &FleetFolder, json: bool) -> Result<u8, Failed> {
    let task = Task::load(&options.folder).map_err(Failed::Usage)?;
    fetch_shards(&task, true)?;
    let words = match task.engine {
        Engine::Slurm => Some(slurm::queue(&task.jobs).map_err(Failed::Usage)?.shards),
        _ => None,
    };
    let shards = task.shard_standings(words.as_ref());
    let standing = Standing::of(&shards);
    if json {
        print_json(&json!({ "task": task, "standing": standing, "shards": shards }))?;
    } else {
        println!("{}", told(&standing));
        for shard in shards.iter().filter(|shard| shard.state == State::Lost) {
            let on =
                shard.machine.as_deref().map_or_else(String::new, |machine| format!(", last on {machine}"));
            println!("shard {}/{} is lost{on}", shard.number, task.shards);
        }
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
    if !bucket::is_address(&options.folder) {
        wait(options, &options.folder, || Ok(()))?;
        return finish(&options.folder, json);
    }
    let address = options.folder.to_string_lossy().into_owned();
    let (shards, scratch) = (below(&address, "shards"), Scratch::new()?);
    let here = scratch.path().join("shards");
    wait(options, scratch.path(), || bucket::fetch(&shards, &here, true))?;
    bucket::fetch(&shards, &here, false)?;
    let (mut night, code) = merge_night(&[here], &scratch.path().join("night"))?;
    let goal = below(&address, "night");
    bucket::replace(&night.folder, &goal)?;
    night.folder = goal.into();
    end_of_night(&night, code, json)
}

/// Waits for as many shards as there are, at most so long as was asked for. `look` fetches what is to be looked at.
fn wait(
    options: &CollectOptions,
    folder: &Path,
    look: impl Fn() -> Result<(), Failed>,
) -> Result<(), Failed> {
    let Some(wait) = options.wait else { return Ok(()) };
    interrupt::watch();
    let wanted = match options.shards {
        Some(shards) => shards,
        None => Task::load(folder).map_err(Failed::Usage)?.shards,
    };
    let began = Instant::now();
    let bar = Bar::of("waiting for shards", false);
    while began.elapsed() < wait && !interrupt::requested() {
        look()?;
        let done = done_below(folder, wanted);
        bar.reach(done, Some(wanted));
        if done >= wanted {
            break;
        }
        std::thread::sleep(ASK);
    }
    Ok(())
}

/// How many shards are done. Kubernetes counts them from 0.
fn done_below(night: &Path, shards: u64) -> u64 {
    let mut task = Task::new(Engine::Local, night.to_owned(), PathBuf::new(), Vec::new(), shards);
    task.first = u64::from(!night.join("shards").join("0").exists());
    task.standing(None).done
}

fn told(standing: &Standing) -> String {
    format!(
        "{} shards done, {} running, {} waiting, {} lost; {} iterations, {} failures",
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
        let bar = Bar::of(what, quiet);
        // A bar is there at once; lines are for those who wait.
        let next = if bar.is_shown() { Duration::ZERO } else { LINE_IN_LOG };
        Line { bar, quiet, next, began: Instant::now() }
    }

    fn tell(&mut self, task: &Task, words: &Words) {
        let elapsed = self.began.elapsed();
        if self.quiet || elapsed < self.next {
            return;
        }
        let terminal = std::io::stderr().is_terminal();
        self.next = elapsed + if terminal { LINE_ON_TERMINAL } else { LINE_IN_LOG };
        // How they stand is seen next time, if it cannot be seen now.
        let _ = fetch_shards(task, true);
        let standing = task.standing(Some(words));
        if self.bar.is_shown() {
            self.bar.reach(standing.done, Some(task.shards));
            self.bar.say(told(&standing));
        } else {
            eprintln!("waylay: {}  {}", span(elapsed), told(&standing));
        }
    }
}
