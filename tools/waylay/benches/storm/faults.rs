//! The faults: what each does to a campaign, at which moment, and what it needs from the beginning.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::campaigns::Mode;
use super::dice::Dice;
use super::processes::{Marked, marked, signal};
use super::scene::{Scene, Setup};
use super::{damage, disk, visitors};

/// Does it; false when there was nothing to do it to.
pub(crate) type Deed = fn(&mut Scene, &mut Dice) -> bool;

/// A kind of fault.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// How much more often than others it is drawn.
    weight: usize,
    /// What the driver has to be started with.
    needs: Needs,
    pub(crate) deed: Deed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// A disk of its own, for which one has to be root.
    Disk,
    /// A clock that can be shifted.
    Clock,
    /// The limit or streams are part of the start.
    FileSize,
    Files,
    Memory,
    NoStreams,
    /// A service that listens.
    Service,
    /// A randomizer beside the host.
    Randomizer,
    /// Results that can be damaged.
    Results,
    /// The driver is over then: what else is drawn comes before.
    End,
}

impl Needs {
    /// Whether something may be lost for which the driver cannot be blamed.
    fn loses(self) -> bool {
        matches!(self, Needs::Disk | Needs::FileSize | Needs::Files | Needs::Memory | Needs::Results)
    }
}

const fn kind(name: &'static str, weight: usize, needs: Needs, deed: Deed) -> Kind {
    Kind { name, weight, needs, deed }
}

/// All kinds. Attacks by tests come on top: see `campaigns.rs`.
pub(crate) const KINDS: &[Kind] = &[
    // Killed in the very moment of a failure: the one that matters most, so it is drawn most.
    kind("kill-driver-as-it-announces", 8, Needs::End, kill_as_announced),
    kind("kill-driver-as-evidence-appears", 6, Needs::End, kill_as_evidence_appears),
    kind("kill-driver", 3, Needs::End, |scene, _| scene.kill_driver()),
    kind("kill-host", 4, Needs::Nothing, |scene, dice| send(scene, dice, Marked::is_host, libc::SIGKILL)),
    kind("kill-host-as-it-fails", 3, Needs::Nothing, |scene, dice| {
        appears(scene, 400) && send(scene, dice, Marked::is_host, libc::SIGKILL)
    }),
    kind("kill-randomizer", 3, Needs::Randomizer, |scene, dice| {
        send(scene, dice, Marked::is_randomizer, libc::SIGKILL)
    }),
    kind("kill-driver-and-host", 2, Needs::End, |scene, dice| {
        send(scene, dice, Marked::is_host, libc::SIGKILL) && scene.kill_driver()
    }),
    kind("kill-host-and-randomizer", 2, Needs::Randomizer, |scene, dice| {
        send(scene, dice, Marked::is_host, libc::SIGKILL)
            && send(scene, dice, Marked::is_randomizer, libc::SIGKILL)
    }),
    kind("kill-driver-and-randomizer", 2, Needs::Randomizer, |scene, dice| {
        send(scene, dice, Marked::is_randomizer, libc::SIGKILL) && scene.kill_driver()
    }),
    kind("kill-everything", 1, Needs::End, kill_everything),
    kind("terminate-driver", 1, Needs::End, |scene, _| ask(scene, libc::SIGTERM)),
    kind("interrupt-driver", 1, Needs::End, |scene, _| ask(scene, libc::SIGINT)),
    kind("interrupt-driver-twice", 1, Needs::End, |scene, dice| {
        let first = ask(scene, libc::SIGINT);
        std::thread::sleep(dice.time(Duration::from_millis(100)));
        // The second may end it at once.
        scene.done.strained |= first;
        first && ask(scene, libc::SIGINT)
    }),
    kind("hang-up-driver", 1, Needs::End, |scene, _| ask(scene, libc::SIGHUP)),
    kind("terminate-host", 2, Needs::Nothing, |scene, dice| {
        send(scene, dice, Marked::is_host, libc::SIGTERM)
    }),
    kind("crash-host", 2, Needs::Nothing, |scene, dice| send(scene, dice, Marked::is_host, libc::SIGSEGV)),
    kind("stop-driver-and-go-on", 2, Needs::Nothing, |scene, dice| {
        let pid = scene.pid();
        pause(scene, &[pid], dice)
    }),
    kind("stop-host-and-go-on", 3, Needs::Nothing, |scene, dice| {
        let hosts = scene.processes(Marked::is_host);
        pause(scene, &hosts, dice)
    }),
    kind("stop-host-for-ever", 2, Needs::Nothing, |scene, dice| {
        send(scene, dice, Marked::is_host, libc::SIGSTOP)
    }),
    kind("stop-randomizer-and-go-on", 2, Needs::Randomizer, |scene, dice| {
        let all = scene.processes(Marked::is_randomizer);
        pause(scene, &all, dice)
    }),
    kind("stop-randomizer-for-ever", 2, Needs::Randomizer, |scene, dice| {
        send(scene, dice, Marked::is_randomizer, libc::SIGSTOP)
    }),
    kind("stop-host-and-kill-driver", 2, Needs::End, |scene, dice| {
        send(scene, dice, Marked::is_host, libc::SIGSTOP) && scene.kill_driver()
    }),
    kind("stop-everything-and-kill-driver", 1, Needs::End, |scene, dice| {
        send(scene, dice, |process| !process.is_left_behind(), libc::SIGSTOP) && scene.kill_driver()
    }),
    kind("fill-disk", 2, Needs::Disk, |scene, _| disk::fill(&out(scene))),
    kind("fill-disk-for-a-while", 2, Needs::Disk, |scene, dice| {
        let full = disk::fill(&out(scene));
        std::thread::sleep(dice.time(Duration::from_millis(400)));
        disk::empty(&out(scene));
        full
    }),
    kind("make-disk-read-only", 2, Needs::Disk, |scene, _| disk::read_only(&out(scene))),
    kind("lose-disk", 1, Needs::Disk, |scene, _| {
        disk::mount(&out(scene), 1 << 16) && disk::read_only(&out(scene))
    }),
    kind("truncate-record", 1, Needs::Results, |scene, dice| damage::truncate(scene, dice, "campaign.json")),
    kind("corrupt-record", 1, Needs::Results, |scene, dice| damage::corrupt(scene, dice, "campaign.json")),
    kind("delete-record", 1, Needs::Results, |scene, _| damage::delete(scene, "campaign.json")),
    kind("truncate-failure", 1, Needs::Results, |scene, dice| {
        damage::of_a_failure(scene, dice, "failure.json", damage::cut)
    }),
    kind("corrupt-failure", 1, Needs::Results, |scene, dice| {
        damage::of_a_failure(scene, dice, "failure.json", damage::flip)
    }),
    kind("corrupt-schedule", 1, Needs::Results, |scene, dice| {
        damage::of_a_failure(scene, dice, "schedule.bin", damage::flip)
    }),
    kind("corrupt-dump", 1, Needs::Results, |scene, dice| {
        damage::of_a_failure(scene, dice, "dump.dmp", damage::flip)
    }),
    kind("delete-a-failure", 1, Needs::Results, damage::delete_a_failure),
    kind("delete-failures", 1, Needs::Results, |scene, _| damage::delete(scene, "failures")),
    kind("delete-campaign", 1, Needs::Results, |scene, _| damage::delete(scene, "")),
    kind("delete-results", 1, Needs::Results, |scene, _| damage::delete_out(scene)),
    kind("delete-log", 1, Needs::Results, |scene, _| damage::delete(scene, "host.log")),
    kind("corrupt-history", 1, Needs::Results, |scene, dice| {
        damage::history(scene, dice, "history.sqlite", damage::flip)
    }),
    kind("truncate-history", 1, Needs::Results, |scene, dice| {
        damage::history(scene, dice, "history.sqlite", damage::cut)
    }),
    kind("delete-history", 1, Needs::Results, |scene, dice| {
        damage::history(scene, dice, "history.sqlite", damage::remove)
    }),
    kind("corrupt-history-log", 1, Needs::Results, |scene, dice| {
        damage::history(scene, dice, "history.sqlite-wal", damage::flip)
    }),
    kind("truncate-history-index", 1, Needs::Results, |scene, dice| {
        damage::history(scene, dice, "history.sqlite-shm", damage::cut)
    }),
    kind("limit-file-size", 2, Needs::FileSize, |_, _| true),
    kind("limit-open-files", 2, Needs::Files, |_, _| true),
    kind("limit-memory", 2, Needs::Memory, |_, _| true),
    kind("limit-open-files-later", 1, Needs::Results, limit_files_later),
    kind("clock-jumps-forward", 1, Needs::Clock, |scene, dice| shift(scene, 1 << (5 + dice.below(25)))),
    kind("clock-jumps-back", 1, Needs::Clock, |scene, dice| shift(scene, -(1 << (5 + dice.below(25))))),
    kind("tear-pipe", 2, Needs::Nothing, |scene, _| {
        scene.done.unread = true;
        scene.tap.tear();
        true
    }),
    kind("stall-pipe", 1, Needs::Nothing, |scene, _| {
        scene.done.unread = true;
        scene.tap.stall();
        true
    }),
    kind("no-streams", 1, Needs::NoStreams, |_, _| true),
    kind("garbage-requests", 4, Needs::Service, visitors::garbage),
    kind("slow-requests", 4, Needs::Service, visitors::slow),
    kind("many-visitors", 4, Needs::Service, visitors::crowd),
];

/// Draws the kinds of faults of a campaign, and what it has to be started with.
pub(crate) fn draw(dice: &mut Dice, mode: Mode, disks: bool) -> (Vec<&'static Kind>, Setup) {
    // In half of all campaigns nothing may be lost at all.
    let gentle = dice.once_in(2);
    let fits = |kind: &&Kind| match kind.needs {
        needs if gentle && needs.loses() => false,
        Needs::Disk => disks,
        Needs::Service => mode == Mode::Serve,
        Needs::Randomizer => matches!(mode, Mode::Randomized | Mode::Serve),
        _ => true,
    };
    let pool: Vec<&Kind> =
        KINDS.iter().filter(fits).flat_map(|kind| std::iter::repeat_n(kind, kind.weight)).collect();
    let mut kinds: Vec<&Kind> = (0..2 + dice.below(9)).map(|_| *dice.one(&pool)).collect();
    let ends = |kind: &&Kind| kind.needs == Needs::End;
    let end = kinds.iter().find(|kind| ends(kind)).copied();
    kinds.retain(|kind| !ends(kind));
    kinds.extend(end);
    let mut setup = Setup::default();
    for kind in &kinds {
        match kind.needs {
            Needs::Nothing | Needs::Service | Needs::Randomizer | Needs::Results | Needs::End => {}
            Needs::Disk => setup.disk = Some(1 << (18 + dice.below(6))),
            Needs::Clock => setup.clock = true,
            Needs::FileSize => setup.limit = Some((libc::RLIMIT_FSIZE, 1 << (9 + dice.below(10)))),
            Needs::Files => setup.limit = Some((libc::RLIMIT_NOFILE, 4 + dice.below(60) as u64)),
            // Less than that, and the system cannot even load the program.
            Needs::Memory => setup.limit = Some((libc::RLIMIT_AS, (300 + dice.below(900) as u64) << 20)),
            Needs::NoStreams => setup.without_streams = true,
        }
    }
    (kinds, setup)
}

fn out(scene: &Scene) -> PathBuf {
    scene.folder.join("out")
}

/// Sends a signal to one of the processes, or to all when luck wants it.
fn send(scene: &mut Scene, dice: &mut Dice, wanted: impl Fn(&Marked) -> bool, number: i32) -> bool {
    let mut found = scene.processes(wanted);
    if found.is_empty() {
        return false;
    }
    if !dice.once_in(3) {
        found = vec![*dice.one(&found)];
    }
    found.iter().for_each(|pid| signal(*pid, number));
    true
}

fn ask(scene: &mut Scene, number: i32) -> bool {
    let lives = scene.lives();
    if lives {
        signal(scene.pid(), number);
        scene.done.asked_again |= scene.done.asked;
        scene.done.asked = true;
    }
    lives
}

fn kill_as_announced(scene: &mut Scene, _: &mut Dice) -> bool {
    // Programs and services announce nothing on this pipe.
    match scene.campaign.mode {
        Mode::Explore | Mode::Serve => appears(scene, 1500) && scene.kill_driver(),
        _ => scene.tap.until_failure(Duration::from_millis(1500)) && scene.kill_driver(),
    }
}

fn kill_as_evidence_appears(scene: &mut Scene, dice: &mut Dice) -> bool {
    let appeared = appears(scene, 1500);
    // Between making a folder and finishing what is in it there are some milliseconds.
    std::thread::sleep(dice.time(Duration::from_millis(12)));
    appeared && scene.kill_driver()
}

/// Waits for another folder of a failure; looks all the time, to be there in the same moment.
fn appears(scene: &Scene, patience_ms: u64) -> bool {
    let before = scene.failures();
    let end = std::time::Instant::now() + Duration::from_millis(patience_ms);
    while std::time::Instant::now() < end {
        if scene.failures().iter().any(|folder| !before.contains(folder)) {
            return true;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    false
}

fn kill_everything(scene: &mut Scene, _: &mut Dice) -> bool {
    let lives = scene.kill_driver();
    marked(&scene.mark).iter().for_each(|process| signal(process.pid, libc::SIGKILL));
    lives
}

/// Stops processes, and lets them go on after a while.
fn pause(scene: &mut Scene, pids: &[i32], dice: &mut Dice) -> bool {
    if pids.is_empty() || !scene.lives() {
        return false;
    }
    pids.iter().for_each(|pid| signal(*pid, libc::SIGSTOP));
    std::thread::sleep(dice.time(Duration::from_millis(700)));
    pids.iter().for_each(|pid| signal(*pid, libc::SIGCONT));
    true
}

fn limit_files_later(scene: &mut Scene, dice: &mut Dice) -> bool {
    let most = 3 + dice.below(30) as u64;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit is read only, and nobody asks for the old one.
    let set = unsafe {
        libc::prlimit(scene.pid(), libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()) == 0
    };
    scene.done.strained |= set;
    scene.done.lossy |= set;
    set
}

fn shift(scene: &mut Scene, seconds: i64) -> bool {
    let path: &Path = &scene.folder.join("clock");
    // In place: the file is mapped into the driver.
    let file = std::fs::OpenOptions::new().write(true).open(path);
    file.is_ok_and(|mut file| std::io::Write::write_all(&mut file, &seconds.to_le_bytes()).is_ok())
}
