//! A synthetic server whose law is known: each request keeps a worker for a time drawn from a law, and no more is done.
//!
//! It is a station A/S/c/K in flesh and blood: as many servers as workers, service times of the law that it is given, room
//! for as many requests as it is told, served in the order of any discipline. So it is what theory and simulation can be
//! compared with where nothing else than the station is in doubt, and what the laboratory itself is checked against. A worker
//! sleeps while it holds, which costs no processor; so a machine of two cores can show a station of fifty servers.
//!
//! The hold time of a request is a pure function of the server's seed and the request's number, so the same requests are
//! held for the same times in any order of service.
//!
//! With [`Dialect::Sessions`], users hold lasting connections, and an answer arrives on the session of the user that the
//! request names.
//!
//! [`serve`] runs the server; [`HoldWorkload`] loads one, and [`HoldSessionWorkload`] one with sessions.

mod client;
mod holding;
pub mod protocol;
mod server;
mod serving;
mod session_workload;
mod sessions;
mod workload;

pub use client::{Client, SessionClient};
pub use kendall_service::{Config, ServiceError};
pub use server::{Dialect, Hold, How, Options, bind};
pub use serving::serve;
pub use session_workload::HoldSessionWorkload;
pub use sessions::{HoldSessions, bind_sessions};
pub use workload::HoldWorkload;
