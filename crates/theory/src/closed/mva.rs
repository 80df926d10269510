//! Mean value analysis of single servers and delays.

use super::{ClosedAnswer, ClosedNetwork};

/// The exact recursion over the number of users (Reiser and Lavenberg 1980): an arriving user sees the steady state
/// of one user less. Every term is positive.
pub(super) fn exact(network: &ClosedNetwork) -> ClosedAnswer {
    let delay_s = delay_s(network);
    let demands: Vec<f64> = queueing(network).map(|(_, demand_s)| demand_s).collect();
    let mut queues = vec![0.0; demands.len()];
    let mut throughput_per_s = 0.0;
    for users in 1..=network.users {
        let response_s: f64 =
            demands.iter().zip(&queues).map(|(demand_s, queue)| demand_s * (1.0 + queue)).sum();
        throughput_per_s = users as f64 / (delay_s + response_s);
        for (demand_s, queue) in demands.iter().zip(&mut queues) {
            *queue = throughput_per_s * demand_s * (1.0 + *queue);
        }
    }
    const SOURCE: &str = "exact mean value analysis (Reiser and Lavenberg 1980)";
    answer(network, SOURCE, throughput_per_s, &queues)
}

/// Schweitzer's approximation (1979): Q = X·D·(1 + Q·(N − 1)/N) at each station, so Q follows from X, and the X that
/// accounts for all N users is unique.
pub(super) fn schweitzer(network: &ClosedNetwork) -> ClosedAnswer {
    let users = network.users as f64;
    let delay_s = delay_s(network);
    let seen = (users - 1.0) / users;
    let demands: Vec<f64> = queueing(network).map(|(_, demand_s)| demand_s).collect();
    let queue = |throughput: f64, demand_s: f64| {
        let busy = throughput * demand_s;
        busy / (1.0 - seen * busy)
    };
    let placed = |throughput: f64| {
        throughput * delay_s + demands.iter().map(|&demand_s| queue(throughput, demand_s)).sum::<f64>()
    };
    let widest_s = demands.iter().copied().fold(0.0, f64::max);
    let alone = users / (delay_s + demands.iter().sum::<f64>());
    let (mut low, mut high) = (0.0, alone.min(1.0 / (seen * widest_s)));
    // Until the two are adjacent numbers.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if placed(middle) < users { low = middle } else { high = middle }
    }
    let queues: Vec<f64> = demands.iter().map(|&demand_s| queue(low, demand_s)).collect();
    answer(network, "Schweitzer's approximate mean value analysis (1979)", low, &queues)
}

/// Think time and delays together: the order of delays does not matter, nor how many there are.
pub(super) fn delay_s(network: &ClosedNetwork) -> f64 {
    let delays = network.stations.iter().filter(|station| station.is_delay());
    network.think_s + delays.map(|station| station.demand_s).sum::<f64>()
}

/// The stations with a queue, by index, with their demands.
fn queueing(network: &ClosedNetwork) -> impl Iterator<Item = (usize, f64)> {
    let places = network.stations.iter().enumerate().filter(|(_, station)| !station.is_delay());
    places.map(|(place, station)| (place, station.demand_s))
}

fn answer(
    network: &ClosedNetwork,
    source: &'static str,
    throughput_per_s: f64,
    queues: &[f64],
) -> ClosedAnswer {
    let mut all: Vec<f64> =
        network.stations.iter().map(|station| throughput_per_s * station.demand_s).collect();
    for ((place, _), queue) in queueing(network).zip(queues) {
        all[place] = *queue;
    }
    network.answer(source, throughput_per_s, &all)
}
