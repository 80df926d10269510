//! CurveCP over modelled links, in virtual time.
//!
//! `CURVECP_SEEDS=5000` runs that many seeds of each simulation, `CURVECP_SEED=17` one. A failure prints the command that replays it.

mod endpoints;
mod fairness;
mod layers;
mod path_mtu;
mod throughput;

/// The seeds to run, `default` many where the environment does not say.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("CURVECP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("CURVECP_SEEDS").unwrap_or(default),
    }
}
