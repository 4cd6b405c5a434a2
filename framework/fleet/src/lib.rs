//! A night on more than one machine. Existing engines (Slurm, Kubernetes) start and watch processes; here is what gives them
//! independent pieces and puts the answers together.
//!
//! In the order in which data flows:
//!
//! - [`pack`]: everything that a night needs, in one file
//! - [`engine`]: who runs the shards
//! - [`engine_variables`]: which shard a process is, from what an engine tells it
//! - [`identity`]: what makes two processes parts of the same night
//! - [`lots`]: how the iterations of a mix are divided, whatever the number of shards
//! - [`resume`]: where an earlier process of the same shard ended
//! - [`merge`]: folders of parts in, one campaign's folder out

#![forbid(unsafe_code)]

pub mod engine;
pub mod engine_variables;
pub mod identity;
pub mod lots;
pub mod merge;
pub mod pack;
pub mod resume;
mod sys;
