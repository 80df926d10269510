//! One combination of factors, with its measurements and the answers of formulas and simulation.

use std::fmt;

use kendall_evidence::Candidates;
use kendall_station::{Answer, By, Estimate};
use serde::{Deserialize, Serialize};

use crate::report::factor::value_of;

/// One combination of factors, with its measurements and the answers of the models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Factor and value, as text without the unit, in the order of `Report::factors`.
    pub settings: Vec<(String, String)>,
    /// The value of the first factor as a number; its place in the list (0, 1, …) if it is not a number.
    pub x: f64,
    /// Requests that were due per second, over all trials; `None` for a closed population.
    pub offered_per_s: Option<f64>,
    /// The measurement, over all trials.
    pub measured: Answer,
    /// The part of the response time that passes outside the station: network, accept, generator.
    pub delay_s: f64,
    /// Each model's answers. Their response times already include `delay_s`.
    pub models: Vec<Modelled>,
    /// Measured response times in ascending order: all of them, or an evenly thinned sample.
    pub responses_s: Vec<f64>,
    /// Shares of the requests and the response time that they stayed within, from the fastest to the last one that the number of
    /// requests supports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail_s: Vec<(f64, f64)>,
    /// The service times by the server's own stamps, where it gives them.
    pub service: Option<ServiceSeen>,
    /// The mean of the part of them that is a fixed cost of every request, where the server reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_s: Option<f64>,
    /// How these spread; `None` where there are few, or all are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<ServiceSpread>,
    /// Offered rate × mean service time / servers; `None` for a closed population or without stamps. Servers of a station of
    /// limited capacity are busy for less of the time, because it rejects a part.
    pub utilisation_offered: Option<f64>,
    /// The capacity of the station, if the settings limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Set where response times grow while the trials run, so that their mean depends on how long that is.
    pub growing: Option<Growth>,
    /// The time from the first due time to the last answer of a trial, over the trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_time_s: Option<Estimate>,
    /// The trials' own arrivals and service times replayed through candidate stations, their pairs perhaps thinned; `None` if the
    /// server reported no service times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Candidates>,
    /// How wide theory expects the intervals of the measured means to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedWidth>,
}

/// The answers of one model, by formula and by simulation, for comparison with the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    /// The station in Kendall's notation, as written in the experiment.
    pub notation: String,
    /// The answer of queueing theory.
    pub formula: Modelling,
    /// The answer of the simulator.
    pub simulation: Modelling,
}

/// The result of one way of modelling: an answer, or the reason why it is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modelling {
    /// The answer of the formula or the simulation.
    Answer(Box<Answer>),
    /// The reason why the model has no answer, as a clause: "utilisation is 1.31, so the queue grows without bound".
    NoAnswer(String),
}

impl Modelling {
    /// The answer, if there is one.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::NoAnswer(_) => None,
        }
    }
}

impl<E: fmt::Display> From<Result<Answer, E>> for Modelling {
    fn from(result: Result<Answer, E>) -> Self {
        match result {
            Ok(answer) => Self::Answer(Box::new(answer)),
            Err(why) => Self::NoAnswer(why.to_string()),
        }
    }
}

/// The service times that the server stamped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSeen {
    /// The mean of the service times.
    pub mean_s: f64,
    /// The squared coefficient of variation of the service times: variance / mean².
    pub scv: f64,
    /// The number of service times.
    pub n: u64,
}

/// A histogram of service times, and the shares that laws expect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSpread {
    /// The ends of its intervals, ascending; there are two or more.
    pub edges_s: Vec<f64>,
    /// The share of the requests in each interval.
    pub shares: Vec<f64>,
    /// Each law by its name, and the shares that it expects.
    pub laws: Vec<(String, Vec<f64>)>,
}

impl ServiceSpread {
    /// Whether the spread has an interval, and a share of each.
    pub fn is_whole(&self) -> bool {
        self.edges_s.len() == self.shares.len() + 1 && !self.shares.is_empty()
    }
}

/// Response times that grow during a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Mean response time of the requests due in the first half.
    pub first_half_s: f64,
    /// Mean response time of the requests due in the second half.
    pub second_half_s: f64,
}

/// A formula's line over the first factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The model, as in [`Modelled::notation`].
    pub notation: String,
    /// The values of the factors after the first, as in [`Point::settings`]; empty with one factor.
    pub group: Vec<(String, String)>,
    /// First factor and mean response time, delay included, in ascending order of the factor. It ends where the
    /// formula has no answer.
    pub mean_response_s: Vec<(f64, f64)>,
    /// First factor and mean waiting time, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mean_waiting_s: Vec<(f64, f64)>,
    /// First factor and throughput, likewise; empty if all that arrives is served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throughput_per_s: Vec<(f64, f64)>,
}

impl Curve {
    /// Throughput and mean response time, where the first factor is the arrival rate.
    pub fn by_throughput(&self) -> Vec<(f64, f64)> {
        if self.throughput_per_s.is_empty() {
            return self.mean_response_s.clone();
        }
        let pairs = self.throughput_per_s.iter().zip(&self.mean_response_s);
        pairs.map(|((_, throughput_per_s), (_, response_s))| (*throughput_per_s, *response_s)).collect()
    }
}

/// Half the width of the 95 % interval that theory expects of the mean of these requests, at this station, in these trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedWidth {
    /// The expected width for the mean response time, in seconds.
    pub response_s: f64,
    /// The expected width for the mean waiting time, in seconds, where requests wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_s: Option<f64>,
    /// The probability that the trials' means spread as little as they did, or less; `None` if the trials are too few or too
    /// short for theory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
}

impl Point {
    /// The value of a factor as text; empty if it has none.
    pub fn setting(&self, factor: &str) -> &str {
        value_of(&self.settings, factor)
    }

    /// Whether more work is offered than the servers can do.
    pub fn is_overloaded(&self) -> bool {
        self.utilisation_offered.is_some_and(|utilisation| utilisation >= 1.0)
    }

    /// Whether there is a steady state: a station of limited capacity has one under any load.
    pub fn is_stable(&self) -> bool {
        self.capacity.is_some() || !self.is_overloaded()
    }

    /// Whether the mean response is a property of the system rather than of the length of the trials.
    pub fn is_steady(&self) -> bool {
        self.growing.is_none() && self.is_stable()
    }

    /// The share of time that the servers are busy, by the load; as measured, if the station may reject a part of that.
    pub fn utilisation(&self) -> f64 {
        let offered = self.utilisation_offered.filter(|_| self.capacity.is_none());
        offered.unwrap_or(self.measured.utilisation.value)
    }

    /// Whether a model was simulated as the trials were run: a fixed number of requests, from an empty server. Its mean is to be
    /// compared with theirs whether or not it is steady.
    pub fn is_simulated_as_run(&self) -> bool {
        self.models.iter().filter_map(|model| model.simulation.answer()).any(is_of_runs)
    }

    /// The answers of the model with this notation at this point.
    pub fn model(&self, notation: &str) -> Option<&Modelled> {
        self.models.iter().find(|model| model.notation == notation)
    }
}

/// Whether an answer is of runs from an empty station.
pub fn is_of_runs(answer: &Answer) -> bool {
    matches!(answer.by, By::Simulation { runs: Some(_), .. })
}
