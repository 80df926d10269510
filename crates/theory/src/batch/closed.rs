//! Closed populations: one station, networks, bounds and laws.

use kendall_station::{Arrivals, Law, Servers, Station};

use super::open::of_answer;
use super::{BatchError, Inputs, Model};
use crate::closed::{
    ClosedAnswer, ClosedNetwork, ClosedStation, InteractiveCheck, MultiClass, MultiClassAnswer, Serving,
    interactive_response_s,
};
use crate::{engset, formula};

/// Stations and classes are counted from 0. The bottleneck is the input `station` if that is given, and a quantity without
/// a number refers to the input `cls`.
const NETWORK: &str =
    "throughput, R_mean, L, utilisation, bottleneck, Q_bottleneck, R_bottleneck, U_bottleneck, Q_*, R_*, U_*";
const CLASSES: &str = "throughput, R_mean, L, X_*, R_*, Q_*, U_*";
const BOUNDS: &str = "X_upper, X_lower, R_upper, R_lower, N_star";

pub(super) const MODELS: &[Model] = &[
    Model {
        name: "mm_m_finite_source",
        about: "N users with think time at one station of m servers, exact",
        inputs: "N, Z=0: think time, S: service time, m=1, K?: room",
        quantities: "throughput, utilisation, R_mean, R_var, R_p50, R_p95, R_p99, Wq_mean, Wq_var, Wq_p95, L, P_wait, P_block",
        value: finite_source,
    },
    Model {
        name: "engset",
        about: "Engset's loss: a finite number of sources, servers without a queue",
        inputs: "sources, m=1, ratio: a source's rate over that of a server",
        quantities: "P_block_call, P_block_time, L, utilisation",
        value: engset_value,
    },
    Model {
        name: "closed_mva",
        about: "a closed network of single-server stations, exact mean value analysis",
        inputs: "D: demands, Z=0: think time, N: users, servers?: as many numbers as demands, station?: the one to report",
        quantities: NETWORK,
        value: exact,
    },
    Model {
        name: "closed_mva_multiserver",
        about: "a closed network of stations with several servers, exact",
        inputs: "D: demands, servers=1: of each station; 0 is a delay, Z=0: think time, N: users, station?: the one to report",
        quantities: NETWORK,
        value: exact,
    },
    Model {
        name: "closed_schweitzer",
        about: "a closed network by Schweitzer's approximation",
        inputs: "D: demands, Z=0: think time, N: users, servers?: as many numbers as demands, station?: the one to report",
        quantities: NETWORK,
        value: schweitzer,
    },
    Model {
        name: "closed_mva_multiclass",
        about: "a closed network with several classes of users, exact",
        inputs: "D: for each station the demand of each class, Z=0: of each class, N: of each class, cls?: the one to report",
        quantities: CLASSES,
        value: multi_class,
    },
    Model {
        name: "closed_schweitzer_multiclass",
        about: "a closed network with several classes by Schweitzer's approximation",
        inputs: "D: for each station the demand of each class, Z=0: of each class, N: of each class, cls?: the one to report",
        quantities: CLASSES,
        value: multi_class_schweitzer,
    },
    Model {
        name: "closed_linearizer",
        about: "a closed network with several classes by the Linearizer",
        inputs: "D: for each station the demand of each class, Z=0: of each class, N: of each class, cls?: the one to report",
        quantities: CLASSES,
        value: multi_class_linearizer,
    },
    Model {
        name: "asymptotic_bounds",
        about: "bounds of a closed network, from its demands",
        inputs: "D: demands, Z=0: think time, N: users, servers?: as many numbers as demands",
        quantities: BOUNDS,
        value: asymptotic,
    },
    Model {
        name: "balanced_job_bounds",
        about: "narrower bounds of a closed network, from balanced ones",
        inputs: "D: demands, Z=0: think time, N: users",
        quantities: BOUNDS,
        value: balanced,
    },
    Model {
        name: "response_time_law",
        about: "the interactive response-time law R = N/X - Z",
        inputs: "N: users, X: throughput, Z=0: think time",
        quantities: "R_mean",
        value: response_time_law,
    },
    Model {
        name: "little_check_closed",
        about: "whether users and throughput times response time agree",
        inputs: "N: users, X: throughput, R: response time, R_us?: the same in microseconds, Z=0: think time",
        quantities: "X*R/N, X*R, holds",
        value: little_check,
    },
];

fn no_answer(why: impl std::fmt::Display) -> BatchError {
    BatchError::NoAnswer(why.to_string())
}

fn think_s(inputs: &Inputs) -> Result<f64, BatchError> {
    Ok(inputs.optional("Z")?.unwrap_or(0.0))
}

fn finite_source(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let users = inputs.whole("N")?;
    let population =
        u32::try_from(users).map_err(|_| no_answer(format!("{users} users are too many for one station")))?;
    let think = Law::Constant { mean_s: think_s(inputs)? };
    let capacity = inputs.has("K").then(|| inputs.whole("K")).transpose()?;
    let service = Law::Exponential { mean_s: inputs.positive("S")? };
    let arrivals = Arrivals::Closed { population, think };
    let station = Station { capacity, ..Station::new(arrivals, service, inputs.servers("m")?) };
    Ok(of_answer(&formula(&station).map_err(no_answer)?, quantity))
}

fn engset_value(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let sources = inputs.whole("sources")?;
    let sources = u32::try_from(sources).map_err(|_| no_answer(format!("{sources} sources are too many")))?;
    let servers = inputs.servers("m")?;
    let found = engset(sources, servers, inputs.positive("ratio")?);
    Ok(match quantity {
        "P_block_call" => Some(found.call_congestion),
        "P_block_time" => Some(found.time_congestion),
        "L" => Some(found.busy),
        "utilisation" => Some(found.busy / f64::from(servers.get())),
        _ => None,
    })
}

/// The network of the inputs D, Z, N and, where some stations have more than one server, `servers`; 0 is a delay.
fn network(inputs: &Inputs) -> Result<ClosedNetwork, BatchError> {
    let demands_s = inputs.numbers("D")?;
    let servers = match inputs.has("servers") {
        true => inputs.numbers("servers")?,
        false => vec![1.0; demands_s.len()],
    };
    if servers.len() != demands_s.len() {
        let (servers, demands) = (servers.len(), demands_s.len());
        return Err(no_answer(format!("{servers} numbers of servers for {demands} demands")));
    }
    let serving = |servers: f64| {
        let whole = Some(servers).filter(|servers| servers.fract() == 0.0 && (0.0..=4e9).contains(servers));
        let whole = whole.ok_or_else(|| no_answer(format!("{servers} is not a number of servers")))?;
        Ok(Servers::new(whole as u32).map_or(Serving::Delay, Serving::Servers))
    };
    let station = |((place, &demand_s), &servers): ((usize, &f64), &f64)| {
        Ok(ClosedStation { name: place.to_string(), demand_s, serving: serving(servers)? })
    };
    let stations: Result<_, BatchError> = demands_s.iter().enumerate().zip(&servers).map(station).collect();
    Ok(ClosedNetwork { think_s: think_s(inputs)?, stations: stations?, users: inputs.whole("N")? })
}

fn exact(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let network = network(inputs)?;
    of_network(inputs, &network.solve().map_err(no_answer)?, quantity)
}

fn schweitzer(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let network = network(inputs)?;
    of_network(inputs, &network.schweitzer().map_err(no_answer)?, quantity)
}

fn of_network(inputs: &Inputs, answer: &ClosedAnswer, quantity: &str) -> Result<Option<f64>, BatchError> {
    let asked = inputs.has("station").then(|| inputs.whole("station")).transpose()?;
    let asked = asked.map(|place| place as usize).or(answer.bottleneck);
    let (kind, place) = match quantity {
        "throughput" => return Ok(Some(answer.throughput_per_s)),
        "R_mean" => return Ok(Some(answer.response_s)),
        "L" => return Ok(Some(answer.stations.iter().map(|station| station.queue).sum())),
        "bottleneck" => return Ok(answer.bottleneck.map(|place| place as f64)),
        "utilisation" => ("U", asked),
        _ => match quantity.split_once('_') {
            Some((kind, "bottleneck")) => (kind, asked),
            Some((kind, place)) => (kind, place.parse().ok()),
            None => return Ok(None),
        },
    };
    let Some(station) = place.and_then(|place| answer.stations.get(place)) else { return Ok(None) };
    Ok(match kind {
        "Q" => Some(station.queue),
        "R" => Some(station.response_s),
        "U" => Some(station.utilisation),
        _ => None,
    })
}

fn classes(inputs: &Inputs) -> Result<MultiClass, BatchError> {
    let whole = |number: f64| {
        let users = Some(number).filter(|users| users.fract() == 0.0 && (0.0..=4e9).contains(users));
        users.map(|users| users as u32).ok_or_else(|| no_answer(format!("{number} is not a number of users")))
    };
    let users: Result<Vec<u32>, BatchError> = inputs.numbers("N")?.into_iter().map(whole).collect();
    let users = users?;
    let think_s = if inputs.has("Z") { inputs.numbers("Z")? } else { vec![0.0; users.len()] };
    Ok(MultiClass { demands_s: inputs.rows("D")?, think_s, users })
}

fn multi_class(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    of_classes(inputs, &classes(inputs)?.exact().map_err(no_answer)?, quantity)
}

fn multi_class_schweitzer(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    of_classes(inputs, &classes(inputs)?.schweitzer().map_err(no_answer)?, quantity)
}

fn multi_class_linearizer(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    of_classes(inputs, &classes(inputs)?.linearizer().map_err(no_answer)?, quantity)
}

fn of_classes(inputs: &Inputs, answer: &MultiClassAnswer, quantity: &str) -> Result<Option<f64>, BatchError> {
    let asked = inputs.has("cls").then(|| inputs.whole("cls")).transpose()?.map(|class| class as usize);
    let one = |values: &[f64], all: f64| match asked {
        Some(class) => values.get(class).copied(),
        None => Some(all),
    };
    let throughput: f64 = answer.throughput_per_s.iter().sum();
    let present = |class: Option<usize>, row: &[f64]| {
        class.map_or_else(|| row.iter().sum(), |class| row.get(class).copied().unwrap_or(0.0))
    };
    let queued = |class| answer.queue.iter().map(|row| present(class, row)).sum::<f64>();
    let place = |name: &str| quantity.strip_prefix(name).and_then(|place| place.parse::<usize>().ok());
    Ok(match quantity {
        "throughput" => one(&answer.throughput_per_s, throughput),
        "R_mean" => one(&answer.response_s, queued(None) / throughput),
        "L" => Some(queued(asked)),
        _ => {
            let by_class =
                |name: &str, values: &[f64]| place(name).and_then(|class| values.get(class).copied());
            by_class("X_", &answer.throughput_per_s)
                .or_else(|| by_class("R_", &answer.response_s))
                .or_else(|| by_class("U_", &answer.utilisation))
                .or_else(|| Some(present(asked, answer.queue.get(place("Q_")?)?)))
        }
    })
}

fn asymptotic(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let bounds = network(inputs)?.bounds().map_err(no_answer)?;
    Ok(match quantity {
        "N_star" => Some(bounds.saturation_users),
        _ => bound(bounds.throughput_per_s, bounds.response_s, quantity),
    })
}

fn balanced(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let bounds = network(inputs)?.bounds().map_err(no_answer)?;
    let both = bounds.balanced_throughput_per_s.zip(bounds.balanced_response_s);
    let (throughput, response) =
        both.ok_or_else(|| no_answer("balanced networks bound those of single servers and delays only"))?;
    Ok(match quantity {
        "N_star" => Some(bounds.saturation_users),
        _ => bound(throughput, response, quantity),
    })
}

fn bound(throughput: (f64, f64), response: (f64, f64), quantity: &str) -> Option<f64> {
    match quantity {
        "X_lower" => Some(throughput.0),
        "X_upper" => Some(throughput.1),
        "R_lower" => Some(response.0),
        "R_upper" => Some(response.1),
        _ => None,
    }
}

fn response_time_law(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let response_s = interactive_response_s(inputs.positive("N")?, inputs.positive("X")?, think_s(inputs)?);
    Ok((quantity == "R_mean").then_some(response_s))
}

/// R in seconds, or in microseconds as `R_us`.
fn little_check(inputs: &Inputs, quantity: &str) -> Result<Option<f64>, BatchError> {
    let response_s = match inputs.has("R_us") {
        true => inputs.positive("R_us")? * 1e-6,
        false => inputs.positive("R")?,
    };
    let check =
        InteractiveCheck::new(inputs.positive("N")?, inputs.positive("X")?, response_s, think_s(inputs)?);
    Ok(match quantity {
        "X*R/N" => Some(check.ratio()),
        "X*R" => Some(check.implied_users),
        "holds" => Some(f64::from(u8::from(check.holds()))),
        _ => None,
    })
}
