//! The data of the points that are fitted.

use serde::Serialize;

use crate::table::{Row, Table};

/// The load that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "load")]
pub enum Load {
    /// An open stream.
    Open {
        /// Requests per second.
        rate_per_s: f64,
    },
    /// A closed population.
    Closed {
        /// How many users.
        users: u32,
        /// The mean time between an answer and the same user's next request.
        think_s: f64,
    },
}

impl Load {
    /// Rate or users, as a number that grows with the load.
    pub fn size(&self) -> f64 {
        match *self {
            Self::Open { rate_per_s } => rate_per_s,
            Self::Closed { users, .. } => f64::from(users),
        }
    }

    /// The think time of a closed population; 0 of an open stream.
    pub(super) fn think_s(&self) -> f64 {
        match *self {
            Self::Open { .. } => 0.0,
            Self::Closed { think_s, .. } => think_s,
        }
    }
}

/// The load in words: "120/s", "20 users".
impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open { rate_per_s } => write!(f, "{}/s", short(*rate_per_s)),
            Self::Closed { users: 1, .. } => write!(f, "1 user"),
            Self::Closed { users, .. } => write!(f, "{users} users"),
        }
    }
}

/// A number in four significant digits, without trailing zeros.
pub(super) fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let whole = value.abs().log10().floor() as i32 + 1;
    let digits = (4 - whole).clamp(0, 12) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// Service times by the server's own stamps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stamped {
    /// The mean of the service times.
    pub mean_s: f64,
    /// The squared coefficient of variation of the service times, where it is known.
    pub scv: Option<f64>,
    /// The number of service times, where it is known.
    pub n: Option<f64>,
}

/// One measured point, from any tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observation {
    /// The place of the point in words: "line 4", "80/s".
    pub place: String,
    /// The load that was offered.
    pub load: Load,
    /// Mean response time of the answered requests.
    pub response_s: Option<f64>,
    /// Half the width of its 95 % interval.
    pub response_half_width_s: Option<f64>,
    /// Quantiles of the response time, as (p, seconds).
    pub quantiles_s: Vec<(f64, f64)>,
    /// Completed requests per second.
    pub throughput_per_s: Option<f64>,
    /// Half the width of its 95 % interval.
    pub throughput_half_width_per_s: Option<f64>,
    /// The share of the servers that was busy.
    pub utilisation: Option<f64>,
    /// Processor time per second.
    pub cpu_cores: Option<f64>,
    /// The service times that the server stamped.
    pub service: Option<Stamped>,
    /// How many servers the station has.
    pub servers: Option<u32>,
    /// The most requests in the station.
    pub capacity: Option<u64>,
    /// Time that passes outside the station.
    pub delay_s: Option<f64>,
    /// The share of rejected requests.
    pub lost: Option<f64>,
    /// How many requests were measured.
    pub requests: Option<f64>,
    /// The reason why the point has no steady state, if it has none.
    pub unsteady: Option<String>,
}

impl Observation {
    /// A point of which only the load is known.
    pub fn at(place: impl Into<String>, load: Load) -> Self {
        Self {
            place: place.into(),
            load,
            response_s: None,
            response_half_width_s: None,
            quantiles_s: Vec::new(),
            throughput_per_s: None,
            throughput_half_width_per_s: None,
            utilisation: None,
            cpu_cores: None,
            service: None,
            servers: None,
            capacity: None,
            delay_s: None,
            lost: None,
            requests: None,
            unsteady: None,
        }
    }

    /// The points of a table; rows without rate, throughput or users are skipped.
    pub fn of_table(table: &Table) -> Vec<Self> {
        table.rows.iter().filter_map(Self::of_row).collect()
    }

    fn of_row(row: &Row) -> Option<Self> {
        let think_s = row.think_s.unwrap_or(0.0);
        let load = match row.users {
            Some(users) => Load::Closed { users: users as u32, think_s },
            None => Load::Open { rate_per_s: row.open_rate_per_s()? },
        };
        let stamped = |mean_s| Stamped { mean_s, scv: row.service_scv, n: row.requests };
        Some(Self {
            response_s: row.response_mean_s,
            response_half_width_s: row.response_half_width_s,
            quantiles_s: row.response_quantiles_s.clone(),
            throughput_per_s: row.throughput_per_s,
            throughput_half_width_per_s: row.throughput_half_width_per_s,
            utilisation: row.utilisation,
            cpu_cores: row.cpu_cores,
            service: row.service_s().map(stamped),
            servers: row.servers.map(|servers| servers as u32),
            capacity: row.capacity.map(|capacity| capacity as u64),
            delay_s: row.delay_s,
            lost: row.lost,
            requests: row.requests,
            ..Self::at(row.place(), load)
        })
    }

    /// The throughput of a closed population, as given or by the interactive response-time law X = N/(R + Z) (Denning and Buzen 1978).
    pub(super) fn closed_throughput_per_s(&self) -> Option<f64> {
        let Load::Closed { users, think_s } = self.load else { return None };
        self.throughput_per_s.or_else(|| Some(f64::from(users) / (self.response_s? + think_s)))
    }
}
