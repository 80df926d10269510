//! The only targets that are outside their library: curvecp is published without kendall's other crates.
#![no_main]

#[path = "../../../crates/curvecp/tests/it/fuzzing/mod.rs"]
mod fuzzing;
#[path = "../../../crates/curvecp/tests/it/net/mod.rs"]
mod net;

kendall_fuzz::program!(fuzzing::TARGETS);
