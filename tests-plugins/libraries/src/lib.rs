//! Healthy tests of published concurrent libraries. They find nothing unless a library has a bug, so they are what a
//! first run shows, and what must stay silent.
//!
//! | test | library | language | shape | would notice |
//! |---|---|---|---|---|
//! | [`channel`] | crossbeam-channel | Rust | threads in an iteration | a message lost, delivered twice, or overtaken |
//! | [`map`] | dashmap | Rust | stateless | an update lost, an entry torn or visible to the wrong key |
//! | [`compression`] | zstd, multi-threaded | C | scenario | a block lost, swapped or torn between compressing threads |

pub mod channel;
pub mod compression;
pub mod map;

waylay_plugin::export! {
    name: "libraries",
    tests: [channel::Channel, map::Map, compression::Compression],
}
