//! The terminal itself: taken, drawn on, asked for keys, and given back whatever happens.

use std::io::{self, IsTerminal, Stderr, Write};
use std::sync::Once;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::{cursor, execute, terminal};
use ratatui::{Frame, Terminal, backend::CrosstermBackend};
use waylay_driver::interrupt;

use super::view::Key;

/// A terminal that shows nothing but the campaign. Dropping it gives it back.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
}

impl Screen {
    /// Takes the terminal on standard error; what is printed for machines stays on standard output.
    pub(super) fn enter() -> Result<Screen, String> {
        if !io::stderr().is_terminal() {
            return Err("standard error is no terminal".to_owned());
        }
        if std::env::var_os("TERM").is_some_and(|name| name == "dumb") {
            return Err("this terminal can only show lines".to_owned());
        }
        give_back_before_panics();
        if !interrupt::remember_terminal() {
            return Err("the terminal does not say how it is set".to_owned());
        }
        let enter = || -> io::Result<Screen> {
            terminal::enable_raw_mode()?;
            execute!(io::stderr(), terminal::EnterAlternateScreen, cursor::Hide)?;
            Ok(Screen { terminal: Terminal::new(CrosstermBackend::new(io::stderr()))? })
        };
        enter().map_err(|error| {
            give_back();
            error.to_string()
        })
    }

    /// Draws. What was drawn is written after the closure has returned.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// The next key, if one comes within that time.
    pub(super) fn key(&self, within: Duration) -> io::Result<Option<Key>> {
        if !event::poll(within)? {
            return Ok(None);
        }
        let Event::Key(key) = event::read()? else { return Ok(None) };
        if key.kind == KeyEventKind::Release {
            return Ok(None);
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        Ok(match key.code {
            KeyCode::Char('c') if control => Some(Key::End),
            KeyCode::Char('\\' | '4') if control => Some(Key::Look),
            KeyCode::Char('q') => Some(Key::End),
            KeyCode::Char('w') => Some(Key::Look),
            KeyCode::Char('f') => Some(Key::Failures),
            KeyCode::Char('o') | KeyCode::Esc => Some(Key::Overview),
            KeyCode::Up | KeyCode::Char('k') => Some(Key::Up(1)),
            KeyCode::Down | KeyCode::Char('j') => Some(Key::Down(1)),
            KeyCode::PageUp => Some(Key::Up(10)),
            KeyCode::PageDown | KeyCode::Char(' ') => Some(Key::Down(10)),
            KeyCode::Home => Some(Key::Up(usize::MAX)),
            KeyCode::End => Some(Key::Down(usize::MAX / 2)),
            _ => None,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back; once more does no harm.
pub(super) fn give_back() {
    let _ = terminal::disable_raw_mode();
    interrupt::give_back_terminal();
    let _ = io::stderr().flush();
}

/// What a panic says is read on the screen that stays.
fn give_back_before_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            interrupt::give_back_terminal();
            before(panic);
        }));
    });
}
