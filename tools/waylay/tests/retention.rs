//! Ten thousand failures, alike or each another: memory and disk stay bounded and every one is counted.

mod support;

use support::{Workplace, number, size_of_folder};

const MIB: u64 = 1 << 20;

fn config(test: &str, iterations: u64, evidence: &str) -> String {
    format!(
        "seed = 3\n[evidence]\n{evidence}\n[[scenario]]\nname = \"many\"\nduration = \"280s\"\n\
         [[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"{test}\"\nmax-failures = 0\niterations = {iterations}\n"
    )
}

#[test]
fn ten_thousand_alike_are_one_entry_with_a_count() {
    let place = Workplace::with(&config("fail-alike", 10_000, ""));
    let ran = place.run(1, &["--quiet"]);
    let failure = ran.failure("waylay_faults", "fail-alike");
    assert_eq!(failure.count(), 10_000);
    assert_eq!(ran.failures().len(), 1);
    assert_eq!(number(&ran.json()["uncatalogued"]), 0);
    let size = size_of_folder(&ran.folder());
    assert!(size < 8 * MIB, "{size} bytes");
}

// Reads how much memory there was from `/proc`.
#[cfg(target_os = "linux")]
#[test]
fn thousands_of_different_ones_keep_memory_and_disk_bounded() {
    let place =
        Workplace::with(&config("fail-differently", 3_000, "max-signatures = 40\ndumps-per-signature = 1\n"));
    let running = place.start(&["run", "waylay.toml", "--json", "--quiet"]);
    let mut most = 0;
    let mut at_limit = None;
    running.until("its end", |running| {
        let memory = peak_memory(running.pid());
        most = memory.unwrap_or(most);
        let folders = place.campaigns("waylay-out").first().map_or(0, |campaign| {
            std::fs::read_dir(campaign.join("failures")).map_or(0, |entries| entries.count())
        });
        if folders >= 40 && at_limit.is_none() {
            at_limit = memory;
        }
        memory.is_none()
    });
    let ran = running.finish();
    assert_eq!(ran.code(), Some(1), "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(ran.failures().len(), 40);
    assert_eq!(number(&json["campaign"]["failures"]), 3_000);
    let catalogued: u64 = ran.failures().iter().map(support::Failure::count).sum();
    assert_eq!(number(&json["uncatalogued"]), 3_000 - catalogued);
    assert!(ran.stderr.contains("only counted"), "{}", ran.stderr);
    let size = size_of_folder(&ran.folder());
    assert!(size < 64 * MIB, "{size} bytes");
    // The names of the test's functions stay in memory; the failures after the limit take none.
    let at_limit = at_limit.expect("the limit was reached while it ran");
    assert!(most < 400 * MIB && most < at_limit + 60 * MIB, "{at_limit} bytes, then {most}");
    assert!(support::text(&json["failures"][0]["replay"]).starts_with("waylay replay"));
}

#[cfg(target_os = "linux")]
/// Most memory that the process had so far; none when it is over.
fn peak_memory(pid: i32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}
