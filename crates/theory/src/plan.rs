//! The length of a measurement of a station: the number of requests, the warm-up and the repeats for a wanted precision.
//!
//! Waiting times are correlated, the more the busier the station is, so that a mean of n of them is far less certain than
//! that of n independent numbers. Its variance is σ²/n for large n, with the *asymptotic variance* σ², which is the
//! variance of one plus twice the covariances with all that come after (Whitt 1989, "Planning queueing simulations").
//!
//! It is exact here where the service is exponential and arrivals are Poisson or from a population (`chain`), and for M/G/1 (`single`).
//! For every other station a pilot simulation estimates it from batch means, which is good to some 10 % of the half-width. The scaling
//! of heavy traffic by (c_a² + c_s²)/2, which is often used instead, is exact only in the limit, and ignores the order of service.

mod chain;
mod pilot;
mod single;

use kendall_station::{Arrivals, Attendance, Station, StationError};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF as _};

use kendall_simulation::SimulationError;
use kendall_stats::student_t;

pub use single::mm1_waiting_variance;
pub(crate) use single::normal_quantile;

/// The normal law's quantile for 95 %.
const Z: f64 = 1.959_963_984_540_054;
/// The share of the bias of an empty start that remains after a warm-up.
const REMAINING: f64 = 0.01;
/// Few enough repeats to inspect each, and enough for an interval.
const FEWEST_REPEATS: u32 = 3;
const MOST_REPEATS: u32 = 30;
/// The additional cost of fewer and longer repeats, in requests, relative to the cheapest number of them.
const EXTRA: f64 = 1.1;

/// The cost of measuring a station to a wanted precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The requested half-width of the 95 % interval of the mean response time, as a share of that mean.
    pub precision: f64,
    /// The source of the variances.
    pub basis: Basis,
    /// Accepted requests per second.
    pub rate_per_s: f64,
    /// The mean share of the servers that is busy.
    pub utilisation: f64,
    /// The mean response time.
    pub response: Target,
    /// The mean waiting time; `None` if no request waits, or too few for a number of requests to be computed.
    pub waiting: Option<Target>,
    /// The warm-up to cut at the start of each repeat.
    pub warmup: Warmup,
    /// The division into repeats, for the mean response time.
    pub repeats: Repeats,
    /// The precision of the service time that is needed to predict the response time as precisely.
    pub calibration: Calibration,
}

/// The source of the variance of a mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The length follows from theory.
    Exact,
    /// By batch means of a simulation.
    Pilot {
        /// The number of customers after the warm-up.
        customers: u64,
    },
}

/// A mean to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The mean itself, in seconds.
    pub mean_s: f64,
    /// The variance of the mean of n requests times n, for large n; in s².
    pub asymptotic_variance_s2: f64,
    /// Requests for the wanted precision, in one long run of a station in its steady state.
    pub requests: f64,
    /// The total time by which the first requests at an empty station fall short of the mean; in s. `None` if it is not known.
    pub deficit_s: Option<f64>,
}

/// The warm-up to cut at the start, because an empty station is faster than a steady one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warmup {
    /// The time in which the influence of the start falls to 1/e, in seconds; an approximation from above.
    pub relaxation_s: f64,
    /// The length of the warm-up, in seconds.
    pub time_s: f64,
    /// Requests in that time.
    pub requests: f64,
    /// The share of the bias that remains then.
    pub remaining: f64,
    /// The bias of the mean response of one repeat without any warm-up, as a share of the mean; `None` if not known.
    pub bias_without: Option<f64>,
}

/// Independent repeats, each from an empty station. The fewest that cost at most a tenth more requests than the
/// cheapest number, warm-ups and the wider quantiles of Student's t included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// The number of repeats.
    pub repeats: u32,
    /// Requests of each, its warm-up included.
    pub requests_each: f64,
    /// Seconds of each at this rate.
    pub seconds_each: f64,
    /// Seconds of all.
    pub seconds: f64,
}

/// The precision of the service time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// By how many per cent the mean response grows if the service time does by one: 1/(1 − ρ) at an open station with
    /// unlimited room, exactly so for one server and from above for several.
    pub amplification: f64,
    /// The relative precision of the service time that keeps the response within the wanted one.
    pub precision: f64,
    /// The number of independent service times whose mean has that precision with 95 % confidence:
    /// (z·c_s·amplification/precision)².
    pub samples: f64,
}

/// The reason why there is no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoPlan {
    #[error("the station is not valid: {0}")]
    Impossible(#[from] StationError),
    #[error("a precision of {0} is not valid; it must be above 0 and below 1, such as 5%")]
    Precision(f64),
    #[error(
        "unstable: utilisation would be {rho:.2}, so there is no steady state and no mean to measure; add servers, or lower the \
         arrival rate"
    )]
    Unstable { rho: f64 },
    #[error(
        "the tail of the {law} service time is so heavy that the mean of n waiting times does not converge as 1/√n; no number of \
         requests gives a valid interval"
    )]
    HeavyTail { law: &'static str },
    #[error("the pilot simulation has no answer: {0}")]
    Pilot(#[from] SimulationError),
}

/// The theory of one station: two means, their variances, and the rate.
struct Spread {
    basis: Basis,
    rate_per_s: f64,
    utilisation: f64,
    response: Moments,
    waiting: Moments,
}

/// The moments of a mean over requests.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moments {
    mean_s: f64,
    asymptotic_variance_s2: f64,
    deficit_s: Option<f64>,
}

impl Moments {
    fn target(&self, precision: f64) -> Option<Target> {
        let &Self { mean_s, asymptotic_variance_s2, deficit_s } = self;
        let requests = (Z / precision * (asymptotic_variance_s2.sqrt() / mean_s)).powi(2);
        // A smaller mean has lost its digits, and its variance may be zero.
        (mean_s >= f64::MIN_POSITIVE && requests.is_finite()).then_some(Target {
            mean_s,
            asymptotic_variance_s2,
            requests,
            deficit_s,
        })
    }
}

impl Target {
    /// Half the width of the 95 % interval of the mean of `requests`, as a share of the mean. It holds for a run much longer than the
    /// [relaxation](Warmup::relaxation_s); a shorter one is narrower and biased.
    pub fn relative_half_width(&self, requests: f64) -> f64 {
        Z * (self.asymptotic_variance_s2 / requests).sqrt() / self.mean_s
    }

    /// The probability that the means of `trials` independent runs of `requests_each` vary as little as observed, or less: a χ²
    /// test of their variance against theory. Small if an interval is too narrow to be true. `None` for fewer than two trials.
    pub fn chance_of_so_narrow(&self, half_width_s: f64, trials: u64, requests_each: f64) -> Option<f64> {
        let freedom = trials.checked_sub(1).filter(|&freedom| freedom > 0)? as f64;
        let variance = (half_width_s / student_t(freedom, 0.975)).powi(2) * trials as f64;
        let expected = self.asymptotic_variance_s2 / requests_each;
        let law = ChiSquared::new(freedom).expect("degrees of freedom are positive");
        Some(law.cdf(freedom * variance / expected))
    }
}

/// The cost of a precision of the mean response time, the half-width of its 95 % interval as a share of the mean, at this station.
///
/// # Errors
/// Fails on an invalid precision, and on a station that is invalid, has no steady state, or whose service time has so heavy a tail that
/// its means do not converge.
pub fn plan(station: &Station, precision: f64) -> Result<Plan, NoPlan> {
    if !(precision > 0.0 && precision < 1.0) {
        return Err(NoPlan::Precision(precision));
    }
    let spread = spread(station)?;
    let response = spread
        .response
        .target(precision)
        .ok_or_else(|| NoPlan::HeavyTail { law: station.service_overall().name() })?;
    let relaxation_s = relaxation_s(station, response.mean_s);
    let time_s = relaxation_s * libm::log(1.0 / REMAINING);
    let warmup_requests = time_s * spread.rate_per_s;
    let (repeats, counted_each) = repeats(response.requests, warmup_requests);
    let requests_each = counted_each + warmup_requests;
    let seconds_each = requests_each / spread.rate_per_s;
    Ok(Plan {
        precision,
        basis: spread.basis,
        rate_per_s: spread.rate_per_s,
        utilisation: spread.utilisation,
        response,
        waiting: spread.waiting.target(precision),
        warmup: Warmup {
            relaxation_s,
            time_s,
            requests: warmup_requests,
            remaining: REMAINING,
            bias_without: response
                .deficit_s
                .map(|deficit_s| (deficit_s / (requests_each * response.mean_s)).min(1.0)),
        },
        repeats: Repeats { repeats, requests_each, seconds_each, seconds: f64::from(repeats) * seconds_each },
        calibration: calibration(station, spread.utilisation, response.mean_s, precision),
    })
}

fn spread(station: &Station) -> Result<Spread, NoPlan> {
    station.validate()?;
    if let (Arrivals::Open { .. } | Arrivals::Sessions(_), None, Some(rho)) =
        (&station.arrivals, station.capacity, station.offered_utilisation())
        && rho >= 1.0
    {
        return Err(NoPlan::Unstable { rho });
    }
    if let Some(exact) = chain::spread(station).or_else(|| single::spread(station)) {
        return Ok(exact);
    }
    pilot::spread(station)
}

/// The number of repeats, and the requests of each without its warm-up.
fn repeats(requests: f64, warmup: f64) -> (u32, f64) {
    let counted = |repeats: u32| {
        let wider = student_t(f64::from(repeats - 1), 0.975) / Z;
        requests * wider * wider / f64::from(repeats)
    };
    let total = |repeats: u32| f64::from(repeats) * (counted(repeats) + warmup);
    let all = FEWEST_REPEATS..=MOST_REPEATS;
    let cheapest = all.clone().map(total).fold(f64::INFINITY, f64::min);
    let fewest = all.clone().find(|&repeats| total(repeats) <= EXTRA * cheapest);
    let fewest = fewest.expect("the cheapest number is among them");
    (fewest, counted(fewest))
}

/// The time in which the influence of the start falls to 1/e.
///
/// For M/M/1 it is 1/(√µ − √λ)² (Cohen 1982, section II.2.1); several servers are treated as one that is as fast as all, a capacity
/// of K requests shortens it (the second eigenvalue of M/M/1/K), and other laws stretch it by (c_a² + c_s²)/2 (Odoni and Roth
/// 1983). No station forgets in less than one service. A population forgets after about one round of thinking and responding.
fn relaxation_s(station: &Station, response_s: f64) -> f64 {
    let service = station.service_overall();
    let service_s = service.mean_s();
    let (rate_per_s, gap_scv) = match &station.arrivals {
        Arrivals::Closed { think, .. } | Arrivals::Attended(Attendance { think, .. }) => {
            return think.mean_s() + response_s;
        }
        Arrivals::Open { gap } => (1.0 / gap.mean_s(), gap.scv()),
        Arrivals::Trace { .. } | Arrivals::Varying(_) | Arrivals::Sessions(_) => {
            (station.arrivals.rate_per_s().unwrap_or(0.0), 1.0)
        }
    };
    let most_per_s = f64::from(station.servers.get()) / service_s;
    let apart = (most_per_s.sqrt() - rate_per_s.sqrt()).powi(2);
    // 1 − cos x as 2 sin²(x/2), without a difference of numbers near each other.
    let bounded = station.capacity.map_or(0.0, |capacity| {
        let half = std::f64::consts::FRAC_PI_2 / (capacity as f64 + 1.0);
        4.0 * (rate_per_s * most_per_s).sqrt() * libm::sin(half).powi(2)
    });
    let variation = f64::midpoint(gap_scv, service.scv()).max(0.0);
    (variation / (apart + bounded)).max(service_s)
}

fn calibration(station: &Station, utilisation: f64, response_s: f64, precision: f64) -> Calibration {
    let amplification = match (&station.arrivals, station.capacity) {
        (
            Arrivals::Open { .. } | Arrivals::Trace { .. } | Arrivals::Varying(_) | Arrivals::Sessions(_),
            None,
        ) => 1.0 / (1.0 - utilisation),
        // The limit of the queue also limits this.
        _ => {
            chain::elasticity(station, response_s).unwrap_or_else(|| 1.0 / (1.0 - utilisation).max(precision))
        }
    };
    let variation = station.service_overall().scv().sqrt();
    Calibration {
        amplification,
        precision: precision / amplification,
        samples: (Z * variation * amplification / precision).powi(2),
    }
}

#[cfg(test)]
mod tests;
