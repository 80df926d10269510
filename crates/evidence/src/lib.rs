//! Analysis of measured data of a station.
//!
//! - [`measured`] makes an answer from the request rows of real trials, [`streamed`] from rows as they come, in
//!   memory that does not grow.
//! - [`replay()`] sends a run's own arrivals and service times through a station, request by request.
//! - [`table`] reads points that any tool measured, and [`fit`](mod@fit) finds the station behind them.
//! - [`check`](mod@check) says which assumptions hold, and what it costs where one does not.
//! - [`compare`](mod@compare) says which of several sides is faster, by runs against runs.
//! - [`expect`] judges whether a result meets what was expected of it, and [`peak`] finds the highest rate that does.
//!
//! This crate reads no clock and does no I/O. What is random comes from a seed. Every interval is a 95 % confidence
//! interval, and its documentation names the method.

mod answer_pauses;
pub mod check;
pub mod compare;
pub mod expect;
pub mod fit;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod measured;
pub mod peak;
mod replay;
mod seconds;
pub mod streamed;
pub mod table;

pub use answer_pauses::{AnswerPauses, PauseCount};
pub use measured::{
    Calibrated, ClassScore, ClientSide, NotMeasured, RowClass, Score, Trend, Trial, calibrated, client_side,
    little, measured, trend,
};
pub use replay::{
    ArrivedBy, Candidate, Candidates, Fit, NotReplayed, Pair, QuantileError, Replay, ReplayVerdict, Rules,
    Visit, candidates, departures, replay,
};
