//! CurveCP over real sockets: among ourselves, and with the programs of NaCl.

mod flood;
mod group;
mod interop;
mod key_directory;
mod program;
mod reference;
mod relay;
mod streams;
