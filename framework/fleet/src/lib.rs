//! A night on more than one machine. Existing engines (Slurm, Kubernetes) start and watch processes; here is what gives them
//! independent pieces and puts the answers together.
//!
//! In the order in which data flows:
//!
//! - [`engine_variables`]: which shard a process is, from what an engine tells it
//! - [`identity`]: what makes two processes parts of the same night
//! - [`lots`]: how the iterations of a mix are divided, whatever the number of shards
//! - [`resume`]: where an earlier process of the same shard ended

#![forbid(unsafe_code)]

pub mod engine_variables;
pub mod identity;
pub mod lots;
pub mod resume;
