//! What a system is to the laboratory: one row, with its name, its parameters, how it is served and what loads it.
//!
//! A system's crate brings its own [`System`], and the command line lists them. Nothing here reads a file or opens a socket.

mod law;
mod parameter;
mod row;
mod settings;

pub use law::{law_kind, named_law};
pub use parameter::{Kind, Parameter, Value, nearest, read_time};
pub use row::{COMMAND, Home, LoadResult, Serving, System, URL};
pub use settings::Settings;
