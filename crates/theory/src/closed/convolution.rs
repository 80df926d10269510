//! Networks with stations of several servers, or of rates that depend on the number there: the normalising constant by
//! convolution (Buzen 1973), in positive terms that are scaled so that no relevant one over- or underflows.

use super::mva::delay_s;
use super::weights::{LEAST, Run, Weights, rates};
use super::{ClosedAnswer, ClosedNetwork, ClosedStation, Serving};

/// The most users at a station whose rates fall, where all terms are added up.
pub(super) const MOST_FALLING: u64 = 4000;

const SOURCE: &str = "product form by convolution (Buzen 1973; Baskett, Chandy, Muntz and Palacios 1975)";

/// Whether a station slows down as it fills.
pub(super) fn falls(network: &ClosedNetwork) -> bool {
    let falling = |station: &ClosedStation| match &station.serving {
        Serving::Rates(rates) => !rates.is_sorted(),
        _ => false,
    };
    network.stations.iter().any(falling)
}

pub(super) fn solve(network: &ClosedNetwork) -> ClosedAnswer {
    if falls(network) { logarithmic(network) } else { Scaled::of(network).answer(network) }
}

pub(super) fn throughput_per_s(network: &ClosedNetwork) -> f64 {
    if falls(network) {
        return logarithmic(network).throughput_per_s;
    }
    let scaled = Scaled::of(network);
    scaled.of_all(&scaled.without(None))
}

/// The network's weights at a throughput that matches its number of users.
struct Scaled {
    users: usize,
    throughput_per_s: f64,
    delay: Weights,
    /// By station; `None` for delays and for stations without a demand.
    stations: Vec<Option<Weights>>,
}

impl Scaled {
    fn of(network: &ClosedNetwork) -> Self {
        let users = network.users as usize;
        let delay_s = delay_s(network);
        let queueing = |station: &ClosedStation| !station.is_delay() && station.demand_s > 0.0;
        let at = |throughput_per_s: f64| {
            let weights = |station: &ClosedStation| {
                queueing(station)
                    .then(|| Weights::station(station, throughput_per_s * station.demand_s, users))
            };
            Self {
                users,
                throughput_per_s,
                delay: Weights::delay(throughput_per_s * delay_s, users),
                stations: network.stations.iter().map(weights).collect(),
            }
        };
        let widest_s = network.stations.iter().map(ClosedStation::binding_s).fold(0.0, f64::max);
        if widest_s == 0.0 {
            return at(users as f64 / delay_s);
        }
        // The mean number in an open network grows from zero to infinity as z·D goes to 1 at the bottleneck: bisection
        // on the scale of log(z·D/(1 − z·D)), until the mean is N to a part of a deviation.
        let placed = |scaled: &Self| {
            let numbers = scaled.stations.iter().flatten().map(Weights::mean);
            numbers.sum::<f64>() + scaled.throughput_per_s * delay_s
        };
        let close = 0.5 * (users as f64).sqrt();
        let (mut low, mut high) = (-60.0, libm::log(users as f64) + 1.0);
        loop {
            let middle = f64::midpoint(low, high);
            let scaled = at(1.0 / (widest_s * (1.0 + libm::exp(-middle))));
            let over = placed(&scaled) - users as f64;
            if over.abs() <= close || high - low < 1e-6 {
                return scaled;
            }
            if over < 0.0 { low = middle } else { high = middle }
        }
    }

    /// The convolution of all stations but one, or of all of them.
    fn without(&self, left_out: Option<usize>) -> Run {
        let stations = self.stations.iter().enumerate().filter(|(place, _)| Some(*place) != left_out);
        let mut others: Vec<&Weights> = stations.filter_map(|(_, weights)| weights.as_ref()).collect();
        // Long heads while the product is short; single servers, one multiplication per term, at the end.
        others.sort_by_key(|weights| (weights.head.terms.len() == 1, weights.end(self.users)));
        others
            .into_iter()
            .fold(self.delay.head.clone(), |product, weights| convolve(product, weights, self.users))
    }

    /// The exact throughput, z·g(N − 1)/g(N), from the convolution of all stations.
    fn of_all(&self, all: &Run) -> f64 {
        self.throughput_per_s * all.at(self.users - 1) / all.at(self.users)
    }

    fn answer(&self, network: &ClosedNetwork) -> ClosedAnswer {
        let users = self.users;
        let all = self.without(None);
        let throughput_per_s = self.of_all(&all);
        let queue = |place: usize| -> f64 {
            match &self.stations[place] {
                None => throughput_per_s * network.stations[place].demand_s,
                // P(at least n there) = ρⁿ·g(N − n)/g(N) at a single server.
                Some(Weights { tail: Some(tail), .. }) if tail.start == 1 => {
                    let terms = powers(tail.ratio).skip(1).zip((all.first..users).rev().map(|n| all.at(n)));
                    terms.map(|(power, g)| power * g).sum::<f64>() / all.at(users)
                }
                Some(weights) => marginal_mean(weights, &self.without(Some(place)), users),
            }
        };
        let queues: Vec<f64> = (0..network.stations.len()).map(queue).collect();
        network.answer(SOURCE, throughput_per_s, &queues)
    }
}

fn powers(ratio: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(1.0), move |power| Some(power * ratio))
}

/// The mean number at a station, of weights w(n)·g(N − n) with g the convolution of the others.
fn marginal_mean(weights: &Weights, others: &Run, users: usize) -> f64 {
    let (mut sum, mut first) = (0.0, 0.0);
    let mut add = |n: usize, weight: f64| {
        let term = weight * users.checked_sub(n).map_or(0.0, |rest| others.at(rest));
        sum += term;
        first += term * n as f64;
    };
    for (weight, n) in weights.head.terms.iter().zip(weights.head.first..) {
        add(n, *weight);
    }
    if let Some(tail) = weights.tail {
        let from = tail.start.max((users + 1).saturating_sub(others.end()));
        let to = (users + 1).saturating_sub(others.first);
        let weight = tail.weight * libm::pow(tail.ratio, (from - tail.start) as f64);
        for (n, power) in (from..to).zip(powers(tail.ratio)) {
            add(n, weight * power);
        }
    }
    first / sum
}

/// The convolution of a product with a station's weights, up to the number of users; its largest term is 1.
fn convolve(product: Run, weights: &Weights, users: usize) -> Run {
    let first = product.first + weights.head.first;
    let end = (product.end() + weights.end(users)).saturating_sub(1).clamp(first + 1, users.max(first) + 1);
    let mut terms = vec![0.0; end - first];
    for (i, &weight) in weights.head.terms.iter().enumerate() {
        for (sum, term) in terms.iter_mut().skip(i).zip(&product.terms) {
            *sum += weight * term;
        }
    }
    if let Some(tail) = weights.tail {
        let start = product.first + tail.start - first;
        let mut passing = 0.0;
        for (i, sum) in terms.iter_mut().skip(start).enumerate() {
            passing = tail.ratio * passing + product.terms.get(i).copied().unwrap_or(0.0);
            *sum += tail.weight * passing;
        }
    }
    let largest = terms.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    terms.iter_mut().for_each(|term| *term /= largest);
    let ends = |term: &f64| *term > LEAST * LEAST;
    let last = terms.iter().rposition(ends).map_or(terms.len(), |last| last + 1);
    // The terms at N and N − 1 are needed.
    terms.truncate(last.max((users + 1).saturating_sub(first)).min(terms.len()));
    Run { first, terms }
}

/// All terms in the log domain, for rates that fall: they may have two peaks far apart, and no scale suits both.
fn logarithmic(network: &ClosedNetwork) -> ClosedAnswer {
    let users = network.users as usize;
    let delay_s = delay_s(network);
    let delay = ClosedStation::delay("think", delay_s);
    let weights: Vec<Vec<f64>> = network.stations.iter().map(|station| log_weights(station, users)).collect();
    let but = |left_out: Option<usize>| {
        let others = (0..weights.len()).filter(|place| Some(*place) != left_out);
        others
            .filter(|place| !network.stations[*place].is_delay())
            .fold(log_weights(&delay, users), |product, place| log_convolve(&product, &weights[place]))
    };
    let all = but(None);
    let throughput_per_s = libm::exp(all[users - 1] - all[users]);
    let queue = |(place, station): (usize, &ClosedStation)| {
        if station.is_delay() {
            return throughput_per_s * station.demand_s;
        }
        let others = but(Some(place));
        let share = |n: usize| libm::exp(weights[place][n] + others[users - n] - all[users]);
        (1..=users).map(|n| n as f64 * share(n)).sum()
    };
    let queues: Vec<f64> = network.stations.iter().enumerate().map(queue).collect();
    network.answer(SOURCE, throughput_per_s, &queues)
}

fn log_weights(station: &ClosedStation, users: usize) -> Vec<f64> {
    let rate = rates(station);
    let mut log = 0.0;
    let terms = (1..=users).map(|n| {
        log += libm::log(station.demand_s / rate(n));
        log
    });
    std::iter::once(0.0).chain(terms).collect()
}

fn log_convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let term = |n: usize| {
        let sums = (0..=n).map(|k| a[k] + b[n - k]);
        let largest = sums.clone().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return largest;
        }
        largest + libm::log(sums.map(|sum| libm::exp(sum - largest)).sum())
    };
    (0..a.len()).map(term).collect()
}
