//! Runs from a snapshot beside forked ones with the same seeds: what both show has to be the same.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::process::Child;
use std::sync::atomic::Ordering;

use waylay_control_protocol::{
    Fate, Instrumentation, RegionMap, Reply, SERVER_VARIABLE, ServerLink, Settings, Stretch, Switching, Told,
    most_in,
};

use super::{PATIENCE, Program, parameters};

/// What one run showed, from outside and from inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: i32,
    pub(crate) ending: u32,
    pub(crate) steps: u64,
    pub(crate) threads: u32,
    pub(crate) schedule: Vec<Stretch>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) partly_controlled: bool,
}

impl Seen {
    fn new(told: &Told<'_>, status: i32, stdout: Vec<u8>, stderr: Vec<u8>) -> Seen {
        // Whether a core was dumped is the machine's business.
        const DUMPED: i32 = 0x80;
        Seen {
            status: if status & 0x7f == 0 { status } else { status & !DUMPED },
            ending: told.report.ending.load(Ordering::Relaxed),
            steps: told.report.steps.load(Ordering::Relaxed),
            threads: told.report.threads.load(Ordering::Relaxed),
            schedule: told.schedule.to_vec(),
            stdout,
            stderr,
            partly_controlled: told.report.partly_controlled.load(Ordering::Relaxed) != 0,
        }
    }
}

/// The program in front of `main`, with files that hold what it writes.
pub(crate) struct Process {
    program: Program,
    child: Child,
    link: ServerLink,
    region: RegionMap,
    outputs: [File; 2],
    /// How often it was started.
    pub(crate) starts: u32,
}

impl Process {
    pub(crate) fn start(program: &Program) -> Process {
        Process::start_with(program, None)
    }

    /// The same, with instructions of the program as steps.
    pub(crate) fn start_with(program: &Program, wanted: Option<Instrumentation>) -> Process {
        let mut region = RegionMap::create().expect("a region");
        if let Some(wanted) = wanted {
            region.set_instrumentation(wanted);
        }
        let outputs = [c"stdout", c"stderr"].map(|name| {
            // SAFETY: the name is NUL-terminated; the descriptor is owned right away.
            unsafe {
                let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
                assert!(fd >= 0 && libc::fcntl(fd, libc::F_SETFL, libc::O_APPEND) == 0);
                File::from_raw_fd(fd)
            }
        });
        let (child, link) = spawn(program, &region, &outputs);
        Process { program: program.with_all(), child, link, region, outputs, starts: 1 }
    }

    fn renew(&mut self) {
        self.end();
        (self.child, self.link) = spawn(&self.program, &self.region, &self.outputs);
        self.starts += 1;
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn output(&self) -> [Vec<u8>; 2] {
        [&self.outputs[0], &self.outputs[1]].map(|file| {
            let mut bytes = vec![0; file.metadata().expect("a size").len() as usize];
            file.read_exact_at(&mut bytes, 0).expect("a file in memory");
            file.set_len(0).expect("a file in memory");
            bytes
        })
    }

    /// A run in a child of its own.
    pub(crate) fn fork(&mut self, settings: Settings, parameters: &str) -> Seen {
        self.region.prepare(settings, parameters).expect("parameters fit");
        let process = self.link.start(PATIENCE).expect("a run starts");
        let Some(status) = self.link.wait_end(PATIENCE).expect("the server answers") else {
            // SAFETY: the process is our grandchild and still runs.
            unsafe { libc::kill(process, libc::SIGKILL) };
            panic!("run {} hangs: {}", settings.run, self.region.text());
        };
        let [stdout, stderr] = self.output();
        Seen::new(&self.region.told(), status, stdout, stderr)
    }

    /// Runs from a snapshot; those that were given back say why.
    pub(crate) fn restore(&mut self, orders: &[(Settings, String)]) -> Vec<Result<Seen, String>> {
        let mut answers = Vec::new();
        while answers.len() < orders.len() {
            let batch = self.region.batch();
            batch.clear();
            let next = &orders[answers.len()..];
            let ordered = next.iter().take_while(|(settings, text)| batch.order(*settings, text)).count();
            assert!(ordered > 0);
            self.region.prepare(next[0].0, "").expect("nothing to fit");
            let ended = self.link.start_batch().is_ok().then(|| self.link.wait_batch(PATIENCE));
            let orderly = match ended {
                Some(Ok(Some(Reply::Made(_)))) => true,
                Some(Ok(Some(other))) => panic!("{other:?}: {}", self.region.text()),
                Some(Ok(None)) => panic!("run {} hangs", orders[answers.len()].0.run),
                _ => false,
            };
            let mut grow = false;
            for record in self.region.batch().records(ordered, most_in(PATIENCE)) {
                let record = record.expect("what the library writes can be");
                match record.fate {
                    Fate::Made => answers.push(Ok(Seen::new(
                        &record.told.told(),
                        record.status,
                        record.stdout.to_vec(),
                        record.stderr.to_vec(),
                    ))),
                    Fate::Abandoned => {
                        answers.push(Err(record.told.account().text()));
                    }
                    Fate::MoreThreads => grow = true,
                }
            }
            if !orderly {
                let status = self.child.wait().expect("our own child");
                let said = String::from_utf8_lossy(&self.output()[1]).into_owned();
                answers.push(Err(format!("died: {status} {said}{}", self.region.text())));
            }
            if grow || !orderly {
                self.renew();
            }
        }
        answers
    }
}

impl Process {
    /// Processor time that the process used, and its children that have ended.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("a process");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        // utime, stime, cutime and cstime are the 14th to 17th of all fields, the 12th to 15th behind the name.
        let ticks: u64 = fields[11..15].iter().map(|field| field.parse::<u64>().expect("a number")).sum();
        // SAFETY: plain call.
        ticks as f64 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
    }

    /// Kilobytes in memory, and mappings.
    pub(crate) fn memory(&self) -> (u64, usize) {
        let of = |file: &str| {
            std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("a process")
        };
        let status = of("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line");
        let resident = line.split_whitespace().nth(1).and_then(|number| number.parse().ok());
        (resident.expect("a number"), of("maps").lines().count())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(program: &Program, region: &RegionMap, outputs: &[File; 2]) -> (Child, ServerLink) {
    let (mut link, theirs) = ServerLink::pair().expect("a socket");
    let child = program
        .command(region)
        .env(SERVER_VARIABLE, theirs.as_raw_fd().to_string())
        .stdout(outputs[0].try_clone().expect("a descriptor"))
        .stderr(outputs[1].try_clone().expect("a descriptor"))
        .spawn()
        .expect("the program starts");
    drop(theirs);
    link.wait_ready(PATIENCE).expect("the program reaches main");
    (child, link)
}

/// What a comparison came to.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) restored: u64,
    pub(crate) given_back: BTreeMap<String, u64>,
    /// Runs in which the kernel had a say, so that they need not be equal.
    pub(crate) partly: u64,
    pub(crate) differences: Vec<String>,
    /// Runs that did not end with status 0: the comparison is about failures, too.
    pub(crate) failed: u64,
}

/// The settings and parameters of a run, as an exploration would give them.
pub(crate) fn order(run: u64) -> (Settings, String) {
    let mut settings = Settings::new(Switching::Carrier, 7, run);
    (settings.calls, settings.guard) = (1, 1);
    settings.max_steps = 200_000;
    let strategy = if run.is_multiple_of(2) { "random" } else { "pct:depth=2" };
    (settings, parameters(strategy, 4, 50, 2))
}

/// Makes runs both ways and compares them one by one.
pub(crate) fn compare(program: &Program, runs: u64) -> Comparison {
    compare_with(program, runs, None)
}

/// The same, with instructions of the program as steps.
pub(crate) fn compare_with(program: &Program, runs: u64, wanted: Option<Instrumentation>) -> Comparison {
    let [mut forks, mut snapshots] = [(); 2].map(|()| Process::start_with(program, wanted));
    let mut found = Comparison::default();
    let orders: Vec<_> = (0..runs).map(order).collect();
    for some in orders.chunks(200) {
        for ((settings, parameters), answer) in some.iter().zip(snapshots.restore(some)) {
            let restored = match answer {
                Ok(seen) => seen,
                Err(why) => {
                    *found.given_back.entry(why).or_default() += 1;
                    continue;
                }
            };
            found.restored += 1;
            let forked = forks.fork(*settings, parameters);
            found.failed += u64::from(forked.status != 0);
            if forked.partly_controlled || restored.partly_controlled {
                found.partly += 1;
            } else if forked != restored && found.differences.len() < 3 {
                let run = settings.run;
                found.differences.push(format!("run {run}: forked {forked:?}\nrestored {restored:?}"));
            }
        }
    }
    found
}
