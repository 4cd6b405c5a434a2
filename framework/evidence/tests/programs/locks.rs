//! Two threads that take two locks in opposite order, and a third that panics if asked to.

use std::sync::{Arc, Barrier, Mutex};

#[cfg(extra)]
mod unrelated {
    //! Moves everything after it, and gives the optimiser something else to do.
    #[inline(never)]
    pub fn work(rounds: u64) -> u64 {
        (0..rounds).map(|round| std::hint::black_box(round).wrapping_mul(0x9e37)).sum()
    }
}

struct Account<T> {
    balance: Mutex<T>,
}

impl<T: Copy + std::ops::AddAssign> Account<T> {
    #[inline(never)]
    fn transfer(&self, other: &Account<T>, meeting: &Barrier) {
        let mut own = self.balance.lock().unwrap();
        meeting.wait();
        let theirs = other.balance.lock().unwrap();
        *own += *theirs;
    }
}

fn main() {
    #[cfg(extra)]
    std::hint::black_box(unrelated::work(1000));
    let accounts = Arc::new([Account { balance: Mutex::new(1_u64) }, Account { balance: Mutex::new(2) }]);
    let meeting = Arc::new(Barrier::new(2));
    let threads = [0, 1].map(|index: usize| {
        let (accounts, meeting) = (accounts.clone(), meeting.clone());
        std::thread::Builder::new()
            .name(format!("teller-{index}"))
            .spawn(move || accounts[index].transfer(&accounts[1 - index], &meeting))
            .unwrap()
    });
    println!("ready");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
