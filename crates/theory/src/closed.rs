//! Closed networks: a fixed number of users who think, visit stations, and think again.
//!
//! - [`ClosedNetwork::solve`] is exact for one class of users, of any number: mean value analysis if every station has one server,
//!   and a convolution of positive terms if a station has several servers or a rate that depends on the number present.
//! - [`ClosedNetwork::schweitzer`] is the well-known approximation, [`ClosedNetwork::bounds`] are limits without a solution.
//! - [`MultiClass`] has users of several kinds; fits of measured throughputs find its demands.
//!
//! The recursion that computes p(0) as one minus the rest loses all digits at a saturated station of several servers and then
//! returns negative times; it is not used here.

mod bounds;
mod convolution;
mod mva;
mod several;
mod weights;

use kendall_station::Servers;

pub use bounds::{Bounds, InteractiveCheck, interactive_response_s};
pub use several::{MultiClass, MultiClassAnswer};

/// The largest number of users with a solution.
pub const MOST_USERS: u64 = 10_000_000;

/// N users, one class, who think and then visit each station; its demand is the total service over all visits.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedNetwork {
    /// The mean time between an answer and the next request, in seconds; of any law.
    pub think_s: f64,
    /// The stations of a request. Their order does not matter.
    pub stations: Vec<ClosedStation>,
    /// The number of users.
    pub users: u64,
}

/// A station of a closed network.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedStation {
    /// The name of the station.
    pub name: String,
    /// The demand of one request on one server over all its visits, waiting excluded, in seconds.
    pub demand_s: f64,
    /// The station's speed as a function of the requests present.
    pub serving: Serving,
}

/// The speed of a station with n requests present. Product form needs exponential service under FIFO, and any service if the server is
/// shared or no request waits (Baskett, Chandy, Muntz and Palacios 1975).
#[derive(Clone, Debug, PartialEq)]
pub enum Serving {
    /// No request waits: a delay.
    Delay,
    /// The given number of identical servers.
    Servers(Servers),
    /// The speed with n present, in servers: the n-th entry, from n = 1; the last one applies beyond.
    Rates(Vec<f64>),
}

/// The solution of a closed network.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedAnswer {
    /// The name of the method and its reference.
    pub source: &'static str,
    /// Requests per second.
    pub throughput_per_s: f64,
    /// The time from the end of thinking to the answer, in seconds.
    pub response_s: f64,
    /// In the order of the network.
    pub stations: Vec<ClosedStationAnswer>,
    /// The index of the station that limits the throughput of many users; `None` if no request ever waits.
    pub bottleneck: Option<usize>,
}

/// The solution for a station of a closed network.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedStationAnswer {
    /// The station's name.
    pub name: String,
    /// The demand of a request on the station, in seconds.
    pub demand_s: f64,
    /// The time of a request at it over all its visits, waiting included, in seconds.
    pub response_s: f64,
    /// The mean number of requests there, waiting and in service.
    pub queue: f64,
    /// The mean share of the servers that is busy; with rates, of the largest rate; 0 at a delay, which has infinitely many
    /// servers.
    pub utilisation: f64,
}

/// The reason why a closed network has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ClosedError {
    #[error("a closed network needs at least one user")]
    NoUsers,
    #[error(
        "{users} users are more than the limit of {MOST_USERS}; use the bounds, or Schweitzer's approximation"
    )]
    TooMany { users: u64 },
    #[error("the {what} is {value} s; it must be finite and not negative")]
    Time { what: String, value: f64 },
    #[error(
        "the station {station:?} serves at the rates {rates:?}; it needs at least one rate, and all must be finite and above zero"
    )]
    Rates { station: String, rates: Vec<f64> },
    #[error(
        "users with neither a think time nor a demand send infinitely many requests; give a think time or a demand"
    )]
    NoTime,
    #[error(
        "the rates of a station that slows down as it fills are limited to {most} users, but there are {users}; give fewer users, or \
         rates that do not fall"
    )]
    FallingRates { users: u64, most: u64 },
    #[error("{0}; Schweitzer's approximation takes single servers and delays only")]
    NotSingle(String),
    #[error("the classes' demands, think times and users must have the same number: {0}")]
    Shape(String),
    #[error("exact analysis of these classes needs {states} states, more than {most}; use the approximation")]
    States { states: f64, most: u64 },
}

impl ClosedStation {
    /// A station with one server.
    pub fn single(name: impl Into<String>, demand_s: f64) -> Self {
        Self::servers(name, demand_s, Servers::MIN)
    }

    /// A station with several identical servers and one queue.
    pub fn servers(name: impl Into<String>, demand_s: f64, servers: Servers) -> Self {
        Self { name: name.into(), demand_s, serving: Serving::Servers(servers) }
    }

    /// A station at which no request waits.
    pub fn delay(name: impl Into<String>, demand_s: f64) -> Self {
        Self { name: name.into(), demand_s, serving: Serving::Delay }
    }

    /// The station's speed when it is full, in servers; infinite at a delay.
    fn most_servers(&self) -> f64 {
        match &self.serving {
            Serving::Delay => f64::INFINITY,
            Serving::Servers(servers) => f64::from(servers.get()),
            Serving::Rates(rates) => rates.iter().copied().fold(0.0, f64::max),
        }
    }

    /// The station's speed with arbitrarily many requests, in servers.
    fn last_servers(&self) -> f64 {
        match &self.serving {
            Serving::Rates(rates) => rates.last().copied().unwrap_or(0.0),
            _ => self.most_servers(),
        }
    }

    /// The demand that limits the throughput: per server, in seconds.
    fn binding_s(&self) -> f64 {
        self.demand_s / self.last_servers()
    }

    fn is_single(&self) -> bool {
        matches!(self.serving, Serving::Servers(Servers::MIN))
    }

    fn is_delay(&self) -> bool {
        self.serving == Serving::Delay
    }
}

impl ClosedNetwork {
    /// Checks that the network is valid.
    ///
    /// # Errors
    /// Fails without users, on too many of them, on times that are negative or not finite, on rates that are missing or not above
    /// zero, and if no request takes any time.
    pub fn validate(&self) -> Result<(), ClosedError> {
        if self.users == 0 {
            return Err(ClosedError::NoUsers);
        }
        let sound = |time_s: f64| time_s >= 0.0 && time_s.is_finite();
        if !sound(self.think_s) {
            return Err(ClosedError::Time { what: "think time".into(), value: self.think_s });
        }
        for station in &self.stations {
            if !sound(station.demand_s) {
                let what = format!("demand at the station {:?}", station.name);
                return Err(ClosedError::Time { what, value: station.demand_s });
            }
            match &station.serving {
                Serving::Rates(rates)
                    if rates.is_empty() || !rates.iter().all(|rate| *rate > 0.0 && rate.is_finite()) =>
                {
                    return Err(ClosedError::Rates { station: station.name.clone(), rates: rates.clone() });
                }
                _ => {}
            }
        }
        if self.think_s + self.demand_s() > 0.0 { Ok(()) } else { Err(ClosedError::NoTime) }
    }

    /// The demand of a request at all stations, in seconds.
    pub fn demand_s(&self) -> f64 {
        self.stations.iter().map(|station| station.demand_s).sum()
    }

    /// The index of the station that limits the throughput of many users; `None` if no request ever waits.
    pub fn bottleneck(&self) -> Option<usize> {
        let binding = |&place: &usize| self.stations[place].binding_s();
        (0..self.stations.len())
            .filter(|place| binding(place) > 0.0)
            .max_by(|a, b| binding(a).total_cmp(&binding(b)).then(b.cmp(a)))
    }

    /// The exact steady state: by mean value analysis (Reiser and Lavenberg 1980) if every station is a single server or a delay,
    /// and by convolution (Buzen 1973) otherwise, which keeps of each station's terms those that are at least e⁻⁵⁰ of its largest;
    /// the omitted ones change no digit (see `weights`). A million users take some hundredths of a second.
    ///
    /// # Errors
    /// As [`validate`](Self::validate), for more than [`MOST_USERS`] users, and for more than a few thousand users at a
    /// station whose rate falls as it fills.
    pub fn solve(&self) -> Result<ClosedAnswer, ClosedError> {
        self.validate_exact()?;
        if self.by_mean_values() { Ok(mva::exact(self)) } else { Ok(convolution::solve(self)) }
    }

    /// The exact throughput alone, in requests per second, in about half the time of [`solve`](Self::solve).
    ///
    /// # Errors
    /// As [`solve`](Self::solve).
    pub fn throughput_per_s(&self) -> Result<f64, ClosedError> {
        self.validate_exact()?;
        Ok(if self.by_mean_values() {
            mva::exact(self).throughput_per_s
        } else {
            convolution::throughput_per_s(self)
        })
    }

    fn validate_exact(&self) -> Result<(), ClosedError> {
        self.validate()?;
        match self.users {
            users if users > MOST_USERS => Err(ClosedError::TooMany { users }),
            users if users > convolution::MOST_FALLING && convolution::falls(self) => {
                Err(ClosedError::FallingRates { users, most: convolution::MOST_FALLING })
            }
            _ => Ok(()),
        }
    }

    fn by_mean_values(&self) -> bool {
        self.stations.iter().all(|station| station.is_single() || station.is_delay())
    }

    /// Schweitzer's approximation (1979), solved to the last digit by bisection on the throughput rather than by
    /// iteration: an arriving user sees (N − 1)/N of the mean queue. Takes any number of users.
    ///
    /// # Errors
    /// As [`validate`](Self::validate), and for stations of several servers.
    pub fn schweitzer(&self) -> Result<ClosedAnswer, ClosedError> {
        self.validate()?;
        match self.stations.iter().find(|station| !station.is_single() && !station.is_delay()) {
            Some(odd) => {
                Err(ClosedError::NotSingle(format!("the station {:?} is not a single server", odd.name)))
            }
            None => Ok(mva::schweitzer(self)),
        }
    }

    /// Builds the answer from the mean number at each station.
    fn answer(&self, source: &'static str, throughput_per_s: f64, queues: &[f64]) -> ClosedAnswer {
        let station = |(station, &queue): (&ClosedStation, &f64)| ClosedStationAnswer {
            name: station.name.clone(),
            demand_s: station.demand_s,
            response_s: if throughput_per_s > 0.0 { queue / throughput_per_s } else { station.demand_s },
            queue,
            utilisation: (throughput_per_s * station.demand_s / station.most_servers()).min(1.0),
        };
        let stations: Vec<_> = self.stations.iter().zip(queues).map(station).collect();
        ClosedAnswer {
            source,
            throughput_per_s,
            response_s: stations.iter().map(|station| station.response_s).sum(),
            stations,
            bottleneck: self.bottleneck(),
        }
    }
}
