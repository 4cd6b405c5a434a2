//! A storm: random campaigns of every mode, random faults while they run, and an oracle after each.
//!
//! ```text
//! seed, number ──dice──> campaign + faults ──scene──> processes, folder ──oracle──> rules that do not hold
//! ```
//!
//! What is done follows from the seed and the number of the campaign; in which moment of a process it hits does not, so a
//! violation may need its line several times to come back.

mod campaigns;
mod damage;
mod dice;
mod disk;
mod faults;
mod oracle;
mod processes;
mod report;
mod scene;
mod tap;
mod visitors;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use waylay_dist::Seed;

use campaigns::{Campaign, Shared};
use dice::Dice;
pub(crate) use report::Report;
use scene::Scene;

/// When a storm is over.
#[derive(Clone, Copy)]
pub(crate) enum Length {
    /// After that many campaigns, numbered from 0.
    Campaigns(u32),
    /// After that time.
    Time(Duration),
    /// After the campaign with that number, which is the only one; its folder stays.
    Only(u32),
}

/// What a storm is.
pub(crate) struct Storm {
    pub(crate) seed: Seed,
    pub(crate) length: Length,
    /// Campaigns at once.
    pub(crate) lanes: usize,
}

impl Storm {
    /// Rages; every violation is told as it is seen, too.
    pub(crate) fn rage(&self) -> Report {
        let shared = Shared::build();
        let report = Mutex::new(Report::new(self.seed));
        let next = AtomicU32::new(0);
        let began = Instant::now();
        let lanes = if matches!(self.length, Length::Only(_)) { 1 } else { self.lanes };
        std::thread::scope(|scope| {
            for _ in 0..lanes {
                scope.spawn(|| {
                    let disks = disk::of_its_own();
                    if !disks {
                        let reason = "no disks were filled or made read-only: that needs the right to mount";
                        report.lock().expect("nobody panics with it").left_out = Some(reason);
                    }
                    loop {
                        let taken = next.fetch_add(1, Ordering::Relaxed);
                        let number = match self.length {
                            Length::Campaigns(count) if taken < count => taken,
                            Length::Time(time) if began.elapsed() < time => taken,
                            Length::Only(number) if taken == 0 => number,
                            _ => return,
                        };
                        self.campaign(number, &shared, disks, &report);
                    }
                });
            }
        });
        report.into_inner().expect("nobody panicked with it")
    }

    fn campaign(&self, number: u32, shared: &Shared, disks: bool, report: &Mutex<Report>) {
        let mut dice = Dice::of(self.seed, number);
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path();
        let campaign = Campaign::draw(&mut dice, shared, folder);
        let (kinds, setup) = faults::draw(&mut dice, campaign.mode, disks);
        let mode = campaign.mode;
        let out = folder.join("out");
        if let Some(bytes) = setup.disk {
            disk::mount(&out, bytes);
        }
        let mark = format!("{}-{}-{number}", std::process::id(), self.seed);
        let mut moments: Vec<Duration> =
            kinds.iter().map(|_| dice.time(campaign.length + Duration::from_millis(300))).collect();
        moments.sort();
        let mut scene = Scene::start(campaign, setup, shared, folder, &mark);
        let mut done = Vec::new();
        for (kind, moment) in kinds.iter().zip(moments) {
            std::thread::sleep(moment.saturating_sub(scene.began.elapsed()));
            if !scene.lives() {
                break;
            }
            if (kind.deed)(&mut scene, &mut dice) {
                done.push(kind.name.to_owned());
            }
        }
        let ended = scene.finish();
        let broken = oracle::judge(&mut scene, ended);
        let deeds = fs::read_to_string(folder.join("deeds.txt")).unwrap_or_default();
        done.extend(deeds.lines().map(|deed| format!("test:{deed}")));
        let keep = matches!(self.length, Length::Only(_));
        if keep {
            println!("campaign {number} ({mode:?}) ended as {ended:?}; faults: {done:?}");
        }
        let mut report = report.lock().expect("nobody panics with it");
        let before = report.violations.len();
        report.add(number, mode, &done, broken);
        for violation in &report.violations[before..] {
            eprintln!("VIOLATION {}", report.line(violation));
        }
        drop(report);
        if keep {
            keep_folder(&out, place);
        } else {
            disk::unmount(&out);
        }
    }
}

/// Leaves a campaign's folder for people to look at. What was on a disk of its own is copied out of it.
fn keep_folder(out: &Path, place: tempfile::TempDir) {
    let copy = place.path().join("out-copy");
    let _ = std::process::Command::new("cp").arg("-a").arg(out).arg(&copy).status();
    disk::unmount(out);
    println!("its folder is {}", place.keep().display());
}

/// How many kinds of faults there are from outside, and from inside.
pub(crate) const KINDS: (usize, usize) = (faults::KINDS.len(), campaigns::ATTACKS.len());
