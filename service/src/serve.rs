//! The loop: wait for a window, let the next mix run, write down what it had, make room, again.
//!
//! Everything that has to survive a restart is in the history or in the campaigns' folders: how long each mix ran, what
//! was counted, who was told. A service that is killed goes on where it was with its next start.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use waylay_driver::interrupt;
use waylay_driver::store::Campaign;
use waylay_history::feed::Recorded;
use waylay_history::retention::Limits;
use waylay_history::write::Context;
use waylay_history::{History, HistoryError};

use crate::board::{Board, Doing};
use crate::config::{Config, Mix};
use crate::fleet;
use crate::log::Log;
use crate::manager::Watchdog;
use crate::reopen;
use crate::reporter::Reporter;
use crate::rotation::{self, Standing};
use crate::runner::Runner;
use crate::web::{self, Site, WebError};
use crate::webhook;

/// How often it is looked whether a window has opened or the service is to end.
const LOOK: Duration = Duration::from_millis(200);
/// A window's rest that is shorter is not worth starting hosts for.
const SHORTEST: Duration = Duration::from_secs(5);
/// A mix that cannot run is charged with this much time, so that the others have theirs; and how long to wait when the
/// next attempt would be the same.
const CHARGE: Duration = Duration::from_secs(60);
/// How long the last message may take at the end: the other side has ten seconds, and so has the database.
const LAST_MESSAGE: Duration = Duration::from_secs(25);
/// What a turn costs beside its time.
const TURN: Duration = Duration::from_secs(1);

/// Why the service could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A mix is wrong.
    #[error("mix {name}: {problem}")]
    Mix {
        /// Which one.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The engine cannot be used.
    #[error("[fleet]: {0}")]
    Fleet(String),
    /// The history cannot be used.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The dashboard cannot be served.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The log cannot be written.
    #[error("cannot write the log {}: {source}", .path.display())]
    Log {
        /// Where.
        path: std::path::PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// Serves until it is asked to end. `ready` hears the dashboard's address once everything is up.
pub fn serve(
    config: &Config,
    runner: &mut dyn Runner,
    ready: &mut dyn FnMut(Option<SocketAddr>),
) -> Result<(), ServeError> {
    interrupt::watch();
    // Before anything runs and between campaigns, too: to ask must never end the service.
    interrupt::watch_for_looks();
    for mix in &config.mixes {
        runner.check(mix).map_err(|problem| ServeError::Mix { name: mix.name.clone(), problem })?;
    }
    if let Some(fleet) = &config.fleet {
        runner.check_fleet(fleet).map_err(ServeError::Fleet)?;
    }
    let mut history = History::open(&config.out)?;
    let path = config.out.join("serve.log");
    let log = Log::open(&path, config.log_limit).map_err(|source| ServeError::Log { path, source })?;
    let log = Arc::new(log);
    let board = Arc::new(Board::default());
    let stop = Arc::new(AtomicBool::new(false));
    catch_up(config, &mut history, &log)?;
    let web = match &config.dashboard {
        Some(dashboard) => Some(web::start(dashboard, Site::new(config, Arc::clone(&board)))?),
        None => None,
    };
    let address = web.as_ref().map(|web| web.address());
    match address {
        Some(address) => log.line(&format!("the dashboard is at http://{address}/")),
        None => log.line("there is no dashboard"),
    }
    let webhook = config.webhook.clone().map(|webhook| {
        let (out, log, stop) = (config.out.clone(), Arc::clone(&log), Arc::clone(&stop));
        let base = config.dashboard.as_ref().zip(address).and_then(|(dashboard, at)| dashboard.base(at));
        let tell = move || webhook::tell(&webhook, base.as_deref(), &out, &log, &stop);
        std::thread::Builder::new().name("waylay-webhook".into()).spawn(tell)
    });
    let webhook = match webhook.transpose() {
        Ok(webhook) => webhook,
        Err(error) => {
            log.line(&format!("nobody is told of new failures: {error}"));
            None
        }
    };
    let watchdog = Watchdog::start(Arc::clone(&board));
    ready(address);
    watchdog.ready();
    while !interrupt::requested() {
        board.beat();
        step(config, &mut history, runner, &board, &log);
        reopen::open_again(&config.out, &mut history, &log);
    }
    board.doing(Doing::Stopping);
    watchdog.stopping();
    log.line("ends in order");
    stop.store(true, Ordering::Relaxed);
    if let Some(webhook) = webhook {
        // It waits for the other side and for the database, each with a limit.
        let began = Instant::now();
        while !webhook.is_finished() && began.elapsed() < LAST_MESSAGE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    drop(web);
    Ok(())
}

/// What happened while nobody was there.
fn catch_up(config: &Config, history: &mut History, log: &Log) -> Result<(), HistoryError> {
    for interrupted in Campaign::find_interrupted(&config.out) {
        log.line(&format!("the campaign {} was interrupted", interrupted.folder.display()));
    }
    let imported = history.import(&context(config, None))?;
    if imported.campaigns > 0 {
        log.line(&format!("{} campaigns were not in the history yet", imported.campaigns));
    }
    imported.unreadable.iter().for_each(|problem| log.line(&format!("cannot be read: {problem}")));
    history.apply(&config.suppressions, Timestamp::now())
}

fn context(config: &Config, mix: Option<&str>) -> Context {
    Context {
        zone: config.zone.clone(),
        mix: mix.map(str::to_owned),
        suppressions: config.suppressions.clone(),
    }
}

/// One turn, or a while of waiting.
fn step(config: &Config, history: &mut History, runner: &mut dyn Runner, board: &Arc<Board>, log: &Arc<Log>) {
    let now = Timestamp::now();
    let left = config.windows.open_until(now).map(|until| (until, time_between(now, until)));
    let Some((until, left)) = left.filter(|(_, left)| *left >= SHORTEST) else {
        let next = config.windows.next_open(now);
        answer_look(config, log, next);
        let waits = Doing::Waiting(next);
        if board.look().doing != waits {
            log.line(&format!("waits{}", until_next(config, next)));
        }
        board.doing(waits);
        std::thread::sleep(LOOK);
        return;
    };
    let standings = match standings(config, history) {
        Ok(standings) => standings,
        Err(error) => {
            log.line(&format!("no turn: {error}"));
            return rest(config, board, log, CHARGE);
        }
    };
    let Some(place) = rotation::next(&standings) else { return rest(config, board, log, CHARGE) };
    let mix = &config.mixes[place];
    let open_end = until == Timestamp::MAX;
    let most = match (open_end, mix.duration) {
        (true, duration) => duration,
        (false, duration) => Some(duration.map_or(left, |duration| duration.min(left))),
    };
    let end = most.and_then(|most| now.checked_add(most).ok());
    // Charged before it runs: a mix that takes the whole service down must not get every turn after that, too.
    let charge = match standings[place].seconds {
        Some(_) => TURN.as_secs_f64(),
        None => rotation::first_turn(&standings, place, TURN.as_secs_f64()),
    };
    if let Err(error) = history.add_turn(&mix.name, charge) {
        log.line(&format!("no turn: {error}"));
        return rest(config, board, log, CHARGE);
    }
    board.doing(Doing::Running { mix: mix.name.clone(), until: end });
    log.line(&format!("mix {} begins", mix.name));
    let began = Instant::now();
    if let Some(fleet) = &config.fleet {
        // A turn is as long as its shards say; only the window ends it.
        let night = fleet::turn(config, (fleet, mix), (!open_end).then_some(until), runner, board, log);
        let failed = match night {
            Ok(how) => {
                log.line(&format!("mix {}: the night {how}", mix.name));
                board.note(&format!("mix {}: the night {how}", mix.name));
                false
            }
            Err(problem) => {
                log.line(&format!("mix {} did not run: {problem}", mix.name));
                board.note(&format!("mix {} did not run: {problem}", mix.name));
                true
            }
        };
        // It was made by other processes: only its folder tells.
        if let Err(error) = history.import(&context(config, Some(&mix.name))) {
            log.line(&format!("after mix {}: {error}", mix.name));
        }
        return after(config, (history, board, log), mix, failed, began);
    }
    let reporter = Reporter::new(Arc::clone(board), Arc::clone(log), mix.stop);
    let mut live = Recorded::open(reporter, &config.out, context(config, Some(&mix.name)));
    // A panic in a campaign must not take the nights after it.
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runner.run(mix, &config.out, most, &mut live)
    }));
    let reporter = live.finish();
    let reason = reporter.reason().map_or_else(String::new, |reason| format!(": {reason}"));
    let failed = match ran {
        Ok(Ok(())) => {
            log.line(&format!("mix {} is over{reason}", mix.name));
            false
        }
        Ok(Err(problem)) => {
            log.line(&format!("mix {} did not run: {problem}", mix.name));
            board.note(&format!("mix {} did not run: {problem}", mix.name));
            true
        }
        Err(_) => {
            log.line(&format!("mix {} ended in a fault of Waylay itself; see standard error", mix.name));
            true
        }
    };
    after(config, (history, board, log), mix, failed, began);
}

/// What follows every turn.
fn after(
    config: &Config,
    (history, board, log): (&mut History, &Board, &Log),
    mix: &Mix,
    failed: bool,
    began: Instant,
) {
    let kept = history
        .add_turn(&mix.name, if failed { CHARGE.as_secs_f64() } else { 0.0 })
        .and_then(|()| history.apply(&config.suppressions, Timestamp::now()))
        .and_then(|()| history.prune(&limits(config, Timestamp::now())));
    match kept {
        Ok(pruned) if pruned.bytes > 0 => {
            log.line(&format!("{} bytes of old evidence were removed", pruned.bytes));
        }
        Ok(_) => {}
        Err(error) => log.line(&format!("after mix {}: {error}", mix.name)),
    }
    if failed {
        rest(config, board, log, CHARGE / config.mixes.len() as u32);
    } else if began.elapsed() < Duration::from_secs(1) {
        // A mix that is over at once must not become a busy loop.
        rest(config, board, log, Duration::from_secs(1));
    }
}

/// Says that nothing runs when somebody asks what does; a campaign answers for itself.
fn answer_look(config: &Config, log: &Log, next: Option<Timestamp>) {
    if interrupt::take_look() {
        log.line(&format!("nothing is running now{}", until_next(config, next)));
    }
}

/// When the next window opens, in words.
fn until_next(config: &Config, next: Option<Timestamp>) -> String {
    let at = |next| config.zone.to_datetime(next).strftime("%Y-%m-%d %H:%M");
    next.map_or_else(String::new, |next| format!(": the next window opens at {}", at(next)))
}

fn standings(config: &Config, history: &History) -> Result<Vec<Standing>, HistoryError> {
    let had = history.mixes()?;
    let of = |mix: &Mix| Standing {
        share: mix.share,
        seconds: had.iter().find(|(name, _)| *name == mix.name).map(|(_, seconds)| *seconds),
    };
    Ok(config.mixes.iter().map(of).collect())
}

fn limits(config: &Config, now: Timestamp) -> Limits {
    Limits {
        campaigns: config.retention.campaigns,
        bytes: config.retention.bytes,
        since: config.retention.age.and_then(|age| now.checked_sub(age).ok()),
    }
}

fn time_between(from: Timestamp, to: Timestamp) -> Duration {
    to.duration_since(from).try_into().unwrap_or_default()
}

/// Waits, unless the service is to end.
fn rest(config: &Config, board: &Board, log: &Log, time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until && !interrupt::requested() {
        board.beat();
        answer_look(config, log, None);
        std::thread::sleep(LOOK);
    }
}
