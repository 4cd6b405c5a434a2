//! A campaign under way: its processes, its folder, what was done to it so far.

use std::fs::{self, File};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::campaigns::{Campaign, LEAVES_PROCESSES, Shared};
use super::processes::{self, Marked};
use super::tap::Tap;

/// No campaign of a storm is meant to take more than a few seconds; one that takes this long hangs.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// What has to be known before the driver is started.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setup {
    /// Results go to a disk of their own, of that many bytes.
    pub(crate) disk: Option<u64>,
    /// A limit on its resources.
    pub(crate) limit: Option<(libc::__rlimit_resource_t, u64)>,
    /// It has no standard streams at all.
    pub(crate) without_streams: bool,
    /// Its wall clock can be shifted.
    pub(crate) clock: bool,
}

/// What was done, as far as it matters to what may be expected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// The driver was killed.
    pub(crate) killed: bool,
    /// The driver was asked to end.
    pub(crate) asked: bool,
    /// It was asked a second time, which ends it at once.
    pub(crate) asked_again: bool,
    /// Files that belong to it were damaged or refused.
    pub(crate) lossy: bool,
    /// It got less than it needs of something, so it may give up.
    pub(crate) strained: bool,
    /// Its readers went away.
    pub(crate) unread: bool,
}

/// A campaign that was started.
pub(crate) struct Scene {
    pub(crate) campaign: Campaign,
    pub(crate) folder: PathBuf,
    pub(crate) mark: String,
    pub(crate) driver: Child,
    pub(crate) tap: Tap,
    pub(crate) began: Instant,
    pub(crate) done: Done,
}

impl Scene {
    pub(crate) fn start(
        campaign: Campaign,
        setup: Setup,
        shared: &Shared,
        folder: &Path,
        mark: &str,
    ) -> Scene {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
        command.args(&campaign.arguments).current_dir(folder).env("NO_COLOR", "1");
        command.env_remove("RUST_BACKTRACE").env(processes::MARK, mark).stdin(Stdio::null());
        command.env("STORM_DEEDS", folder.join("deeds.txt"));
        if setup.clock {
            fs::write(folder.join("clock"), 0i64.to_le_bytes()).expect("a file");
            command.env("LD_PRELOAD", shared.path("libclock.so")).env("STORM_CLOCK", folder.join("clock"));
        }
        let (reader, writer) = pipe();
        command.stdout(writer).stderr(File::create(folder.join("stderr.txt")).expect("a file"));
        // SAFETY: the closure runs between fork and exec and makes async-signal-safe calls only.
        unsafe {
            command.pre_exec(move || {
                for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGTERM] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                if let Some((resource, most)) = setup.limit {
                    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
                    libc::setrlimit(resource, &raw const limit);
                }
                if setup.without_streams {
                    (0..3).for_each(|stream| {
                        libc::close(stream);
                    });
                }
                Ok(())
            });
        }
        let driver = command.spawn().expect("the command starts");
        drop(command);
        let tap = Tap::on(reader);
        let done = Done {
            strained: setup.limit.is_some() || setup.disk.is_some(),
            lossy: setup.limit.is_some() || setup.disk.is_some(),
            unread: setup.without_streams,
            ..Done::default()
        };
        let mark = mark.to_owned();
        let folder = folder.to_owned();
        Scene { campaign, folder, mark, driver, tap, began: Instant::now(), done }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.driver.id() as i32
    }

    /// Whether the driver is there still.
    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.driver.try_wait(), Ok(None))
    }

    pub(crate) fn processes(&self, wanted: impl Fn(&Marked) -> bool) -> Vec<i32> {
        let own = self.pid();
        let all = processes::marked(&self.mark).into_iter();
        all.filter(|process| process.pid != own && wanted(process)).map(|process| process.pid).collect()
    }

    /// The newest folder of a campaign.
    pub(crate) fn newest(&self) -> Option<PathBuf> {
        let entries = fs::read_dir(self.folder.join("out")).ok()?.flatten().map(|entry| entry.path());
        let hidden =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        entries.filter(|path| path.is_dir() && !hidden(path) && !path.ends_with("lost+found")).max()
    }

    /// The folders of failures of the newest campaign.
    pub(crate) fn failures(&self) -> Vec<PathBuf> {
        let Some(newest) = self.newest() else { return Vec::new() };
        // A program that is explored has one folder per failure and no folder around them.
        let entries = fs::read_dir(newest.join("failures")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    pub(crate) fn kill_driver(&mut self) -> bool {
        let lives = self.lives();
        if lives {
            processes::signal(self.pid(), libc::SIGKILL);
            self.done.killed = true;
        }
        lives
    }

    /// Waits for the end; gives how it ended, or nothing if it hangs.
    pub(crate) fn finish(&mut self) -> Option<Ended> {
        let service = self.campaign.mode == super::campaigns::Mode::Serve;
        let mut asked = false;
        while self.began.elapsed() < LIMIT {
            if let Ok(Some(status)) = self.driver.try_wait() {
                return Some(Ended { code: status.code(), signal: status.signal() });
            }
            if service && !asked && self.began.elapsed() > self.campaign.length + Duration::from_millis(500) {
                self.done.asked_again |= self.done.asked;
                processes::signal(self.pid(), libc::SIGTERM);
                asked = true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Whether processes of its tests may outlive a driver that was killed.
    pub(crate) fn leaves_processes(&self) -> bool {
        self.done.killed && self.campaign.attack.is_some_and(|attack| LEAVES_PROCESSES.contains(&attack))
    }
}

/// How a driver ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

fn pipe() -> (File, Stdio) {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both ends.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0, "a pipe");
    // SAFETY: both descriptors were just made and belong to nobody else.
    let [reader, writer] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    (reader.into(), writer.into())
}
