//! A remote shell over CurveCP: programs on a pseudo-terminal or on pipes of another machine, in sessions that outlive their
//! connections.

mod account;
mod error;
mod escape;
mod framed;
mod input_queue;
mod input_window;
mod output_log;
mod process;
pub mod protocol;
mod server;
mod session;

pub use error::ShellError;
pub use server::{Admit, Guest, ServerSettings, configure, serve};
