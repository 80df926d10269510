//! A remote shell over CurveCP: programs on a pseudo-terminal or on pipes of another machine, in sessions that outlive their
//! connections.

mod account;
mod client;
mod error;
mod escape;
mod framed;
mod input_queue;
mod input_window;
mod local;
mod output_log;
mod process;
pub mod protocol;
mod requests;
mod server;
mod session;

pub use client::{ClientSettings, Connect, Connecting, LocalEvent, LocalStreams, Outcome, Start, run};
pub use error::ShellError;
pub use local::{RawMode, open_again, window};
pub use requests::{ListedSession, end, list};
pub use server::{Admit, Guest, ServerSettings, configure, serve};
