//! Queueing theory for a station, with the same [`Answer`](kendall_station::Answer) as other methods.
//!
//! - [`formula`] computes the answer of a station or network, or the reason why theory has none.
//! - [`closed`] solves closed networks, [`scalability`] fits the scalability laws.
//! - [`plan()`] computes how long a measurement or a simulation must be for a wanted precision.
//! - [`sweep`](fn@sweep) computes an answer along a load or a number of servers.
//! - [`batch`] has every model by its name, for tables and for the command line.
//!
//! This crate reads no clock, does no I/O, and knows neither rows nor records. No formula subtracts where it can
//! add: sums are of positive terms, in the log domain where they are large.

mod approximations;
pub mod batch;
pub mod closed;
mod formula;
mod plan;
pub mod scalability;
mod sweep;

pub use approximations::{Approximation, approximations};
pub use formula::{
    Engset, NetworkFormula, NoFormula, NoNetworkFormula, NodeFormula, Split, TwoMoments, closed_network,
    engset, erlang_b, erlang_c, fork_join_response_s, formula, load_for_loss, network_formula,
    number_at_least, quantiles, response_quantile, response_quantiles, response_survival, servers_for_loss,
    servers_for_p_wait, servers_for_response, sharing_response_s, split, split_merge_response_s,
    waiting_survival,
};
pub use plan::{Basis, Calibration, NoPlan, Plan, Repeats, Target, Warmup, mm1_waiting_variance, plan};
pub use sweep::{Along, Line, sweep, sweep_network, sweep_plan};
