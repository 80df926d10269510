//! The answer of one method for a station. Formula, simulation and measurement all return an [`Answer`].

use serde::{Deserialize, Serialize};

/// The quantiles that every answer gives where it can, from the median to the far tail.
pub const QUANTILES: [f64; 8] = [0.05, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999];

/// A number and, where it was estimated, its 95 % confidence interval. A formula's numbers have no interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The number itself, in the unit that the field's name states.
    pub value: f64,
    /// Lower and upper end of the 95 % confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// A number without sampling error.
    pub const fn exact(value: f64) -> Self {
        Self { value, interval: None }
    }

    /// A number with its 95 % confidence interval, given as the interval's half-width.
    pub fn within(value: f64, half_width: f64) -> Self {
        Self { value, interval: Some((value - half_width, value + half_width)) }
    }

    /// Half the width of the interval; 0 for an exact number.
    pub fn half_width(&self) -> f64 {
        self.interval.map_or(0.0, |(low, high)| (high - low) / 2.0)
    }

    /// Returns the estimate moved by a constant, such as the delay of a link.
    pub fn shifted(self, by: f64) -> Self {
        Self { value: self.value + by, interval: self.interval.map(|(low, high)| (low + by, high + by)) }
    }

    /// Returns the estimate clamped to the range of the quantity, such as 0 to 1 for a share.
    #[must_use]
    pub fn within_bounds(self, low: f64, high: f64) -> Self {
        let keep = |value: f64| value.clamp(low, high);
        Self { value: keep(self.value), interval: self.interval.map(|(from, to)| (keep(from), keep(to))) }
    }

    /// Whether `value` lies inside the interval; an exact number contains only itself.
    pub fn contains(&self, value: f64) -> bool {
        let (low, high) = self.interval.unwrap_or((self.value, self.value));
        (low..=high).contains(&value)
    }
}

/// One quantile of a time: the value that a share `p` of all requests stays below or at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// The share, strictly between 0 and 1.
    pub p: f64,
    /// The time, in seconds.
    pub value_s: Estimate,
}

/// A summary of the distribution of a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mean, in seconds.
    pub mean_s: Estimate,
    /// The variance, in square seconds, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance_s2: Option<f64>,
    /// Quantiles in ascending order of `p`: those of [`QUANTILES`] that theory has or the sample can support.
    #[serde(default)]
    pub quantiles: Vec<Quantile>,
}

impl Summary {
    /// The value of the quantile `p`, in seconds, if the summary contains it.
    pub fn quantile(&self, p: f64) -> Option<Estimate> {
        self.quantiles.iter().find(|quantile| (quantile.p - p).abs() < 1e-12).map(|quantile| quantile.value_s)
    }

    /// Returns the distribution shifted by a constant delay, in seconds.
    pub fn shifted(&self, delay_s: f64) -> Self {
        let moved =
            |quantile: &Quantile| Quantile { value_s: quantile.value_s.shifted(delay_s), ..*quantile };
        Self {
            mean_s: self.mean_s.shifted(delay_s),
            variance_s2: self.variance_s2,
            quantiles: self.quantiles.iter().map(moved).collect(),
        }
    }
}

/// The method behind an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "way")]
pub enum By {
    /// Queueing theory.
    Formula {
        /// The name of the formula and its reference in the literature.
        source: String,
        /// The assumptions of an approximation, and its known error. Absent where the formula is exact for its
        /// model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approximate: Option<String>,
    },
    /// The simulator, in virtual time.
    Simulation {
        /// Customers that left after the warm-up.
        customers: u64,
        /// The number of independent runs, each from an empty station until it is empty again; absent for one long
        /// run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runs: Option<u64>,
        /// The seed of its random streams.
        seed: u64,
        /// The number of customers that a run needs to settle at this utilisation, where more than were simulated:
        /// the numbers then describe a station that was still filling.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed: Option<u64>,
    },
    /// A real server in real time.
    Measurement {
        /// Requests behind the numbers, after the warm-up.
        requests: u64,
        /// Independent trials behind the numbers.
        trials: u64,
    },
}

/// The answer of one method for a station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The method.
    pub by: By,
    /// Time from the instant a request was due until its answer is complete.
    pub response: Summary,
    /// The part of the response time before service starts (with preemption or sharing: the time not in service).
    pub waiting: Summary,
    /// The share of the accepted requests that find every server busy.
    pub p_wait: Estimate,
    /// Completed requests per second.
    pub throughput_per_s: Estimate,
    /// The mean share of the servers that is busy, 0 to 1.
    pub utilisation: Estimate,
    /// The mean number of requests in the station, waiting and in service.
    pub in_system: Estimate,
    /// The share of all requests that is rejected or never answered.
    pub lost: Estimate,
    /// The mean over the requests of weight × response time, in seconds: what delay costs a request, and with
    /// priorities as weights the score of priority workloads. Equals the mean response where every weight is 1;
    /// absent from answers that do not know the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighted_response_s: Option<Estimate>,
    /// The answer by class, where the station has more than one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassAnswer>,
}

impl Answer {
    /// Returns the answer as seen from beyond a constant delay, in seconds, where each second costs a request
    /// `mean_weight`.
    #[must_use]
    pub fn delayed(self, delay_s: f64, mean_weight: f64) -> Self {
        let weighted = |cost: Estimate| cost.shifted(mean_weight * delay_s);
        Self {
            response: self.response.shifted(delay_s),
            weighted_response_s: self.weighted_response_s.map(weighted),
            ..self
        }
    }
}

/// The answer for one class of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassAnswer {
    /// The name of the class.
    pub name: String,
    /// Response time of this class.
    pub response: Summary,
    /// Waiting time of this class.
    pub waiting: Summary,
    /// Completed requests of this class per second.
    pub throughput_per_s: Estimate,
}
