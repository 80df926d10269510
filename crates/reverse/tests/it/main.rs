//! The tests of this crate's public interface, in one program.

mod asking;
mod client;
mod cluster;
mod course;
mod crowd;
#[allow(dead_code, reason = "the tests of the cluster use all of it")]
#[path = "../../../cluster/tests/it/nats.rs"]
mod nats;
mod order;
mod peer;
mod robustness;
mod running;
mod scenario;
mod sharing;
mod signals;
mod traffic;
