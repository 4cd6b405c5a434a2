//! The functions that compilers call in code compiled with `-fsanitize=thread`: gcc 11 to 13, clang 14 to 19, and rustc
//! through the same pass. They are a fixed interface of the compilers', here with another runtime behind it.
//!
//! - [`plain`]: accesses to memory, and blocks of it
//! - [`atomic`]: atomic operations, which are carried out here
//! - [`annotation`]: what programs and libraries call themselves, for tools like this one
//!
//! Calls below the level that is set cost a compare and a branch.

mod annotation;
mod atomic;
mod plain;
