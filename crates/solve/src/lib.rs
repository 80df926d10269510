//! What theory, simulation and measurement say of a station, each as the same [`Answer`](kendall_station::Answer).
//!
//! - [`formula`] asks queueing theory, or says why theory has no answer.
//! - [`simulate`] runs the station in virtual time.
//! - [`replay()`] sends a run's own arrivals and service times through a station, request by request.
//! - [`plan()`] says how long a station must be watched for a wanted precision.
//! - [`measured`] makes an answer from the request rows of real trials.
//! - [`check`](mod@check) says which assumptions hold in them, and what it costs where one does not.
//! - [`compare`](mod@compare) says which of several sides is faster, by runs against runs.
//! - [`effects`](mod@effects) says what each factor of an experiment does, and what two of them do together.
//! - [`streamed`] makes one from rows as they come, in memory that does not grow.
//! - [`expect`] judges whether what was seen meets what was expected of it.
//! - [`peak`] finds the highest rate that meets an objective by trying rates.
//! - [`table`] reads points that any other tool measured, and [`fit`](mod@fit) finds the station behind them.
//!
//! This crate reads no clock and does no I/O. What is random comes from a seed. Every interval is a 95 % confidence
//! interval, and says in its documentation by which method it was made.

pub mod batch;
pub mod check;
pub mod closed;
pub mod compare;
pub mod effects;
pub mod expect;
pub mod fit;
mod formula;
mod histogram;
mod measured;
pub mod number;
pub mod peak;
mod plan;
mod replay;
pub mod scalability;
mod simulate;
pub mod statistics;
pub mod streamed;
mod sweep;
pub mod table;

pub use formula::{
    Engset, NetworkFormula, NoFormula, NoNetworkFormula, NodeFormula, Split, TwoMoments, closed_network,
    engset, erlang_b, erlang_c, fork_join_response_s, formula, load_for_loss, network_formula,
    number_at_least, quantiles, response_survival, servers_for_loss, servers_for_p_wait,
    servers_for_response, sharing_response_s, split, split_merge_response_s, waiting_survival,
};
pub use measured::{
    Calibrated, ClassScore, ClientSide, NotMeasured, RowClass, Score, Trend, Trial, calibrated, client_side,
    little, measured, trend,
};
pub use plan::{Basis, Calibration, NoPlan, Plan, Repeats, Target, Warmup, mm1_waiting_variance, plan};
pub use replay::{
    ArrivedBy, Candidate, Candidates, Fit, NotReplayed, Pair, QuantileError, Replay, Rules, Verdict,
    candidates, replay,
};
pub use simulate::{
    Counts, Fate, NetworkAnswer, NodeAnswer, PhaseAnswer, SimulationError, StopRule, Traced, processors,
    simulate, simulate_conditions, simulate_network, simulate_network_traced, simulate_on, simulate_traced,
};
pub use sweep::{Along, Line, sweep, sweep_network, sweep_plan};
