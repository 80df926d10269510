//! The tests of this crate's public interface, in one program.

mod asking;
mod cluster;
mod finder;
mod interoperate;
mod java;
#[allow(dead_code, reason = "the tests of the cluster use all of it")]
#[path = "../../../cluster/tests/it/nats.rs"]
mod nats;
