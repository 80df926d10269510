//! M/G/1 whose service is a mixture of exponential and Erlang times: waiting and response time are then times to
//! absorption of a small Markov chain, found by uniformisation, that is by positive terms only (Jensen 1953;
//! Neuts 1981 for the chain).

use kendall_station::Law;

use super::poisson::Window;

/// Beyond this many stages, or ways from the end of one service to the start of the next, the grid is faster.
const MOST_STAGES: usize = 256;
const MOST_WAYS: usize = 1024;
/// How many steps are followed at most before the tail is taken as geometric, and how often it is tested whether
/// it already is.
const MOST_STEPS: usize = 400_000;
const TEST_EVERY: usize = 256;

/// A series of exponential stages that is entered at the front with some chance.
struct Branch {
    probability: f64,
    stages: usize,
    rate_per_s: f64,
}

/// The time to absorption of a Markov chain, as the chance `alive[n]` of being alive after n steps at a constant
/// rate. After the last step the chances fall geometrically.
pub(super) struct Chain {
    rate_per_s: f64,
    alive: Vec<f64>,
    ratio: f64,
}

/// Moves of a chain: from, to, rate.
type Moves = Vec<(usize, usize, f64)>;

/// The laws of W and W + S, if the service time is a mixture of exponential and Erlang times and of zero.
pub(super) fn waiting_and_response(rho: f64, service: &Law) -> Option<(Chain, Chain)> {
    let mut branches = Vec::new();
    flatten(service, 1.0, &mut branches)?;
    let stages: usize = branches.iter().map(|branch| branch.stages).sum();
    if stages > MOST_STAGES || stages * branches.len() > MOST_WAYS {
        return None;
    }
    let mean_s: f64 = branches.iter().map(|b| b.probability * b.stages as f64 / b.rate_per_s).sum();
    // A fresh service starts at the front of a branch; a residual one anywhere, by the time spent there.
    let (mut fresh, mut residual) = (vec![0.0; stages], vec![0.0; stages]);
    let mut moves = Moves::new();
    let mut exits = Vec::new();
    let mut at = 0;
    for branch in &branches {
        fresh[at] = branch.probability;
        residual[at..at + branch.stages].fill(branch.probability / branch.rate_per_s / mean_s);
        moves.extend((at + 1..at + branch.stages).map(|to| (to - 1, to, branch.rate_per_s)));
        at += branch.stages;
        exits.push((at - 1, branch.rate_per_s));
    }
    let out = |moves: &mut Moves, shift: usize, chance: f64, start: &[f64]| {
        for &(from, rate) in &exits {
            let entered = start.iter().enumerate().filter(|(_, p)| **p > 0.0);
            moves.extend(entered.map(|(to, p)| (from, to + shift, rate * chance * p)));
        }
    };
    // W is a geometric sum of residual service times.
    let rates: Vec<f64> =
        branches.iter().flat_map(|branch| std::iter::repeat_n(branch.rate_per_s, branch.stages)).collect();
    let start: Vec<f64> = residual.iter().map(|p| rho * p).collect();
    let service_moves = moves.clone();
    out(&mut moves, 0, rho, &residual);
    let waiting = Chain::new(&start, &moves, &rates);
    // W + S enters a fresh service where W ends.
    out(&mut moves, stages, 1.0 - rho, &fresh);
    moves.extend(service_moves.iter().map(|&(from, to, rate)| (from + stages, to + stages, rate)));
    let start: Vec<f64> = start.into_iter().chain(fresh.iter().map(|p| (1.0 - rho) * p)).collect();
    let response = Chain::new(&start, &moves, &rates.repeat(2));
    Some((waiting, response))
}

/// Takes a law apart into branches. A part that is always zero takes no time and becomes none.
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
    /// Follows the uniformised chain until nothing is left or what is left has settled in its final proportions.
    fn new(start: &[f64], moves: &Moves, rates: &[f64]) -> Self {
        let rate_per_s = rates.iter().copied().fold(0.0, f64::max);
        let stay: Vec<f64> = rates.iter().map(|rate| 1.0 - rate / rate_per_s).collect();
        let moves: Moves = moves.iter().map(|&(from, to, rate)| (from, to, rate / rate_per_s)).collect();
        let mut now = start.to_vec();
        let mut alive = vec![now.iter().sum::<f64>()];
        let mut settled: Vec<f64> = now.clone();
        let mut ratio = 0.0;
        while alive.len() < MOST_STEPS {
            let mut next: Vec<f64> = now.iter().zip(&stay).map(|(x, stay)| x * stay).collect();
            for &(from, to, chance) in &moves {
                next[to] += now[from] * chance;
            }
            let (before, left) = (alive[alive.len() - 1], next.iter().sum::<f64>());
            alive.push(left);
            ratio = if before > 0.0 { left / before } else { 0.0 };
            now = next;
            if left < 1e-30 {
                break;
            }
            if alive.len() % TEST_EVERY == 0 {
                let shape: Vec<f64> = now.iter().map(|x| x / left).collect();
                let moved = shape.iter().zip(&settled).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                if moved < 1e-14 {
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
        // Where all that matters lies past the last step, the geometric sum has a closed form.
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
            let (waiting, response) = waiting_and_response(rho, &Law::Exponential { mean_s: 1.0 }).unwrap();
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
