//! What theory, simulation and measurement say of a station, each as the same [`Answer`](kendall_station::Answer).
//!
//! - [`formula`] asks queueing theory, or says why theory has no answer.
//! - [`simulate`] runs the station in virtual time.
//! - [`measured`] makes an answer from the request rows of real trials.
//! - [`check`](mod@check) says which assumptions hold in them, and what it costs where one does not.
//! - [`table`] reads points that any other tool measured, and [`fit`](mod@fit) finds the station behind them.
//!
//! This crate reads no clock and does no I/O. What is random comes from a seed. Every interval is a 95 % confidence
//! interval, and says in its documentation by which method it was made.

pub mod batch;
pub mod check;
pub mod closed;
pub mod fit;
mod formula;
mod measured;
mod network;
pub mod number;
pub mod scalability;
mod simulate;
pub mod statistics;
mod sweep;
pub mod table;

pub use formula::{
    Engset, NoFormula, TwoMoments, engset, erlang_b, erlang_c, formula, load_for_loss, number_at_least,
    quantiles, response_survival, servers_for_loss, servers_for_p_wait, servers_for_response,
    sharing_response_s, waiting_survival,
};
pub use measured::{
    ClassScore, ClientSide, NotMeasured, RowClass, Score, Trend, Trial, client_side, little, measured, trend,
};
pub use network::{
    NetworkFormula, NoNetworkFormula, NodeFormula, closed_network, network_bounds, network_formula,
};
pub use simulate::{
    Counts, Fate, NetworkAnswer, NodeAnswer, PhaseAnswer, SimulationError, StopRule, Traced, processors,
    simulate, simulate_conditions, simulate_network, simulate_network_traced, simulate_on, simulate_traced,
};
pub use sweep::sweep;
