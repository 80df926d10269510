//! A system for the laboratory: one row, with its name, its parameters, its server, its workload, and its subcommands on the
//! command line.
//!
//! A system's crate has its [`System`], and the command line lists them. This crate reads no file and opens no socket.

mod cluster;
mod document;
mod engine;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod law;
mod limit;
mod parameter;
mod row;
mod secret;
mod settings;
mod shell;
mod subcommand;

pub use cluster::{CLUSTER, CLUSTER_LEDGER, NATS_CA, NATS_CREDS, cluster_options};
pub use document::{chapter, parameter_table, readme_rows, system_rows};
pub use engine::digest_engine;
pub use law::{law_kind, named_law};
pub use limit::{Demand, MachineLimit, MachineLimits, MeasureLimit, no_limits};
pub use parameter::{Kind, Parameter, Value, nearest, read_time};
pub use row::{COMMAND, Home, LoadResult, Serving, StationShape, System, URL};
pub use secret::{conceal_url, is_reference, is_secret_header, mark_secret, reveal, secret_field};
pub use settings::Settings;
pub use shell::quoted;
pub use subcommand::{Caller, Console, Subcommand, SubcommandEnd, Subcommands, Transfer};
