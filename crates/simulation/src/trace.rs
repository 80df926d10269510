//! The record of a single customer in a trace. A simulation without a trace has no cost for it.

/// One customer of a simulation, reported as it leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traced {
    /// The run that it belongs to, from 0. Each run has its own time, which begins at 0.
    pub run: u64,
    /// The customer's number in the run in order of arrival, from 0.
    pub index: u64,
    /// The customer's class, by its index in the station's list; 0 without classes.
    pub class: usize,
    /// The instant at which the customer arrived, in seconds.
    pub arrival_s: f64,
    /// The total service that it needs, in seconds.
    pub service_s: f64,
    /// The instant at which the customer was first served, in seconds; `None` for a customer that left before.
    pub started_s: Option<f64>,
    /// The instant at which the customer left, in seconds.
    pub departure_s: f64,
    /// The time that it spent in the station without service, in seconds.
    pub waiting_s: f64,
    /// The server that it left from, from 0; `None` where servers have no identity: under processor sharing, and
    /// where only the instants at which some server is free are simulated.
    pub server: Option<usize>,
    /// The fate of the customer.
    pub fate: Fate,
}

/// How the visit of a customer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The customer was served to the end.
    Served,
    /// The station was full.
    Lost,
    /// The customer left before its service was complete.
    Abandoned,
}

impl Fate {
    /// The fate's name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Lost => "lost",
            Self::Abandoned => "abandoned",
        }
    }
}

impl Traced {
    /// The time from arrival to departure, in seconds.
    pub fn response_s(&self) -> f64 {
        self.departure_s - self.arrival_s
    }
}

/// The destination of a trace, if there is one.
pub(super) type Sink<'a> = Option<&'a mut dyn FnMut(&Traced)>;
