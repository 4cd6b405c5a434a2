//! The four random distributions that tests draw their parameters from, and the seeded generators that feed
//! them.
//!
//! A test names the random choices it makes (`batch`, `pause`, …), and the TOML file says how each is
//! distributed, so that the same test can model another use without being changed. The distributions are
//! those of the concurrency testing model:
//!
//! | name | in TOML | draws |
//! |---|---|---|
//! | uniform | `{ uniform = { min = 1, max = 64 } }` | every value of `[min, max]` alike |
//! | gaussian | `{ gaussian = { mean = 8, sigma = 2, min = 1 } }` | a bell curve, cut off at min and max if given |
//! | exponential | `{ exponential = { min = "0s", max = "5ms" } }` | a curve that falls exponentially from min to max |
//! | weighted | `{ weighted = [{ min = 0, max = 3, p = 0.9 }, …] }` | an interval with probability p, uniform inside |
//!
//! Data flows one way: text → [`Spec`] (what was written) → [`Dist`] (checked, ready to draw). A [`Problem`]
//! names its place in the spec; pointing at file, line and column is the caller's. [`approximate`] turns any
//! density into a weighted distribution.
//!
//! All randomness comes from one [`Seed`], split by name; [`WorkerRng`] is the generator that a test's worker
//! draws from. Everything here is deterministic and free of the operating system, except [`Seed::fresh`].

mod approximation;
mod dist;
mod duration;
mod exponential;
mod gaussian;
mod problem;
mod quantity;
mod seed;
/// What the user wrote, before it is checked.
pub mod spec;
mod stream;
mod uniform;
mod weighted;

pub use approximation::{ApproximationError, approximate};
pub use dist::Dist;
pub use duration::{DurationError, format_duration, parse_duration};
pub use problem::{Place, Problem, ProblemKind, Problems, Unit};
pub use seed::{Seed, SeedError};
pub use spec::{Spec, SpecError, Value};
pub use stream::WorkerRng;
