//! Requests to a real service: whatever comes, it answers the next one, its memory stays bounded and nothing panics.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Fuzzing;
use super::mutation::Mutator;

const MIX: &str = "[[scenario]]\nname = \"s\"\nduration = \"1h\"\n[[scenario.test]]\nplugin = \"waylay_faults\"\n\
    name = \"nothing\"\nworkers = 1\n";
/// Most memory of a service, in KiB.
const MOST_MEMORY: u64 = 1 << 20;

struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn samples() -> Vec<Vec<u8>> {
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").into_bytes()
    };
    let mut samples: Vec<Vec<u8>> = [
        "/",
        "/failures?state=new&page=2",
        "/failure/assert-0123",
        "/campaigns",
        "/metrics",
        "/campaign/20261118-000000",
        "/nights",
        "/trends?test=nothing",
        "/health",
        "/live",
    ]
    .map(get)
    .to_vec();
    samples.push(
        b"POST /suppress HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\
          Content-Length: 24\r\n\r\nsignature=a&reason=known"
            .to_vec(),
    );
    samples.push(
        b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: token=abc\r\nAuthorization: Bearer x\r\n\
          Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            .to_vec(),
    );
    samples
}

/// Sends what the fuzzing says.
pub(crate) fn feed(fuzzing: &Fuzzing<'_>, found: &mut Vec<String>) {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("mix.toml"), MIX).expect("a file");
    let stderr = place.path().join("stderr.txt");
    let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
    command.args(["serve", "mix.toml", "--listen", "127.0.0.1:0"]).current_dir(place.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&stderr).expect("a file"));
    let mut service = Service(command.spawn().expect("the command starts"));
    let address = loop {
        let text = fs::read_to_string(&stderr).unwrap_or_default();
        let told = text.split("http://").nth(1).and_then(|rest| rest.split('/').next().map(str::to_owned));
        match told {
            Some(address) => break address,
            None => assert!(matches!(service.0.try_wait(), Ok(None)), "{text}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let samples = samples();
    let mut cases = 0;
    for case in fuzzing.cases(60) {
        let input = Mutator::of(fuzzing.seed, "http", case).change(&samples, true);
        cases += 1;
        if let Ok(mut stream) = TcpStream::connect(&address) {
            let _ = stream.set_read_timeout(Some(Duration::from_millis(30)));
            let _ = stream.write_all(&input);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read(&mut [0; 4096]);
        }
    }
    let text = fs::read_to_string(&stderr).unwrap_or_default();
    let status = fs::read_to_string(format!("/proc/{}/status", service.0.id())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap_or(u64::MAX);
    let mut wrong = |what: String| found.push(format!("http, after {cases} cases: {what}"));
    if text.contains("panicked") {
        wrong(text);
    }
    if peak > MOST_MEMORY {
        wrong(format!("the service took {peak} KiB"));
    }
    if !answers(&address) {
        wrong("the service does not answer any more".to_owned());
    }
    println!("{:<14} {cases:>8} cases, the service took at most {peak} KiB", "http");
}

/// Whether an honest visitor is answered. It waits until it is its turn: guards count what came before it.
fn answers(address: &str) -> bool {
    let end = Instant::now() + Duration::from_secs(120);
    while Instant::now() < end {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
            let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
            let mut text = Vec::new();
            let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut text));
            if text.starts_with(b"HTTP/1.1 200") {
                return true;
            }
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}
