//! The results of a validation: loads that were predicted first and measured afterwards. `lab` makes them and writes them as
//! `validation.json`, which this module reads. [`accuracy`] summarises the validations of several servers.

pub mod accuracy;

use std::io;
use std::path::Path;

use kendall_archive::{Build, Machine, read_json};
use kendall_evidence::expect::ExpectationVerdict;
use kendall_prediction::{BaselinePrediction, Prediction};
use kendall_record::RecordError;
use kendall_station::Estimate;
use kendall_stats::number::{NONE, counted, list, percent};
use kendall_stats::{mean, median, variance};
use serde::{Deserialize, Serialize};

/// The file of a validation in its folder.
pub const VALIDATION: &str = "validation.json";
/// Standard deviations from the middle to the ends of a 95 % interval.
const REACH: f64 = 1.96;

/// A prediction as it was written, before the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// The share of the capacity.
    pub share: f64,
    /// The time at which the prediction was written.
    pub written_utc: String,
    /// The BLAKE3 hash of its file.
    pub blake3: String,
    /// The prediction.
    pub prediction: Prediction,
}

/// A quantity that was predicted and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// "mean" or "p99".
    pub quantity: String,
    /// The prediction; its interval is for a run of this length.
    pub predicted_s: Estimate,
    /// The measurement; its interval is the noise of the measurement.
    pub measured_s: Estimate,
    /// Predicted over measured, less 1.
    pub error: f64,
    /// The part of the error that the noise of the measurement does not explain: predicted over the nearest value of the interval of the
    /// measurement, less 1.
    pub error_beyond_noise: f64,
    /// Whether the measured value lies within the interval of the prediction.
    pub inside: bool,
}

/// A load that was predicted and then measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validated {
    /// The prediction.
    pub predicted: Predicted,
    /// The mean and quantiles that the run has enough requests for.
    pub compared: Vec<Compared>,
    /// The measured distribution: shares of the requests, and the times that they stay below, in seconds.
    pub curve: Vec<(f64, f64)>,
    /// The predictions of simple methods from the same data.
    pub baselines: Vec<BaselinePrediction>,
    /// Whether the generator limited the run.
    pub generator_limited: bool,
    /// Whether other programs disturbed the run, each time.
    pub disturbed: bool,
    /// Whether the number of requests grew, so that the rate exceeded the capacity.
    pub unstable: bool,
    /// The prediction for the speed that the processors then had. `None` where it is unknown; records from before 2026-11-28 do not have
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_speed: Option<AtSpeed>,
}

/// A prediction of the same load for the speed of the server's processors in each second of it, which a fixed computation measured meanwhile.
/// As far as that computation stands for the work of the server, the errors that are left are not those of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtSpeed {
    /// How many times as long work took during the load as in the full loads, on average.
    pub slower: f64,
    /// The mean and quantiles that the run has enough requests for.
    pub compared: Vec<Compared>,
    /// The predictions of simple methods for that speed.
    pub baselines: Vec<BaselinePrediction>,
}

/// A load that predictions start from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LowLoad {
    /// The round, the first being 1.
    pub round: u32,
    /// Requests per second.
    pub rate_per_s: f64,
    /// The mean and the quantiles of the response time, by their names, in seconds.
    pub measured_s: Vec<(String, Estimate)>,
}

/// How much the speed of the server and of the machine differed between the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineDrift {
    /// The number of full loads.
    pub full_loads: usize,
    /// The standard deviation of the capacity between full loads, over its mean; 0 for a single load.
    pub capacity_sd: f64,
    /// The part of it that is the noise of measuring the capacity.
    pub noise_sd: f64,
    /// The standard deviation of the time of a fixed computation during each load, over its mean: the processors of the server, without
    /// the server. 0 where they are on another machine.
    pub processor_sd: f64,
}

/// The results of a validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationReport {
    /// The server.
    pub target: String,
    /// The start, in UTC.
    pub started_utc: String,
    /// The machine of the generator.
    pub machine: Machine,
    /// The version of kendall.
    pub kendall: String,
    /// The build of that version; records from before 2026-11-26 do not have it.
    pub build: Option<Build>,
    /// The seed.
    pub seed: u64,
    /// How often each low load was measured.
    pub rounds: u32,
    /// The length of a low load and of a full load, in seconds.
    pub low_duration_s: f64,
    /// The length of a predicted load, in seconds.
    pub high_duration_s: f64,
    /// The median response time of one user alone, in seconds.
    pub alone_s: f64,
    /// The throughput of closed populations: users, and requests per second.
    pub closed: Vec<(u32, f64)>,
    /// The capacity as each full load measured it, in requests per second, in the order of measuring.
    pub full_per_s: Vec<Estimate>,
    /// The median time of a fixed computation on the processors of the server during each load, in seconds, in the order of measuring.
    pub computation_s: Vec<f64>,
    /// Whether the processors of the machine were kept awake.
    #[serde(default)]
    pub awake: bool,
    /// The drift between the rounds.
    pub drift: MachineDrift,
    /// The low loads, in the order of measuring.
    pub low: Vec<LowLoad>,
    /// The predicted loads, in the order of measuring.
    pub loads: Vec<Validated>,
    /// Loads that could not be predicted, with the reason.
    pub no_prediction: Vec<String>,
    /// The number of times that a load was repeated because it was disturbed.
    pub repeated: u32,
    /// Reasons to doubt all predictions, as sentences without their full stop.
    pub doubts: Vec<String>,
}

impl Compared {
    /// Whether the prediction is as near to the measurement as this share; undecided where the noise of the measurement decides.
    fn within(&self, share: f64) -> ExpectationVerdict {
        if self.error.abs() <= share {
            ExpectationVerdict::Met
        } else if self.error_beyond_noise.abs() <= share {
            ExpectationVerdict::Undecided
        } else {
            ExpectationVerdict::Failed
        }
    }

    /// A prediction and its measurement.
    pub fn new(quantity: impl Into<String>, predicted_s: Estimate, measured_s: Estimate) -> Self {
        let value_s = predicted_s.value;
        let (low, high) = measured_s.interval.unwrap_or((measured_s.value, measured_s.value));
        // An interval without its own value would turn a small error into a larger one.
        let (low, high) = (low.min(measured_s.value), high.max(measured_s.value));
        Self {
            quantity: quantity.into(),
            predicted_s,
            measured_s,
            error: value_s / measured_s.value - 1.0,
            error_beyond_noise: value_s / value_s.clamp(low, high) - 1.0,
            inside: predicted_s.interval.is_some() && predicted_s.contains(measured_s.value),
        }
    }

    /// Half the width of the interval of the prediction, over its value.
    pub fn half_width(&self) -> f64 {
        self.predicted_s.half_width() / self.predicted_s.value
    }

    /// Whether the measured value is more than twice as far from the prediction as the end of its interval, as ratios: the interval
    /// promised far more than it held.
    pub fn is_confidently_wrong(&self) -> bool {
        let (value_s, measured_s) = (self.predicted_s.value, self.measured_s.value);
        let far = |end_s: f64| end_s * end_s / value_s;
        self.predicted_s.interval.is_some_and(|(low, high)| measured_s < far(low) || measured_s > far(high))
    }
}

impl LowLoad {
    /// A measured quantity by its name, in seconds.
    pub fn quantity(&self, name: &str) -> Option<Estimate> {
        self.measured_s.iter().find(|measured| measured.0 == name).map(|measured| measured.1)
    }
}

impl Validated {
    /// A quantity by its name.
    pub fn quantity(&self, name: &str) -> Option<&Compared> {
        self.compared.iter().find(|compared| compared.quantity == name)
    }

    /// The load: "85 % of the capacity".
    pub fn name(&self) -> String {
        format!("{} of the capacity", percent(self.predicted.share))
    }

    /// The likeliest station of the prediction: "2 servers, FIFO (90 %)".
    pub fn station(&self) -> String {
        let likeliest = self.predicted.prediction.stations.first();
        likeliest
            .map_or_else(String::new, |allowed| format!("{} ({})", allowed.station, percent(allowed.share)))
    }

    /// The errors that are left once the speed of the machine during the load is known, as a sentence.
    fn at_speed_words(&self) -> Option<String> {
        let AtSpeed { slower, compared, .. } = self.at_speed.as_ref()?;
        let error = |name: &str| {
            let compared = compared.iter().find(|compared| compared.quantity == name)?;
            Some(format!("{} for {}", signed(compared.error), in_words(name)))
        };
        let errors: Vec<String> = ["mean", "p99"].into_iter().filter_map(error).collect();
        Some(format!(
            "At {} a fixed computation on the processors of the server suggests that work took {} {} than in the full loads. Predicted \
             again for the speed of the processors in each second, the error is {}.",
            self.name(),
            percent((slower - 1.0).abs()),
            if *slower < 1.0 { "less time" } else { "more time" },
            list(&errors)
        ))
    }

    /// Reasons to doubt this load, as parts of a sentence.
    pub fn doubts(&self) -> Vec<&'static str> {
        let reasons = [
            (self.generator_limited, "the generator limited this load"),
            (self.unstable, "the number of requests grew, so the rate exceeded the capacity"),
            (self.disturbed, "other programs disturbed this load each time"),
        ];
        reasons.into_iter().filter(|reason| reason.0).map(|reason| reason.1).collect()
    }
}

impl MachineDrift {
    /// The drift between full loads and between the times of a fixed computation.
    pub fn of(full_per_s: &[Estimate], computation_s: &[f64]) -> Self {
        let noises = full_per_s.iter().map(|full| (full.half_width() / REACH / full.value).powi(2));
        let values: Vec<f64> = full_per_s.iter().map(|full| full.value).collect();
        Self {
            full_loads: full_per_s.len(),
            capacity_sd: relative_sd(&values),
            noise_sd: mean(&noises.collect::<Vec<_>>()).sqrt(),
            processor_sd: relative_sd(computation_s),
        }
    }

    /// The part of the drift of the capacity that is not the noise of measuring it.
    pub fn of_machine(&self) -> f64 {
        (self.capacity_sd.powi(2) - self.noise_sd.powi(2)).max(0.0).sqrt()
    }

    /// The error of a response time that the drift explains at a share of the capacity: a time in proportion to 1/(1 − ρ) changes by
    /// 1/(1 − ρ) per cent where the capacity changes by 1 %.
    pub fn explains(&self, share: f64) -> f64 {
        self.of_machine() / (1.0 - share)
    }
}

/// The standard deviation over the mean; 0 for fewer than two values.
fn relative_sd(values: &[f64]) -> f64 {
    if values.len() < 2 { 0.0 } else { variance(values).sqrt() / mean(values) }
}

impl ValidationReport {
    /// Every value that was predicted and measured.
    pub fn compared(&self) -> impl Iterator<Item = &Compared> {
        self.loads.iter().flat_map(|load| &load.compared)
    }

    /// Whether every mean and every p99 is as near to its prediction as this share; undecided where the noise of a measurement does not let
    /// it be said.
    pub fn within(&self, share: f64) -> ExpectationVerdict {
        let judged = self.compared().filter(|compared| matches!(compared.quantity.as_str(), "mean" | "p99"));
        let verdicts: Vec<ExpectationVerdict> = judged.map(|compared| compared.within(share)).collect();
        let any = |verdict| verdicts.contains(&verdict);
        if any(ExpectationVerdict::Failed) || !self.no_prediction.is_empty() {
            ExpectationVerdict::Failed
        } else if verdicts.is_empty() || any(ExpectationVerdict::Undecided) {
            ExpectationVerdict::Undecided
        } else {
            ExpectationVerdict::Met
        }
    }

    /// The same loads as predicted for the speed that the machine had meanwhile, without those for which it is unknown.
    #[must_use]
    pub fn at_speed(&self) -> Self {
        let at_speed = |load: &Validated| {
            let AtSpeed { compared, baselines, .. } = load.at_speed.clone()?;
            Some(Validated { compared, baselines, ..load.clone() })
        };
        Self { loads: self.loads.iter().filter_map(at_speed).collect(), ..self.clone() }
    }

    /// The answer in one sentence.
    pub fn answer(&self) -> String {
        let all = self.compared().count();
        let inside = self.compared().filter(|compared| compared.inside).count();
        let error = |name: &str| {
            let errors: Vec<f64> =
                self.loads.iter().filter_map(|load| Some(load.quantity(name)?.error.abs())).collect();
            (!errors.is_empty()).then(|| format!("{} for {}", percent(median(&errors)), in_words(name)))
        };
        let errors: Vec<String> = ["mean", "p99"].into_iter().filter_map(error).collect();
        match all {
            0 => "No load was predicted and measured.".into(),
            _ => format!(
                "{inside} of {} lie within the interval of their prediction; the median error is {}.",
                counted(all as u64, "measured value"),
                list(&errors)
            ),
        }
    }

    /// Reasons to doubt the predictions or the measurements, as sentences.
    pub fn all_doubts(&self) -> Vec<String> {
        let of_load = |load: &Validated| {
            let name = load.name();
            load.doubts().into_iter().map(move |doubt| format!("At {name}: {doubt}.")).collect::<Vec<_>>()
        };
        let without = self.no_prediction.iter().map(|why| format!("No prediction: {why}."));
        let repeated = match self.repeated {
            0 => None,
            1 => Some(
                "A load was repeated once because other programs or a change of speed disturbed it."
                    .to_owned(),
            ),
            several => Some(format!(
                "Loads were repeated {several} times because other programs or a change of speed disturbed them."
            )),
        };
        let whole = self.doubts.iter().map(|doubt| format!("{}.", first_upper(doubt)));
        without.chain(whole).chain(self.loads.iter().flat_map(of_load)).chain(repeated).collect()
    }

    /// How much of the errors the machine explains, in sentences.
    pub fn machine_words(&self) -> Vec<String> {
        let drift = self.drift;
        if drift.full_loads < 2 {
            return vec![
                "The capacity was measured once, so its drift between rounds is unknown; take more rounds."
                    .into(),
            ];
        }
        let mut words = vec![format!(
            "The capacity differed by {} (standard deviation) between {} full loads; the noise of measuring it alone makes {}.",
            percent(drift.capacity_sd),
            drift.full_loads,
            percent(drift.noise_sd)
        )];
        if drift.processor_sd > 0.0 {
            words.push(format!(
                "A fixed computation on the processors of the server, timed during each load, differed by {}.",
                percent(drift.processor_sd)
            ));
        }
        words.push(if self.awake {
            "No processor of this machine slept during the loads.".into()
        } else {
            "Processors could sleep during the loads, which can make service longer at low load. kendall keeps those of this machine awake unless \
             --let-sleep is given, if it may write to /dev/cpu_dma_latency, as root may, and the kernel chooses how they idle.".into()
        });
        let highest = self.loads.iter().max_by(|a, b| a.predicted.share.total_cmp(&b.predicted.share));
        if let Some(load) = highest {
            let share = load.predicted.share;
            words.push(match drift.of_machine() {
                of_machine if of_machine > 0.0 => format!(
                    "A drift of {} explains an error of the mean or p99 of about {} at {}: response times grow as 1/(1 − ρ).",
                    percent(of_machine),
                    percent(drift.explains(share)),
                    load.name()
                ),
                _ => "The capacity drifted by no more than that noise, so the drift explains no error.".into(),
            });
        }
        words.extend(self.loads.iter().filter_map(Validated::at_speed_words));
        words
    }
}

/// A relative difference with its sign.
fn signed(difference: f64) -> String {
    kendall_stats::number::difference(1.0 + difference, 1.0).unwrap_or_else(|| NONE.to_owned())
}

fn in_words(quantity: &str) -> String {
    if quantity == "mean" { "the mean".into() } else { quantity.into() }
}

fn first_upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The validation in a folder, if it holds one that is complete.
///
/// # Errors
/// Fails where its file cannot be read.
pub fn read_validation(folder: &Path) -> Result<Option<ValidationReport>, RecordError> {
    match read_json(&folder.join(VALIDATION)) {
        Ok(report) => Ok(Some(report)),
        Err(RecordError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
