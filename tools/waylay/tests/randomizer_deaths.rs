//! A randomizer at work: out of the way of evidence, started again when it dies or stands still, and nothing left of it.

#![cfg(target_os = "linux")] // looks at tracers; `windows/endings.rs` and `windows/faults.rs` have the twins

mod support;

use std::fs;
use std::path::Path;
use std::time::Duration;

use support::{Running, Workplace, is_alive, kill, list, number, text};

/// Windows without rest, several threads at a time.
const FULL_SPEED: &str = "  [scenario.randomizer]\n  period = { uniform = { min = \"0s\", max = \"100us\" } }\n\
                          \x20 suspend = { uniform = { min = \"0s\", max = \"1ms\" } }\n\
                          \x20 count = { uniform = { min = 1, max = 8 } }\n";

fn scenario(duration: &str, randomizer: &str, tests: &str) -> String {
    format!("[[scenario]]\nname = \"shaken\"\nduration = \"{duration}\"\n{randomizer}{tests}")
}

fn test(plugin: &str, name: &str, more: &str) -> String {
    format!("[[scenario.test]]\nplugin = \"{plugin}\"\nname = \"{name}\"\n{more}\n")
}

/// A campaign that Ctrl-C ends, also where a shell had it ignored.
fn start_interruptible(place: &Workplace) -> Running {
    let mut command = place.command(&["run", "waylay.toml", "--json"]);
    // SAFETY: only sets a signal back to its default, between fork and exec.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    place.start_command(command)
}

/// The randomizers that the command has started and that live.
fn randomizers(running: &Running) -> Vec<i32> {
    let pid = running.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let is_randomizer = |pid: &i32| {
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).nth(1) == Some(b"randomizer") && is_alive(*pid)
    };
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_randomizer).collect()
}

/// The threads of a process that somebody traces just now.
fn traced_threads(pid: i32) -> usize {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let status = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("status")).ok());
    status.filter(|status| !status.contains("TracerPid:\t0\n")).count()
}

/// The number of threads in a minidump.
fn threads_in_dump(path: &Path) -> u32 {
    const THREAD_LIST: u32 = 3;
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(&bytes[..4], b"MDMP", "{}", path.display());
    let (streams, directory) = (word(8) as usize, word(12) as usize);
    let list = (0..streams).map(|i| directory + 12 * i).find(|at| word(*at) == THREAD_LIST).expect("a list");
    word(word(list + 8) as usize)
}

/// Checks the dumps of all occurrences of a failure; returns how many there are.
fn check_dumps(folder: &Path, least: u32) -> usize {
    let mut places = vec![folder.to_owned()];
    let again = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    places.extend(again.filter(|path| path.is_dir()));
    for place in &places {
        let stacks = fs::read_to_string(place.join("stacks.txt")).expect("stacks");
        let threads = threads_in_dump(&place.join("dump.dmp"));
        assert!(threads >= least, "{}: {threads} threads\n{stacks}", place.display());
        assert!(place.join("randomizer.log").exists(), "{}", place.display());
    }
    places.len()
}

#[test]
fn evidence_is_complete_with_the_randomizer_at_full_speed() {
    let place = Workplace::new();
    place.compile(
        "crowd",
        r#"
static void *wait_for_ever(void *unused) { (void)unused; for (;;) pause(); return 0; }
static int32_t iterate(probe *self, waylay_context *worker) {
  (void)self; (void)worker;
  pthread_t id;
  for (int i = 0; i < 8; i++) pthread_create(&id, 0, wait_for_ever, 0);
  usleep(10000);
  *(volatile int *)8 = 1;
  return WAYLAY_OK;
}"#,
    );
    place.compile(
        "jam",
        r#"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *wait_for_lock(void *unused) { (void)unused; pthread_mutex_lock(&lock); return 0; }
static int32_t iterate(probe *self, waylay_context *worker) {
  (void)self; (void)worker;
  pthread_t id[8];
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 8; i++) pthread_create(&id[i], 0, wait_for_lock, 0);
  for (int i = 0; i < 8; i++) pthread_join(id[i], 0);
  return WAYLAY_OK;
}"#,
    );
    let keep = "[evidence]\ndumps-per-signature = 1000\n";
    for (plugin, kind, more, count) in [
        ("crowd", "crash", "max-failures = 12\nworkers = 1\n", 12),
        ("jam", "deadlock", "max-failures = 4\nworkers = 1\nhang-timeout = \"300ms\"\n", 4),
    ] {
        let file = format!("./lib{plugin}.so");
        place.write(
            "waylay.toml",
            &format!("{}{keep}", scenario("100s", FULL_SPEED, &test(&file, "probe", more))),
        );
        let ran = place.run(1, &[]);
        let failure = ran.failure(plugin, "probe");
        assert_eq!((failure.kind(), failure.count()), (kind, count), "{}", ran.stderr);
        assert_eq!(failure.json["gaps"], serde_json::json!([]), "{:#}", failure.json);
        // The worker, the host's own thread, and those that the test started.
        assert_eq!(check_dumps(&failure.folder, 10) as u64, count);
        let record = &ran.json()["campaign"]["scenarios"][0]["randomizer"];
        assert!(number(&record["suspensions"]) > 0 && number(&record["quiesced"]) > 0, "{record:#}");
    }
}

#[test]
fn a_randomizer_that_is_killed_or_stopped_is_replaced_and_nobody_is_blamed() {
    // A thread that a stopped randomizer holds is late for certain after 1 s; that is the randomizer's doing.
    let map = test("waylay_libraries", "map", "hang-timeout = \"1s\"");
    let place = Workplace::with(&scenario("100s", FULL_SPEED, &map));
    let running = start_interruptible(&place);
    let first = |running: &Running| randomizers(running).first().copied();
    let mut last = 0;
    for signal in [libc::SIGKILL, libc::SIGSTOP, libc::SIGKILL] {
        running.until("a randomizer that holds threads", |running| {
            first(running).is_some_and(|pid| {
                pid != last && running.hosts().first().is_some_and(|host| traced_threads(*host) > 0)
            })
        });
        last = first(&running).expect("a randomizer");
        // SAFETY: a plain call.
        unsafe { libc::kill(last, signal) };
        running.until("it is gone", |_| !is_alive(last));
    }
    // One that has done something: what the others had done went with them.
    running.until("another one that holds threads", |running| {
        first(running).is_some_and(|pid| {
            pid != last && running.hosts().first().is_some_and(|host| traced_threads(*host) > 0)
        })
    });
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code(), Some(0), "{}\n{}", ran.stderr, ran.stdout);
    let record = &ran.json()["campaign"]["scenarios"][0]["randomizer"];
    assert_eq!(number(&ran.json()["campaign"]["hosts"]), 1, "the host goes on");
    assert!(number(&record["restarted"]) >= 3 && number(&record["killed"]) >= 1, "{record:#}");
}

/// It says how it goes five times a second, but this one never gets that far.
#[test]
fn a_randomizer_that_is_stopped_before_its_first_words_is_replaced() {
    let nothing = test("waylay_faults", "nothing", "");
    let place = Workplace::with(&scenario("100s", FULL_SPEED, &nothing));
    let running = start_interruptible(&place);
    running.until("a randomizer", |running| !randomizers(running).is_empty());
    let stopped = randomizers(&running)[0];
    // SAFETY: a plain call.
    unsafe { libc::kill(stopped, libc::SIGSTOP) };
    running.until("another one that holds threads", |running| {
        let other = randomizers(running).first().is_some_and(|pid| *pid != stopped);
        other && running.hosts().first().is_some_and(|host| traced_threads(*host) > 0)
    });
    // What it holds counts when it is let go.
    running.until("it lets go", |running| {
        running.hosts().first().is_some_and(|host| traced_threads(*host) == 0)
    });
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code(), Some(0), "{}\n{}", ran.stderr, ran.stdout);
    let record = &ran.json()["campaign"]["scenarios"][0]["randomizer"];
    assert_eq!((number(&record["restarted"]), number(&record["killed"])), (1, 1), "{record:#}");
}

#[test]
fn when_the_driver_is_killed_nothing_is_left() {
    let map = test("waylay_libraries", "map", "");
    let place = Workplace::with(&scenario("100s", FULL_SPEED, &map));
    for _ in 0..3 {
        let running = place.start(&["run", "waylay.toml"]);
        running.until("threads are held", |running| {
            running.hosts().first().is_some_and(|host| traced_threads(*host) > 0)
        });
        let processes = [running.hosts(), randomizers(&running)].concat();
        assert_eq!(processes.len(), 2);
        kill(running.pid());
        running.until("host and randomizer are gone", |_| processes.iter().all(|pid| !is_alive(*pid)));
        running.finish();
    }
}

#[test]
fn a_host_that_is_kept_for_a_debugger_is_left_alone() {
    let deadlock = test("waylay_faults", "deadlock", "hang-timeout = \"500ms\"\nmax-failures = 1");
    let place = Workplace::with(&scenario("60s", FULL_SPEED, &deadlock));
    let ran = place.run(1, &["--keep-hung"]);
    let kept: Vec<i32> = list(&ran.json()["kept_hosts"]).iter().map(|pid| number(pid) as i32).collect();
    assert_eq!(kept.len(), 1, "{}", ran.stderr);
    let (alive, traced) = (is_alive(kept[0]), traced_threads(kept[0]));
    kill(kept[0]);
    assert_eq!((alive, traced), (true, 0));
}

#[test]
fn a_debugger_in_the_way_is_named() {
    let nothing = test("waylay_faults", "nothing", "");
    let place = Workplace::with(&scenario("100s", FULL_SPEED, &nothing));
    let running = start_interruptible(&place);
    running.until("a host at work", |running| {
        running.hosts().first().is_some_and(|host| traced_threads(*host) > 0)
    });
    let host = running.hosts()[0];
    let find_worker = || {
        let threads = fs::read_dir(format!("/proc/{host}/task")).expect("threads");
        let is_worker = |path: &Path| {
            fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("nothing#"))
        };
        let mut workers = threads.flatten().map(|entry| entry.path()).filter(|path| is_worker(path));
        workers.next().and_then(|path| path.file_name()?.to_str()?.parse::<i32>().ok())
    };
    // A thread that was just started has not set its name yet.
    running.until("a worker with a name", |_| find_worker().is_some());
    let worker = find_worker().expect("a worker");
    // SAFETY: the request takes no memory.
    running.until("attached", |_| unsafe { libc::ptrace(libc::PTRACE_SEIZE, worker, 0_usize, 0_usize) } == 0);
    std::thread::sleep(Duration::from_millis(1500));
    running.signal(libc::SIGINT);
    running.until("the host is over", |running| {
        let mut status = 0;
        // SAFETY: `status` outlives the call. A traced thread that ended stays until its tracer took note.
        unsafe { libc::waitpid(worker, &mut status, libc::__WALL | libc::WNOHANG) };
        running.hosts().is_empty()
    });
    let ran = running.finish();
    let record = &ran.json()["campaign"]["scenarios"][0]["randomizer"];
    assert!(number(&record["refused"]) > 0, "{record:#}");
    let us = format!("(process {})", std::process::id());
    assert!(text(&record["refused_for"]).contains(&us), "{record:#}");
    assert!(ran.stderr.contains(&us), "{}", ran.stderr);
}
