//! The request rows of trials as measurements of a station.
//!
//! Response times count from the instant a request was due. Waiting, utilisation and the chance to wait are by the
//! server's own stamps. The run is the unit of replication: with two trials or more every interval of a mean is Student's
//! t over the trials; one trial is cut into batches. Requests that never came back are censored: they count as longer
//! than any that did, so a quantile above their share is left out rather than made up; means are of those that did.

mod calibrated;
mod drained;
mod score;
mod window;

use crate::seconds::seconds;
use kendall_record::RequestRow;
use kendall_station::{Answer, By, ClassAnswer, Estimate, QUANTILES, Quantile, Servers, Summary};
use serde::{Deserialize, Serialize};

pub use calibrated::{Calibrated, calibrated};
pub(crate) use drained::{SLICES, trend_of};
pub use drained::{Trend, little, trend};
pub(crate) use score::Tally;
pub use score::{ClassScore, Score};
use window::Window;
pub(crate) use window::is_censored;

use kendall_stats as statistics;

/// One run of one combination.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// Every request of the run, in any order.
    pub rows: &'a [RequestRow],
    /// Requests due before this instant, in nanoseconds since the start of the trial, are the warm-up.
    pub warmup_ns: i64,
}

/// A class of requests: rows name it by its index.
#[derive(Clone, Debug, PartialEq)]
pub struct RowClass {
    /// The name of the class.
    pub name: String,
    /// The cost of a second of delay of one of its requests.
    pub weight: f64,
}

/// The measurement of the clients alone, where the server reported nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientSide {
    /// Time from the instant a request was due until its answer is complete.
    pub response: Summary,
    /// Completed requests per second.
    pub throughput_per_s: Estimate,
    /// The mean number of requests that are due and not yet answered.
    pub in_system: Estimate,
    /// The share of all requests that is rejected or never answered.
    pub lost: Estimate,
}

/// The reason why the rows make no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotMeasured {
    /// There is no trial, or none whose requests after the warm-up span any time.
    #[error(
        "trial {trial} has fewer than two requests after its warm-up; run longer, or shorten the warm-up"
    )]
    Empty {
        /// The first such trial, counted from 1.
        trial: usize,
    },
    /// No request was answered.
    #[error(
        "none of the {requests} requests was answered, so there is no response time; check the server and its address"
    )]
    NothingAnswered {
        /// The number of requests due after the warm-up.
        requests: u64,
    },
    /// The server sent no timestamps, so waiting cannot be separated from service. What the clients measured is valid.
    #[error(
        "the server reported neither when it started a request nor how long it served it, so waiting time and utilisation are unknown; \
         response time and throughput are not affected"
    )]
    NoStamps(Box<ClientSide>),
}

/// Makes an answer of the trials of one combination; those that are empty after their warm-up are left out. Rows of class
/// i belong to `classes[i]`; with fewer than two classes there are no answers by class. A row of no class has weight 1.
///
/// The waiting time of a request is `started − queued` plus, where service was interrupted, the interruptions; without
/// those stamps it is the response time less the service time.
///
/// # Errors
/// Fails where nothing was due or answered in any trial, and, with what the clients saw, where the server sent no stamps.
pub fn measured(trials: &[Trial<'_>], servers: Servers, classes: &[RowClass]) -> Result<Answer, NotMeasured> {
    let windows = windows(trials)?;
    let client = seen_by_clients(&windows)?;
    let due = windows.iter().map(|window| window.rows.len() as u64).sum();
    let of_class =
        |class: Option<usize>| move |row: &&RequestRow| class.is_none_or(|class| row.class as usize == class);
    let response = |class| times(&windows, of_class(class), |row| row.response_ns());
    let waiting = |class| times(&windows, of_class(class), window::waiting_ns);
    let Some(waiting_all) = waiting(None) else { return Err(NotMeasured::NoStamps(Box::new(client))) };
    let weighted = each_in_order(&windows, |row| {
        let weight = classes.get(row.class as usize).map_or(1.0, |class| class.weight);
        Some(weight * seconds(row.response_ns()?))
    });
    let by_class = |(class, RowClass { name, .. }): (usize, &RowClass)| {
        Some(ClassAnswer {
            name: name.clone(),
            response: response(Some(class))?,
            waiting: waiting(Some(class))?,
            throughput_per_s: rate(&windows, |window, from, to| {
                window.class_throughput_per_s(class, from, to)
            }),
        })
    };
    let several = if classes.len() > 1 { classes } else { &[] };
    Ok(Answer {
        by: By::Measurement { requests: due, trials: windows.len() as u64 },
        p_wait: rate(&windows, |window, from, to| window.delayed_share(servers, from, to)),
        utilisation: rate(&windows, |window, from, to| window.utilisation(servers, from, to)),
        waiting: waiting_all,
        response: client.response,
        throughput_per_s: client.throughput_per_s,
        in_system: client.in_system,
        lost: client.lost,
        weighted_response_s: mean(&weighted),
        classes: several.iter().enumerate().filter_map(by_class).collect(),
    })
}

/// The measurement of the clients alone in the trials of one combination, whatever the server reported.
///
/// # Errors
/// Fails where nothing was due or answered in any trial.
pub fn client_side(trials: &[Trial<'_>]) -> Result<ClientSide, NotMeasured> {
    seen_by_clients(&windows(trials)?)
}

/// The trials without their warm-ups; those in which nothing is left are left out, unless that is all.
fn windows<'a>(trials: &[Trial<'a>]) -> Result<Vec<Window<'a>>, NotMeasured> {
    let windows: Vec<_> = trials.iter().filter_map(Window::new).collect();
    if windows.is_empty() { Err(NotMeasured::Empty { trial: 1 }) } else { Ok(windows) }
}

fn seen_by_clients(windows: &[Window<'_>]) -> Result<ClientSide, NotMeasured> {
    let requests = windows.iter().map(|window| window.rows.len() as u64).sum();
    let response = times(windows, |_| true, |row| row.response_ns());
    Ok(ClientSide {
        response: response.ok_or(NotMeasured::NothingAnswered { requests })?,
        throughput_per_s: rate(windows, |window, from, to| window.throughput_per_s(from, to)),
        in_system: rate(windows, |window, from, to| window.in_system(from, to)),
        lost: rate(windows, |window, from, to| window.lost_share(from, to)),
    })
}

/// A measure over time: the mean over the trials, or over one trial's slices for its interval.
fn rate(windows: &[Window<'_>], of: impl Fn(&Window<'_>, i64, i64) -> f64) -> Estimate {
    // A trial whose rows lack the value is left out.
    let whole = windows.iter().map(|window| of(window, window.from_ns, window.to_ns));
    let whole: Vec<f64> = whole.filter(|value| value.is_finite()).collect();
    let value = statistics::mean(&whole);
    let half_width = match (windows, statistics::t_interval(&whole)) {
        (_, Some((_, half_width))) => Some(half_width),
        ([window], None) => {
            let at = |i| window.from_ns + (window.to_ns - window.from_ns) * i / SLICES as i64;
            let slices: Vec<f64> =
                (0..SLICES as i64).map(|i| of(window, at(i), at(i + 1))).filter(|x| x.is_finite()).collect();
            statistics::batch_means(&slices).map(|found| found.half_width)
        }
        _ => None,
    };
    estimated(value, half_width)
}

/// No measure here is ever below 0, and so no interval is.
fn estimated(value: f64, half_width: Option<f64>) -> Estimate {
    match half_width {
        Some(half_width) => Estimate::within(value, half_width).within_bounds(0.0, f64::INFINITY),
        None => Estimate::exact(value),
    }
}

/// The values of each trial's requests, in the order in which they were due.
fn each_in_order(windows: &[Window<'_>], of: impl Fn(&RequestRow) -> Option<f64>) -> Vec<Vec<f64>> {
    windows.iter().map(|window| window.rows.iter().filter_map(|row| of(row)).collect()).collect()
}

/// The mean over the trials of their means: with its interval by Student's t over the trials, or by batch means of an
/// only one. `None` where no trial has a value.
fn mean(trials: &[impl AsRef<[f64]>]) -> Option<Estimate> {
    let values = trials.iter().map(AsRef::as_ref).filter(|values: &&[f64]| !values.is_empty());
    let means: Vec<f64> = values.map(statistics::mean).collect();
    if means.is_empty() {
        return None;
    }
    let half_width = match (trials, statistics::t_interval(&means)) {
        (_, Some((_, half_width))) => Some(half_width),
        ([only], None) => statistics::batch_means(only.as_ref()).map(|found| found.half_width),
        _ => None,
    };
    Some(estimated(statistics::mean(&means), half_width))
}

/// The summary of one time of the chosen requests; `None` if no request has it.
fn times(
    windows: &[Window<'_>],
    chosen: impl Fn(&&RequestRow) -> bool,
    time_ns: impl Fn(&RequestRow) -> Option<i64>,
) -> Option<Summary> {
    let samples: Vec<Sample> = windows
        .iter()
        .map(|window| Sample::new(window.rows.iter().copied().filter(|row| chosen(row)), &time_ns))
        .collect();
    let in_order_s: Vec<&[f64]> = samples.iter().map(|sample| &sample.in_order_s[..]).collect();
    let mean_s = mean(&in_order_s)?;
    let pooled = Sample::pooled(&samples);
    Some(Summary {
        mean_s,
        variance_s2: (pooled.sorted_s.len() > 1).then(|| statistics::variance(&pooled.sorted_s)),
        quantiles: QUANTILES.iter().filter_map(|&p| quantile(&samples, &pooled, p)).collect(),
    })
}

/// Samples of one of the times of many requests.
struct Sample {
    /// In order of when the requests were due.
    in_order_s: Vec<f64>,
    sorted_s: Vec<f64>,
    /// Requests that never came back: their times are longer than those known.
    censored: usize,
}

impl Sample {
    fn new<'a>(
        rows: impl Iterator<Item = &'a RequestRow>,
        time_ns: impl Fn(&RequestRow) -> Option<i64>,
    ) -> Self {
        let (mut in_order_s, mut censored) = (Vec::new(), 0);
        for row in rows {
            match time_ns(row) {
                Some(time_ns) => in_order_s.push(time_ns as f64 / 1e9),
                None => censored += usize::from(window::is_censored(row)),
            }
        }
        let mut sorted_s = in_order_s.clone();
        sorted_s.sort_by(f64::total_cmp);
        Self { in_order_s, sorted_s, censored }
    }

    fn pooled(samples: &[Self]) -> Self {
        let mut sorted_s: Vec<f64> = samples.iter().flat_map(|sample| &sample.sorted_s).copied().collect();
        sorted_s.sort_by(f64::total_cmp);
        let censored = samples.iter().map(|sample| sample.censored).sum();
        Self { in_order_s: Vec::new(), sorted_s, censored }
    }

    fn len(&self) -> u64 {
        (self.sorted_s.len() + self.censored) as u64
    }

    /// The value of a rank counted from 1, unless it belongs to a censored request.
    fn at_rank(&self, rank: u64) -> Option<f64> {
        self.sorted_s.get(rank as usize - 1).copied()
    }

    fn quantile(&self, p: f64) -> Option<f64> {
        if self.len() < statistics::minimum_samples(p) {
            return None;
        }
        self.at_rank(statistics::quantile_rank(self.len(), p))
    }
}

/// The pooled quantile; its interval by Student's t over the trials where each supports the quantile, else by order
/// statistics, which take the requests as independent.
fn quantile(samples: &[Sample], pooled: &Sample, p: f64) -> Option<Quantile> {
    let value = pooled.quantile(p)?;
    let each = samples.iter().map(|sample| sample.quantile(p)).collect::<Option<Vec<f64>>>();
    let value_s = match each.and_then(|each| statistics::t_interval(&each)) {
        Some((_, half_width)) => estimated(value, Some(half_width)),
        None => {
            let (low, high) = statistics::quantile_ranks(pooled.len(), p)?;
            Estimate { value, interval: pooled.at_rank(low).zip(pooled.at_rank(high)) }
        }
    };
    Some(Quantile { p, value_s })
}
