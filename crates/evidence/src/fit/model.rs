//! Models to fit points with: each gives response time, throughput and utilisation at a load.

use kendall_station::{Arrivals, Discipline, Law, Servers, Station};
use serde::Serialize;

use super::observation::Load;
use super::population;
use kendall_theory::TwoMoments;

/// The family of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// M/M/m.
    Exponential,
    /// M/G/m with processor sharing: the means of M/M/m whatever the law of service.
    Sharing,
    /// M/D/m.
    Constant,
    /// M/G/m, in order of arrival.
    General,
    /// M/M/m/K.
    Room,
    /// M/M/m, and after it one server that everybody needs: the part that cannot be done side by side.
    Serial,
    /// The universal scalability law.
    Scalability,
    /// Amdahl's law: the universal scalability law without coherency.
    Amdahl,
}

/// A station with a delay outside the station.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Served {
    /// The family of the station.
    pub family: Family,
    /// How many servers.
    pub servers: u32,
    /// Mean service time.
    pub service_s: f64,
    /// Squared coefficient of variation of the service time.
    pub scv: f64,
    /// Time that passes outside the station, without queueing.
    pub delay_s: f64,
    /// The part of each request that needs one shared server.
    pub serial_s: f64,
    /// The most requests in the station.
    pub capacity: Option<u64>,
}

/// The universal scalability law (Gunther 2007, section 4.4): X(N) = γN/(1 + α(N − 1) + βN(N − 1)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// γ: requests per second of one user alone.
    pub alone_per_s: f64,
    /// α: the share of the work that is done one at a time.
    pub contention: f64,
    /// β: what each pair of users costs to keep in step.
    pub coherency: f64,
}

/// A model with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "model")]
pub enum Model {
    /// A station.
    Served(Served),
    /// The universal scalability law.
    Scaling(Scaling),
}

impl Model {
    /// The mean response time; `None` if the load exceeds the model's capacity.
    pub fn response_s(&self, load: &Load) -> Option<f64> {
        match (self, load) {
            (Self::Served(served), Load::Open { rate_per_s }) => served.response_s(*rate_per_s),
            (Self::Scaling(scaling), Load::Open { rate_per_s }) => scaling.response_at_rate_s(*rate_per_s),
            (Self::Scaling(scaling), Load::Closed { users, .. }) => {
                let users = f64::from(*users);
                Some(users / scaling.throughput_per_s(users))
            }
            (Self::Served(served), Load::Closed { users, think_s }) => {
                let throughput_per_s = served.closed_throughput_per_s(*users, *think_s)?;
                Some((f64::from(*users) / throughput_per_s - think_s).max(0.0))
            }
        }
    }

    /// Completed requests per second; `None` if the load exceeds the model's capacity.
    pub fn throughput_per_s(&self, load: &Load) -> Option<f64> {
        match (self, load) {
            (Self::Served(served), Load::Open { rate_per_s }) => {
                served.response_s(*rate_per_s).map(|_| rate_per_s * (1.0 - served.lost(*rate_per_s)))
            }
            (Self::Scaling(scaling), Load::Open { rate_per_s }) => {
                scaling.response_at_rate_s(*rate_per_s).map(|_| *rate_per_s)
            }
            (Self::Scaling(scaling), Load::Closed { users, .. }) => {
                Some(scaling.throughput_per_s(f64::from(*users)))
            }
            (Self::Served(served), Load::Closed { users, think_s }) => {
                served.closed_throughput_per_s(*users, *think_s)
            }
        }
    }

    /// The rate from which on the model has no steady state.
    pub fn capacity_per_s(&self) -> Option<f64> {
        match self {
            Self::Served(served) => {
                let most_per_s = f64::from(served.servers) / served.service_s;
                served.capacity.is_none().then(|| most_per_s.min(1.0 / served.serial_s))
            }
            Self::Scaling(scaling) => scaling.most_per_s(),
        }
    }

    /// The station at this load, for [`formula`](kendall_theory::formula) and [`simulate`](kendall_simulation::simulate). The delay is not
    /// in it.
    pub fn station(&self, load: &Load) -> Option<Station> {
        match (self, load) {
            (Self::Scaling(_), _) | (Self::Served(Served { family: Family::Serial, .. }), _) => None,
            (Self::Served(served), Load::Open { rate_per_s }) => {
                Some(served.station(Arrivals::poisson(*rate_per_s)))
            }
            (Self::Served(served), Load::Closed { users, think_s }) => {
                // A delay outside is thinking to the station; only the mean of both matters to it.
                let think = Law::Constant { mean_s: think_s + served.delay_s };
                Some(served.station(Arrivals::Closed { population: *users, think }))
            }
        }
    }
}

impl Served {
    /// Mean response time, delay included; `None` at a utilisation of 1 and beyond.
    pub(super) fn response_s(&self, rate_per_s: f64) -> Option<f64> {
        let waiting_s = match self.capacity {
            Some(capacity) => Room::of(self, rate_per_s, capacity).waiting_s,
            None => self.waiting_s(rate_per_s)?,
        };
        let spare = 1.0 - rate_per_s * self.serial_s;
        let response_s = self.delay_s + self.service_s + waiting_s + self.serial_s / spare;
        (spare > 0.0 && response_s.is_finite()).then_some(response_s)
    }

    /// The throughput of a closed population that thinks, passes the delay and is served; exact for exponential service
    /// or sharing (Baskett, Chandy, Muntz and Palacios 1975).
    fn closed_throughput_per_s(&self, users: u32, think_s: f64) -> Option<f64> {
        let delay_s = think_s + self.delay_s;
        let found = population::throughput_per_s(users, delay_s, self.servers, self.service_s, self.serial_s);
        found.is_finite().then_some(found)
    }

    /// The share of the requests that is turned away.
    pub(super) fn lost(&self, rate_per_s: f64) -> f64 {
        self.capacity.map_or(0.0, |capacity| Room::of(self, rate_per_s, capacity).lost)
    }

    /// The mean waiting time without limits of room; `None` at a utilisation of 1 and beyond. Between constant and
    /// exponential service it lies in proportion (Tijms 2003, section 9.6.2), constant service being within one per cent
    /// of exact (Cosmetatos 1975); beyond, Whitt's approximation holds (1993).
    fn waiting_s(&self, rate_per_s: f64) -> Option<f64> {
        let servers = Servers::new(self.servers)?;
        let moments = TwoMoments::new(rate_per_s, self.service_s, servers, 1.0, self.scv).ok()?;
        Some(match self.family {
            Family::Constant => moments.cosmetatos_s(),
            Family::General if self.scv <= 1.0 => {
                (1.0 - self.scv) * moments.cosmetatos_s() + self.scv * moments.exponential_s()
            }
            Family::General => moments.whitt_s(),
            _ => moments.exponential_s(),
        })
    }

    /// The station with these arrivals. Service that is neither constant nor exponential is log-normal, which has any
    /// variation.
    pub fn station(&self, arrivals: Arrivals) -> Station {
        let mean_s = self.service_s;
        let service = match self.family {
            Family::Constant => Law::Constant { mean_s },
            Family::General if self.scv <= 0.0 => Law::Constant { mean_s },
            Family::General => Law::LogNormal { mean_s, scv: self.scv },
            _ => Law::Exponential { mean_s },
        };
        let servers = Servers::new(self.servers).unwrap_or(Servers::MIN);
        let discipline = match self.family {
            Family::Sharing => Discipline::ProcessorSharing,
            _ => Discipline::Fifo,
        };
        Station { capacity: self.capacity, discipline, ..Station::new(arrivals, service, servers) }
    }
}

/// Waiting and loss of M/M/m/K.
struct Room {
    waiting_s: f64,
    lost: f64,
}

impl Room {
    /// The states' shares relative to the largest, added up; positive terms only.
    fn of(served: &Served, rate_per_s: f64, capacity: u64) -> Self {
        let (m, load) = (f64::from(served.servers), rate_per_s * served.service_s);
        let ratio = |n: f64| load / n.min(m);
        // p_n relative to p_m, downwards and upwards from there, kept in range by a common factor.
        let (mut below, mut p, mut n) = (0.0, 1.0, m);
        while n > 0.0 && p > 0.0 {
            p /= ratio(n);
            n -= 1.0;
            below += p;
            if p > 1e200 {
                // What is this far above p_m leaves nothing to those who wait.
                return Self { waiting_s: 0.0, lost: 0.0 };
            }
        }
        let (mut accepted, mut waiting) = (0.0, 0.0);
        let (mut p, rho) = (1.0, load / m);
        for ahead in 0..capacity.saturating_sub(u64::from(served.servers)) {
            accepted += p;
            waiting += p * (ahead as f64 + 1.0);
            p *= rho;
            if p > 1e150 {
                (p, accepted, waiting, below) = (p / 1e150, accepted / 1e150, waiting / 1e150, below / 1e150);
            }
        }
        let found = below + accepted;
        Self { waiting_s: waiting / found * served.service_s / m, lost: p / (found + p) }
    }
}

impl Scaling {
    /// Completed requests per second of `users`.
    pub fn throughput_per_s(&self, users: f64) -> f64 {
        let others = users - 1.0;
        self.alone_per_s * users / (1.0 + self.contention * others + self.coherency * users * others)
    }

    /// The response time at which as many requests come as go: N = λR (Little 1961) in N/X(N) = R, the smaller root.
    fn response_at_rate_s(&self, rate_per_s: f64) -> Option<f64> {
        let &Self { alone_per_s, contention, coherency } = self;
        let slope = alone_per_s - (contention - coherency) * rate_per_s;
        let inner = slope * slope - 4.0 * coherency * rate_per_s * rate_per_s * (1.0 - contention);
        let response_s = 2.0 * (1.0 - contention) / (slope + inner.max(0.0).sqrt());
        (slope > 0.0 && inner >= 0.0 && response_s > 0.0).then_some(response_s)
    }

    /// The highest throughput: at N = √((1 − α)/β) users, or γ/α where no user costs the others (Gunther 2007).
    fn most_per_s(&self) -> Option<f64> {
        match (self.coherency > 0.0, self.contention > 0.0) {
            (true, _) => {
                let users = ((1.0 - self.contention).max(0.0) / self.coherency).sqrt();
                Some(self.throughput_per_s(users.max(1.0)))
            }
            (false, true) => Some(self.alone_per_s / self.contention),
            (false, false) => None,
        }
    }
}
