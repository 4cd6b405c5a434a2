//! systemd: a unit that tells it when the service is up and that it is alive.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::{ManagerError, Plan, Work, at, check_name};
use crate::board::Board;

/// systemd starts the service again when it says nothing for so long. Evidence of a large process on a loaded machine
/// takes the thread that runs campaigns away for many seconds.
const WATCHDOG_SECONDS: u64 = 180;
/// How often it is told that all is well.
const TELL: Duration = Duration::from_secs(20);
/// The longest time that the thread which runs campaigns may be quiet.
const QUIET_MS: u64 = 150_000;

/// Tells systemd how the service is.
#[derive(Debug)]
pub struct Watchdog {
    socket: Option<Arc<Notify>>,
}

#[derive(Debug)]
struct Notify {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Notify {
    /// The socket that systemd gave us, if it started us.
    fn of_environment() -> Option<Notify> {
        let name = std::env::var_os("NOTIFY_SOCKET")?;
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(&name),
        };
        Some(Notify { socket: UnixDatagram::unbound().ok()?, address: address.ok()? })
    }

    fn say(&self, text: &str) {
        // A manager that does not listen is not our concern.
        let _ = self.socket.send_to_addr(text.as_bytes(), &self.address);
    }
}

impl Watchdog {
    /// From now on systemd hears that the service is alive, as long as the campaigns' thread is.
    pub fn start(board: Arc<Board>) -> Watchdog {
        let socket = Notify::of_environment().map(Arc::new);
        if let Some(notify) = socket.clone() {
            let watch = move || {
                loop {
                    if board.quiet_for() < QUIET_MS {
                        notify.say("WATCHDOG=1");
                    }
                    std::thread::sleep(TELL);
                }
            };
            let _ = std::thread::Builder::new().name("waylay-watchdog".into()).spawn(watch);
        }
        Watchdog { socket }
    }

    /// The service is up.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// The service ends.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    fn say(&self, text: &str) {
        if let Some(notify) = &self.socket {
            notify.say(text);
        }
    }
}

/// The unit's text.
fn unit(plan: &Plan) -> String {
    format!(
        "# Made by `waylay service install`.\n\
         [Unit]\n\
         Description=Waylay: concurrency tests at night ({name})\n\
         After=network.target\n\n\
         [Service]\n\
         Type=notify\n\
         ExecStart={executable} serve {config}\n\
         WorkingDirectory={folder}\n\
         Restart=always\n\
         RestartSec=10\n\
         WatchdogSec={WATCHDOG_SECONDS}\n\
         # A campaign ends in order: its tests are cancelled and what they found is written.\n\
         TimeoutStopSec=120\n\
         KillMode=mixed\n\n\
         [Install]\n\
         WantedBy={target}\n",
        name = plan.name,
        executable = word(&plan.executable),
        config = word(&plan.config),
        folder = escape(&plan.folder.display().to_string()),
        target = if plan.user { "default.target" } else { "multi-user.target" },
    )
}

/// A path as one word of a unit's command.
fn word(path: &Path) -> String {
    format!("\"{}\"", escape(&path.display().to_string()).replace('\\', "\\\\").replace('"', "\\\""))
}

/// `%` and `$` mean something in units.
fn escape(text: &str) -> String {
    text.replace('%', "%%").replace('$', "$$")
}

fn unit_path(name: &str, user: bool) -> Result<PathBuf, ManagerError> {
    check_name(name)?;
    let folder = if user {
        let home = std::env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))
            .ok_or_else(|| ManagerError::Refused("there is no home folder".to_owned()))?;
        home.join("systemd/user")
    } else {
        PathBuf::from("/etc/systemd/system")
    };
    Ok(folder.join(format!("{name}.service")))
}

fn systemctl(user: bool, arguments: &[&str]) -> Result<String, ManagerError> {
    let mut command = Command::new("systemctl");
    if user {
        command.arg("--user");
    }
    let output = command.args(arguments).output().map_err(|error| {
        ManagerError::Refused(format!("systemctl cannot be run ({error}): is systemd on this machine?"))
    })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(ManagerError::Refused(format!("systemctl {}: {}", arguments.join(" "), said.trim())))
    }
}

/// Writes the unit, and has it started now and with the machine. What was done, in words.
pub fn install(plan: &Plan) -> Result<String, ManagerError> {
    let path = unit_path(&plan.name, plan.user)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    fs::write(&path, unit(plan)).map_err(at(&path))?;
    let service = format!("{}.service", plan.name);
    let started = systemctl(plan.user, &["daemon-reload"])
        .and_then(|_| systemctl(plan.user, &["enable", "--now", &service]));
    match started {
        Ok(_) => Ok(format!("{} is installed and started", path.display())),
        Err(error) => Err(ManagerError::Refused(format!("{} is written, but {error}", path.display()))),
    }
}

/// Ends and removes it. What was done, in words.
pub fn uninstall(name: &str, user: bool) -> Result<String, ManagerError> {
    let path = unit_path(name, user)?;
    if !path.exists() {
        return Err(ManagerError::Refused(format!("there is no {}", path.display())));
    }
    let ended = systemctl(user, &["disable", "--now", &format!("{name}.service")]);
    fs::remove_file(&path).map_err(at(&path))?;
    let _ = systemctl(user, &["daemon-reload"]);
    Ok(match ended {
        Ok(_) => format!("{} is ended and removed", path.display()),
        Err(error) => format!("{} is removed; {error}", path.display()),
    })
}

/// systemd starts the command as anybody does.
pub fn run(_name: &str, _work: Work) -> Result<(), ManagerError> {
    Err(ManagerError::Refused("--service is for the Windows service manager".to_owned()))
}

/// How it is, in words; and whether it runs.
pub fn status(name: &str, user: bool) -> Result<(String, bool), ManagerError> {
    let path = unit_path(name, user)?;
    if !path.exists() {
        return Ok((format!("not installed: there is no {}", path.display()), false));
    }
    let shown = systemctl(
        user,
        &["show", &format!("{name}.service"), "--property=ActiveState,SubState,MainPID,NRestarts"],
    );
    match shown {
        Ok(text) => {
            let running = text.lines().any(|line| line == "ActiveState=active");
            let words: Vec<&str> = text.lines().collect();
            Ok((format!("installed as {}: {}", path.display(), words.join(", ")), running))
        }
        Err(error) => Ok((format!("installed as {}; {error}", path.display()), false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            name: "waylay".into(),
            executable: "/opt/way lay/waylay".into(),
            config: "/etc/100%/night\"ly.toml".into(),
            folder: "/var/lib/waylay".into(),
            user: false,
        }
    }

    #[test]
    fn a_unit_has_a_watchdog_and_quotes_what_is_odd() {
        let text = unit(&plan());
        assert!(
            text.contains("ExecStart=\"/opt/way lay/waylay\" serve \"/etc/100%%/night\\\"ly.toml\"\n"),
            "{text}"
        );
        for line in ["Type=notify", "WatchdogSec=180", "Restart=always", "WantedBy=multi-user.target"] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
        assert!(QUIET_MS / 1000 + TELL.as_secs() <= WATCHDOG_SECONDS);
    }

    #[test]
    fn names_cannot_leave_the_folder_of_units() {
        for name in ["", "../x", "a b", "-x", "a/b", "a\nb"] {
            assert!(unit_path(name, false).is_err(), "{name}");
        }
        assert_eq!(unit_path("night-1", false).unwrap(), Path::new("/etc/systemd/system/night-1.service"));
    }

    #[test]
    fn systemd_hears_through_a_path_and_through_an_abstract_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let notify = Notify {
            socket: UnixDatagram::unbound().unwrap(),
            address: SocketAddr::from_pathname(&path).unwrap(),
        };
        notify.say("READY=1");
        let mut heard = [0; 64];
        let length = listener.recv(&mut heard).unwrap();
        assert_eq!(&heard[..length], b"READY=1");
    }
}
