//! Schedules per second of two threads with 25 steps each, in one process, beside their floor: the hand-overs that they
//! make, each as long as two threads on one processor take to hand a baton on with the same primitive.

#[cfg(windows)]
#[path = "../tests/in_process/atomics.rs"]
mod atomics;
#[cfg(windows)]
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/in_process/bodies.rs"]
mod bodies;
#[cfg(mingw)]
#[path = "../tests/in_process/posix.rs"]
mod posix;
#[cfg(all(windows, not(mingw)))]
#[path = "../tests/in_process/no_posix.rs"]
mod posix;
#[cfg(windows)]
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/in_process/session.rs"]
mod session;

#[cfg(not(windows))]
fn main() {
    println!("this benchmark is for Windows, or Wine: see docs/platforms.md");
}

#[cfg(windows)]
fn main() {
    if let Some(case) = std::env::var_os("WAYLAY_CASE") {
        return session::play(&case.to_string_lossy());
    }
    measured::main();
}

#[cfg(windows)]
mod measured {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    use windows_sys::Win32::System::Threading::{
        GetCurrentProcess, INFINITE, SetProcessAffinityMask, WaitOnAddress, WakeByAddressSingle,
    };

    use crate::session::{WARM_UP, Wanted, run};

    const RUNS: u64 = 5000;
    const HANDOVERS: u32 = 50_000;
    const THREADS: u32 = 500;
    /// What is aimed at.
    const GOAL: f64 = 3000.0;

    pub(crate) fn main() {
        // SAFETY: this process alone; the one processor that every machine has.
        unsafe { SetProcessAffinityMask(GetCurrentProcess(), 1) };
        let (handover, threads) = (handover(), two_threads());
        println!("floor: a hand-over takes {handover:.1} us");
        println!("two threads, created and ended one after the other, would take {threads:.0} us");
        for strategy in ["pct:depth=2", "random"] {
            let ran = run(&Wanted { body: "steps", runs: RUNS + WARM_UP, strategy, ..Wanted::default() });
            assert_eq!((ran.failures, ran.runs, ran.partly), (0, RUNS + WARM_UP, 0), "{}", ran.text);
            let took = ran.microseconds as f64 / RUNS as f64;
            let (rate, switches) = (1e6 / took, ran.switches as f64 / RUNS as f64);
            let floor = switches * handover;
            println!(
                "{strategy}: {rate:.0} schedules/s of {} threads, {} steps and {switches:.1} hand-overs: {took:.0} us each, \
                 of which the hand-overs are {floor:.0} us ({:.0} %); {}",
                ran.threads,
                ran.steps / ran.runs,
                100.0 * floor / took,
                if rate >= GOAL { "the goal of 3,000/s is met" } else { "below the goal of 3,000/s" }
            );
        }
    }

    fn wait(word: &AtomicU32) {
        let zero = 0u32;
        while word.swap(0, Ordering::AcqRel) == 0 {
            // SAFETY: both are readable for four bytes.
            unsafe { WaitOnAddress(word.as_ptr().cast(), (&raw const zero).cast(), 4, INFINITE) };
        }
    }

    fn raise(word: &AtomicU32) {
        word.store(1, Ordering::Release);
        // SAFETY: the address is only compared.
        unsafe { WakeByAddressSingle(word.as_ptr().cast()) };
    }

    fn handover() -> f64 {
        static WORDS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];
        let other = std::thread::spawn(|| {
            for _ in 0..HANDOVERS {
                wait(&WORDS[0]);
                raise(&WORDS[1]);
            }
        });
        let begun = Instant::now();
        for _ in 0..HANDOVERS {
            raise(&WORDS[0]);
            wait(&WORDS[1]);
        }
        let taken = begun.elapsed().as_secs_f64() * 1e6 / f64::from(2 * HANDOVERS);
        other.join().expect("it ends");
        taken
    }

    fn two_threads() -> f64 {
        let begun = Instant::now();
        for _ in 0..THREADS {
            let threads = [std::thread::spawn(|| ()), std::thread::spawn(|| ())];
            threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        }
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(THREADS)
    }
}
