//! The Gittins index of a service-time law, and its mean residual, as functions of the service already received.

use crate::law::Law;

/// At how many quantiles of the law the index is tabulated.
const QUANTILES: usize = 256;
/// And at how many ages in geometric steps.
const STEPS: usize = 1024;

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
    /// Received service and the index there, ascending in the former.
    points: Vec<(f64, f64)>,
}

impl GittinsTable {
    /// Tabulates the index at 256 quantiles of the law, and at 1024 ages from a thousandth of its mean to its
    /// far tail, where quantiles lie thin.
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
        let mut points = Vec::with_capacity(ages.len());
        for &age in ages.iter().rev() {
            let here = (law.limited_mean_s(age), 1.0 - law.survival(age));
            let slope = |to: &(f64, f64)| (to.1 - here.1) / (to.0 - here.0).max(f64::MIN_POSITIVE);
            while hull.len() > 1 && slope(&hull[hull.len() - 1]) <= slope(&hull[hull.len() - 2]) {
                hull.pop();
            }
            points.push((age, slope(hull.last().expect("the hull ends in its first vertex"))));
            hull.push(here);
        }
        points.reverse();
        Self { law: law.clone(), points }
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
            (self.law.mean_s() - self.law.limited_mean_s(age)).max(0.0) / survival
        } else {
            0.0
        }
    }

    /// The tabulated ages above `age`.
    pub(crate) fn ages_after(&self, age: f64) -> impl Iterator<Item = f64> {
        self.points[self.points.partition_point(|point| point.0 <= age)..].iter().map(|point| point.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
