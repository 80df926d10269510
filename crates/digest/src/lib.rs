//! Searches ranges of candidates for those behind digests, at the limit of the processor's speed.
//!
//! The formulas of a digest are written once, in portable Rust over a trait of vector lanes; each instruction
//! set implements the trait, and the portable kernel is the reference for the tests of all others.
//!
//! ```
//! use kendall_digest::{Engine, Interrupt, sha256};
//!
//! let targets = sha256::Targets::one(sha256::digest(123_456));
//! let found = sha256::scan(Engine::Portable, &targets, 100_000..200_000, &Interrupt::new());
//! assert_eq!(found, sha256::Outcome::Found { value: 123_456, target: 0 });
//! ```

mod choice;
mod engine;
#[cfg(test)]
mod generator;
pub mod gpu;
mod interrupt;
mod lane;
pub mod password;
pub mod pbkdf2;
pub mod sha256;
mod vector;

pub use choice::NoChoice;
pub use engine::{Engine, UnknownEngine};
pub use interrupt::Interrupt;
