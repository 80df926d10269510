//! The public face of the crate, with real peers.

mod shell;
