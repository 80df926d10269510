//! CurveCP over real sockets: among ourselves, and with the programs of NaCl.

#![allow(unsafe_code, reason = "options of sockets that no crate has")]

mod fallback;
mod flood;
mod group;
mod interop;
mod key_directory;
mod program;
mod reference;
mod relay;
mod streams;
