//! The melting pot: a test that runs other tests, many at a time, so that they meet. It is an ordinary plugin with one
//! ordinary test, so it runs wherever a test runs, also inside another pot.
//!
//! - [`fairness`]: which tests run next, and how often: pure
//! - `settings`: what the configuration says, under `pot`
//! - `pot`: the test: takes turns from the ledger and has the host run them
//!
//! Not here: creating, timing and blaming the contained tests, lending them shared objects, and calling hooks. The host
//! does that for every combiner (`waylay_plugin::Container`), and the driver reports it.

pub mod fairness;
mod pot;
mod settings;

pub use pot::MeltingPot;

waylay_plugin::export! { name: "melting-pot", tests: [MeltingPot] }
