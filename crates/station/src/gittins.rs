//! The Gittins index of a service-time law, and its mean residual, as functions of the service already received.

use crate::law::Law;

/// The number of quantiles of the law at which the index is tabulated.
const QUANTILES: usize = 256;
/// The number of ages, in geometric steps, at which the index is tabulated as well.
const STEPS: usize = 1024;
/// Indices with at most this relative difference count as equal. An index is a quotient of differences, which
/// magnifies the rounding of the law to as much as 1e-10, and an f32 is off by up to 6e-8; a memoryless job that
/// seemed to lose that little would yield to its equals.
const ROUNDING: f64 = 1e-7;

/// The Gittins index of a job whose service time follows a law (Gittins 1989; Aalto, Ayesta and Righter 2009):
///
/// ```text
/// G(a) = sup over τ of P(S − a ≤ τ | S > a) / E[min(S − a, τ) | S > a]
/// ```
///
/// In the plane with E[min(S, t)] to the right and P(S ≤ t) upwards this is the steepest chord that begins at a,
/// so the whole table is one upper hull, built from the right in linear time.
#[derive(Clone, Debug, PartialEq)]
pub struct GittinsTable {
    law: Law,
    /// The mean of the law, cached because it takes long to compute for a law of many samples.
    mean_s: f64,
    /// Received service and the index there, ascending in the former.
    points: Vec<(f64, f64)>,
    /// `lowest[k][i]` is the least index of the 2ᵏ points from i on.
    lowest: Vec<Vec<f64>>,
}

impl GittinsTable {
    /// Tabulates the index at 256 quantiles of the law, and at 1024 ages from a thousandth of its mean to its far
    /// tail, where quantiles are sparse.
    pub fn new(law: &Law) -> Self {
        let quantiles = (1..QUANTILES).map(|i| law.quantile_s(i as f64 / QUANTILES as f64));
        let (first, last) = (law.mean_s() * 1e-3, law.quantile_s(1.0 - 1e-6));
        let steps = (0..=STEPS).map(|i| first * libm::pow(last / first, i as f64 / STEPS as f64));
        let mut ages: Vec<f64> = std::iter::once(0.0).chain(quantiles).chain(steps).collect();
        ages.sort_by(f64::total_cmp);
        ages.dedup();
        ages.retain(|&age| law.survival(age) > 0.0);
        if ages.is_empty() {
            ages.push(0.0);
        }
        // The hull's vertices from the right; the last is "served to the end".
        let mut hull = vec![(law.mean_s(), 1.0)];
        let mut points: Vec<(f64, f64)> = Vec::with_capacity(ages.len());
        for &age in ages.iter().rev() {
            let here = (law.limited_mean_s(age), 1.0 - law.survival(age));
            let slope = |to: &(f64, f64)| (to.1 - here.1) / (to.0 - here.0).max(f64::MIN_POSITIVE);
            while hull.len() > 1 && slope(&hull[hull.len() - 1]) <= slope(&hull[hull.len() - 2]) {
                hull.pop();
            }
            let exact = slope(hull.last().expect("the hull ends in its first vertex"));
            let index = match points.last() {
                Some(&(_, next)) if (exact / next - 1.0).abs() < ROUNDING => next,
                _ => f64::from((exact as f32).min(f32::MAX)),
            };
            points.push((age, index));
            hull.push(here);
        }
        points.reverse();
        let lowest = minima(points.iter().map(|point| point.1).collect());
        Self { law: law.clone(), mean_s: law.mean_s(), points, lowest }
    }

    /// The index after `age` of service, per unit of time; interpolated between tabulated ages.
    pub fn index(&self, age: f64) -> f64 {
        let after = self.points.partition_point(|point| point.0 <= age);
        match (after.checked_sub(1).map(|i| self.points[i]), self.points.get(after)) {
            (Some(before), Some(next)) => {
                before.1 + (next.1 - before.1) * (age - before.0) / (next.0 - before.0)
            }
            (Some(last), None) => last.1,
            (None, Some(first)) => first.1,
            (None, None) => unreachable!("a table has at least the point at age 0"),
        }
    }

    /// E\[S − a | S > a\]: the expected remaining service after `age`. Past the end of the law it is 0.
    pub fn residual_mean(&self, age: f64) -> f64 {
        let survival = self.law.survival(age);
        if survival > 0.0 {
            // Age 0 is asked for at each new job, so it is cached.
            let received_s = if age > 0.0 { self.law.limited_mean_s(age) } else { 0.0 };
            (self.mean_s - received_s).max(0.0) / survival
        } else {
            0.0
        }
    }

    /// The first tabulated age above `age` at which the index, times a weight that is not negative, is less than
    /// `limit`. Takes logarithmic time.
    pub(crate) fn falls_below(&self, age: f64, weight: f64, limit: f64) -> Option<f64> {
        let mut at = self.points.partition_point(|point| point.0 <= age);
        // The largest number of points that are all not below, built from descending powers of two.
        for (k, lowest) in self.lowest.iter().enumerate().rev() {
            if lowest.get(at).is_some_and(|least| weight * least >= limit) {
                at += 1 << k;
            }
        }
        self.points.get(at).map(|point| point.0)
    }
}

/// The sparse table of the minima of all runs of 2ᵏ numbers, by k and by where the run begins.
fn minima(numbers: Vec<f64>) -> Vec<Vec<f64>> {
    let mut lowest = vec![numbers];
    for half in (0..).map(|k| 1 << k) {
        let runs = &lowest[lowest.len() - 1];
        if runs.len() <= half {
            break;
        }
        let twice = runs.iter().zip(&runs[half..]).map(|(left, right)| left.min(*right)).collect();
        lowest.push(twice);
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// To the bit, at any age: with the least difference the job would yield to its equals.
    #[test]
    fn a_memoryless_job_keeps_its_index_exactly() {
        for mean_s in [1.0, 0.25, 1.0 / 4.2] {
            let table = GittinsTable::new(&Law::Exponential { mean_s });
            for i in 0..20_000 {
                let age = f64::from(i) * mean_s * 1e-3;
                assert_eq!(table.index(age).to_bits(), table.index(0.0).to_bits(), "{mean_s} {age}");
            }
        }
    }

    /// Laws whose index falls, rises, stays, or does both.
    fn laws() -> impl Strategy<Value = Law> {
        prop_oneof![
            (0.01..9.0f64).prop_map(|mean_s| Law::Exponential { mean_s }),
            (0.05..0.95f64, 0.01..1.0f64, 1.0..20.0f64)
                .prop_map(|(p, a, b)| Law::Hyperexponential { parts: vec![(p, a), (1.0 - p, b)] }),
            (0.1..9.0f64).prop_map(|scv| Law::LogNormal { mean_s: 1.0, scv }),
            (0.01..1.0f64, 0.1..4.0f64)
                .prop_map(|(low_s, width)| Law::Uniform { low_s, high_s: low_s + width }),
            prop::collection::vec(0.1..9.0f64, 1..6).prop_map(|samples_s| Law::empirical(samples_s).unwrap()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_search_finds_what_a_scan_finds(
            law in laws(),
            weight in 0.1..4.0f64,
            queries in prop::collection::vec((0.0..1.0f64, any::<prop::sample::Index>(), 0.5..1.5f64), 30),
        ) {
            let table = GittinsTable::new(&law);
            for (share, at, factor) in queries {
                let age = share * share * law.quantile_s(1.0 - 1e-6);
                let index = table.points[at.index(table.points.len())].1;
                // The index itself and its neighbours: the values at which less and not less differ.
                for limit in [weight * index, weight * index * factor, 0.0, f64::INFINITY] {
                    let below = |point: &&(f64, f64)| point.0 > age && weight * point.1 < limit;
                    let scanned = table.points.iter().find(below).map(|point| point.0);
                    prop_assert_eq!(table.falls_below(age, weight, limit), scanned);
                }
            }
        }

        #[test]
        fn every_memoryless_law_has_one_index(mean_s in 1e-6..1e6f64) {
            let table = GittinsTable::new(&Law::Exponential { mean_s });
            prop_assert!(table.points.iter().all(|point| point.1 == table.index(0.0)));
        }
    }

    #[test]
    fn a_memoryless_job_keeps_its_index() {
        let table = GittinsTable::new(&Law::Exponential { mean_s: 0.5 });
        for age in [0.0, 0.3, 2.0] {
            assert!((table.index(age) - 2.0).abs() < 1e-4, "{}", table.index(age));
            assert!((table.residual_mean(age) - 0.5).abs() < 1e-9);
        }
    }

    /// For a uniform law the best horizon is the end: index = 2/(d − a).
    #[test]
    fn a_uniform_job_gains_as_it_is_served() {
        let table = GittinsTable::new(&Law::Uniform { low_s: 0.0, high_s: 2.0 });
        for age in [0.0, 0.5, 1.0, 1.5] {
            let exact = 2.0 / (2.0 - age);
            assert!((table.index(age) / exact - 1.0).abs() < 1e-3, "{age}: {}", table.index(age));
        }
    }

    /// For a falling hazard rate the index is the hazard rate itself (foreground–background is optimal).
    #[test]
    fn a_hyperexponential_job_loses_as_it_is_served() {
        let (p, fast, slow) = (0.9, 0.1f64, 10.0f64);
        let table = GittinsTable::new(&Law::Hyperexponential { parts: vec![(p, fast), (1.0 - p, slow)] });
        for age in [0.05, 0.2, 0.5] {
            let (f, s) = (p * (-age / fast).exp(), (1.0 - p) * (-age / slow).exp());
            let hazard = (f / fast + s / slow) / (f + s);
            assert!((table.index(age) / hazard - 1.0).abs() < 0.05, "{age}: {} {hazard}", table.index(age));
        }
        assert!(table.index(0.0) > table.index(0.5));
    }

    #[test]
    fn a_law_of_atoms_has_a_finite_index() {
        let table = GittinsTable::new(&Law::empirical(vec![1.0, 1.0, 1.0, 9.0]).unwrap());
        // Serve for 1: three of four finish. 0.75 / 1.
        assert!((table.index(0.0) - 0.75).abs() < 1e-6, "{}", table.index(0.0));
        assert!((GittinsTable::new(&Law::Constant { mean_s: 4.0 }).index(0.0) - 0.25).abs() < 1e-6);
    }
}
