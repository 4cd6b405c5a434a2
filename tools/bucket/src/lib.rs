//! Results in an S3-compatible bucket. A command of its own, `waylay-bucket`, which `waylay` starts beside itself when `--out` is an
//! address such as `s3://bucket/night`: it sends what stands in a folder while that grows, and fetches it again to be merged.
//!
//! It trusts nothing between two machines:
//!
//! - Every process that leaves results has a place of its own in the bucket, so two processes that are the same shard, because an
//!   engine took the first for dead, do not write over each other. Conditional puts are not needed; few servers have them right.
//! - Objects are named after the SHA-256 of what is in them and never change. A list of files with their digests is put last: a
//!   process that is killed in the middle of an upload leaves the list that was there before, and all that it names.
//! - The server is told the digest of everything that it gets, and what comes back is compared with its name.
//!
//! In the order in which data flows:
//!
//! - [`address`]: where a bucket is, and how to speak with it
//! - [`manifest`]: the list of files that a process left
//! - [`snapshot`]: what stands in a folder now, in an order in which it makes sense
//! - [`send`]: a folder into a bucket, round after round
//! - [`fetch`]: what is in a bucket into a folder
//! - [`trouble`]: why something did not work, in a sentence

#![forbid(unsafe_code)]

pub mod address;
pub mod fetch;
pub mod manifest;
pub mod send;
pub mod snapshot;
pub mod trouble;
