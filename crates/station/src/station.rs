//! A station: arrivals, service, servers, capacity, discipline, and the classes of its requests.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::attendance::AttendanceError;
use crate::conditions::{Batch, ConditionError, Conditions};
use crate::discipline::Discipline;
use crate::law::{Law, LawError, Part, ServiceTime};
use crate::profile::ProfileError;
use crate::sessions::Sessions;

/// The number of identical servers.
pub type Servers = NonZeroU32;

/// A/S/c/K/N/D in Kendall's notation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Station {
    /// The arrivals; a closed population is the N of the notation.
    pub arrivals: Arrivals,
    /// The service time of one request.
    pub service: ServiceTime,
    /// How many servers.
    pub servers: Servers,
    /// The capacity: the most requests, waiting and in service; `None` is unlimited. A request that finds the
    /// station full is lost.
    pub capacity: Option<u64>,
    /// The order of service.
    pub discipline: Discipline,
    /// Classes of requests; empty for a single class of weight 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
    /// The conditions beyond the plain model, such as patience and breakdowns; all off by default.
    #[serde(default, skip_serializing_if = "Conditions::are_none")]
    pub conditions: Conditions,
}

/// A class of requests at a station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// The name of the class.
    pub name: String,
    /// The share of all requests that are of this class, 0 to 1.
    pub share: f64,
    /// The cost of a second of delay of one of its requests: its priority, the larger the more urgent.
    pub weight: f64,
    /// The service time of the class; `None` for that of the station.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceTime>,
}

/// The reason why a station is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum StationError {
    #[error("arrivals: {0}")]
    Arrivals(#[source] LawError),
    #[error("service time: {0}")]
    Service(#[source] LawError),
    #[error("gaps between arrivals must be positive on average, or the rate is infinite")]
    NoGap,
    #[error("a capacity of {capacity} requests is less than the {servers} servers need")]
    Capacity { capacity: u64, servers: Servers },
    #[error("a closed population needs at least one user")]
    NoUsers,
    #[error(
        "the numbers of requests of a session must be at least 1, and their probabilities positive and add up to 1"
    )]
    SessionRequests,
    #[error(
        "users that join and leave at a station with {0} are not modelled; remove the condition, or make the arrivals an open stream"
    )]
    SessionConditions(&'static str),
    #[error("the shares of the classes add up to {0}; they must be positive and add up to 1")]
    Shares(f64),
    #[error("class {0:?} has the weight {1}; a weight must be positive and finite")]
    Weight(String, f64),
    #[error("arrivals: {0}")]
    Profile(#[from] ProfileError),
    #[error("arrivals: {0}")]
    Attendance(#[from] AttendanceError),
    #[error("conditions: {0}")]
    Conditions(#[from] ConditionError),
}

impl Station {
    /// A station with unlimited capacity, FIFO, and one class.
    pub fn new(arrivals: Arrivals, service: ServiceTime, servers: Servers) -> Self {
        Self {
            arrivals,
            service,
            servers,
            capacity: None,
            discipline: Discipline::Fifo,
            classes: Vec::new(),
            conditions: Conditions::default(),
        }
    }

    /// Checks that the station is valid.
    ///
    /// # Errors
    /// Fails on invalid laws, a capacity below the number of servers, no users, shares that do not add up to
    /// 1, and weights that are not positive numbers.
    pub fn validate(&self) -> Result<(), StationError> {
        validate_arrivals(&self.arrivals)?;
        self.conditions.validate(self.discipline, self.capacity)?;
        if let (Arrivals::Sessions(_) | Arrivals::Attended(_), Some(condition)) =
            (&self.arrivals, self.conditions.first())
        {
            return Err(StationError::SessionConditions(condition));
        }
        if self.conditions.batch.is_some() && matches!(self.arrivals, Arrivals::Closed { .. }) {
            return Err(ConditionError::ClosedBatch.into());
        }
        self.service.validate().map_err(StationError::Service)?;
        match self.capacity {
            Some(capacity) if capacity < u64::from(self.servers.get()) => {
                return Err(StationError::Capacity { capacity, servers: self.servers });
            }
            _ => {}
        }
        if self.classes.is_empty() {
            return Ok(());
        }
        let sum: f64 = self.classes.iter().map(|class| class.share).sum();
        if (sum - 1.0).abs() > 1e-9 || self.classes.iter().any(|class| class.share <= 0.0) {
            return Err(StationError::Shares(sum));
        }
        let sound = |class: &&Class| class.weight > 0.0 && class.weight.is_finite();
        if let Some(class) = self.classes.iter().find(|class| !sound(class)) {
            return Err(StationError::Weight(class.name.clone(), class.weight));
        }
        let mut own = self.classes.iter().filter_map(|class| class.service.as_ref());
        own.try_for_each(ServiceTime::validate).map_err(StationError::Service)
    }

    /// The service time of a request of unknown class: the classes' laws mixed by their shares.
    pub fn service_overall(&self) -> ServiceTime {
        if self.classes.iter().all(|class| class.service.is_none()) {
            return self.service.clone();
        }
        let part = |class: &Class| Part {
            probability: class.share,
            of: class.service.as_ref().unwrap_or(&self.service).clone(),
        };
        Law::Mixture { parts: self.classes.iter().map(part).collect() }
    }

    /// The mean weight of a request; 1 without classes.
    pub fn mean_weight(&self) -> f64 {
        if self.classes.is_empty() {
            return 1.0;
        }
        self.classes.iter().map(|class| class.share * class.weight).sum()
    }

    /// The offered load per server, λ·E\[S\]/c: the utilisation, if the station is stable and loses no
    /// request. `None` for a closed population. Counts every customer of a batch; ignores breakdowns.
    pub fn offered_utilisation(&self) -> Option<f64> {
        let batch = self.conditions.batch.as_ref().map_or(1.0, Batch::mean);
        let rate_per_s = batch * self.arrivals.rate_per_s()?;
        Some(rate_per_s * self.service_overall().mean_s() / f64::from(self.servers.get()))
    }
}

/// Checks that arrivals are valid.
///
/// # Errors
/// Fails on invalid laws and profiles, gaps of mean 0, and no users.
pub(crate) fn validate_arrivals(arrivals: &Arrivals) -> Result<(), StationError> {
    match arrivals {
        Arrivals::Open { gap } => {
            gap.validate().map_err(StationError::Arrivals)?;
            if gap.mean_s() <= 0.0 { Err(StationError::NoGap) } else { Ok(()) }
        }
        Arrivals::Closed { population: 0, .. } => Err(StationError::NoUsers),
        Arrivals::Closed { think, .. } => think.validate().map_err(StationError::Arrivals),
        Arrivals::Attended(users) => Ok(users.validate()?),
        Arrivals::Varying(profile) => Ok(profile.validate()?),
        Arrivals::Trace { .. } => Ok(()),
        Arrivals::Sessions(Sessions { gap, requests, think }) => {
            let gaps = Arrivals::Open { gap: gap.clone() };
            validate_arrivals(&gaps)?;
            requests.validate().map_err(|_| StationError::SessionRequests)?;
            think.validate().map_err(StationError::Arrivals)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn m_m(servers: u32) -> Station {
        let service = Law::Exponential { mean_s: 0.25 };
        Station::new(Arrivals::poisson(20.0), service, Servers::new(servers).unwrap())
    }

    #[test]
    fn it_prints_itself_in_kendalls_notation() {
        assert_eq!(m_m(6).to_string(), "M/M/6");
        assert_eq!(Station { capacity: Some(50), ..m_m(2) }.to_string(), "M/M/2/50");
        let closed = Arrivals::Closed { population: 20, think: Law::Exponential { mean_s: 5.0 } };
        let shared = Station { arrivals: closed, discipline: Discipline::ProcessorSharing, ..m_m(4) };
        assert_eq!(shared.to_string(), "M/M/4/∞/20/PS");
    }

    #[test]
    fn the_offered_load_counts_each_class() {
        assert_eq!(m_m(6).offered_utilisation(), Some(20.0 * 0.25 / 6.0));
        let class = |name: &str, share, service| Class { name: name.into(), share, weight: 1.0, service };
        let slow = Some(Law::Constant { mean_s: 1.0 });
        let station = Station { classes: vec![class("a", 0.8, None), class("b", 0.2, slow)], ..m_m(10) };
        assert!((station.offered_utilisation().unwrap() - 20.0 * (0.8 * 0.25 + 0.2) / 10.0).abs() < 1e-12);
        assert_eq!(station.validate(), Ok(()));
    }

    #[test]
    fn invalid_stations_are_rejected() {
        let refused = |station: Station| station.validate().unwrap_err().to_string();
        assert!(refused(Station { capacity: Some(3), ..m_m(4) }).contains("a capacity of 3"));
        let nobody = Arrivals::Closed { population: 0, think: Law::Constant { mean_s: 1.0 } };
        assert!(refused(Station { arrivals: nobody, ..m_m(1) }).contains("at least one user"));
        assert!(refused(Station { arrivals: Arrivals::poisson(-1.0), ..m_m(1) }).starts_with("arrivals:"));
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let odd = Class { name: "odd".into(), share: 1.0, weight, service: None };
            let why = refused(Station { classes: vec![odd], ..m_m(1) });
            assert!(why.contains(&format!("\"odd\" has the weight {weight};")), "{why}");
        }
        let half = Class { name: "half".into(), share: 0.5, weight: 1.0, service: None };
        assert!(refused(Station { classes: vec![half], ..m_m(1) }).contains("add up to 0.5"));
    }
}
