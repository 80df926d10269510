//! The textbooks' approximations of the mean waiting time, each with its known error, so that they can be compared.

use kendall_station::{Arrivals, Station};
use serde::Serialize;

use crate::formula::{NoFormula, TwoMoments};

/// One approximation of the mean waiting time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Approximation {
    /// The author and year of the approximation.
    pub name: &'static str,
    /// The known error of the approximation.
    pub known: &'static str,
    /// The mean waiting time, in s.
    pub waiting_s: f64,
}

type ApproximationEntry = (&'static str, &'static str, fn(&TwoMoments) -> f64);

/// Approximations that take both laws into account.
const ANY: [ApproximationEntry; 3] = [
    ("M/M/m (SCVs of 1)", "exact if both distributions are exponential", TwoMoments::exponential_s),
    (
        "Allen and Cunneen 1990",
        "2.5 % below M/E2/m, up to 16 % above M/H2/m of SCV 5.5",
        TwoMoments::allen_cunneen_s,
    ),
    ("Whitt 1993", "within 1 % of M/E2/m, 3 % of M/H2/m from ρ = 0.7", TwoMoments::whitt_s),
];
/// Approximations for Poisson arrivals.
const POISSON: [ApproximationEntry; 2] = [
    ("Kimura 1986", "within 1 % of M/E2/m, up to 9 % below M/H2/m of SCV 5.5", TwoMoments::kimura_s),
    (
        "between M/D/m and M/M/m",
        "within 0.5 % of M/E2/m, up to 11 % above M/H2/m",
        TwoMoments::interpolation_s,
    ),
];
const CONSTANT: ApproximationEntry = ("Cosmetatos 1975", "within 1 % of M/D/m", TwoMoments::cosmetatos_s);
const RENEWAL: ApproximationEntry = (
    "Krämer and Langenbach-Belz 1976",
    "designed for non-Poisson arrivals and one server",
    TwoMoments::kraemer_langenbach_belz_s,
);

/// The mean waiting time of a station by each approximation for stations of its kind.
///
/// # Errors
/// Fails on a station that has no open arrivals, is unstable, or has a law of infinite variance.
pub fn approximations(station: &Station) -> Result<Vec<Approximation>, NoFormula> {
    let moments = TwoMoments::of(station)?;
    let poisson = matches!(&station.arrivals, Arrivals::Open { gap } if (gap.scv() - 1.0).abs() < 1e-9);
    let constant = station.service_overall().scv() < 1e-9;
    let ways = ANY.iter().chain(if poisson { &POISSON[..] } else { &[RENEWAL] });
    let ways = ways.chain((poisson && constant).then_some(&CONSTANT));
    let one = |&(name, known, waiting_s): &ApproximationEntry| Approximation {
        name,
        known,
        waiting_s: waiting_s(&moments),
    };
    let mut all: Vec<Approximation> = ways.map(one).collect();
    let known = "never below";
    all.extend(moments.kingman_bound_s().map(|waiting_s| Approximation {
        name: "Kingman's bound 1962",
        known,
        waiting_s,
    }));
    Ok(all)
}
