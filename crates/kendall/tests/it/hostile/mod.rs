//! A campaign of hostile input: cases drawn from a seed, against the command line, files, secrets, the servers' sockets and the page of
//! `kendall web`. `make test` tries the same cases every time, `make faults` others and more.
//!
//! No case may make kendall panic, end by a signal, pass its limit of time or memory, write outside the folder of the case, or show a
//! secret. An error is one message that names what is wrong. A server must serve as before when its cases are over.

mod command_line;
mod commands;
mod files;
mod fixtures;
mod judge;
mod page;
mod process;
mod secrets;
mod server;
mod sockets;
mod world;
