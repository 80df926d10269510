//! Flows that compete for a link, and the cost of handshakes: `kendall transport`.
//!
//! A subcommand starts `kendall link run`, which starts this program again at either end of the link: [`far`] has a server of each
//! kind, [`near`] the clients, which record the arriving bytes. [`course`] is one such run; `kendall_flows` reads its record.

mod about;
mod commands;
mod course;
mod end;
mod far;
mod impaired;
mod near;
mod peer;
mod plan;
mod published;
mod roam;
pub(crate) mod source;
mod table;
mod tunnel;

pub(crate) use commands::SUBCOMMANDS;
