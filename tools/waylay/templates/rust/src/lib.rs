//! A test for Waylay: money moves between accounts, and none of it may appear or vanish.
//!
//! Replace the accounts by what you want to test. `waylay run` calls `main` again and again, on several workers at the
//! same time, with numbers from the distributions in `waylay.toml`.

use std::sync::{Mutex, MutexGuard};
use waylay_plugin::{Context, Distribution, Failed, Outcome, Param, Test, Worker, ensure_eq};

const OPENING: i64 = 1000;

struct Transfers {
    accounts: Vec<Mutex<i64>>,
    count: Distribution<usize>,
    account: Distribution<usize>,
    action: Distribution<usize>,
    amount: Distribution<i64>,
}

impl Test for Transfers {
    const NAME: &'static str = "transfers";
    const ABOUT: &'static str = "money that appears or vanishes when transfers overlap";
    const PARAMS: &'static [Param] = &[
        Param::new("accounts", "{ uniform = { min = 2, max = 16 } }").about("how many accounts there are"),
        Param::new("account", "{ uniform = { min = 0, max = 15 } }").about("which account takes part"),
        Param::new("action", "{ weighted = [{ min = 0, max = 0, p = 0.9 }, { min = 1, max = 1, p = 0.1 }] }")
            .about("0: a transfer, 1: an audit of all accounts"),
        Param::new("amount", "{ uniform = { min = 1, max = 100 } }").about("what is transferred"),
    ];

    fn create(context: &Context<'_>) -> Result<Self, Failed> {
        Ok(Self {
            accounts: Vec::new(),
            count: context.distribution("accounts")?,
            account: context.distribution("account")?,
            action: context.distribution("action")?,
            amount: context.distribution("amount")?,
        })
    }

    fn on_start(&mut self, context: &Context<'_>) -> Outcome {
        let count = context.draw(self.count).max(2);
        self.accounts = (0..count).map(|_| Mutex::new(OPENING)).collect();
        Ok(())
    }

    fn main(&self, worker: &Worker<'_>) -> Outcome {
        match worker.choose(self.action, 2) {
            0 => {
                let from = worker.choose(self.account, self.accounts.len());
                let to = worker.choose(self.account, self.accounts.len());
                self.transfer(from, to, worker.draw(self.amount))
            }
            _ => self.audit(),
        }
    }

    fn on_end(&mut self, _: &Context<'_>) -> Outcome {
        self.audit()
    }
}

impl Transfers {
    /// Locks in the order of the accounts, whichever way the money goes. Lock `from` first instead, and Waylay finds the
    /// deadlock.
    fn transfer(&self, from: usize, to: usize, amount: i64) -> Outcome {
        if from == to {
            return Ok(());
        }
        let mut low = self.accounts[from.min(to)].lock()?;
        let mut high = self.accounts[from.max(to)].lock()?;
        let (source, target) = if from < to { (&mut low, &mut high) } else { (&mut high, &mut low) };
        **source -= amount;
        **target += amount;
        Ok(())
    }

    fn audit(&self) -> Outcome {
        let locked: Vec<MutexGuard<'_, i64>> = self.accounts.iter().map(Mutex::lock).collect::<Result<_, _>>()?;
        let sum: i64 = locked.iter().map(|balance| **balance).sum();
        ensure_eq!(sum, OPENING * self.accounts.len() as i64, "all the money");
        Ok(())
    }
}

waylay_plugin::export! { name: "{{name}}", tests: [Transfers] }
