//! The relevant product-form weights of one station.
//!
//! At throughput z the weight of n requests at a station is w(n) = ∏ z·D/α(k), k = 1 … n, with α(k) the servers at work.
//! z is chosen so that an open network at that rate would hold N requests on average. As the α never fall, each w is
//! log-concave, and so is their convolution g: it has most of its mass within a few standard deviations of N, and
//! g(N) is at least about the inverse of that many. So to leave out of each station what is below e⁻⁵⁰ of its largest
//! term changes g(N) by less than the number of stations times N times e⁻⁵⁰ of itself: nothing for ten million users.

use super::{ClosedStation, Serving};

/// e⁻⁵⁰.
pub(super) const LEAST: f64 = 1.9e-22;

/// Terms `first`, `first` + 1, and so on.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) first: usize,
    pub(super) terms: Vec<f64>,
}

impl Run {
    /// One past the last term.
    pub(super) fn end(&self) -> usize {
        self.first + self.terms.len()
    }

    pub(super) fn at(&self, n: usize) -> f64 {
        n.checked_sub(self.first).and_then(|i| self.terms.get(i)).copied().unwrap_or(0.0)
    }
}

/// The weights of a station: a head term by term, then for ever a constant ratio.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub(super) head: Run,
    /// Where the constant ratio begins to hold: the first such n, its weight, and the ratio.
    pub(super) tail: Option<Tail>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    pub(super) start: usize,
    pub(super) weight: f64,
    pub(super) ratio: f64,
}

impl Weights {
    /// The weights of a delay: Poisson.
    pub(super) fn delay(mean: f64, users: usize) -> Self {
        Self { head: run(users, |n| mean / n as f64), tail: None }
    }

    /// The weights of a station with a queue, for the offered load z·D, which is below its last rate.
    pub(super) fn station(station: &ClosedStation, load: f64, users: usize) -> Self {
        let rate = rates(station);
        let levels = levels(station);
        let (head_end, ratio) = (levels - 1, load / station.last_servers());
        let head = run(users.min(head_end), |n| load / rate(n));
        // The head's last term leads to the tail's first, if it was not cut off before.
        let last = if head.end() == head_end + 1 { head.terms.last().copied() } else { None };
        let tail = last
            .map(|last| Tail { start: levels, weight: last * ratio, ratio })
            .filter(|tail| tail.start <= users && tail.weight > 0.0);
        Self { head, tail }
    }

    /// The index from which all weights are negligible, at most `users` + 1.
    pub(super) fn end(&self, users: usize) -> usize {
        let Some(tail) = self.tail else { return self.head.end().min(users + 1) };
        let more = (libm::log(LEAST / tail.weight) / libm::log(tail.ratio)).max(0.0).ceil();
        let end = tail.start as f64 + more + 1.0;
        if end < users as f64 + 1.0 { end as usize } else { users + 1 }
    }

    /// The mean number at the station, if it were open.
    pub(super) fn mean(&self) -> f64 {
        let numbered = |run: &Run| -> f64 {
            run.terms.iter().zip(run.first..).map(|(weight, n)| weight * n as f64).sum()
        };
        let (mut sum, mut first) = (self.head.terms.iter().sum::<f64>(), numbered(&self.head));
        if let Some(tail) = self.tail {
            let rest = tail.weight / (1.0 - tail.ratio);
            sum += rest;
            first += rest * (tail.start as f64 + tail.ratio / (1.0 - tail.ratio));
        }
        first / sum
    }
}

/// The number of requests from which the rate no longer changes.
fn levels(station: &ClosedStation) -> usize {
    match &station.serving {
        Serving::Delay => usize::MAX,
        Serving::Servers(servers) => servers.get() as usize,
        Serving::Rates(rates) => rates.len(),
    }
}

/// The rate with n ≥ 1 requests, in servers.
pub(super) fn rates(station: &ClosedStation) -> impl Fn(usize) -> f64 {
    let last = levels(station);
    move |n| match &station.serving {
        Serving::Rates(rates) => rates[n.min(last) - 1],
        _ => n.min(last) as f64,
    }
}

/// Terms 0 … `most`, each the previous one times `ratio(n)`, which never grows; from the largest, which is 1, outwards,
/// down to negligible ones.
fn run(most: usize, ratio: impl Fn(usize) -> f64) -> Run {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if ratio(middle) >= 1.0 { low = middle } else { high = middle - 1 }
    }
    let mode = low;
    let mut terms = Vec::new();
    let (mut term, mut n) = (1.0, mode);
    while n > 0 && term > LEAST {
        term /= ratio(n);
        n -= 1;
        terms.push(term);
    }
    let first = n;
    terms.reverse();
    terms.push(1.0);
    (term, n) = (1.0, mode);
    while n < most && term > LEAST {
        n += 1;
        term *= ratio(n);
        terms.push(term);
    }
    Run { first, terms }
}
