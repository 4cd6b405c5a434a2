//! What a dashboard that five browsers look at costs a campaign with 64 workers: `cargo bench -p waylay --bench serve`.
//!
//! Two measures. Iterations per second with and without visitors, in turns, so that a loaded machine disturbs both alike;
//! and the processor time of the threads that serve, as a part of what the machine has: that is what is taken from the
//! campaign at most, and it does not depend on what else runs. `-- short` is one short round, to see that it works.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const VISITORS: usize = 5;
/// Length of a phase, and pairs of them.
const LONG: (Duration, usize) = (Duration::from_secs(4), 8);
const SHORT: (Duration, usize) = (Duration::from_secs(1), 1);
const MIX: &str = "[leaks]\nenabled = false\n[[scenario]]\nname = \"wide\"\nduration = \"30m\"\n\
    [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"nothing\"\nworkers = 64\nhang-timeout = \"5m\"\n";

struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() {
    let (phase, rounds) = if std::env::args().any(|argument| argument == "short") { SHORT } else { LONG };
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("mix.toml"), MIX).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_waylay"))
        .args(["serve", "mix.toml", "--listen", "127.0.0.1:0", "--json"])
        .current_dir(place.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut service = Service(child);
    let mut line = String::new();
    BufReader::new(service.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    let pid = service.0.id();
    while iterations(&address) < 1000.0 {
        std::thread::sleep(Duration::from_millis(200));
    }
    let (mut alone, mut visited) = (Vec::new(), Vec::new());
    let (mut served_s, mut wall_s) = (0.0, 0.0);
    for round in 0..rounds {
        // In turns also within a pair: what drifts favours neither.
        let with_visitors = [round % 2 == 1, round % 2 == 0];
        for visitors in with_visitors {
            if !visitors {
                alone.push(rate(&address, phase));
                continue;
            }
            let stop = Arc::new(AtomicBool::new(false));
            let visitors: Vec<_> = (0..VISITORS)
                .map(|_| {
                    let (address, stop) = (address.clone(), Arc::clone(&stop));
                    std::thread::spawn(move || visit(&address, &stop))
                })
                .collect();
            let (cpu, began) = (cpu_of_servers(pid), Instant::now());
            visited.push(rate(&address, phase));
            served_s += cpu_of_servers(pid) - cpu;
            wall_s += began.elapsed().as_secs_f64();
            stop.store(true, Ordering::Relaxed);
            visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let mut change: Vec<f64> =
        alone.iter().zip(&visited).map(|(alone, visited)| (1.0 - visited / alone) * 100.0).collect();
    change.sort_by(f64::total_cmp);
    let (least, most) = (change[0], change[rounds - 1]);
    let median = (change[(rounds - 1) / 2] + change[rounds / 2]) / 2.0;
    println!("iterations per second alone      {alone:.0?}");
    println!("iterations per second, {VISITORS} visitors {visited:.0?}");
    println!("lost: {median:.2} % (median of {rounds} pairs, {least:.2} to {most:.2} %)");
    println!(
        "processor time of serving: {:.3} % of {cores} cores ({:.1} ms per second)",
        served_s / wall_s / cores * 100.0,
        served_s / wall_s * 1e3
    );
}

/// A browser that looks at the live page all the time, and at the list of failures now and then.
fn visit(address: &str, stop: &AtomicBool) {
    let mut live = TcpStream::connect(address).unwrap();
    live.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    live.write_all(format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    let mut piece = vec![0; 65536];
    let mut last = Instant::now();
    get(address, "/");
    while !stop.load(Ordering::Relaxed) {
        let _ = live.read(&mut piece);
        if last.elapsed() > Duration::from_secs(2) {
            last = Instant::now();
            get(address, "/failures");
        }
    }
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Iterations that are written in the history: once a second.
fn iterations(address: &str) -> f64 {
    let text = get(address, "/metrics");
    let line = text.lines().find(|line| line.starts_with("waylay_iterations_total")).unwrap_or_default();
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// Iterations per second of one phase, between two moments at which the number changed.
fn rate(address: &str, phase: Duration) -> f64 {
    let edge = || {
        let before = iterations(address);
        loop {
            let now = iterations(address);
            if now != before {
                return (now, Instant::now());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let (from, began) = edge();
    std::thread::sleep(phase);
    let (to, ended) = edge();
    (to - from) / (ended - began).as_secs_f64()
}

/// Processor time of the threads that serve, in seconds: the one that is named so, and those that ask the history for it.
fn cpu_of_servers(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let ticks: f64 = tasks
        .filter_map(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
            let (head, rest) = stat.rsplit_once(')')?;
            let name = head.split_once('(')?.1;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let of = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
            (name.starts_with("waylay-web") || name.starts_with("tokio")).then_some(of(11)? + of(12)?)
        })
        .sum();
    ticks / 100.0
}
