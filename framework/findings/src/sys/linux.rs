//! Linux: what /proc says of the machine.

use std::fs;

/// Name and version of the system, the processor, and main memory in KiB, as far as they can be had.
pub(crate) fn machine() -> (String, String, u64) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))
            .map(|value| value.trim().to_owned())
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kilobytes =
        memory.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0);
    let system = format!("{} {}", std::env::consts::OS, read("/proc/sys/kernel/osrelease").trim());
    (system, field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()), kilobytes)
}
