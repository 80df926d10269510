//! The demands behind measured throughputs: a delay, a station of several servers and a single server, in product form.

use std::fmt;

use kendall_station::Servers;

use super::{ClosedAnswer, ClosedError, ClosedNetwork, ClosedStation};
use crate::scalability::{FitError, Parameter, Point, Problem, aicc, factors, validate};

/// What is fitted: users think, go to a station of several servers, and to a single server. What is held at zero is left
/// out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedShape {
    /// How many servers the first station has: cores, threads of a pool.
    pub servers: Servers,
    /// The think time in seconds where it is known; else it is fitted, together with whatever else delays a request
    /// without making others wait.
    pub think_s: Option<f64>,
    /// Whether there is a single server too: a lock, a disk, a connection.
    pub serial: Serial,
}

/// Whether a fit includes a single server beside the station of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serial {
    /// A single server, whose demand is fitted.
    Fitted,
    /// None.
    Absent,
}

/// A closed network through measured points.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedFit {
    /// What was fitted.
    pub shape: ClosedShape,
    /// The time in which a request makes nobody wait, thinking included, in seconds.
    pub delay_s: Parameter,
    /// What a request needs of one of the several servers, in seconds.
    pub servers_s: Parameter,
    /// What a request needs of the single server, in seconds.
    pub serial_s: Parameter,
    /// The standard deviation of the logarithm of a throughput about the curve: a relative error.
    pub residual_se: f64,
    /// Akaike's corrected criterion, on the scale of throughputs so that it compares with that of other curves through
    /// the same points.
    pub aicc: f64,
}

impl ClosedFit {
    /// The fitted network with so many users.
    pub fn network(&self, users: u64) -> ClosedNetwork {
        network(&self.shape, &[self.delay_s.value, self.servers_s.value, self.serial_s.value], users)
    }

    /// All that the fitted network says of so many users.
    ///
    /// # Errors
    /// As [`ClosedNetwork::solve`].
    pub fn answer(&self, users: u64) -> Result<ClosedAnswer, ClosedError> {
        self.network(users).solve()
    }

    /// The throughput that so many users get, in requests per second; a part of a user is rounded. NaN where the network
    /// has no answer: for no user, and for more than [`MOST_USERS`](super::MOST_USERS).
    pub fn predict(&self, users: f64) -> f64 {
        self.answer(users.round() as u64).map_or(f64::NAN, |answer| answer.throughput_per_s)
    }

    /// The station that limits the throughput of many users: its name, its number of servers, and its demand in seconds.
    /// `None` where nobody ever waits.
    pub fn bottleneck(&self) -> Option<(String, u32, Parameter)> {
        let network = self.network(1);
        let place = network.bottleneck()?;
        let (servers, demand_s) = match place {
            0 => (self.shape.servers.get(), self.servers_s),
            _ => (1, self.serial_s),
        };
        Some((network.stations[place].name.clone(), servers, demand_s))
    }
}

impl fmt::Display for ClosedFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |parameter: &Parameter| {
            let (low, high) = parameter.interval;
            format!("{:.4e} s ({low:.4e} … {high:.4e})", parameter.value)
        };
        write!(
            f,
            "delay {} → {} servers of demand {}",
            show(&self.delay_s),
            self.shape.servers,
            show(&self.servers_s)
        )?;
        if self.shape.serial == Serial::Fitted {
            write!(f, " → single server of demand {}", show(&self.serial_s))?;
        }
        match self.bottleneck() {
            Some((name, servers, demand_s)) => {
                write!(f, "; the {name} limit it to {:.4} 1/s", f64::from(servers) / demand_s.value)
            }
            None => write!(f, "; nothing limits it"),
        }
    }
}

const SERVERS: &str = "servers";
const SINGLE: &str = "single server";

fn network(shape: &ClosedShape, at: &[f64], users: u64) -> ClosedNetwork {
    let mut stations = vec![ClosedStation::servers(SERVERS, at[1], shape.servers)];
    if shape.serial == Serial::Fitted {
        stations.push(ClosedStation::single(SINGLE, at[2]));
    }
    ClosedNetwork { think_s: at[0], stations, users }
}

/// Fits demands by least squares on the logarithm of the throughput, none below zero. Points are weighed by their
/// relative standard errors where all are known.
///
/// # Errors
/// Fails on fewer different loads than one more than there are parameters, and on impossible points.
pub fn fit(points: &[Point], shape: ClosedShape) -> Result<ClosedFit, FitError> {
    let fitted: Vec<usize> = [shape.think_s.is_none(), true, shape.serial == Serial::Fitted]
        .iter()
        .enumerate()
        .filter_map(|(i, fitted)| fitted.then_some(i))
        .collect();
    validate(points, fitted.len() + 1)?;
    let known = [shape.think_s.unwrap_or(0.0), 0.0, 0.0];
    let all = |at: &[f64]| {
        let mut all = known;
        for (&i, value) in fitted.iter().zip(at) {
            all[i] = *value;
        }
        all
    };
    let relative = |point: &Point| Point {
        standard_error_per_s: point.standard_error_per_s.map(|error| error / point.throughput_per_s),
        ..*point
    };
    let factors = factors(&points.iter().map(relative).collect::<Vec<_>>());
    let residuals = |at: &[f64]| -> Vec<f64> {
        let residual = |(point, factor): (&Point, &f64)| {
            let users = (point.users.round() as u64).max(1);
            let answer = network(&shape, &all(at), users).solve();
            let throughput = answer.map_or(f64::NAN, |answer| answer.throughput_per_s);
            factor * libm::log(throughput / point.throughput_per_s)
        };
        points.iter().zip(&factors).map(residual).collect()
    };
    let most = points.iter().map(|point| point.throughput_per_s).fold(0.0, f64::max);
    let scale = |i: usize| if i == 1 { f64::from(shape.servers.get()) / most } else { 1.0 / most };
    let problem = Problem {
        residuals: &residuals,
        low: vec![0.0; fitted.len()],
        scale: fitted.iter().map(|&i| 1e-2 * scale(i)).collect(),
    };
    // The response of the least load is shared out among the three, and either station limits the largest throughput.
    let least = points.iter().min_by(|a, b| a.users.total_cmp(&b.users)).ok_or(FitError::NoFit)?;
    let alone_s = (least.users / least.throughput_per_s - known[0]).max(1.0 / most);
    let many = scale(1).min(alone_s);
    let starts = [[0.3 * alone_s, many, 0.3 / most], [0.3 * alone_s, 0.3 * many, 1.0 / most]];
    let starts = starts.map(|start| fitted.iter().map(|&i| start[i]).collect::<Vec<_>>());
    let minimum = problem.minimise_from(&starts).ok_or(FitError::NoFit)?;
    let freedom = (points.len() - fitted.len()) as f64;
    let errors = problem.standard_errors(&minimum, freedom);
    let parameter = |i: usize| match fitted.iter().position(|&fitted| fitted == i) {
        None => Parameter { value: known[i], interval: (known[i], known[i]), standard_error: 0.0 },
        Some(place) => Parameter {
            value: minimum.at[place],
            interval: problem.interval(&minimum, place, minimum.sum, errors[place], freedom),
            standard_error: errors[place],
        },
    };
    let logs: f64 = points.iter().map(|point| libm::log(point.throughput_per_s)).sum();
    Ok(ClosedFit {
        shape,
        delay_s: parameter(0),
        servers_s: parameter(1),
        serial_s: parameter(2),
        residual_se: (minimum.sum / freedom).sqrt(),
        // The density of a throughput is that of its logarithm over the throughput.
        aicc: aicc(minimum.sum, points.len(), fitted.len() + 1) + 2.0 * logs,
    })
}
