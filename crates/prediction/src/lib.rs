//! Predicts the distribution of response times at a load that was never measured from the requests of low loads.
//!
//! A curve through mean response times predicts means, with intervals that decide nothing near saturation. This crate uses every single
//! response time instead:
//!
//! 1. Each candidate station (a number of servers, a discipline, a delay outside) implies a service time for each request, exactly
//!    (`implied`).
//! 2. Candidates compete by their predictions of whole distributions at loads that were held out (`score`).
//! 3. Whatever the data leave open is drawn: the candidate, the service law, the capacity, the growth of service times with load, the
//!    speed of the machine, its slow spells (`spells`), and how service depends on the number present (`present`). Each draw is simulated
//!    for the number of requests of the planned run (`posterior`, `predict`).
//!
//! So an interval contains what a run of that length will measure. The capacity matters most: an error of 1 % in it moves p99 by 7 % at
//! 85 % utilisation, and by 14 % at 93 %.
//!
//! This crate reads no clock and does no I/O.

mod advice;
mod arrivals;
mod baseline;
mod block;
mod candidate;
mod implied;
mod law;
mod machine;
mod observed;
mod order;
mod points;
mod posterior;
mod predict;
mod present;
mod score;
mod services;
mod spells;
#[cfg(test)]
mod tests;

pub use advice::{Advice, NoPrediction};
pub use baseline::{Baseline, BaselinePrediction};
pub use block::{Block, Request, Stamp};
pub use observed::{Capacity, KnownStation, NothingObserved, Observed};
pub use predict::{Allowed, Effort, Prediction, Predictor, QUANTILES, Question};
