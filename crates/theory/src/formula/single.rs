//! M/G/1 with unlimited room: Pollaczek and Khinchine's mean, Takács's moments, and the tail by the best method that
//! the law of service allows.

use kendall_station::Law;

use super::grid::Grid;
use super::phases;
use super::solution::Solution;
use super::tails::Tails;

/// Means, variances and tails of M/G/1 in order of arrival. The variance of the service time is finite, and it is not
/// constant, for which there is a better method.
pub(super) fn solve(rate_per_s: f64, service: Law) -> Solution {
    let service_s = service.mean_s();
    let rho = rate_per_s * service_s;
    let second = service.moment(2);
    let waiting_s = rate_per_s * second / (2.0 * (1.0 - rho));
    let variance = waiting_s * waiting_s + rate_per_s * service.moment(3) / (3.0 * (1.0 - rho));
    Solution {
        source: "M/G/1 by Pollaczek and Khinchine's formula (Kleinrock 1975, section 5.7)",
        approximate: None,
        p_wait: rho,
        waiting_s,
        waiting_variance_s2: Some(variance),
        response_variance_s2: Some(variance + second - service_s * service_s),
        service_s,
        throughput_per_s: rate_per_s,
        lost: 0.0,
        tails: tails(rho, service),
    }
}

fn tails(rho: f64, service: Law) -> Tails {
    match phases::waiting_and_response(rho, &service) {
        Some(phases) => Tails::of(phases),
        None => Tails::of(Grid::new(rho, service)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::constant::Constant;
    use crate::formula::tails::Distributions;

    /// The methods only share the law, so their agreement shows that each is right.
    #[test]
    fn the_grid_agrees_with_the_phases() {
        let laws = [
            Law::Exponential { mean_s: 0.5 },
            Law::Erlang { shape: 4, mean_s: 2.0 },
            Law::Hyperexponential { parts: vec![(0.9, 0.5), (0.1, 5.5)] },
        ];
        for law in laws {
            for rho in [0.3, 0.8, 0.95] {
                let phases::Phases { waiting, response } = phases::waiting_and_response(rho, &law).unwrap();
                let grid = Grid::new(rho, law.clone());
                for t in [0.1, 1.0, 5.0, 20.0] {
                    let t = t * law.mean_s();
                    let (w, r) = (waiting.survival(t), response.survival(t));
                    assert!((grid.waiting(t) - w).abs() < 1e-7, "{} {rho} {t}: {w}", law.name());
                    assert!((grid.response(t) - r).abs() < 1e-5, "{} {rho} {t}: {r}", law.name());
                }
            }
        }
    }

    #[test]
    fn the_grid_agrees_with_constant_service() {
        for rho in [0.2, 0.8, 0.95] {
            let constant = Constant::new(rho, 2.0, 1);
            let grid = Grid::new(rho, Law::Constant { mean_s: 2.0 });
            for t in [0.5, 3.0, 10.0] {
                assert!((grid.waiting(t) - constant.waiting(t)).abs() < 1e-6, "{rho} {t}");
            }
        }
    }
}
