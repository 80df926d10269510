//! The score of a candidate: how well it predicts the responses of a load that it was not fitted on.
//!
//! The held-out load's own arrivals go through the candidate station several times, with service times drawn anew. So each request has a
//! predicted distribution, given the arrivals before and after it, and the continuous ranked probability score of the logarithm of its
//! measured response (Gneiting and Raftery, 2007) says how good that is. The score is proper, it uses the whole distribution, and it
//! sees what marginal distributions hide: whether a request that found others present waited as the candidate says.

use kendall_evidence::Visit;
use kendall_stats::random::{Purpose, stream};

use crate::candidate::{Fitted, Services};
use crate::observed::{Conditions, Level, Observed};

/// How many times the held-out load goes through a candidate.
const MEMBERS: usize = 6;
/// Of each chunk, at most this many requests are scored.
const SCORED: usize = 120;

/// Mean scores of the chunks of the scored levels.
#[derive(Clone, Debug)]
pub(crate) struct Scores {
    /// The level, and for each of its chunks the mean score of its requests.
    pub(crate) levels: Vec<(usize, Vec<f64>)>,
    /// Mean measured over mean predicted response at the highest level, as a logarithm, for each chunk.
    pub(crate) highest_ratio: Vec<f64>,
}

/// Scores a candidate at every level but the lowest, each from the lower ones; at the only level, if there is but one.
pub(crate) fn scores(fitted: &Fitted, observed: &Observed) -> Scores {
    let levels = &observed.levels;
    let first = usize::from(levels.len() > 1);
    let mut highest_ratio = Vec::new();
    let scored = (first..levels.len()).map(|at| {
        let (scores, ratio) = level_scores(fitted, observed, at, at.max(1));
        highest_ratio = ratio;
        (at, scores)
    });
    Scores { levels: scored.collect(), highest_ratio }
}

/// Scores the chunks of a level, predicted from the first `known` levels.
fn level_scores(fitted: &Fitted, observed: &Observed, at: usize, known: usize) -> (Vec<f64>, Vec<f64>) {
    let level = &observed.levels[at];
    let laws = &fitted.levels[..known];
    let even: Vec<Vec<f64>> =
        observed.levels[..known].iter().map(|level| vec![1.0; level.chunks.len()]).collect();
    let services = Services::of(laws, &even);
    let path = fitted.path(&even, observed.capacity.map(|capacity| capacity.per_s), 0.0);
    let mean_s = path.service_s(level.rate_per_s);
    let members: Vec<Vec<Vec<f64>>> = (0..MEMBERS)
        .map(|member| {
            member_responses_s(fitted, &observed.conditions(), level, &services, mean_s, member as u64)
        })
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

/// Responses of the counted requests of each block of a level, with service times drawn from `services`.
fn member_responses_s(
    fitted: &Fitted,
    conditions: &Conditions<'_>,
    level: &Level,
    services: &Services,
    mean_s: f64,
    member: u64,
) -> Vec<Vec<f64>> {
    // The same numbers for every candidate, so that scores differ by the candidates only.
    let mut rng = stream(member, Purpose::Service, 0);
    let of_block = |block: &crate::observed::Block| {
        let mut visits: Vec<Visit> = block
            .requests
            .iter()
            .map(|request| Visit { arrival_s: request.sent_s, service_s: 0.0, class: 0 })
            .collect();
        services.draw(mean_s, &mut rng, &mut visits);
        let mut all_s = fitted.candidate.responses_s(&visits, conditions);
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
    fn the_score_of_an_ensemble_is_fair() {
        // By hand: |x − y| of 1, 2, 3, 4, 5, 6 from 3.5 has the mean 1.5, and the mean distance of two different members is 7/3.
        let score = crps(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3.5);
        assert!((score - (1.5 - 7.0 / 6.0)).abs() < 1e-12, "{score}");
    }
}
