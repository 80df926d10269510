//! A synthetic server whose law is known: each request occupies a worker for a time drawn from a law, without any other work.
//!
//! It is a real station A/S/c/K: it has as many servers as workers, service times of the given law, the given capacity, and
//! any discipline. So it serves to compare theory and simulation with a real server where only the station matters, and to
//! validate the laboratory itself. A worker sleeps while it holds, which costs no processor; so a machine of two cores can
//! run a station of fifty servers.
//!
//! The hold time of a request is a pure function of the server's seed and the request's number, so the same requests are held
//! for the same times under any discipline.
//!
//! With [`Dialect::Sessions`], users hold lasting connections, and an answer arrives on the session of the user that the
//! request names.
//!
//! [`serve`] runs the server; [`HoldWorkload`] generates load for it, and [`HoldSessionWorkload`] for one with sessions.

mod client;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod holding;
pub mod protocol;
mod row;
mod server;
mod serving;
mod session_workload;
mod sessions;
mod workload;

pub use client::{Client, SessionClient};
pub use kendall_service::{Config, ServiceError};
pub use row::ROW;
pub use server::{Dialect, Hold, HoldMode, HoldOptions, bind};
pub use serving::serve;
pub use session_workload::HoldSessionWorkload;
pub use sessions::{HoldSessions, bind_sessions};
pub use workload::HoldWorkload;
