//! The tests of this crate's public interface, in one program.

mod database;
mod patterns;
mod reference;
mod served;
mod server;
mod signals;
