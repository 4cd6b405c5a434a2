//! A control group (version 2) for one host and everything that it starts, whatever groups and sessions that moves to. Where
//! none can be made, process groups and being the reaper of orphans have to do.
//!
//! The folder of a group is locked while its driver lives. What the driver of a group that is not locked left, because it was
//! killed, is ended by the next.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How the names begin; the number of the driver and a counter follow.
const PREFIX: &str = "waylay-";
/// A group that was touched within this time may be of a driver that has not locked it yet.
const FRESH: Duration = Duration::from_secs(60);
/// How long what was killed may take to be gone.
const EMPTYING: Duration = Duration::from_secs(2);
/// Names that are told of one host; a test that starts thousands of processes gives most of them one name.
const MOST_NAMES: usize = 20;

/// The group. Dropping it ends everything in it.
#[derive(Debug)]
pub(crate) struct Cage {
    folder: PathBuf,
    processes: File,
    _lock: Option<File>,
}

impl Cage {
    /// A new one below the group of this process; none where that is not allowed.
    pub(crate) fn new() -> Option<Cage> {
        static PLACE: OnceLock<Option<PathBuf>> = OnceLock::new();
        let place = PLACE.get_or_init(|| {
            let place = own_group()?;
            sweep(&place, FRESH);
            Some(place)
        });
        Cage::new_in(place.as_deref()?)
    }

    fn new_in(place: &Path) -> Option<Cage> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = place.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        // A kernel that cannot end a group as a whole is of no use.
        let able = folder.join("cgroup.kill").exists();
        let processes = File::options().write(true).open(folder.join("cgroup.procs")).ok();
        let Some(processes) = processes.filter(|_| able) else {
            let _ = fs::remove_dir(&folder);
            return None;
        };
        let lock = File::open(&folder).ok().filter(|folder| folder.try_lock().is_ok());
        Some(Cage { folder, processes, _lock: lock })
    }

    /// Has a process begin in it. One that may not runs outside.
    pub(crate) fn take_in(&self, command: &mut Command) {
        let processes = self.processes.as_raw_fd();
        // SAFETY: the closure runs between fork and exec and makes one async-signal-safe call with bytes that live for ever; the
        // descriptor is open as long as the group, which outlives the start.
        unsafe {
            command.pre_exec(move || {
                libc::write(processes, b"0".as_ptr().cast(), 1);
                Ok(())
            });
        }
    }

    /// Ends everything that is in it, and names what is not of the process group `host`.
    pub(crate) fn kill(&self, host: u32) -> Vec<String> {
        let mut names = Vec::new();
        for pid in members(&self.folder) {
            // SAFETY: a plain call.
            if unsafe { libc::getpgid(pid) } != host as i32 && names.len() < MOST_NAMES {
                names.push(super::name_of(pid));
            }
        }
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
        names
    }

    /// Lets what is in it go, for a debugger.
    pub(crate) fn open(&mut self) {
        let Some(place) = self.folder.parent() else { return };
        if let Ok(mut outside) = File::options().write(true).open(place.join("cgroup.procs")) {
            for pid in members(&self.folder) {
                let _ = outside.write_all(pid.to_string().as_bytes());
            }
        }
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Ends what is in a group, and removes it.
fn remove(folder: &Path) {
    let began = Instant::now();
    let _ = fs::write(folder.join("cgroup.kill"), "1");
    // A test may have made groups of its own below.
    let below = fs::read_dir(folder).into_iter().flatten().flatten();
    let groups = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.for_each(|entry| remove(&entry.path()));
    while fs::remove_dir(folder).is_err() && folder.exists() && began.elapsed() < EMPTYING {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends what drivers left that were killed.
fn sweep(place: &Path, fresh: Duration) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let touched = entry.metadata().and_then(|folder| folder.modified());
        let is_old = touched.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= fresh));
        if ours
            && is_old
            && let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            remove(&entry.path());
        }
    }
}

/// The processes of a group and of those below it.
fn members(folder: &Path) -> Vec<i32> {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<i32> = list.lines().filter_map(|line| line.parse().ok()).collect();
    let below = fs::read_dir(folder).into_iter().flatten().flatten();
    let groups = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    groups.for_each(|entry| found.extend(members(&entry.path())));
    found
}

/// The folder of the group that this process is in.
fn own_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    group_of(&mounts, &groups)
}

/// The folder of a process's control group, from what the kernel says of mounts and of the groups of that process.
fn group_of(mounts: &str, groups: &str) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    // Number, parent, device, root, place, options ... - kind, source, options.
    mounts.lines().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let fields: Vec<&str> = front.split(' ').collect();
        let (root, place) = (fields.get(3)?, fields.get(4)?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        back.starts_with("cgroup2 ").then(|| Path::new(place).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_found_where_it_is_mounted() {
        let mounts = "25 21 0:22 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n26 25 0:23 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      27 25 0:24 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let group = |groups| group_of(mounts, groups);
        assert_eq!(group("8:pids:/x\n0::/user/a\n"), Some("/sys/fs/cgroup/unified/user/a".into()));
        assert_eq!(group("0::/"), Some("/sys/fs/cgroup/unified/".into()));
        assert_eq!(group("8:pids:/x\n"), None);
        let inner = "27 25 0:24 /box /cg rw - cgroup2 cgroup2 rw\n";
        assert_eq!(group_of(inner, "0::/box/a"), Some("/cg/a".into()));
        assert_eq!(group_of(inner, "0::/other"), None);
    }

    /// A process in a session of its own, whose parent is gone, is named and ended with the group.
    #[test]
    fn nothing_leaves_the_group_alive() {
        let Some(cage) = Cage::new() else {
            eprintln!("note: no control group can be made here, so nothing was checked");
            return;
        };
        let mut command = Command::new("sh");
        command.args(["-c", "setsid sleep 300 & setsid -f sleep 301; echo there; wait"]);
        cage.take_in(&mut command);
        let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("a shell");
        let mut said = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut said).expect("it speaks");
        let began = Instant::now();
        let is_sleep = |pid: &i32| super::super::name_of(*pid).starts_with("sleep ");
        while members(&cage.folder).iter().filter(|pid| is_sleep(pid)).count() < 2 {
            assert!(began.elapsed() < Duration::from_secs(60), "it never slept");
        }
        let inside = members(&cage.folder);
        let folder = cage.folder.clone();
        let names = cage.kill(child.id());
        assert_eq!(names.iter().filter(|name| name.starts_with("sleep (")).count(), 2, "{names:?}");
        child.wait().expect("it ends");
        drop(cage);
        assert!(!folder.exists() && inside.len() >= 3, "{inside:?}");
    }
}
