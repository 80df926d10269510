//! Copies and shells between a server and clients in this process, over real sockets.

mod access;
mod attacks;
mod fixture;
mod full_disk;
mod hostile_server;
mod protocol;
mod resume;
mod round_trip;
mod shell;
mod silence;
mod tree;
