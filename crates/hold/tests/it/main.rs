//! The tests of this crate's public interface, in one program.

mod arrivals;
mod sessions;
mod station;
