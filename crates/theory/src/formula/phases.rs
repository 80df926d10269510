//! M/G/1 whose service is a mixture of exponential and Erlang times: waiting and response time are then times to
//! absorption of a small Markov chain, found by uniformisation, that is by positive terms only (Jensen 1953;
//! Neuts 1981 for the chain).

use kendall_station::Law;

use super::matrix::{Matrix, inner};
use super::poisson::Window;
use super::tails::Distributions;

/// With more stages, or transitions from the end of one service to the start of the next, the grid is faster.
const MOST_STAGES: usize = 256;
const MOST_WAYS: usize = 1024;
/// The most steps before the tail is taken as geometric, and the interval of the test for that.
const MOST_STEPS: usize = 400_000;
const TEST_EVERY: usize = 32;

/// A series of exponential stages that is entered at the front with some probability.
struct Branch {
    probability: f64,
    stages: usize,
    rate_per_s: f64,
}

/// The time to absorption of a Markov chain, as the probability `alive[n]` of being alive after n steps at a constant
/// rate. After the last step the probabilities fall geometrically.
pub(super) struct Chain {
    rate_per_s: f64,
    alive: Vec<f64>,
    ratio: f64,
}

/// Waiting and response time as such times.
pub(super) struct Phases {
    pub(super) waiting: Chain,
    pub(super) response: Chain,
}

impl Distributions for Phases {
    fn waiting(&self, t_s: f64) -> f64 {
        self.waiting.survival(t_s)
    }

    fn response(&self, t_s: f64) -> f64 {
        self.response.survival(t_s)
    }
}

/// Moves of a chain: from, to, rate.
type Moves = Vec<(usize, usize, f64)>;

/// Service as stages: a service starts in a random one of them, and moves to the next one or ends.
pub(super) struct Stages {
    pub(super) rates_per_s: Vec<f64>,
    /// Whether service ends with the stage.
    pub(super) is_last: Vec<bool>,
    /// The probability to start in the stage. The remainder to 1 takes no time.
    pub(super) fresh: Vec<f64>,
    /// The probability of the stage at a random instant of service.
    residual: Vec<f64>,
    branches: usize,
}

impl Stages {
    /// The stages of a mixture of exponential and Erlang times and of zero.
    pub(super) fn of(service: &Law) -> Option<Self> {
        let mut branches = Vec::new();
        flatten(service, 1.0, &mut branches)?;
        if branches.iter().map(|branch| branch.stages).sum::<usize>() > MOST_STAGES {
            return None;
        }
        let mean_s: f64 = branches.iter().map(|b| b.probability * b.stages as f64 / b.rate_per_s).sum();
        let mut stages = Self {
            rates_per_s: Vec::new(),
            is_last: Vec::new(),
            fresh: Vec::new(),
            residual: Vec::new(),
            branches: branches.len(),
        };
        for branch in &branches {
            for stage in 0..branch.stages {
                stages.rates_per_s.push(branch.rate_per_s);
                stages.is_last.push(stage + 1 == branch.stages);
                stages.fresh.push(if stage == 0 { branch.probability } else { 0.0 });
                // Weighted by the time spent there.
                stages.residual.push(branch.probability / branch.rate_per_s / mean_s);
            }
        }
        Some(stages)
    }

    /// Moves within a service.
    fn moves(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let inner = (0..self.is_last.len()).filter(|&stage| !self.is_last[stage]);
        inner.map(|stage| (stage, stage + 1, self.rates_per_s[stage]))
    }
}

/// The laws of W and W + S of M/PH/1, if the service time is a mixture of exponential and Erlang times and of zero.
pub(super) fn waiting_and_response(rho: f64, service: &Law) -> Option<Phases> {
    let stages = Stages::of(service)?;
    if stages.fresh.len() * stages.branches > MOST_WAYS {
        return None;
    }
    // W is a geometric sum of residual service times.
    let start: Vec<f64> = stages.residual.iter().map(|p| rho * p).collect();
    let mut moves: Moves = stages.moves().collect();
    for from in (0..stages.is_last.len()).filter(|&stage| stages.is_last[stage]) {
        let entered = stages.residual.iter().enumerate().filter(|(_, p)| **p > 0.0);
        moves.extend(entered.map(|(to, p)| (from, to, stages.rates_per_s[from] * rho * p)));
    }
    let waiting = Chain::new(&start, &moves, &stages.rates_per_s);
    let response = waiting.then(1.0 - rho, &stages);
    Some(Phases { waiting, response })
}

/// Decomposes a law into branches. A part that is always zero takes no time and becomes none.
fn flatten(law: &Law, probability: f64, branches: &mut Vec<Branch>) -> Option<()> {
    let mut stages = |probability, stages: u32, mean_s: f64| {
        let rate_per_s = f64::from(stages) / mean_s;
        branches.push(Branch { probability, stages: stages as usize, rate_per_s });
    };
    match law {
        Law::Exponential { mean_s } => stages(probability, 1, *mean_s),
        Law::Erlang { shape, mean_s } => stages(probability, *shape, *mean_s),
        Law::Hyperexponential { parts } => {
            parts.iter().for_each(|(p, mean_s)| stages(probability * p, 1, *mean_s));
        }
        Law::Mixture { parts } => {
            return parts
                .iter()
                .try_for_each(|part| flatten(&part.of, probability * part.probability, branches));
        }
        Law::Constant { mean_s } if *mean_s == 0.0 => {}
        _ => return None,
    }
    Some(())
}

impl Chain {
    /// Follows a uniformised chain from where it starts.
    fn new(start: &[f64], moves: &Moves, rates: &[f64]) -> Self {
        let rate_per_s = rates.iter().copied().fold(0.0, f64::max);
        let stay: Vec<f64> = rates.iter().map(|rate| 1.0 - rate / rate_per_s).collect();
        let moves: Moves = moves.iter().map(|&(from, to, rate)| (from, to, rate / rate_per_s)).collect();
        let step = |_: usize, now: &[f64]| {
            let mut next: Vec<f64> = now.iter().zip(&stay).map(|(x, stay)| x * stay).collect();
            for &(from, to, chance) in &moves {
                next[to] += now[from] * chance;
            }
            next
        };
        Self::follow(rate_per_s, start.to_vec(), 0, step, |_, now| now.iter().sum())
    }

    /// The probabilities α·P^n·x, where P = I + Θ/q has no negative entry: Θ has `off` off its diagonal, and
    /// −`diagonal` on it. The steps are at least as fast as the stages of a service that may follow.
    pub(super) fn falling(alpha: &[f64], x: &[f64], off: &Matrix, diagonal: &[f64], stages: &Stages) -> Self {
        let rate_per_s = diagonal.iter().chain(&stages.rates_per_s).copied().fold(0.0, f64::max);
        let mut chances = off.clone();
        for (i, own) in diagonal.iter().enumerate() {
            let row = chances.row_mut(i);
            row.iter_mut().for_each(|x| *x /= rate_per_s);
            row[i] = 1.0 - own / rate_per_s;
        }
        let step = |_: usize, now: &[f64]| chances.apply(now);
        Self::follow(rate_per_s, x.to_vec(), 0, step, |_, now| inner(alpha, now))
    }

    /// The time of this chain and then a service, which is at once with the chance `p_none`. In each step the service
    /// is entered by what the chain loses.
    pub(super) fn then(&self, p_none: f64, stages: &Stages) -> Self {
        let rate_per_s = self.rate_per_s;
        let moves: Moves = stages.moves().map(|(from, to, rate)| (from, to, rate / rate_per_s)).collect();
        let start = stages.fresh.iter().map(|p| p_none * p).collect();
        let step = |n: usize, now: &[f64]| {
            let entering = (self.at(n) - self.at(n + 1)).max(0.0);
            let mut next: Vec<f64> = now
                .iter()
                .zip(&stages.rates_per_s)
                .zip(&stages.fresh)
                .map(|((x, rate), fresh)| x * (1.0 - rate / rate_per_s) + entering * fresh)
                .collect();
            for &(from, to, chance) in &moves {
                next[to] += now[from] * chance;
            }
            next
        };
        let steps = self.alive.len();
        Self::follow(rate_per_s, start, steps, step, |n, now| self.at(n) + now.iter().sum::<f64>())
    }

    fn at(&self, n: usize) -> f64 {
        let last = self.alive.len() - 1;
        match n.checked_sub(last) {
            Some(past) => self.alive[last] * libm::pow(self.ratio, past as f64),
            None => self.alive[n],
        }
    }

    /// Takes steps until nothing is left, or the rest has settled in its final proportions; at least `least`.
    fn follow(
        rate_per_s: f64,
        start: Vec<f64>,
        least: usize,
        step: impl Fn(usize, &[f64]) -> Vec<f64>,
        left: impl Fn(usize, &[f64]) -> f64,
    ) -> Self {
        let mut now = start;
        let mut alive = vec![left(0, &now)];
        let mut settled = now.clone();
        let mut ratio = 0.0;
        while alive.len() < MOST_STEPS {
            let n = alive.len();
            now = step(n - 1, &now);
            let (before, still) = (alive[n - 1], left(n, &now));
            alive.push(still);
            ratio = if before > 0.0 { (still / before).min(1.0) } else { 0.0 };
            if still < 1e-30 {
                break;
            }
            if n % TEST_EVERY == 0 {
                let shape: Vec<f64> = now.iter().map(|x| x / still).collect();
                let moved = shape.iter().zip(&settled).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                let size = shape.iter().copied().fold(1.0, f64::max);
                if moved < 1e-12 * size && n >= least {
                    // Over more steps it is known better, which matters if it is close to one.
                    let fall = libm::log(alive[n - TEST_EVERY] / still).max(0.0);
                    ratio = libm::exp(-fall / TEST_EVERY as f64);
                    break;
                }
                settled = shape;
            }
        }
        Self { rate_per_s, alive, ratio }
    }

    /// P(still alive at t) = Σ Poisson(n; qt)·alive(n).
    pub(super) fn survival(&self, t_s: f64) -> f64 {
        let steps = self.rate_per_s * t_s;
        let last = self.alive.len() - 1;
        // If all relevant steps are past the last one, the geometric sum has a closed form.
        if steps * self.ratio - 12.0 * (steps * self.ratio).sqrt() > last as f64 {
            let fall = -libm::log(self.ratio) * last as f64 - steps * (1.0 - self.ratio);
            return self.alive[last] * libm::exp(fall);
        }
        let window = Window::new(steps);
        let mut past = self.alive[last] * self.ratio.powf(window.first.saturating_sub(last + 1) as f64);
        let mut sum = 0.0;
        for (n, chance) in (window.first..).zip(&window.terms) {
            let alive = self.alive.get(n).copied().unwrap_or_else(|| {
                past *= self.ratio;
                past
            });
            sum += chance * alive;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M/M/1: P(W > t) = ρ e^(−(1−ρ)t), P(R > t) = e^(−(1−ρ)t), also where the geometric tail takes over.
    #[test]
    fn one_exponential_stage_is_m_m_1() {
        for rho in [0.5, 0.99, 1.0 - 1e-9] {
            let Phases { waiting, response } =
                waiting_and_response(rho, &Law::Exponential { mean_s: 1.0 }).unwrap();
            for t in [0.0, 0.3, 50.0, 1.0 / (1.0 - rho)] {
                let exact = (-(1.0 - rho) * t).exp();
                assert!((waiting.survival(t) / (rho * exact) - 1.0).abs() < 1e-6, "{rho} {t}");
                assert!((response.survival(t) / exact - 1.0).abs() < 1e-6, "{rho} {t}");
            }
        }
    }

    #[test]
    fn other_laws_have_no_stages() {
        assert!(waiting_and_response(0.5, &Law::Uniform { low_s: 0.0, high_s: 1.0 }).is_none());
        assert!(waiting_and_response(0.5, &Law::Erlang { shape: 1000, mean_s: 1.0 }).is_none());
    }
}
