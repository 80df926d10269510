//! Peers that meet over real sockets, and talk.

mod files;
mod nat;
mod peers;
mod silence;
mod talks;
