//! Slow spells of a machine: seconds in which the same work takes longer, because others use its processors, caches or memory.
//!
//! A queue grows for as long as its server is slower than the arrivals, so a spell of seconds decides the response times near saturation.
//! Drawn request by request, spells would average out.

use kendall_evidence::Visit;
use kendall_stats::random::{Rng, unit};
use rand_distr::{Distribution as _, Exp1};

/// Two neighbouring seconds are a spell if both differ from the median of their load, in one direction, by more than this many standard
/// deviations of ordinary seconds.
const UNUSUAL: f64 = 2.0;
/// One second alone must differ by this many, for a few long requests make it longer, too.
const UNUSUAL_ALONE: f64 = 5.0;
/// The standard deviation of a normal law over its median absolute deviation.
const NORMAL: f64 = 1.4826;
/// How many times as long as usual work takes in a second in which a full load has no answer. Such a pause delays the requests after it by
/// a second, as if those of that second, which need one second at full load, took twice as long.
const PAUSED: f64 = 2.0;

/// How many times as long as usual the work took in each second of some loads, from its mean time in each: infinite for a second without an
/// answer, and NaN for one without a request, which counts as usual. Part of the scatter of ordinary seconds is that of their requests,
/// with this relative standard deviation; the seconds count for the rest, by which their speed differs (Efron and Morris 1975).
pub(crate) fn slowness(loads: &[Vec<f64>], scatter_sd: f64) -> Vec<Vec<f64>> {
    let relative = |times_s: &Vec<f64>| -> Vec<f64> {
        let known_s: Vec<f64> = times_s.iter().copied().filter(|time_s| time_s.is_finite()).collect();
        let usual_s = kendall_stats::median(&known_s);
        let slower = |time_s: &f64| if time_s.is_infinite() { PAUSED } else { time_s / usual_s };
        times_s.iter().map(slower).collect()
    };
    let loads: Vec<Vec<f64>> = loads.iter().map(relative).collect();
    let known = loads.iter().flatten().filter(|slower| !slower.is_nan());
    let deviations: Vec<f64> = known.map(|slower| (slower - 1.0).abs()).collect();
    let sd = NORMAL * kendall_stats::median(&deviations);
    let beyond = |slower: &f64| {
        let sds = (slower - 1.0) / sd;
        if sds.abs() > UNUSUAL { sds } else { 0.0 }
    };
    let differ = if sd > scatter_sd { 1.0 - (scatter_sd / sd).powi(2) } else { 0.0 };
    let in_spells = |load: Vec<f64>| -> Vec<f64> {
        let beyond: Vec<f64> = std::iter::once(0.0).chain(load.iter().map(beyond)).chain([0.0]).collect();
        let spells = beyond.windows(3).map(|three| {
            three[1].abs() > UNUSUAL_ALONE || three[1] * three[0] > 0.0 || three[1] * three[2] > 0.0
        });
        let slower = |(slower, is_spell): (f64, bool)| match is_spell {
            _ if slower.is_nan() => 1.0,
            true => slower,
            false => 1.0 + differ * (slower - 1.0),
        };
        std::iter::zip(load, spells).map(slower).collect()
    };
    loads.into_iter().map(in_spells).collect()
}

/// Lengthens the service of visits by the second of their arrival; after the last second, by that.
pub(crate) fn lengthen(visits: &mut [Visit], slower: &[f64]) {
    let Some(last) = slower.len().checked_sub(1) else { return };
    for visit in visits {
        visit.service_s *= slower[(visit.arrival_s as usize).min(last)];
    }
}

/// The slowness of each second of the measured loads, to draw from.
#[derive(Clone, Debug)]
pub(crate) struct Spells {
    loads: Vec<Vec<f64>>,
    /// The cumulative weights of the loads.
    weights: Vec<f64>,
    mean: f64,
}

impl Spells {
    /// Weighs the loads anew. The seconds of one load have the same spell, so each load is one observation of how often spells come.
    pub(crate) fn of(loads: impl Iterator<Item = Vec<f64>>, rng: &mut Rng) -> Self {
        let loads: Vec<Vec<f64>> = loads.filter(|load| !load.is_empty()).collect();
        let mean = kendall_stats::mean(&loads.concat());
        let mut sum = 0.0;
        let weights = loads.iter().map(|load| {
            let weight: f64 = Exp1.sample(rng);
            sum += weight * load.len() as f64;
            sum
        });
        Self { weights: weights.collect(), mean, loads }
    }

    /// Lengthens the service of visits that arrive in slow seconds, and shortens that of the others: measured service times contain the
    /// measured spells.
    pub(crate) fn apply(&self, visits: &mut [Visit], rng: &mut Rng) {
        let Some(sum) = self.weights.last() else { return };
        let mut draw = || {
            let share = sum * unit(rng);
            let at = self.weights.partition_point(|weight| *weight < share);
            let load = &self.loads[at.min(self.loads.len() - 1)];
            (load, (unit(rng) * load.len() as f64) as usize)
        };
        let ((mut load, mut first), mut begun_s) = (draw(), 0.0);
        for visit in visits {
            if visit.arrival_s - begun_s >= load.len() as f64 {
                // However long no request came.
                begun_s = visit.arrival_s;
                (load, first) = draw();
            }
            let second = first + (visit.arrival_s - begun_s) as usize;
            visit.service_s *= load[second % load.len()] / self.mean;
        }
    }
}

#[cfg(test)]
mod tests {
    use kendall_stats::random::{Purpose, stream};

    use super::*;

    /// Loads of 20 s whose seconds scatter by 1 %; in one of them the work takes 10 % longer for 4 s.
    fn loads() -> Vec<Vec<f64>> {
        let scatter = |second: usize| 0.002 * (1.0 + 0.01 * [-1.0, 0.5, 0.0, 1.0, -0.5][second % 5]);
        let mut loads = vec![(0..20).map(scatter).collect::<Vec<f64>>(); 5];
        loads[2][8..12].iter_mut().for_each(|time_s| *time_s *= 1.1);
        loads
    }

    #[test]
    fn a_spell_is_found_and_scatter_is_not() {
        let found = slowness(&loads(), 0.0075);
        for (load, seconds) in found.iter().enumerate() {
            for (second, slower) in seconds.iter().enumerate() {
                let is_slow = load == 2 && (8..12).contains(&second);
                assert!(
                    if is_slow { (1.08..1.12).contains(slower) } else { *slower == 1.0 },
                    "{load} {second}: {slower}"
                );
            }
        }
        assert_eq!(slowness(&[Vec::new(), vec![1.0]], 0.0), [Vec::new(), vec![1.0]]);
    }

    #[test]
    fn seconds_that_scatter_more_than_their_requests_differ_in_speed() {
        let speeds = |scatter_sd: f64| slowness(&[[1.1, 0.9].repeat(10)], scatter_sd).concat();
        assert_eq!(speeds(0.0), [1.1, 0.9].repeat(10));
        // The standard deviation of the seconds is 0.14826, half of whose square is that of the requests.
        let sd = 0.1 * NORMAL * 0.5_f64.sqrt();
        assert!(
            speeds(sd).iter().all(|slower| ((slower - 1.0).abs() - 0.05).abs() < 1e-9),
            "{:?}",
            speeds(sd)
        );
        assert_eq!(speeds(0.2), [1.0; 20]);
    }

    #[test]
    fn a_second_without_an_answer_is_lost_and_one_without_a_request_is_as_usual() {
        let mut loads = loads();
        loads[0][3] = f64::INFINITY;
        loads[1][3] = f64::NAN;
        let found = slowness(&loads, 0.0075);
        assert_eq!((found[0][3], found[1][3]), (PAUSED, 1.0));
        assert!((1.08..1.12).contains(&found[2][9]), "{:?}", found[2]);
        assert!(found[0][4..].iter().chain(&found[1]).all(|slower| *slower == 1.0), "{found:?}");
    }

    #[test]
    fn spells_keep_their_length_and_the_mean_service_time() {
        let mut rng = stream(5, Purpose::Sample, 0);
        let arrive = |at: usize| Visit { arrival_s: 0.1 * at as f64, service_s: 1.0, class: 0 };
        let (mut sum, mut turns, mut slow) = (0.0, 0, 0);
        for _ in 0..200 {
            let mut visits: Vec<Visit> = (0..2_000).map(arrive).collect();
            Spells::of(slowness(&loads(), 0.0075).into_iter(), &mut rng).apply(&mut visits, &mut rng);
            let is_slow: Vec<bool> = visits.iter().map(|visit| visit.service_s > 1.05).collect();
            sum += kendall_stats::mean(&visits.iter().map(|visit| visit.service_s).collect::<Vec<f64>>());
            slow += is_slow.iter().filter(|is_slow| **is_slow).count();
            turns += is_slow.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        }
        assert!((sum / 200.0 - 1.0).abs() < 0.003, "{}", sum / 200.0);
        let seconds = 0.1 * slow as f64 / turns as f64;
        assert!((3.0..=4.2).contains(&seconds), "a spell of 4 s lasts for {seconds} s");
    }

    #[test]
    fn without_seconds_nothing_changes() {
        let mut rng = stream(5, Purpose::Sample, 0);
        let mut visits = vec![Visit { arrival_s: 3.0, service_s: 1.0, class: 0 }];
        Spells::of([Vec::new()].into_iter(), &mut rng).apply(&mut visits, &mut rng);
        assert_eq!(visits[0].service_s, 1.0);
    }

    #[test]
    fn ages_without_a_request_take_no_time() {
        let mut rng = stream(5, Purpose::Sample, 0);
        let mut visits =
            [0.0, 1e300, f64::INFINITY].map(|arrival_s| Visit { arrival_s, service_s: 1.0, class: 0 });
        Spells::of([vec![1.0; 10]].into_iter(), &mut rng).apply(&mut visits, &mut rng);
        assert!(visits.iter().all(|visit| visit.service_s == 1.0));
    }
}
