//! A process that makes schedules of one body, and what it says about them.

use std::ffi::c_void;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Instant;

use waylay_control_protocol::{
    BEGIN_RUN, BeginRun, Begun, END_RUN, EndRun, Instrumentation, Level, REGION_VARIABLE, RegionMap,
    RunSummary, STOP_RUN, Settings, StopRun, Stretch, Switching,
};
use windows_sys::Win32::System::LibraryLoader::{GetProcAddress, LoadLibraryW};

use crate::{atomics, bodies, posix};

/// What to run.
pub(crate) struct Wanted<'a> {
    pub(crate) body: &'a str,
    pub(crate) runs: u64,
    pub(crate) seed: u64,
    pub(crate) strategy: &'a str,
    /// The first failure ends it.
    pub(crate) stop: bool,
    /// Follow this schedule.
    pub(crate) replay: &'a [Stretch],
    /// Libraries are patched.
    pub(crate) patch: bool,
    /// Steps after which a run is stopped.
    pub(crate) max_steps: u64,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Wanted {
            body: "",
            runs: 1,
            seed: 7,
            strategy: "random",
            stop: false,
            replay: &[],
            patch: false,
            max_steps: 10_000_000,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) ending: String,
    pub(crate) text: String,
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    pub(crate) steps: u64,
    pub(crate) partly: u64,
    pub(crate) threads: u64,
    pub(crate) left: u64,
    pub(crate) diverged: u64,
    /// Sites that are replaced, and that are not.
    pub(crate) sites: (u32, u32),
    /// How often the running thread changed, in all schedules.
    pub(crate) switches: u64,
    /// Real microseconds that the schedules took.
    pub(crate) microseconds: u64,
    /// Of all schedules.
    pub(crate) fingerprint: u64,
    /// The last one.
    pub(crate) schedule: Vec<Stretch>,
}

/// Runs a body in a fresh process.
pub(crate) fn run(wanted: &Wanted<'_>) -> Ran {
    let mut region = RegionMap::create().expect("a region");
    let mut settings = Settings::new(Switching::Baton, wanted.seed, 0);
    settings.in_process = 1;
    settings.max_steps = wanted.max_steps;
    let mut instrumentation = Instrumentation::new(Level::Atomics, wanted.patch);
    instrumentation.host = 1;
    region.set_instrumentation(instrumentation);
    if wanted.replay.is_empty() {
        let parameters = waylay_schedule::RunParameters::of(wanted.strategy);
        region.prepare(settings, &serde_json::to_string(&parameters).expect("text")).expect("it fits");
    } else {
        region.prepare_replay(settings, wanted.replay).expect("it fits");
    }
    let output = Command::new(std::env::current_exe().expect("a path"))
        .env("WAYLAY_CASE", format!("{} {} {}", wanted.body, wanted.runs, u8::from(wanted.stop)))
        .env(REGION_VARIABLE, region.descriptor().expect("ours").to_string())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |name: &str| {
        let mut words = said.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok()).unwrap_or(0)
    };
    let tally = &region.report().tally;
    Ran {
        status: output.status.code().unwrap_or(-1),
        ending: format!("{:?}", region.ending()),
        text: format!("{}\n{said}\n{}", region.text(), String::from_utf8_lossy(&output.stderr)),
        runs: tally.runs.load(Ordering::Relaxed),
        failures: number("failures"),
        steps: tally.steps.load(Ordering::Relaxed),
        partly: tally.partly_controlled.load(Ordering::Relaxed),
        threads: u64::from(tally.threads.load(Ordering::Relaxed)),
        left: number("left"),
        diverged: region.report().diverged.load(Ordering::Relaxed),
        sites: (
            region.report().patched.load(Ordering::Relaxed),
            region.report().refused.load(Ordering::Relaxed),
        ),
        switches: number("switches"),
        microseconds: number("microseconds"),
        fingerprint: number("fingerprint"),
        schedule: region.schedule(),
    }
}

/// The library's functions.
pub(crate) struct Library {
    pub(crate) begin: BeginRun,
    pub(crate) end: EndRun,
    pub(crate) stop: StopRun,
}

impl Library {
    /// Loads the library, which Cargo leaves beside this program.
    pub(crate) fn load() -> Library {
        use std::os::windows::ffi::OsStrExt;
        let folder = std::env::current_exe().expect("a path").parent().expect("a folder").to_owned();
        let path = folder.join("waylay_control_windows.dll");
        let wide: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
        // SAFETY: path and names end with a zero; the functions have these types.
        unsafe {
            let module = LoadLibraryW(wide.as_ptr());
            assert!(!module.is_null(), "{}: {}", path.display(), std::io::Error::last_os_error());
            let find = |name: &str| {
                let name = format!("{name}\0");
                GetProcAddress(module, name.as_ptr()).expect("exported") as *const c_void
            };
            Library {
                begin: std::mem::transmute::<*const c_void, BeginRun>(find(BEGIN_RUN)),
                end: std::mem::transmute::<*const c_void, EndRun>(find(END_RUN)),
                stop: std::mem::transmute::<*const c_void, StopRun>(find(STOP_RUN)),
            }
        }
    }
}

/// Schedules after which time and switches are counted: the first ones make what later ones use.
pub(crate) const WARM_UP: u64 = 20;

/// The process that is started: makes the runs and prints what is not in the region.
pub(crate) fn play(case: &str) {
    let mut words = case.split(' ');
    let name = words.next().unwrap_or_default();
    let body = posix::find(name).or_else(|| atomics::find(name)).unwrap_or_else(|| bodies::find(name));
    let runs: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(1);
    let stop = words.next() == Some("1");
    let library = Library::load();
    let (mut failures, mut left, mut switches) = (0, 0, 0);
    let mut fingerprint = 0xcbf2_9ce4_8422_2325_u64;
    let mut begun = Instant::now();
    for run in 0..runs {
        if run == WARM_UP {
            (begun, switches) = (Instant::now(), 0);
        }
        // SAFETY: one thread makes the runs, one after the other.
        unsafe {
            assert_eq!((library.begin)(run), Begun::Yes as u32);
            let good = body();
            if !good && stop {
                (library.stop)();
                println!("failures=1");
                return;
            }
            let mut summary = RunSummary::default();
            (library.end)(u32::from(!good), &mut summary);
            failures += u64::from(!good);
            left += u64::from(summary.left);
            switches += summary.switches;
            for word in [summary.steps, summary.switches, summary.stretches, u64::from(good)] {
                fingerprint = (fingerprint ^ word).wrapping_mul(0x0100_0000_01b3);
            }
            if summary.left > 0 {
                break;
            }
        }
    }
    println!(
        "failures={failures} left={left} switches={switches} microseconds={} fingerprint={}",
        begun.elapsed().as_micros(),
        fingerprint >> 1
    );
}
