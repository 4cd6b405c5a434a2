//! The full-screen view of a campaign: hears what lines would say, and shows it on a thread of its own, so that a slow
//! terminal never holds up the campaign. When the screen is lost the lines go on.

mod draw;
mod screen;
mod view;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use waylay_driver::failure::FailureEntry;
use waylay_driver::interrupt;
use waylay_driver::report::{Detail, Live, RunningNow, Terminal, Tick};
use waylay_driver::store::{CampaignRecord, TestRecord};

use draw::Ink;
use screen::Screen;
use view::{View, Wish};

/// How often the screen is drawn when no key is pressed.
const REDRAW: Duration = Duration::from_millis(200);
/// How long the end of a campaign waits for the screen: a terminal may have stopped reading.
const PATIENCE: Duration = Duration::from_secs(2);

/// A campaign on the whole screen. Dropping it gives the terminal back.
pub(crate) struct FullScreen {
    shared: Arc<Shared>,
    shows: Option<JoinHandle<()>>,
    /// For when the screen is gone and the campaign is not.
    lines: Terminal,
}

struct Shared {
    view: Mutex<View>,
    /// Somebody wants to know what is running.
    look: AtomicBool,
    /// The campaign is over.
    over: AtomicBool,
    /// Nothing is shown any more.
    gone: AtomicBool,
}

impl Shared {
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FullScreen {
    /// Takes the terminal, or says why it cannot. `every` is how often lines come if the screen is lost.
    pub(crate) fn open(title: &str, every: Duration) -> Result<FullScreen, String> {
        let mut screen = Screen::enter()?;
        let shared = Arc::new(Shared {
            view: Mutex::new(View::new(title)),
            look: AtomicBool::new(false),
            over: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let show = move || {
            let _told = Told(&of_thread.gone);
            show(&of_thread, &mut screen);
            drop(screen);
        };
        let shows = std::thread::Builder::new().name("waylay-screen".into()).spawn(show);
        let shows = shows.map_err(|error| {
            screen::give_back();
            error.to_string()
        })?;
        Ok(FullScreen { shared, shows: Some(shows), lines: Terminal::new(every, Detail::All) })
    }

    fn change(&mut self, view: impl FnOnce(&mut View), lines: impl FnOnce(&mut Terminal)) {
        if self.shared.gone.load(Ordering::Acquire) {
            lines(&mut self.lines);
        } else {
            view(&mut self.shared.view());
        }
    }
}

/// Says that the screen is gone, however its thread ended.
struct Told<'a>(&'a AtomicBool);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn show(shared: &Shared, screen: &mut Screen) {
    let began = Instant::now();
    let ink = Ink { colour: std::env::var_os("NO_COLOR").is_none() };
    while !shared.over.load(Ordering::Acquire) && interrupt::is_terminal_taken() {
        {
            let mut view = shared.view();
            view.elapsed = began.elapsed();
            view.ending |= interrupt::requested();
        }
        if screen.draw(|frame| draw::draw(frame, &shared.view(), ink)).is_err() {
            return;
        }
        match screen.key(REDRAW) {
            Ok(None) => {}
            Ok(Some(key)) => {
                let wish = shared.view().key(key);
                match wish {
                    Some(Wish::End) => interrupt::insist(),
                    Some(Wish::Look) => shared.look.store(true, Ordering::Release),
                    None => {}
                }
            }
            // The terminal was closed.
            Err(_) => return,
        }
    }
}

impl Live for FullScreen {
    fn note(&mut self, text: &str) {
        self.change(|view| view.note(text), |lines| lines.note(text));
    }

    fn failure(&mut self, entry: &FailureEntry, folder: &Path) {
        self.change(|view| view.failure(entry, folder), |lines| lines.failure(entry, folder));
    }

    fn tick(&mut self, tick: &Tick) {
        self.change(|view| view.tick(tick), |lines| lines.tick(tick));
    }

    fn tests(&mut self, tests: &[TestRecord]) {
        self.change(|_| {}, |lines| lines.tests(tests));
    }

    fn counted(&mut self, entries: &[&FailureEntry]) {
        self.change(|view| view.counted(entries), |_| {});
    }

    fn campaign(&mut self, record: &CampaignRecord, _folder: &Path) {
        self.change(|view| view.campaign(record), |_| {});
    }

    fn wants_look(&mut self) -> bool {
        self.shared.look.swap(false, Ordering::AcqRel)
    }

    fn running(&mut self, now: &RunningNow) {
        self.change(|view| view.running(now), |lines| lines.running(now));
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        let began = Instant::now();
        if let Some(shows) = self.shows.take() {
            while !shows.is_finished() && began.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        screen::give_back();
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "../../tests/support/terminal.rs"]
#[allow(dead_code)] // the tests of the command use the rest
mod terminal;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::terminal::OnTerminal;
    use super::*;

    const ROLE: &str = "WAYLAY_TEST_PANICS_ON_SCREEN";

    /// Runs itself again on a terminal, where a panic comes in the middle of the whole screen.
    #[test]
    fn a_panic_gives_the_terminal_back_before_it_speaks() {
        if std::env::var_os(ROLE).is_some() {
            let _screen = FullScreen::open("a mix", REDRAW).expect("a terminal");
            std::thread::sleep(REDRAW * 5);
            panic!("this is read on the screen that stays");
        }
        let name = "tui::tests::a_panic_gives_the_terminal_back_before_it_speaks";
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(ROLE, "1");
        let mut shown = OnTerminal::start(command);
        shown.until("the screen", |text| text.contains("a mix") && text.contains("no failures"));
        assert!(shown.fills_the_screen());
        assert_eq!(shown.finish().code(), Some(101));
        shown.until("the words", |text| text.contains("this is read on the screen that stays"));
    }
}
