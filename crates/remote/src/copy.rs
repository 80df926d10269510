//! Copies of files and trees. `docs/copy.md` describes the protocol.
//!
//! A copy has a sender and a receiver; either can be the client. Each has a thread that works on files, `send` or
//! `receive`, and tasks that move bytes between it and the stream, `pump`.

mod client;
mod digest;
mod failures;
mod folder;
mod incoming;
mod metadata;
mod outbox;
mod partial;
mod progress;
pub mod protocol;
mod pump;
mod receive;
mod send;
mod server;
mod source;
mod stat;
mod target;

pub use client::{CopyReport, CopySettings, download, upload};
pub use progress::Progress;
pub use server::{Access, FilePolicy, FileServer};
