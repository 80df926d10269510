//! `--approximations`: a row for each of the textbooks' approximations of the wait, and one for the
//! simulation.

use kendall_station::Estimate;
use kendall_stats::number;
use kendall_theory::Approximation;

use crate::table::aligned;

/// A row for each, with what the simulation makes of it.
pub(crate) fn rows(all: &[Approximation], simulated: Option<Estimate>) -> Vec<String> {
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
