//! Where a campaign ran: enough to explain why a failure shows on one machine and not on another.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

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
        let Machine { system, processor, cores, memory_mib, .. } = Machine::look();
        Environment {
            waylay: env!("CARGO_PKG_VERSION").to_owned(),
            system,
            processor,
            cores,
            memory_mib,
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
