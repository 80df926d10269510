//! A fitted model in names, formulas and parameters.

use serde::Serialize;

use super::candidate::{Fitted, Free};
use super::model::{Family, Model};
use super::sample::{Prior, Sample};

/// A quantity that a parameter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// S, the mean service time, in seconds.
    Service,
    /// m, the number of servers.
    Servers,
    /// D, the time outside the station, in seconds.
    Delay,
    /// c², the squared coefficient of variation of the service time.
    Scv,
    /// K, the most requests in the station.
    Capacity,
    /// s, what each request needs of one shared server, in seconds.
    Serial,
    /// γ, the throughput of one user alone, in 1/s.
    Alone,
    /// α, contention.
    Contention,
    /// β, coherency.
    Coherency,
}

/// Whether a parameter was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The user gave the parameter, or it was measured separately from the response times.
    Given,
    /// The fit estimated the parameter.
    Fitted,
}

/// One parameter of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// The quantity.
    pub quantity: Quantity,
    /// The parameter's value.
    pub value: f64,
    /// The parameter's 95 % interval by profile likelihood; an end is infinite where no value is refuted. `None` for
    /// a given parameter, and where there are too few points.
    pub interval: Option<(f64, f64)>,
    /// The origin of the value: the fit, or the user.
    pub origin: Origin,
}

impl Quantity {
    /// The quantity's symbol in the formulas.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Service => "S",
            Self::Servers => "m",
            Self::Delay => "D",
            Self::Scv => "c²",
            Self::Capacity => "K",
            Self::Serial => "s",
            Self::Alone => "γ",
            Self::Contention => "α",
            Self::Coherency => "β",
        }
    }

    /// The quantity in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service time",
            Self::Servers => "servers",
            Self::Delay => "delay outside the station",
            Self::Scv => "variation of the service time",
            Self::Capacity => "room",
            Self::Serial => "serial part of each request",
            Self::Alone => "throughput of one alone",
            Self::Contention => "contention",
            Self::Coherency => "coherency",
        }
    }

    /// Whether the quantity is a count.
    pub fn is_count(self) -> bool {
        matches!(self, Self::Servers | Self::Capacity)
    }

    /// Whether the quantity is a time in seconds.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Service | Self::Delay | Self::Serial)
    }
}

/// The name of a model: "delay + M/M/4".
pub(super) fn name(model: &Model) -> String {
    let served = match model {
        Model::Served(served) => served,
        Model::Scaling(scaling) if scaling.coherency > 0.0 => return "universal scalability law".into(),
        Model::Scaling(_) => return "Amdahl's law".into(),
    };
    let m = served.servers;
    let station = match served.family {
        Family::Exponential => format!("M/M/{m}"),
        Family::Sharing => format!("M/G/{m}-PS"),
        Family::Constant => format!("M/D/{m}"),
        Family::General => format!("M/G/{m}"),
        Family::Room => format!("M/M/{m}/{}", served.capacity.unwrap_or_default()),
        Family::Serial => format!("M/M/{m} + serial part"),
        Family::Scalability | Family::Amdahl => String::new(),
    };
    if served.delay_s > 0.0 { format!("delay + {station}") } else { station }
}

/// The formula of a model for the mean.
pub(super) fn formula(model: &Model) -> &'static str {
    let Model::Served(served) = model else {
        return "X(N) = γN / (1 + α(N − 1) + βN(N − 1)), R = N/X (Gunther 2007)";
    };
    match served.family {
        Family::Exponential | Family::Sharing => "R(λ) = D + S + C(m, λS)·S/(m − λS), C by Erlang (1917)",
        Family::Constant => "R(λ) = D + S + k·C(m, λS)·S/(m − λS), k between ½ and 0.62 (Cosmetatos 1975)",
        Family::General => {
            "R(λ) = D + S + k·C(m, λS)·S/(m − λS), k between constant and exponential service in proportion to c² (Tijms \
             2003), above c² = 1 by Whitt (1993)"
        }
        Family::Room => "R(λ) and loss of M/M/m/K by its balance equations (Gross et al. 2008, section 2.5)",
        Family::Serial | Family::Scalability | Family::Amdahl => {
            "X(N) of a closed network: delay D, m servers of S, one server of s, in product form (Baskett et al. 1975)"
        }
    }
}

/// The parameters with their intervals.
pub(super) fn parameters(fitted: &Fitted, samples: &[Sample], prior: Option<Prior>) -> Vec<Parameter> {
    let intervals = fitted.intervals(samples, prior);
    let free = fitted.spec.free();
    let found = |free: &Free| {
        let i = fitted.spec.free().iter().position(|known| known == free);
        i.and_then(|i| Some(intervals.as_ref()?[i]))
    };
    let of = |quantity, value, as_free: Free| Parameter {
        quantity,
        value,
        interval: found(&as_free),
        origin: if free.contains(&as_free) { Origin::Fitted } else { Origin::Given },
    };
    match fitted.model() {
        Model::Scaling(scaling) => vec![
            of(Quantity::Alone, scaling.alone_per_s, Free::Alone),
            of(Quantity::Contention, scaling.contention, Free::Contention),
            of(Quantity::Coherency, scaling.coherency, Free::Coherency),
        ]
        .into_iter()
        .filter(|parameter| parameter.origin == Origin::Fitted)
        .collect(),
        Model::Served(served) => {
            let counted = fitted.servers_interval();
            let most = |most: Option<u32>| most.map_or(f64::INFINITY, f64::from);
            let servers = Parameter {
                quantity: Quantity::Servers,
                value: f64::from(served.servers),
                interval: counted.map(|(fewest, last)| (f64::from(fewest), most(last))),
                origin: if counted.is_some() { Origin::Fitted } else { Origin::Given },
            };
            let mut parameters = vec![of(Quantity::Service, served.service_s, Free::Service), servers];
            if served.delay_s > 0.0 || free.contains(&Free::Delay) {
                parameters.push(of(Quantity::Delay, served.delay_s, Free::Delay));
            }
            if served.family == Family::General {
                parameters.push(of(Quantity::Scv, served.scv, Free::Scv));
            }
            if served.family == Family::Serial {
                parameters.push(of(Quantity::Serial, served.serial_s, Free::Serial));
            }
            if let Some(capacity) = served.capacity {
                let origin = if fitted.spec.capacity.is_some() { Origin::Given } else { Origin::Fitted };
                parameters.push(Parameter {
                    quantity: Quantity::Capacity,
                    value: capacity as f64,
                    interval: None,
                    origin,
                });
            }
            parameters
        }
    }
}
