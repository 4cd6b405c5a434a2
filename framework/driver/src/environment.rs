//! Where a campaign ran: enough to explain why a failure shows on one machine and not on another.

use std::fs;

use serde::{Deserialize, Serialize};

/// Machine and versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of Waylay.
    pub waylay: String,
    /// Operating system and kernel.
    pub system: String,
    /// Processor model.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Main memory in MiB.
    pub memory_mib: u64,
    /// Digest of the effective configuration.
    pub config_digest: String,
}

impl Environment {
    /// Looks at this machine. `config` is the effective configuration's text.
    pub fn capture(config: &str) -> Environment {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))
                .map(|value| value.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let kilobytes =
            memory.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0);
        Environment {
            waylay: env!("CARGO_PKG_VERSION").to_owned(),
            system: format!("{} {}", std::env::consts::OS, read("/proc/sys/kernel/osrelease").trim()),
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kilobytes / 1024,
            config_digest: format!("{:016x}", digest(config.as_bytes())),
        }
    }
}

/// FNV-1a: short, value-stable, and nobody attacks it.
fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
