//! The score of a candidate: how well it predicts the responses of a load that it was not fitted on.
//!
//! The held-out load's own arrivals go through the candidate station several times, with service times drawn anew. So each request has a
//! predicted distribution, given the arrivals before and after it, and the continuous ranked probability score of the logarithm of its
//! measured response (Gneiting and Raftery, 2007) says how good that is. The score is proper, it uses the whole distribution, and it
//! sees what marginal distributions hide: whether a request that found others present waited as the candidate says.
//!
//! At low loads few requests find more present than there are servers. So a full load counts as well: a closed population goes through the
//! candidate, and the same score compares the distribution of its response times with the measured one.

use kendall_evidence::Visit;
use kendall_stats::random::{Purpose, stream};

use crate::law::Fitted;
use crate::observed::{Full, Level, Observed};
use crate::services::Services;

/// How many times the held-out load goes through a candidate.
const MEMBERS: usize = 6;
/// Of each chunk, at most this many requests are scored.
const SCORED: usize = 120;

/// Requests of a closed population that go through a candidate: at least this many, and this many of each user.
const POPULATION: usize = 4_000;
const OF_EACH_USER: usize = 10;

/// Mean scores of the chunks of the scored levels.
#[derive(Clone, Debug)]
pub(crate) struct Scores {
    /// The level, and for each of its chunks the mean score of its requests. The numbers of full loads follow those of the levels.
    pub(crate) levels: Vec<(usize, Vec<f64>)>,
    /// Mean measured over mean predicted response at the highest level, as a logarithm, for each chunk.
    pub(crate) highest_ratio: Vec<f64>,
}

/// Scores a candidate at every level but the lowest, each from the lower ones; at the only level, if there is but one.
pub(crate) fn scores(fitted: &Fitted, steady: &[Vec<f64>], observed: &Observed) -> Scores {
    let levels = &observed.levels;
    let first = usize::from(levels.len() > 1);
    let mut highest_ratio = Vec::new();
    let scored = (first..levels.len()).map(|at| {
        let (scores, ratio) = level_scores(fitted, steady, observed, at);
        highest_ratio = ratio;
        (at, scores)
    });
    let scored: Vec<_> = scored.collect();
    let counts = !observed.is_stamped() && fitted.candidate.order.serves_populations();
    let full = observed.full.iter().zip(levels.len()..).filter(|_| counts);
    let full = full.map(|(full, at)| (at, full_scores(fitted, steady, observed, full)));
    Scores { levels: scored.into_iter().chain(full).collect(), highest_ratio }
}

/// Scores the chunks of a full load: how far its response times lie from those that the population would have at the candidate. Both are
/// relative to their means, which the capacity determines.
fn full_scores(fitted: &Fitted, steady: &[Vec<f64>], observed: &Observed, full: &Full) -> Vec<f64> {
    let even: Vec<Vec<f64>> = observed.levels.iter().map(|level| vec![1.0; level.chunks.len()]).collect();
    let path = fitted.path(&even, observed.capacity.map(|capacity| capacity.per_s), 0.0);
    let users = full.users as usize;
    let visit = Visit { arrival_s: 0.0, service_s: 0.0, class: 0 };
    let mut visits = vec![visit; POPULATION.max(OF_EACH_USER * users)];
    let mut rng = stream(0, Purpose::Service, 1);
    let services = Services::of(fitted, steady, observed, &even);
    services.draw(fitted.width / path.capacity_per_s, &mut rng, &mut visits);
    let services_s: Vec<f64> = visits.iter().map(|visit| visit.service_s).collect();
    let mut responses_s = fitted.candidate.population_s(users, &services_s, &observed.conditions());
    // All users start at once.
    responses_s.drain(..responses_s.len() / 5);
    let mean_s = kendall_stats::mean(&responses_s);
    let sample = Sample::of(responses_s.iter().map(|response_s| libm::log((response_s / mean_s).max(1e-9))));
    full.chunks
        .iter()
        .map(|range| {
            let logs = &full.logs[range.clone()];
            logs.iter().map(|&log| sample.crps(log)).sum::<f64>() / logs.len() as f64
        })
        .collect()
}

/// A sample of a distribution, sorted.
struct Sample {
    values: Vec<f64>,
    /// Sums of the first values.
    sums: Vec<f64>,
    /// Half the mean distance of two values.
    apart: f64,
}

impl Sample {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len() as f64;
        let mut sum = 0.0;
        let sums = std::iter::once(0.0).chain(values.iter().map(|value| {
            sum += value;
            sum
        }));
        let sums = sums.collect();
        let weighted = values.iter().enumerate().map(|(at, value)| (2.0 * at as f64 + 1.0 - n) * value);
        let apart = weighted.sum::<f64>() / (n * n);
        Self { values, sums, apart }
    }

    /// The continuous ranked probability score of the sample: E|X − y| − ½ E|X − X′|.
    fn crps(&self, y: f64) -> f64 {
        let n = self.values.len();
        let below = self.values.partition_point(|value| *value < y);
        let near =
            y * below as f64 - self.sums[below] + (self.sums[n] - self.sums[below]) - y * (n - below) as f64;
        near / n as f64 - self.apart
    }
}

/// Scores the chunks of a level, predicted from the lower levels, or from itself where it is the lowest.
fn level_scores(
    fitted: &Fitted,
    steady: &[Vec<f64>],
    observed: &Observed,
    at: usize,
) -> (Vec<f64>, Vec<f64>) {
    let level = &observed.levels[at];
    let known = &observed.levels[..at.max(1)];
    let even: Vec<Vec<f64>> = known.iter().map(|level| vec![1.0; level.chunks.len()]).collect();
    let services = Services::of(fitted, steady, observed, &even);
    let path = fitted.path(&even, observed.capacity.map(|capacity| capacity.per_s), 0.0);
    let mean_s = path.service_s(level.rate_per_s);
    let members: Vec<Vec<Vec<f64>>> = (0..MEMBERS)
        .map(|member| member_responses_s(fitted, observed, level, &services, mean_s, member as u64))
        .collect();
    let (mut scores, mut ratios) = (Vec::new(), Vec::new());
    for (block, range) in &level.chunks {
        let measured = &level.blocks[*block].counted()[range.clone()];
        let step = measured.len().div_ceil(SCORED).max(1);
        let (mut sum, mut count, mut measured_s, mut predicted_s) = (0.0, 0.0, 0.0, 0.0);
        for (place, request) in measured.iter().enumerate().step_by(step) {
            let response_s = request.completed_s - request.sent_s;
            let of_member = |member: &Vec<Vec<f64>>| member[*block][range.start + place];
            let predicted: [f64; MEMBERS] = std::array::from_fn(|member| of_member(&members[member]));
            sum += crps(&predicted.map(libm::log), libm::log(response_s.max(1e-9)));
            count += 1.0;
            measured_s += response_s;
            predicted_s += predicted.iter().sum::<f64>() / MEMBERS as f64;
        }
        scores.push(sum / count);
        ratios.push(libm::log(measured_s / predicted_s));
    }
    (scores, ratios)
}

/// Responses of the counted requests of each block of a level, with service times drawn from `services`, at the speed that the machine had.
fn member_responses_s(
    fitted: &Fitted,
    observed: &Observed,
    level: &Level,
    services: &Services,
    mean_s: f64,
    member: u64,
) -> Vec<Vec<f64>> {
    // The same numbers for every candidate, so that scores differ by the candidates only.
    let mut rng = stream(member, Purpose::Service, 0);
    let of_block = |block: &crate::block::Block| {
        let mut visits: Vec<Visit> = block
            .requests
            .iter()
            .map(|request| Visit { arrival_s: request.sent_s, service_s: 0.0, class: 0 })
            .collect();
        services.draw(mean_s, &mut rng, &mut visits);
        let slower = observed.slower_in(block);
        for (visit, request) in std::iter::zip(&mut visits, &block.requests) {
            visit.service_s *= slower.at(block.second(request));
        }
        let mut all_s = fitted.candidate.responses_s(&visits, &observed.conditions());
        all_s.drain(..block.first.min(all_s.len()));
        all_s
    };
    level.blocks.iter().map(of_block).collect()
}

/// The fair continuous ranked probability score of an ensemble: E|X − y| − ½ E|X − X′|, without bias for few members (Ferro 2014).
fn crps(members: &[f64; MEMBERS], measured: f64) -> f64 {
    let mut sorted = *members;
    sorted.sort_unstable_by(f64::total_cmp);
    let n = MEMBERS as f64;
    let near: f64 = sorted.iter().map(|member| (member - measured).abs()).sum::<f64>() / n;
    let apart: f64 =
        sorted.iter().enumerate().map(|(at, member)| (2.0 * at as f64 - n + 1.0) * member).sum::<f64>();
    near - apart / (n * (n - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_of_a_sample_is_its_distance_less_half_its_spread() {
        // From 2.5, the values 1, 2 and 6 are at a mean distance of 5.5/3, and two of them, drawn with replacement, of 20/9.
        let score = Sample::of([6.0, 1.0, 2.0].into_iter()).crps(2.5);
        assert!((score - (5.5 / 3.0 - 10.0 / 9.0)).abs() < 1e-12, "{score}");
    }

    #[test]
    fn the_score_of_an_ensemble_is_fair() {
        // By hand: |x − y| of 1, 2, 3, 4, 5, 6 from 3.5 has the mean 1.5, and the mean distance of two different members is 7/3.
        let score = crps(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3.5);
        assert!((score - (1.5 - 7.0 / 6.0)).abs() < 1e-12, "{score}");
    }
}
