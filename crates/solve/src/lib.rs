//! What theory, simulation and measurement say of a station, each as the same [`Answer`](kendall_station::Answer).
//!
//! - [`formula`] asks queueing theory, or says why theory has no answer.
//! - [`simulate`] runs the station in virtual time.
//! - [`replay()`] sends a run's own arrivals and service times through a station, request by request.
//! - [`plan()`] says how long a station must be watched for a wanted precision.
//! - [`measured`] makes an answer from the request rows of real trials.
//! - [`table`] reads points that any other tool measured.
//!
//! This crate reads no clock and does no I/O. What is random comes from a seed. Every interval is a 95 % confidence
//! interval, and says in its documentation by which method it was made.

pub mod batch;
pub mod closed;
mod formula;
mod measured;
mod plan;
mod replay;
pub mod scalability;
mod simulate;
pub mod statistics;
pub mod table;

pub use formula::{
    Engset, NoFormula, engset, erlang_b, erlang_c, formula, number_at_least, response_survival,
    servers_for_p_wait, servers_for_response, waiting_survival,
};
pub use measured::{
    ClassScore, ClientSide, NotMeasured, RowClass, Score, Trend, Trial, client_side, little, measured, trend,
};
pub use plan::{Basis, Calibration, NoPlan, Plan, Repeats, Target, Warmup, mm1_waiting_variance, plan};
pub use replay::{
    ArrivedBy, Candidate, Candidates, Fit, NotReplayed, Pair, QuantileError, Replay, Rules, Verdict,
    candidates, replay,
};
pub use simulate::{
    Fate, SimulationError, StopRule, Traced, processors, simulate, simulate_on, simulate_traced,
};
