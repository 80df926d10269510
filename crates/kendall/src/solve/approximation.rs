//! `--approximations`: what each of the textbooks' approximations says of the wait, beside the simulation.

use kendall_station::{Arrivals, Estimate, Station};
use kendall_stats::number;
use kendall_theory::{NoFormula, TwoMoments};
use serde::Serialize;

use super::table::aligned;

/// One approximation of the mean waiting time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Approximation {
    name: &'static str,
    /// How far it is known to be off.
    known: &'static str,
    waiting_s: f64,
}

type Way = (&'static str, &'static str, fn(&TwoMoments) -> f64);

/// Those that take both laws into account.
const ANY: [Way; 3] = [
    ("M/M/m (SCVs of 1)", "exact where both laws are exponential", TwoMoments::exponential_s),
    (
        "Allen and Cunneen 1990",
        "2.5 % below M/E2/m, up to 16 % above M/H2/m of SCV 5.5",
        TwoMoments::allen_cunneen_s,
    ),
    ("Whitt 1993", "within 1 % of M/E2/m, 3 % of M/H2/m from ρ = 0.7", TwoMoments::whitt_s),
];
/// Those of Poisson arrivals.
const POISSON: [Way; 2] = [
    ("Kimura 1986", "within 1 % of M/E2/m, up to 9 % below M/H2/m of SCV 5.5", TwoMoments::kimura_s),
    (
        "between M/D/m and M/M/m",
        "within 0.5 % of M/E2/m, up to 11 % above M/H2/m",
        TwoMoments::interpolation_s,
    ),
];
const CONSTANT: Way = ("Cosmetatos 1975", "within 1 % of M/D/m", TwoMoments::cosmetatos_s);
const RENEWAL: Way = (
    "Krämer and Langenbach-Belz 1976",
    "made for arrivals that are no Poisson stream, and one server",
    TwoMoments::kraemer_langenbach_belz_s,
);

/// What the approximations say that are meant for such a station.
///
/// # Errors
/// Fails on a station that has no open arrivals, is unstable, or has a law of infinite variance.
pub(super) fn all(station: &Station) -> Result<Vec<Approximation>, NoFormula> {
    let moments = TwoMoments::of(station)?;
    let poisson = matches!(&station.arrivals, Arrivals::Open { gap } if (gap.scv() - 1.0).abs() < 1e-9);
    let constant = station.service_overall().scv() < 1e-9;
    let ways = ANY.iter().chain(if poisson { &POISSON[..] } else { &[RENEWAL] });
    let ways = ways.chain((poisson && constant).then_some(&CONSTANT));
    let one = |&(name, known, waiting_s): &Way| Approximation { name, known, waiting_s: waiting_s(&moments) };
    let mut all: Vec<Approximation> = ways.map(one).collect();
    let known = "never below";
    all.extend(moments.kingman_bound_s().map(|waiting_s| Approximation {
        name: "Kingman's bound 1962",
        known,
        waiting_s,
    }));
    Ok(all)
}

/// A row for each, with what the simulation makes of it.
pub(super) fn rows(all: &[Approximation], simulated: Option<Estimate>) -> Vec<String> {
    let mut rows = vec![["approximation", "waiting, mean", "of simulated"].map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(|one| {
        let off = simulated.filter(|simulated| simulated.value > 0.0).map(|simulated| {
            let per_cent = (one.waiting_s / simulated.value - 1.0) * 100.0;
            format!("{per_cent:+.1} %")
        });
        vec![one.name.into(), number::time(one.waiting_s), off.unwrap_or_else(|| "–".into())]
    }));
    let known = std::iter::once("known of it").chain(all.iter().map(|one| one.known));
    aligned(&rows).into_iter().zip(known).map(|(line, known)| format!("{line}  {known}")).collect()
}
