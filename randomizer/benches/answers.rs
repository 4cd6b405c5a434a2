//! Whether "I keep away" means that nothing of the randomizer's is attached any more, on a machine that has no time.
//!
//! `cargo bench -p waylay-randomizer --bench answers [-- QUESTIONS LOOPS]` asks 10,000 times beside 8 busy loops, and fails
//! when one answer was wrong.

#[cfg(target_os = "linux")]
#[path = "../tests/questions/mod.rs"]
mod questions;
#[cfg(target_os = "linux")]
#[path = "../tests/target/mod.rs"]
mod target;

#[cfg(target_os = "linux")]
fn main() {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    let numbers: Vec<u32> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (questions, loops) =
        (numbers.first().copied().unwrap_or(10_000), numbers.get(1).copied().unwrap_or(8));
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let asked = std::thread::scope(|scope| {
        for _ in 0..loops {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::black_box(());
                }
            });
        }
        let asked = std::panic::catch_unwind(|| questions::ask(questions));
        over.store(true, Ordering::Relaxed);
        asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    println!(
        "{questions} questions beside {loops} busy loops in {:.0?}: {} answered, {} not in time (killed), {} wrong",
        began.elapsed(),
        asked.answered,
        asked.killed,
        asked.wrong
    );
    assert_eq!(asked.wrong, 0);
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("looks at tracers, which only Linux has");
}
