//! The machinery around [`fairness`](crate::fairness): a worker takes a turn from the ledger, has the host run it, and
//! writes down what it took. One `TestMain` is one turn.
//!
//! With the barrier, the turns of a round are drawn together, and the next round is drawn when the last turn of this
//! one is over; a worker that comes early waits. Without it, every worker draws its next turn when its last is over.
//! No worker has a place of its own in a round, so it does not matter how many there are or which one comes: a pot
//! inside a pot is called by whoever runs it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use waylay_plugin::{
    Contained, ContainedState, Container, Context, Failed, Level, Outcome, Ran, Test, Turn, Worker,
};

use crate::fairness::{Account, Draw, Ledger};
use crate::settings::{Part, Settings};

/// Iterations of one `TestMain` in a replay: enough that the pot costs nothing, few enough to come back often.
const REPEATS: u64 = 32;

/// The pot.
pub struct MeltingPot {
    settings: Settings,
    threads: usize,
    round: Mutex<Round>,
    changed: Condvar,
}

struct Round {
    ledger: Ledger,
    /// Turns of this round that nobody has taken yet.
    open: Vec<Draw>,
    /// Turns that are being run.
    running: usize,
    cancelled: bool,
}

/// What a worker does next.
enum Next {
    Turn(Draw),
    /// No test is left, or the pot is to stop.
    Nothing {
        for_good: bool,
    },
}

fn container<'c>(found: Option<Container<'c>>) -> Result<Container<'c>, Failed> {
    found.ok_or_else(|| Failed::new("a melting pot runs other tests: name them under `contains`"))
}

impl Test for MeltingPot {
    const NAME: &'static str = "melting-pot";
    const ABOUT: &'static str = "a bug that needs several tests at the same time, on the same objects";
    const COMBINES: bool = true;

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        let inside = container(context.container())?;
        let settings = Settings::read(&inside.settings())?;
        let ledger = Ledger::new(settings.policy());
        let round = Round { ledger, open: Vec::new(), running: 0, cancelled: false };
        Ok(Self {
            settings,
            threads: inside.workers().max(1),
            round: Mutex::new(round),
            changed: Condvar::new(),
        })
    }

    fn on_start(&mut self, context: &Context<'_>) -> Outcome {
        let inside = container(context.container())?;
        let round = self.round.get_mut().unwrap_or_else(PoisonError::into_inner);
        for number in 0..inside.len() {
            let single = self.settings.single_turns.then_some(self.settings.policy().shortest_turn);
            let loaded = single.is_some() || inside.load(number);
            let test = inside.contained(number).ok_or_else(|| Failed::new("a contained test is gone"))?;
            round.ledger.accounts.push(account(&test, single, loaded));
        }
        if round.ledger.accounts.iter().all(|account| account.retired) {
            return Err(Failed::new("none of the contained tests could be loaded"));
        }
        for number in 0..inside.len() {
            inside.ask(number, round.ledger.asked(number));
        }
        Ok(())
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        let inside = container(worker.container())?;
        if let Some(part) = self.settings.mix.get(inside.worker()) {
            return self.replay(*part, &inside, worker);
        }
        match self.next(&inside, worker) {
            Next::Turn(draw) => {
                let turn = Turn { test: draw.test, times: draw.times, limit: draw.limit, repeat: None };
                let ran = inside.run(turn);
                self.settle(draw.test, ran, &inside, worker);
            }
            Next::Nothing { for_good: true } => worker.done(),
            Next::Nothing { for_good: false } => {}
        }
        Ok(())
    }

    fn on_cancelled(&self, context: &Context<'_>) {
        self.lock().cancelled = true;
        self.changed.notify_all();
        if let Some(inside) = context.container() {
            (0..inside.len()).for_each(|number| inside.cancel(number));
        }
    }

    fn on_end(&mut self, context: &Context<'_>) -> Outcome {
        let inside = container(context.container())?;
        (0..inside.len()).for_each(|number| inside.unload(number));
        Ok(())
    }
}

/// The account of a test; `single` is what every turn counts as, if that is not measured.
fn account(test: &Contained, single: Option<f64>, loaded: bool) -> Account {
    let average = single.or(test.average.map(|average| average.as_secs_f64()));
    let mut account = Account::new(test.share, average, test.given.as_secs_f64());
    account.retired = !loaded;
    account
}

impl MeltingPot {
    fn lock(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker's next turn; waits for the end of the round when that is what the settings say.
    fn next(&self, inside: &Container<'_>, worker: &Worker<'_>) -> Next {
        let mut generator = worker.generator(0);
        let mut random = || generator.unit();
        let mut waits = false;
        let mut round = self.lock();
        let next = loop {
            if round.cancelled || worker.cancelled() {
                break Next::Nothing { for_good: false };
            }
            if let Some(draw) = round.take() {
                break Next::Turn(draw);
            }
            if !self.settings.barrier || round.running == 0 {
                let count = if self.settings.barrier { self.threads } else { 1 };
                let drawn = round.ledger.draw(count, &mut random);
                if drawn.is_empty() {
                    break Next::Nothing { for_good: true };
                }
                round.open = if self.settings.single_turns {
                    load_drawn(&mut round.ledger, drawn, inside)
                } else {
                    drawn
                };
                let Round { ledger, open, .. } = &mut *round;
                ledger.begin(open);
                self.changed.notify_all();
                continue;
            }
            if !std::mem::replace(&mut waits, true) {
                inside.waiting(true);
            }
            round = self.changed.wait(round).unwrap_or_else(PoisonError::into_inner);
        };
        drop(round);
        if waits {
            inside.waiting(false);
        }
        next
    }

    fn settle(&self, test: usize, ran: Ran, inside: &Container<'_>, worker: &Worker<'_>) {
        let mut round = self.lock();
        round.running -= 1;
        let time = match self.settings.single_turns {
            true => ran.times as f64 * self.settings.policy().shortest_turn,
            false => ran.time.as_secs_f64(),
        };
        round.ledger.settle(test, ran.times, time);
        let retired = ran.state != ContainedState::Ready && !round.ledger.accounts[test].retired;
        if retired {
            round.ledger.accounts[test].retired = true;
        }
        if !self.settings.barrier || (round.running == 0 && round.open.is_empty()) {
            self.changed.notify_all();
        }
        if retired && !round.cancelled {
            // Of one that is out, what it was asked for until then is still of use.
            let asked: Vec<(usize, f64)> = (0..round.ledger.accounts.len())
                .filter(|number| !round.ledger.accounts[*number].retired)
                .map(|number| (number, round.ledger.asked(number)))
                .collect();
            drop(round);
            asked.into_iter().for_each(|(number, share)| inside.ask(number, share));
            let name = inside.contained(test).map(|test| test.name).unwrap_or_default();
            worker.log(Level::Info, &format!("{name} is drawn no more"));
        }
    }

    /// What this worker ran when something failed: that iteration again and again, and in turns with it the test's
    /// iterations from the first on, because what is wrong with a shared object may come from one and show in another.
    fn replay(&self, part: Part, inside: &Container<'_>, worker: &Worker<'_>) -> Outcome {
        let Some(test) = part.test else {
            worker.done();
            return Ok(());
        };
        let turn = Turn { test, times: REPEATS, limit: None, repeat: Some(part.iteration) };
        inside.run(turn);
        let ran = inside.run(Turn { repeat: None, ..turn });
        if ran.state != ContainedState::Ready && !worker.cancelled() {
            worker.done();
        }
        Ok(())
    }
}

/// Loads the tests that were drawn, for one iteration each; what cannot be loaded is drawn no more.
fn load_drawn(ledger: &mut Ledger, drawn: Vec<Draw>, inside: &Container<'_>) -> Vec<Draw> {
    let mut loaded = Vec::with_capacity(drawn.len());
    for draw in drawn {
        if inside.load(draw.test) {
            loaded.push(Draw { times: 1, limit: None, ..draw });
        } else {
            ledger.accounts[draw.test].retired = true;
        }
    }
    loaded
}

impl Round {
    fn take(&mut self) -> Option<Draw> {
        let draw = self.open.pop()?;
        self.running += 1;
        Some(draw)
    }
}
