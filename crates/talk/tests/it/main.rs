//! Peers that meet over real sockets, and talk.

mod files;
mod fuzz;
mod fuzzing;
mod nat;
mod peers;
mod silence;
mod talks;
