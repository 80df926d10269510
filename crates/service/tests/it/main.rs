//! The tests of this crate's public interface, in one program.

mod bodies;
mod club;
mod descriptors;
mod lines;
mod runtime;
mod secured;
mod sessions;
mod sharing;
mod stores;
mod storm;
