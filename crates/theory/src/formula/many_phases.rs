//! M/PH/m, exact: service is a mixture of exponential and Erlang times, and the state is how many of the requests in
//! service are in which stage (Neuts 1981, chapter 4). Above m requests the levels are all alike and are solved by
//! logarithmic reduction (Latouche and Ramaswami 1993); below, level by level. All terms are positive.

use std::collections::HashMap;

use kendall_station::Law;

use super::matrix::{Diagonal, Factors, Matrix, inner};
use super::phases::{Chain, Phases, Stages};
use super::solution::Solution;
use super::tails::Tails;

/// With more states of m busy servers an approximation answers; this number takes about a millisecond.
const MOST_STATES: u64 = 24;

/// The states of n requests in service: the number in each stage.
struct Level {
    states: Vec<Vec<u32>>,
    places: HashMap<Vec<u32>, usize>,
}

impl Level {
    fn new(requests: u32, stages: usize) -> Self {
        let mut states = Vec::new();
        fill(&mut vec![0; stages], 0, requests, &mut states);
        let places = states.iter().cloned().enumerate().map(|(place, state)| (state, place)).collect();
        Self { states, places }
    }

    fn place(&self, state: &[u32], change: impl FnOnce(&mut Vec<u32>)) -> usize {
        let mut state = state.to_vec();
        change(&mut state);
        self.places[&state]
    }
}

/// All ways to divide `left` requests among the stages from `stage` on.
fn fill(state: &mut Vec<u32>, stage: usize, left: u32, states: &mut Vec<Vec<u32>>) {
    if stage + 1 == state.len() {
        state[stage] = left;
        states.push(state.clone());
        return;
    }
    for here in 0..=left {
        state[stage] = here;
        fill(state, stage + 1, left - here, states);
    }
}

/// The moves within a level, and the moves down to `below` by a departure.
fn moves(level: &Level, below: &Level, stages: &Stages) -> (Matrix, Matrix) {
    let (n, fewer) = (level.states.len(), below.states.len());
    let (mut within, mut down) = (Matrix::zero(n, n), Matrix::zero(n, fewer));
    for (from, state) in level.states.iter().enumerate() {
        for (stage, &requests) in state.iter().enumerate().filter(|(_, requests)| **requests > 0) {
            let rate_per_s = f64::from(requests) * stages.rates_per_s[stage];
            if stages.is_last[stage] {
                down.row_mut(from)[below.place(state, |state| state[stage] -= 1)] += rate_per_s;
            } else {
                let to = level.place(state, |state| {
                    state[stage] -= 1;
                    state[stage + 1] += 1;
                });
                within.row_mut(from)[to] += rate_per_s;
            }
        }
    }
    (within, down)
}

/// The transitions of a request that begins service from states of `below`, with their probabilities.
fn starts(below: &Level, level: &Level, stages: &Stages) -> Matrix {
    let mut up = Matrix::zero(below.states.len(), level.states.len());
    for (from, state) in below.states.iter().enumerate() {
        for (stage, &chance) in stages.fresh.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
            up.row_mut(from)[level.place(state, |state| state[stage] += 1)] += chance;
        }
    }
    up
}

/// The probability, by state, of the state in which a level is left downwards for the first time: the least solution
/// of A₂ + A₁G + λG² = 0.
fn first_passage(rate_per_s: f64, within: &Matrix, down: &Matrix) -> Matrix {
    let n = within.rows();
    let mut leave = down.row_sums();
    leave.iter_mut().for_each(|sum| *sum += rate_per_s);
    let still = Factors::new(within.clone(), Diagonal::Sums(leave));
    let mut identity = Matrix::zero(n, n);
    (0..n).for_each(|i| identity.row_mut(i)[i] = rate_per_s);
    let (mut up, mut fall) = (still.solve(identity), still.solve(down.clone()));
    let (mut passage, mut risen) = (fall.clone(), up.clone());
    for _ in 0..64 {
        let back = up.times(&fall).plus(&fall.times(&up));
        let (up_two, fall_two) = (up.times(&up), fall.times(&fall));
        let sums = up_two.row_sums().iter().zip(fall_two.row_sums()).map(|(a, b)| a + b).collect();
        let factors = Factors::new(back, Diagonal::Sums(sums));
        (up, fall) = (factors.solve(up_two), factors.solve(fall_two));
        passage = passage.plus(&risen.times(&fall));
        risen = risen.times(&up);
        if risen.row_sums().iter().all(|&left| left < 1e-16) {
            break;
        }
    }
    let sums = passage.row_sums();
    for (i, sum) in sums.into_iter().enumerate() {
        passage.row_mut(i).iter_mut().for_each(|x| *x /= sum);
    }
    passage
}

/// The sojourns in the levels 1 to m, from m downwards: how each level is left follows from the one above it.
fn sojourns(rate_per_s: f64, levels: &[Level], stages: &Stages, passage: Matrix) -> Vec<Factors> {
    let busy = levels.len() - 1;
    let mut sojourns = Vec::with_capacity(busy);
    let mut above = passage;
    for n in (1..=busy).rev() {
        let (within, down) = moves(&levels[n], &levels[n - 1], stages);
        if n < busy {
            above = starts(&levels[n], &levels[n + 1], stages).times(&above);
        }
        let round = scaled(above, rate_per_s);
        let sojourn = Factors::new(within.plus(&round), Diagonal::Sums(down.row_sums()));
        above = sojourn.solve(down);
        sojourns.push(sojourn);
    }
    sojourns.reverse();
    sojourns
}

fn scaled(mut matrix: Matrix, factor: f64) -> Matrix {
    (0..matrix.rows()).for_each(|i| matrix.row_mut(i).iter_mut().for_each(|x| *x *= factor));
    matrix
}

/// Means, variances and tails of M/PH/m under FIFO; `None` if the law has no stages, a part of zero time, or too many
/// states.
pub(super) fn solve(rate_per_s: f64, service: &Law, servers: u32) -> Option<Solution> {
    let stages = Stages::of(service)?;
    let whole = (stages.fresh.iter().sum::<f64>() - 1.0).abs() < 1e-12;
    if !whole || ways(servers, stages.fresh.len())? > MOST_STATES {
        return None;
    }
    let levels: Vec<Level> = (0..=servers).map(|n| Level::new(n, stages.fresh.len())).collect();
    let busy = levels.len() - 1;
    let (within, leave) = moves(&levels[busy], &levels[busy - 1], &stages);
    let refill = leave.times(&starts(&levels[busy - 1], &levels[busy], &stages));
    let passage = first_passage(rate_per_s, &within, &refill);

    let sojourns = sojourns(rate_per_s, &levels, &stages, passage.clone());

    // Upwards from an empty station; normalised by Σ (m − n)·p_n = m − a, which holds at any load.
    let mut now = vec![1.0];
    let mut below = vec![1.0];
    let mut entering = Vec::new();
    for (n, sojourn) in (1..).zip(&sojourns) {
        let up = starts(&levels[n - 1], &levels[n], &stages);
        entering = (0..up.columns)
            .map(|to| rate_per_s * now.iter().enumerate().map(|(i, p)| p * up.row(i)[to]).sum::<f64>())
            .collect();
        now = sojourn.solve_row(&entering);
        if n < busy {
            below.push(now.iter().sum());
        }
    }
    let (m, load) = (f64::from(servers), rate_per_s * service.mean_s());
    let idle: f64 = below.iter().zip(0u32..).map(|(p, n)| p * (m - f64::from(n))).sum();
    let norm = (m - load) / idle;
    entering.iter_mut().for_each(|x| *x *= norm);
    let p_free: f64 = below.iter().sum::<f64>() * norm;

    // P(W > t) = α·(−Θ)⁻¹·e^(Θt)·1 with Θ = D₀ + λG, D₀ the moves of m busy servers without a departure (from the
    // geometric levels by the distributional law of Little). The diagonal of −Θ is the total rate less λ·G_ii.
    let returning = scaled(passage, rate_per_s);
    let total: Vec<f64> = within.row_sums().iter().zip(leave.row_sums()).map(|(a, b)| a + b).collect();
    let diagonal: Vec<f64> = total.iter().enumerate().map(|(i, total)| total - returning.row(i)[i]).collect();
    let moves = within.plus(&returning);
    let factors = Factors::new(moves.clone(), Diagonal::Itself(diagonal.clone()));
    let mut integrals = vec![vec![1.0; moves.rows()]];
    for order in 0..3 {
        integrals.push(factors.solve_column(&integrals[order]));
    }
    let moment = |order: usize| inner(&entering, &integrals[order]);
    let waiting_s = moment(2);
    // By the one of the two that loses no digits.
    let p_wait = if p_free < 0.5 { 1.0 - p_free } else { moment(1) };
    let variance = (2.0 * moment(3) - waiting_s * waiting_s).max(0.0);
    let waiting = Chain::falling(&entering, &integrals[1], &moves, &diagonal, &stages);
    let response = waiting.then(p_free, &stages);
    let service_s = service.mean_s();
    Some(Solution {
        source: "M/PH/m by matrix-geometric levels (Neuts 1981, chapter 4)",
        approximate: None,
        p_wait,
        waiting_s,
        waiting_variance_s2: Some(variance),
        response_variance_s2: Some(variance + service.moment(2) - service_s * service_s),
        service_s,
        throughput_per_s: rate_per_s,
        lost: 0.0,
        tails: Tails::of(Phases { waiting, response }),
    })
}

/// The number of states of m busy servers: (m + k − 1 choose k − 1). `None` if absurdly many.
fn ways(servers: u32, stages: usize) -> Option<u64> {
    let mut ways = 1u64;
    for i in 1..stages as u64 {
        ways = ways.checked_mul(u64::from(servers) + i)? / i;
        if ways > 1_000_000 {
            return None;
        }
    }
    Some(ways)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::many;

    /// Two exponential parts that are the same, and a part of Erlang with one stage, are still M/M/m.
    #[test]
    fn exponential_service_in_disguise_is_m_m_m() {
        let law = Law::Hyperexponential { parts: vec![(0.3, 1.0), (0.7, 1.0)] };
        for (servers, rho) in [(1u32, 0.7), (3, 0.2), (8, 0.9), (20, 0.999)] {
            let rate = rho * f64::from(servers);
            let (found, exact) = (solve(rate, &law, servers).unwrap(), many::solve(rate, 1.0, servers));
            let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{servers} {rho}: {a} {b}");
            near(found.p_wait, exact.p_wait);
            near(found.waiting_s, exact.waiting_s);
            near(found.waiting_variance_s2.unwrap(), exact.waiting_variance_s2.unwrap());
            for t in [0.0, 0.3, 2.0, 30.0] {
                // Below 10⁻²⁰ the Poisson terms of uniformisation end.
                let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b + 1e-20, "{t}: {a} {b}");
                near(found.tails.waiting(t).unwrap(), exact.tails.waiting(t).unwrap());
                near(found.tails.response(t).unwrap(), exact.tails.response(t).unwrap());
            }
        }
    }

    /// A single server has another method.
    #[test]
    fn one_server_is_m_g_1() {
        for law in [
            Law::Erlang { shape: 5, mean_s: 1.0 },
            Law::Hyperexponential { parts: vec![(0.9, 0.5), (0.1, 5.5)] },
        ] {
            for rho in [0.2, 0.9, 0.9999] {
                let (found, exact) =
                    (solve(rho, &law, 1).unwrap(), crate::formula::single::solve(rho, law.clone()));
                let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{rho}: {a} {b}");
                near(found.p_wait, rho);
                near(found.waiting_s, exact.waiting_s);
                near(found.waiting_variance_s2.unwrap(), exact.waiting_variance_s2.unwrap());
                for t in [0.0, 1.0, 7.0] {
                    near(found.tails.waiting(t).unwrap(), exact.tails.waiting(t).unwrap());
                    near(found.tails.response(t).unwrap(), exact.tails.response(t).unwrap());
                }
            }
        }
    }
}
