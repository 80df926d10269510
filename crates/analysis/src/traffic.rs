//! Traffic over an emulated link, along time and as clouds: what flows got, how long the queues were, and both against each other.
//!
//! [`flows`] reads the records of `kendall transport flows` and `compete`, [`trial`] the link's log of a trial. What a record does
//! not hold is absent, and a sentence says why.

mod cloud;
pub mod flows;
mod goodput;
mod queue;
mod series;
pub mod trial;

pub use cloud::{Cloud, Ellipse};
pub use flows::{FlowRun, FlowsReport, Matrix};
pub use series::{FlowGoodput, Goodput, HopQueue};
pub use trial::{Traffic, TrialTraffic};
