//! The bound against reality: how often a bug of depth one shows, without and with the randomizer, for 2 to 16 threads.
//!
//! `cargo bench -p waylay-randomizer --bench bound [-- --markdown FILE]` prints one table. The bound must lie below what is measured
//! with the randomizer: above the upper end of the interval it would be refuted.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use waylay_randomizer::Settings;
use waylay_randomizer::bound::Bound;

/// One thread at a time, uniform times, and suspensions longer than the 1 ms between the two instructions.
const SETTINGS: &str = "period = { uniform = { min = '0s', max = '4ms' } }\n\
                        suspend = { uniform = { min = '3ms', max = '6ms' } }\n\
                        count = 1\ninclude = ['w*']\n";
const ITERATIONS: u32 = 600;

struct Measured {
    iterations: u32,
    bugs: u32,
    shortest: Duration,
}

fn main() {
    let program = compile();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let config = folder.join(format!("bound-{}.toml", std::process::id()));
    std::fs::write(&config, SETTINGS).expect("writable");
    let settings = Settings::from_toml(SETTINGS).expect("valid");

    println!("{:>7} {:>26} {:>26} {:>8}", "threads", "free", "randomized", "bound");
    let mut page = "| threads | free | randomized | bound |\n|---|---|---|---|\n".to_owned();
    let mut refuted = false;
    for threads in [2, 4, 8, 16] {
        let mut alone = Command::new(&program);
        let free = measure(alone.args([threads.to_string(), ITERATIONS.to_string()]));
        let mut disturbed = Command::new(env!("CARGO_BIN_EXE_waylay-randomizer"));
        disturbed.arg("--quiet").arg("--config").arg(&config).args(["--seed", "1", "--"]).arg(&program);
        let randomized = measure(disturbed.args([threads.to_string(), ITERATIONS.to_string()]));
        let (bound, broken) = Bound::of_settings(&settings, threads, free.shortest).expect("a bound");
        assert!(broken.is_empty());
        refuted |= interval(&randomized).1 < bound.per_run();
        let (free, randomized, bound) =
            (in_words(&free), in_words(&randomized), format!("{:.2}%", bound.per_run() * 100.0));
        println!("{threads:>7} {free:>26} {randomized:>26} {bound:>8}");
        page += &format!("| {threads} | {free} | {randomized} | {bound} |\n");
    }
    println!(
        "iterations that showed the bug, with 95 % intervals, of {ITERATIONS} each; the bound is {}",
        if refuted { "REFUTED" } else { "not refuted" }
    );
    let _ = std::fs::remove_file(config);
    let _ = std::fs::remove_file(program);
    if let Some(file) = std::env::args().skip_while(|argument| argument != "--markdown").nth(1) {
        std::fs::write(&file, page).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    if refuted {
        std::process::exit(1);
    }
}

fn compile() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/depth_one.c");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("depth-one-{}", std::process::id()));
    let status = Command::new("cc")
        .args(["-O1", "-pthread", "-o"])
        .arg(&path)
        .arg(source)
        .status()
        .expect("cc starts");
    assert!(status.success());
    path
}

fn measure(command: &mut Command) -> Measured {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let mut numbers = text.split_whitespace().map(|number| number.parse::<u64>().expect("a number"));
    let mut next = || numbers.next().expect("three numbers");
    Measured { iterations: next() as u32, bugs: next() as u32, shortest: Duration::from_nanos(next()) }
}

/// Wilson's 95 % interval of a share.
fn interval(measured: &Measured) -> (f64, f64) {
    const Z: f64 = 1.96;
    let n = f64::from(measured.iterations);
    let share = f64::from(measured.bugs) / n;
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    (middle - half, middle + half)
}

fn in_words(measured: &Measured) -> String {
    let (low, high) = interval(measured);
    let share = f64::from(measured.bugs) / f64::from(measured.iterations);
    format!("{:.2}% ({:.2} to {:.2})", share * 100.0, low * 100.0, high * 100.0)
}
