//! Schedules per second of two threads with 25 steps each, in one process, beside what cannot be avoided: handing the baton
//! to another thread on the same processor and back, and beginning and ending two threads.

#[cfg(windows)]
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../tests/in_process/bodies.rs"]
mod bodies;
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

    use crate::session::{Wanted, run};

    const RUNS: u64 = 5000;
    const HANDOVERS: u32 = 50_000;
    const THREADS: u32 = 1000;

    pub(crate) fn main() {
        for strategy in ["pct:depth=2", "random"] {
            let begun = Instant::now();
            let empty = run(&Wanted { body: "steps", runs: 1, strategy, ..Wanted::default() });
            let start = begun.elapsed();
            let begun = Instant::now();
            let ran = run(&Wanted { body: "steps", runs: RUNS, strategy, ..Wanted::default() });
            let seconds = begun.elapsed().saturating_sub(start).as_secs_f64();
            assert_eq!((empty.failures, ran.failures, ran.runs, ran.partly), (0, 0, RUNS, 0), "{}", ran.text);
            println!(
                "{strategy}: {:.0} schedules/s of {} threads and {} steps ({:.0} us each)",
                RUNS as f64 / seconds,
                ran.threads,
                ran.steps / RUNS,
                seconds * 1e6 / RUNS as f64
            );
        }
        // SAFETY: this process alone; the one processor that every machine has.
        unsafe { SetProcessAffinityMask(GetCurrentProcess(), 1) };
        println!("floor: a hand-over takes {:.1} us", handover());
        println!("floor: two threads, begun and ended one after the other, take {:.0} us", two_threads());
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
