//! The assumptions of formulas about a station: its rate, its stability, exponential laws.

use kendall_station::{Arrivals, Estimate, Law, Quantile, Servers, Summary};

use super::NoFormula;

/// The law of the gaps of open arrivals, and the rate.
pub(super) fn open_rate(arrivals: &Arrivals) -> Result<(&Law, f64), NoFormula> {
    match arrivals {
        Arrivals::Open { gap } => Ok((gap, 1.0 / gap.mean_s())),
        Arrivals::Trace { .. } => Err(NoFormula::Trace),
        Arrivals::Varying(_) => Err(NoFormula::Varying),
        Arrivals::Attended(_) => Err(NoFormula::Attended),
        Arrivals::Closed { .. } => Err(NoFormula::Closed),
        Arrivals::Sessions(_) => unreachable!("they are solved as an open stream"),
    }
}

pub(super) fn poisson_rate(arrivals: &Arrivals, why: &'static str) -> Result<f64, NoFormula> {
    let (gap, rate_per_s) = open_rate(arrivals)?;
    exponential_mean(gap).map(|_| rate_per_s).ok_or(NoFormula::NeedsPoisson { why })
}

pub(super) fn stable(rate_per_s: f64, service_s: f64, servers: Servers) -> Result<(), NoFormula> {
    let (load, most) = (rate_per_s * service_s, f64::from(servers.get()));
    if load < most {
        return Ok(());
    }
    Err(NoFormula::Unstable { rho: load / most, growth_per_s: rate_per_s - most / service_s })
}

/// The summary of a time that is known exactly, or to the accuracy of the formula.
pub(super) fn summary(mean_s: f64, variance_s2: Option<f64>, quantiles: Vec<Quantile>) -> Summary {
    Summary {
        mean_s: Estimate::exact(mean_s),
        variance_s2: variance_s2.filter(|variance| variance.is_finite()),
        quantiles,
    }
}

/// The mean of a law that is exponential, by whatever name.
pub(super) fn exponential_mean(law: &Law) -> Option<f64> {
    let all_alike = |mut means: Box<dyn Iterator<Item = Option<f64>> + '_>| {
        let first = means.next()??;
        means.all(|mean| mean == Some(first)).then_some(first)
    };
    match law {
        Law::Exponential { mean_s } | Law::Erlang { shape: 1, mean_s } => Some(*mean_s),
        Law::Hyperexponential { parts } => all_alike(Box::new(parts.iter().map(|part| Some(part.1)))),
        Law::Mixture { parts } => all_alike(Box::new(parts.iter().map(|part| exponential_mean(&part.of)))),
        _ => None,
    }
}
