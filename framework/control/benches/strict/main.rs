//! What strict mode costs: `cargo bench -p waylay-control --bench strict`.
//!
//! The benchmark starts itself again under the library, once per line of the table, as the host or as the program;
//! each line is CPU time and wall time of that process, so a loaded machine only spoils the wall time. For a profiler,
//! one line alone: `… --bench strict -- one carrier pct:depth=1 locks 200 2`; or only whole programs: `… -- whole`.

mod comparison;
#[path = "../../tests/harness/mod.rs"]
mod harness;

use std::ffi::{CString, c_void};
use std::io::Write;
use std::process::{Command, Stdio};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use libc::{pthread_mutex_t, pthread_t};
use waylay_control_protocol::{
    BEGIN_RUN, BeginRun, END_RUN, EndRun, REGION_VARIABLE, RegionMap, RunSummary, Settings, Switching,
};
use waylay_schedule::RunParameters;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["host", body, runs, threads] => host(body, parse(runs), parse(threads)),
        ["locks", count] => locks(parse(count)),
        ["free", runs] => comparison::free(parse(runs)),
        ["shuttle", scheduler, runs] => comparison::shuttle(scheduler, parse(runs)),
        ["whole"] => whole_programs(),
        ["one", switching, strategy, body, runs, threads] => {
            let switching = if *switching == "baton" { Switching::Baton } else { Switching::Carrier };
            let line = in_process(switching, strategy, body, parse(runs), parse(threads));
            println!("{:.1} ns of CPU per step", line.times.cpu / line.steps * 1e9);
        }
        _ => table(),
    }
}

fn parse<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("the benchmark passes itself numbers")
}

/// Both clocks, in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) cpu: f64,
    pub(crate) wall: f64,
}

pub(crate) fn measure(work: impl FnOnce()) -> Times {
    let (cpu, wall) = (cpu_seconds(), Instant::now());
    work();
    Times { cpu: cpu_seconds() - cpu, wall: wall.elapsed().as_secs_f64() }
}

fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes into the local.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

// ---- the bodies that run under control ----

struct Mutex(std::cell::UnsafeCell<pthread_mutex_t>);

// SAFETY: a mutex is made to be shared.
unsafe impl Sync for Mutex {}

static FIRST: Mutex = Mutex(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static SECOND: Mutex = Mutex(std::cell::UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

fn locked(mutex: &Mutex) {
    // SAFETY: the mutex is initialised, and unlocked by the thread that locked it.
    unsafe {
        libc::pthread_mutex_lock(mutex.0.get());
        libc::pthread_mutex_unlock(mutex.0.get());
    }
}

extern "C" fn two_locks(rounds: *mut c_void) -> *mut c_void {
    for _ in 0..rounds as usize {
        locked(&FIRST);
    }
    locked(&SECOND);
    for _ in 0..rounds as usize {
        locked(&FIRST);
    }
    null_mut()
}

extern "C" fn yields(count: *mut c_void) -> *mut c_void {
    for _ in 0..count as usize {
        // SAFETY: no arguments.
        unsafe { libc::sched_yield() };
    }
    null_mut()
}

extern "C" fn locks_only(count: *mut c_void) -> *mut c_void {
    for _ in 0..count as usize {
        locked(&FIRST);
    }
    null_mut()
}

fn run_threads(threads: usize, routine: extern "C" fn(*mut c_void) -> *mut c_void, argument: usize) {
    let mut handles: Vec<pthread_t> = vec![0; threads];
    for handle in &mut handles {
        // SAFETY: the routine only uses its argument as a number.
        let error = unsafe { libc::pthread_create(handle, null(), routine, argument as *mut c_void) };
        assert_eq!(error, 0);
    }
    for handle in handles {
        // SAFETY: created above, joined once.
        unsafe { libc::pthread_join(handle, null_mut()) };
    }
}

/// Rounds of the pair of threads whose schedules are counted.
pub(crate) const ROUNDS: usize = 5;

/// Steps of that pair: what a series of its schedules has learned after the first.
const PAIR_STEPS: u64 = 52;

/// Locks or yields of all threads together where single steps are measured.
const OPERATIONS: usize = 100_000;

/// Two threads, `4 * rounds + 2` lock operations each: about 50 steps for 5 rounds.
pub(crate) fn schedule_of_two(rounds: usize) {
    run_threads(2, two_locks, rounds);
}

/// Uncontrolled locking, as a program does it that is only accompanied by the library.
fn locks(count: usize) {
    let times = measure(|| {
        locks_only(count as *mut c_void);
    });
    println!("{} {} 0 0", times.cpu, times.wall);
}

/// Repeats a body under control and prints CPU seconds, wall seconds, steps and switches.
fn host(body: &str, runs: u64, threads: usize) {
    let find = |name: &str| {
        let name = CString::new(name).expect("no NUL inside");
        // SAFETY: the name is NUL-terminated.
        let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        assert!(!at.is_null(), "the library is preloaded");
        at
    };
    // SAFETY: the library exports these functions with these types.
    let (begin, end) = unsafe {
        let begin: BeginRun = std::mem::transmute(find(BEGIN_RUN));
        let end: EndRun = std::mem::transmute(find(END_RUN));
        (begin, end)
    };
    let (mut steps, mut switches) = (0, 0);
    let mut repeat = |from: u64, to: u64| {
        (steps, switches) = (0, 0);
        for run in from..to {
            let mut summary = RunSummary::default();
            // SAFETY: one thread drives the runs, in turn.
            unsafe {
                assert_eq!(begin(run), 0);
                match body {
                    "pair" => schedule_of_two(ROUNDS),
                    "locks" => run_threads(threads, locks_only, OPERATIONS / threads),
                    _ => run_threads(threads, yields, OPERATIONS / threads),
                }
                end(0, &raw mut summary);
            }
            steps += summary.steps;
            switches += summary.switches;
        }
    };
    repeat(0, runs / 10 + 1);
    let times = measure(|| repeat(runs / 10 + 1, runs / 10 + 1 + runs));
    println!("{} {} {steps} {switches}", times.cpu, times.wall);
}

// ---- the table ----

/// What a benchmark process printed.
struct Line {
    times: Times,
    steps: f64,
    switches: f64,
}

fn library() -> std::path::PathBuf {
    let own = std::env::current_exe().expect("a benchmark knows its own path");
    own.with_file_name("libwaylay_control.so")
}

/// What a strategy is told, with what is known about the body's length as in all runs but the first of a series.
fn parameters(strategy: &str, steps: u64) -> String {
    serde_json::to_string(&RunParameters { steps, ..RunParameters::of(strategy) }).expect("plain data")
}

fn start_self(arguments: &[&str], region: Option<&RegionMap>) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a benchmark knows its own path"));
    command.args(arguments).stdin(Stdio::null());
    if let Some(region) = region {
        let descriptor = region.descriptor().expect("our own region");
        command.env("LD_PRELOAD", library()).env(REGION_VARIABLE, descriptor.to_string());
    }
    command
}

fn output_of(mut command: Command) -> Line {
    let output = command.stderr(Stdio::inherit()).output().expect("the benchmark starts itself");
    assert!(output.status.success(), "{:?}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().map(parse).collect();
    Line { times: Times { cpu: numbers[0], wall: numbers[1] }, steps: numbers[2], switches: numbers[3] }
}

fn in_process(switching: Switching, strategy: &str, body: &str, runs: u64, threads: usize) -> Line {
    let mut region = RegionMap::create().expect("a region");
    let mut settings = Settings::new(switching, 1, 0);
    settings.in_process = 1;
    settings.max_steps = 0;
    let steps = if body == "pair" { PAIR_STEPS } else { 2 * OPERATIONS as u64 };
    region.prepare(settings, &parameters(strategy, steps)).expect("parameters fit");
    output_of(start_self(&["host", body, &runs.to_string(), &threads.to_string()], Some(&region)))
}

fn table() {
    println!("{:<46} {:>12} {:>12} {:>14}", "", "CPU", "wall", "rate");
    for (switching, name, runs) in
        [(Switching::Carrier, "carrier", 200_000), (Switching::Baton, "baton", 20_000)]
    {
        schedules(switching, name, runs);
    }
    comparisons();
    steps_and_switches();
    thread_counts();
    whole_programs();
    idle();
}

/// Prints what a schedule of the pair costs; returns the CPU seconds of one.
fn schedule(what: &str, line: &Line, runs: u64) -> f64 {
    let each = |total: f64| total / runs as f64;
    let (cpu, wall) = (each(line.times.cpu), each(line.times.wall));
    print!("{what:<46} {:>9.2} us {:>9.2} us {:>10.0}/s", cpu * 1e6, wall * 1e6, 1.0 / cpu);
    if line.steps > 0.0 {
        print!("   {:.1} steps, {:.1} switches", each(line.steps), each(line.switches));
    }
    println!();
    cpu
}

fn schedules(switching: Switching, name: &str, runs: u64) {
    for strategy in ["pct:depth=2", "random", "pos", "surw"] {
        let line = in_process(switching, strategy, "pair", runs, 2);
        schedule(&format!("schedule of 2 threads, {name}, {strategy}"), &line, runs);
    }
}

/// The same logic free-running and in shuttle, turn by turn with ours, best of each: ratios of one moment.
fn comparisons() {
    const TURNS: usize = 3;
    let best = |mut measure: Box<dyn FnMut() -> Line>| {
        let lines = (0..TURNS).map(|_| measure());
        lines.min_by(|a, b| a.times.cpu.total_cmp(&b.times.cpu)).expect("there are turns")
    };
    const FREE: u64 = 20_000;
    const OTHERS: u64 = 50_000;
    let free = best(Box::new(|| output_of(start_self(&["free", &FREE.to_string()], None))));
    let free = schedule("the same, free-running, new threads each time", &free, FREE);
    for (ours, theirs) in [("pct:depth=2", "pct"), ("random", "random")] {
        let carrier = best(Box::new(move || in_process(Switching::Carrier, ours, "pair", OTHERS, 2)));
        let carrier = schedule(&format!("the same, carrier, {ours}"), &carrier, OTHERS);
        let shuttle =
            best(Box::new(move || output_of(start_self(&["shuttle", theirs, &OTHERS.to_string()], None))));
        let shuttle = schedule(&format!("the same, shuttle 0.9, {theirs}"), &shuttle, OTHERS);
        println!(
            "{:<46} {:>9.1} x {:>9.1} x",
            format!("free-running and shuttle take longer by ({ours})"),
            free / carrier,
            shuttle / carrier
        );
    }
}

fn steps_and_switches() {
    let still = in_process(Switching::Carrier, "pct:depth=1", "locks", 50, 2);
    let per_step = still.times.cpu / still.steps * 1e9;
    println!(
        "{:<46} {per_step:>9.1} ns {:>9.1} ns",
        "step without a switch (lock or unlock)",
        still.times.wall / still.steps * 1e9
    );
    let still = in_process(Switching::Carrier, "pct:depth=1", "yields", 50, 1);
    println!(
        "{:<46} {:>9.1} ns {:>9.1} ns",
        "step without a switch, nothing but the step",
        still.times.cpu / still.steps * 1e9,
        still.times.wall / still.steps * 1e9
    );
    for (switching, name, runs) in [(Switching::Carrier, "carrier", 50), (Switching::Baton, "baton", 5)] {
        let quiet = in_process(switching, "pct:depth=1,starvation=off", "yields", runs, 1);
        let busy = in_process(switching, "random", "yields", runs, 2);
        let per_yield = quiet.times.cpu / quiet.steps;
        let per_switch = (busy.times.cpu - busy.steps * per_yield) / busy.switches * 1e9;
        println!("{:<46} {per_switch:>9.1} ns", format!("switch, {name} (random walk, step subtracted)"));
    }
    bare_hand_over();
}

/// What the kernel takes to hand one processor from one thread to another with nothing but futexes: the floor of the baton.
fn bare_hand_over() {
    const TURNS: u32 = 100_000;
    static TURN: AtomicU32 = AtomicU32::new(0);
    fn take_turns(parity: u32) {
        for turn in (parity..TURNS).step_by(2) {
            loop {
                let now = TURN.load(Ordering::Acquire);
                if now == turn {
                    break;
                }
                // SAFETY: the word is a static.
                unsafe {
                    libc::syscall(
                        libc::SYS_futex,
                        TURN.as_ptr(),
                        libc::FUTEX_WAIT,
                        now,
                        null::<libc::timespec>(),
                    )
                };
            }
            TURN.store(turn + 1, Ordering::Release);
            // SAFETY: the same.
            unsafe { libc::syscall(libc::SYS_futex, TURN.as_ptr(), libc::FUTEX_WAKE, 1) };
        }
    }
    let times = std::thread::spawn(|| {
        // SAFETY: the set is a local; the thread that inherits it and this one end here.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
        }
        measure(|| {
            let other = std::thread::spawn(|| take_turns(1));
            take_turns(0);
            other.join().expect("takes turns");
        })
    })
    .join()
    .expect("measures");
    let each = times.cpu / f64::from(TURNS) * 1e9;
    println!("{:<46} {each:>9.1} ns", "switch by futexes on one processor, no library");
}

fn thread_counts() {
    for strategy in ["random", "pct:depth=3", "pos"] {
        for threads in [2, 16, 128, 1000] {
            let line = in_process(Switching::Carrier, strategy, "locks", 10, threads);
            println!(
                "{:<46} {:>9.1} ns {:>9.1} ns {:>10.2} M steps/s",
                format!("step, {threads} threads, {strategy}"),
                line.times.cpu / line.steps * 1e9,
                line.times.wall / line.steps * 1e9,
                line.steps / line.times.cpu / 1e6,
            );
        }
    }
}

/// CPU seconds of this process and of all it waited for, theirs included.
fn cpu_seconds_with_children() -> f64 {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN]
        .map(|who| {
            // SAFETY: zeroes are a valid record, and the kernel fills it.
            let usage = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::getrusage(who, &raw mut usage);
                usage
            };
            [usage.ru_utime, usage.ru_stime]
                .map(|time| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6)
                .iter()
                .sum()
        })
        .iter()
        .sum()
}

fn whole_programs() {
    const RUNS: u64 = 1000;
    let print = |what: &str, cpu: f64, wall: f64| {
        let (cpu_each, wall_each) = (cpu / RUNS as f64 * 1e6, wall / RUNS as f64 * 1e6);
        println!("{what:<46} {cpu_each:>9.1} us {wall_each:>9.1} us {:>10.0}/s", RUNS as f64 / cpu);
    };
    let cpu = cpu_seconds_with_children();
    let floor = measure(|| {
        for _ in 0..RUNS {
            // SAFETY: the child ends at once.
            unsafe {
                match libc::fork() {
                    0 => libc::_exit(0),
                    child => libc::waitpid(child, null_mut(), 0),
                };
            }
        }
    });
    print("fork and wait, nothing else", cpu_seconds_with_children() - cpu, floor.wall);
    for (switching, name) in [(Switching::Carrier, "carrier"), (Switching::Baton, "baton")] {
        let cpu = cpu_seconds_with_children();
        let mut server = harness::Program::build("order.c").serve();
        let parameters = parameters("pct:depth=2", PAIR_STEPS);
        let times = measure(|| {
            for run in 0..RUNS {
                let outcome = server.run(Settings::new(switching, 1, run), &parameters);
                assert_eq!(outcome.signal, None);
                assert!(outcome.steps > 40, "the program is under control: {outcome:?}");
            }
        });
        drop(server);
        print(&format!("whole program, fork server, {name}"), cpu_seconds_with_children() - cpu, times.wall);
    }
}

fn idle() {
    const COUNT: &str = "50000000";
    let mut without = f64::MAX;
    let mut with = f64::MAX;
    for _ in 0..5 {
        without = without.min(output_of(start_self(&["locks", COUNT], None)).times.cpu);
        let mut region = RegionMap::create().expect("a region");
        region.prepare(Settings::new(Switching::Free, 0, 0), "").expect("no parameters");
        with = with.min(output_of(start_self(&["locks", COUNT], Some(&region))).times.cpu);
    }
    let _ = std::io::stdout().flush();
    println!(
        "{:<46} {:>+11.2} %",
        "library loaded but idle, locks only (best of 5)",
        (with / without - 1.0) * 100.0
    );
}
