//! A real terminal for a command: a pseudo terminal whose screen is read back through an emulator.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LINES: NonZeroU16 = NonZeroU16::new(40).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(130).unwrap();
/// Whatever takes longer does not come any more.
const PATIENCE: Duration = Duration::from_secs(120);

/// The command on a terminal of its own.
pub(crate) struct OnTerminal {
    child: Child,
    keyboard: File,
    /// Kept open, so that the settings can be asked for when the command is gone.
    terminal: OwnedFd,
    before: libc::termios,
    screen: Arc<Mutex<vt100::Parser>>,
    /// Everything that was ever written.
    written: Arc<Mutex<Vec<u8>>>,
}

fn settings(terminal: &OwnedFd) -> libc::termios {
    // SAFETY: an all-zero termios is a valid value to fill in, and the descriptor is a terminal.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &mut settings), 0);
        settings
    }
}

impl OnTerminal {
    pub(crate) fn start(mut command: Command) -> OnTerminal {
        let size = libc::winsize { ws_row: LINES.get(), ws_col: COLUMNS.get(), ws_xpixel: 0, ws_ypixel: 0 };
        let (mut ours, mut theirs) = (-1, -1);
        // SAFETY: places for two descriptors, and a size; no settings and no name are wanted.
        let opened = unsafe {
            libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null_mut(), &size)
        };
        assert_eq!(opened, 0, "a pseudo terminal");
        // SAFETY: two descriptors that were just opened and that nobody else has.
        let (ours, terminal) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
        let before = settings(&terminal);
        let copy = || Stdio::from(terminal.try_clone().expect("a copy"));
        command.stdin(copy()).stderr(copy()).stdout(copy()).env("TERM", "xterm-256color");
        // SAFETY: async-signal-safe calls that make standard input the terminal of a new session.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().expect("the command starts");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(LINES, COLUMNS, 1000)));
        let (keyboard, mut output) = (File::from(ours.try_clone().expect("a copy")), File::from(ours));
        let written = Arc::new(Mutex::new(Vec::new()));
        let (drawn, kept) = (Arc::clone(&screen), Arc::clone(&written));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                kept.lock().expect("no panic").extend_from_slice(&bytes[..count]);
                drawn.lock().expect("no panic").process(&bytes[..count]);
            }
        });
        OnTerminal { child, keyboard, terminal, before, screen, written }
    }

    pub(crate) fn text(&self) -> String {
        self.screen.lock().expect("no panic").screen().contents()
    }

    pub(crate) fn fills_the_screen(&self) -> bool {
        self.screen.lock().expect("no panic").screen().alternate_screen()
    }

    /// Whether any character has a colour of its own.
    pub(crate) fn is_coloured(&self) -> bool {
        let parser = self.screen.lock().expect("no panic");
        let cell = |place: u16| parser.screen().cell(place / COLUMNS, place % COLUMNS);
        (0..LINES.get() * COLUMNS.get())
            .filter_map(cell)
            .any(|cell| cell.has_contents() && cell.fgcolor() != vt100::Color::Default)
    }

    /// Everything that was ever written, also what has left the screen.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().expect("no panic")).into_owned()
    }

    /// Waits for words that may leave the screen again.
    pub(crate) fn until_said(&self, what: &str, holds: impl Fn(&str) -> bool) {
        self.until(what, |_| holds(&self.said()));
    }

    pub(crate) fn until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !holds(&self.text()) {
            assert!(began.elapsed() < PATIENCE, "never: {what}\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("the terminal is open");
    }

    /// Insists until it is over: two keys that come close together may be one signal.
    pub(crate) fn press_until_over(&mut self, keys: &[u8]) {
        let began = Instant::now();
        while self.child.try_wait().expect("our child").is_none() && began.elapsed() < PATIENCE {
            self.press(keys);
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: a plain call; the child is not waited for yet, so its number is its own.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Waits for the end, after which the terminal must be as it was.
    pub(crate) fn finish(&mut self) -> ExitStatus {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        };
        let after = settings(&self.terminal);
        assert_eq!(
            (after.c_lflag, after.c_iflag, after.c_oflag),
            (self.before.c_lflag, self.before.c_iflag, self.before.c_oflag),
            "the terminal's settings are back"
        );
        // What was written before the end may not be read yet.
        let began = Instant::now();
        while self.fills_the_screen() || self.screen.lock().expect("no panic").screen().hide_cursor() {
            assert!(began.elapsed() < Duration::from_secs(10), "still the other screen:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
        status
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
