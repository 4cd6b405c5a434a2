//! Healthy tests of published concurrent libraries. They find nothing unless a library has a bug, so they are what a
//! first run shows, and what must stay silent.
//!
//! | test | library | language | shape | would notice |
//! |---|---|---|---|---|
//! | [`channel`] | crossbeam-channel | Rust | threads in an iteration | a message lost, delivered twice, or overtaken |
//! | [`select`] `two-channels` | flume | Rust | threads in an iteration | a message that a deadline or a drain loses |
//! | [`map`] | dashmap | Rust | stateless | an update lost, an entry torn or visible to the wrong key |
//! | [`ordered`] `ordered-map` | crossbeam-skiplist | Rust | threads in an iteration | a walk out of order, a torn entry |
//! | [`deque`] | crossbeam-deque | Rust | threads in an iteration | an item lost or had twice between owner and thief |
//! | [`locks`] | parking_lot | Rust | threads in an iteration | a lost wake-up, a writer that is not alone |
//! | [`swap`] | arc-swap | Rust | threads in an iteration | a value used after its drop, or dropped twice or never |
//! | [`tree`] | rayon | Rust | scenario, verified | a branch lost, walked twice or seen half changed |
//! | [`tree`] `sort` | rayon | Rust | one call | an element lost, doubled or out of order |
//! | [`compression`] | zstd, multi-threaded | C | scenario | a block lost, swapped or torn between compressing threads |
//! | [`allocator`] | mimalloc | C | threads in an iteration | live blocks that overlap, a block that changes on its way |
//! | [`database`] | LMDB | C | one object for all workers | half of a transaction, a transfer lost |
//! | [`messages`] | libzmq | C++ | threads in an iteration | a message lost, torn, overtaken or split |
//!
//! `tree` and `sort` work on a rayon thread pool that a melting pot lends, so that they meet on its threads.

pub mod allocator;
pub mod channel;
pub mod compression;
pub mod deque;
pub mod locks;
pub mod map;
pub mod ordered;
pub mod select;
pub mod swap;
pub mod tree;

// LMDB and libzmq are built from source where the tests are built and run; not when cross-building for Windows.
#[cfg(unix)]
pub mod database;
#[cfg(unix)]
pub mod messages;

#[cfg(unix)]
waylay_plugin::export! {
    name: "libraries",
    tests: [
        channel::Channel, map::Map, compression::Compression, select::TwoChannels, ordered::OrderedMap,
        deque::WorkStealing, locks::Locks, swap::Swap, tree::Tree, tree::Sort, allocator::Allocator,
        database::Database, messages::Messages,
    ],
    kinds: [tree::ThreadPool],
}

#[cfg(not(unix))]
waylay_plugin::export! {
    name: "libraries",
    tests: [
        channel::Channel, map::Map, compression::Compression, select::TwoChannels, ordered::OrderedMap,
        deque::WorkStealing, locks::Locks, swap::Swap, tree::Tree, tree::Sort, allocator::Allocator,
    ],
    kinds: [tree::ThreadPool],
}
