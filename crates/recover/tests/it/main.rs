//! The tests of this crate's public interface, in one program.

mod asking;
mod cluster;
mod finder;
mod interoperate;
mod java;
