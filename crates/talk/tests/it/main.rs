//! Peers that meet over real sockets, and talk.

mod nat;
mod peers;
mod talks;
