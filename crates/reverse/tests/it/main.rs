//! The tests of this crate's public interface, in one program.

mod asking;
mod client;
mod cluster;
mod course;
mod crowd;
mod order;
mod peer;
mod robustness;
mod running;
mod scenario;
mod sharing;
mod signals;
mod traffic;
