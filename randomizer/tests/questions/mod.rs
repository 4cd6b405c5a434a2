//! Asking a randomizer at full speed to keep away, again and again, and looking each time whether it does.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use waylay_page::{Clock, Page};
use waylay_randomizer::quiesce::{Quiet, Words};

use crate::target::{Randomizer, Target, eventually};

/// Threads of all sorts beside the first: a processor for some, waits for others.
const THREADS: [&str; 8] =
    ["spin:s1", "spin:s2", "nap:n1", "nap:n2", "nap:n3", "nap:n4", "block:b1", "block:b2"];
const FULL_SPEED: [&str; 6] = ["--period", "0s..100us", "--suspend", "0s..1ms", "--count", "1..9"];
/// What a collector waits before it kills the randomizer.
const PATIENCE: Duration = Duration::from_millis(200);

/// What became of the questions.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Answered in time.
    pub(crate) answered: u32,
    /// Not answered in time: the randomizer was killed, and another one started.
    pub(crate) killed: u32,
    /// Answers, in time or by the end of the randomizer, after which a thread was still attached to.
    pub(crate) wrong: u32,
}

/// Asks this many times.
pub(crate) fn ask(questions: u32) -> Asked {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    let page = Page::create(CLOCK.get_or_init(Clock::calibrate)).expect("a page");
    let words = Words::of(&page.layout().header);
    let target = Target::start(&THREADS);
    let fd = page.handle().raw().to_string();
    let start = || {
        let arguments = [&FULL_SPEED[..], &["--page", &fd]].concat();
        Randomizer::start_with(target.pid(), &arguments, vec![page.handle().raw()])
    };
    let mut randomizer = start();
    let mut asked = Asked::default();
    for _ in 0..questions {
        // A question to one that holds nothing says little.
        eventually("a window", || match words.window_open.load(Ordering::SeqCst) {
            0 => Err("closed".into()),
            _ => Ok(()),
        });
        let quiet = match Quiet::ask(words, PATIENCE) {
            Ok(quiet) => {
                asked.answered += 1;
                quiet
            }
            Err(no_answer) => {
                randomizer.end();
                asked.killed += 1;
                Quiet::after_end_of_randomizer(no_answer)
            }
        };
        // Twice: a window that is opened after the answer is as wrong as one that is not closed.
        let attached = target.traced() + target.traced();
        asked.wrong += u32::from(attached > 0);
        let was_killed = words.at_work.load(Ordering::SeqCst) == 0;
        drop(quiet);
        if was_killed {
            randomizer = start();
        }
    }
    asked
}
