//! The findings, each with its sentence.

use std::fmt;

use kendall_evidence::check;
use kendall_station::Estimate;
use kendall_stats::number::{few, percent, significant, time, time_with_interval};
use serde::{Deserialize, Serialize};

use crate::bottleneck::Bottleneck;
use crate::finding::contrast::Contrast;
use crate::finding::loss::{Losses, Overload};
use crate::finding::reason::{Answers, Excess, PredictedBy, Reason, Trend};
use crate::finding::severity::{self, Severity};
use crate::finding::tail::TailMiss;
use crate::machine_limits::Binding;
use crate::replay::{Replayed, times_narrower};

/// A finding of a report, worded by `Display`. A place is a point in words, such as "80/s".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "finding")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the numbers of the sentence")]
pub enum Finding {
    /// The result of the replay of the run through the station.
    Replayed(Replayed),
    /// The range of the measured mean response time, over the points where it does not grow.
    Range { group: String, from: String, from_s: f64, to: String, to_s: f64 },
    /// The least and the largest measured mean response time over categories.
    Extremes { least: String, least_s: f64, most: String, most_s: f64 },
    /// The least and the largest throughput of populations of users, who send only after an answer.
    Throughput { least: String, least_per_s: f64, most: String, most_per_s: f64 },
    /// A comparison of two levels of a factor.
    Contrast(Contrast),
    /// A model that predicts the measured mean response time.
    Agreement { model: String, ways: Vec<PredictedBy>, agreeing: usize, of: usize, untold: usize },
    /// A model that does not, at its worst point.
    Miss {
        model: String,
        way: PredictedBy,
        place: String,
        predicted_s: f64,
        measured_s: Estimate,
        reason: Option<Reason>,
        missing: usize,
        of: usize,
    },
    /// What stations of limited capacity do with more work than they can do.
    Overload(Overload),
    /// A comparison of the predicted and the measured shares of lost requests.
    Losses(Losses),
    /// A model whose 99th percentile is not the measured one.
    Tail(TailMiss),
    /// More work is offered than the servers can do, and the capacity of the station is not known to be limited.
    Unstable {
        place: String,
        utilisation: f64,
        formula_answers: Answers,
        measured_s: f64,
        growth: Trend,
        also: Vec<String>,
    },
    /// The rate at which utilisation reaches 1.
    Capacity { group: String, rate_per_s: f64, excess: Excess },
    /// Utilisation just below 1.
    NearlyFull { place: String, utilisation: f64, also: Vec<String> },
    /// Service takes longer under load.
    LoadDependent { low: String, low_s: f64, high: String, high_s: f64 },
    /// A part of the service is the same for every request, by the server's own stamps: the point at which its share is
    /// largest.
    FixedCost { place: String, fixed_s: f64, service_s: f64 },
    /// Most of the response time passes outside the station.
    MostlyDelay { place: String, delay_s: f64, response_s: f64 },
    /// A model without a formula, for another reason than too much work.
    NoFormula { model: String, why: String },
    /// A model whose formula is an approximation.
    Approximate { model: String, source: String, how: String },
    /// Response times grow during the trials though utilisation is below 1.
    Growing { place: String, first_half_s: f64, second_half_s: f64 },
    /// Trials that show the generator as much as the server, and why the first of them does.
    GeneratorLimited { trials: Vec<String>, why: String },
    /// A doubt that the generator or the run has of itself.
    Disturbed { what: String, trials: Vec<String> },
    /// Attempts of trials that do not count, because others of the same trial do.
    Replaced { attempts: Vec<String> },
    /// Little's law does not hold.
    LittleBroken { trials: usize, worst: String, gap: f64 },
    /// An assumption of the models is broken.
    Assumption { worst: check::Finding, also: Vec<String> },
    /// Requests are missing from the counts.
    NotConserved { trial: String, sent: u64, ended: u64 },
    /// Requests without an answer.
    Lost { place: String, lost: u64, sent: u64, also: Vec<String> },
    /// Requests with a wrong answer.
    Wrong { place: String, wrong: u64, sent: u64, also: Vec<String> },
    /// Intervals too wide to distinguish models.
    TooWide { places: Vec<String>, worst_relative: f64 },
    /// An interval that is narrower than its number of requests allows.
    TooNarrow { place: String, half_width_s: f64, expected_s: f64, also: Vec<String> },
    /// No interval, because there is one trial only.
    NoInterval { places: Vec<String> },
    /// A doubt of the laboratory about the run as a whole.
    Told { sentence: String },
    /// The warm-ups that were found and left out: requests of how many, and the least, the median and the longest time.
    LeftOut { trials: usize, left_out: u64, sent: u64, least_s: f64, median_s: f64, most_s: f64 },
    /// The resource that limits the server in the trial in which it used most.
    Limited { place: String, limit: Bottleneck },
    /// Which of the machine's own limits the best trial came up against.
    MachineLimit { place: String, throughput_per_s: f64, binding: Binding },
    /// The experiment was interrupted.
    Unfinished { done: usize, planned: usize },
}

impl Finding {
    /// The meaning of the finding for the reader.
    pub fn severity(&self) -> Severity {
        match self {
            Self::GeneratorLimited { .. }
            | Self::Replayed(_)
            | Self::Range { .. }
            | Self::Extremes { .. }
            | Self::Throughput { .. }
            | Self::Contrast(_)
            | Self::Overload(_)
            | Self::Losses(_)
            | Self::Agreement { .. }
            | Self::Miss { .. }
            | Self::Unstable { .. }
            | Self::Capacity { .. } => Severity::Answer,
            Self::Assumption { worst, .. } => severity::of_broken(worst.check),
            Self::Limited { limit: Bottleneck::Generator { .. }, .. } => Severity::Doubt,
            Self::Limited { .. } | Self::MachineLimit { .. } | Self::Replaced { .. } | Self::Tail(_) => {
                Severity::Note
            }
            Self::NearlyFull { .. }
            | Self::LeftOut { .. }
            | Self::LoadDependent { .. }
            | Self::FixedCost { .. }
            | Self::MostlyDelay { .. }
            | Self::NoFormula { .. }
            | Self::Approximate { .. } => Severity::Note,
            Self::Growing { .. }
            | Self::Disturbed { .. }
            | Self::LittleBroken { .. }
            | Self::NotConserved { .. }
            | Self::Lost { .. }
            | Self::Wrong { .. }
            | Self::TooWide { .. }
            | Self::TooNarrow { .. }
            | Self::NoInterval { .. }
            | Self::Told { .. }
            | Self::Unfinished { .. } => Severity::Doubt,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Limited { place, limit } = self {
            return write!(f, "At {place}: {limit}");
        }
        if let Self::MachineLimit { place, throughput_per_s, binding } = self {
            let at = if place.is_empty() { "In the best trial".to_owned() } else { format!("At {place}") };
            return write!(f, "{at}, {}/s: {binding}", significant(*throughput_per_s, 3));
        }
        if let Self::Assumption { worst, also } = self {
            write!(f, "At {}: {}", worst.place, worst.sentence)?;
            return write_also(f, also);
        }
        match self.severity() {
            Severity::Answer => self.write_answer(f),
            Severity::Note => self.write_note(f),
            Severity::Doubt => self.write_doubt(f),
        }
    }
}

impl Finding {
    fn write_answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GeneratorLimited { trials, why } => {
                let which = match trials.as_slice() {
                    [one] => format!("trial {one} shows"),
                    [first, ..] => format!("{} trials, first {first}, show", trials.len()),
                    [] => "this run shows".to_owned(),
                };
                write!(f, "GENERATOR-LIMITED: {which} the generator as much as the server: {why}.")
            }
            Self::Replayed(replayed) => write!(f, "{replayed}"),
            Self::Range { group, from, from_s, to, to_s } => {
                let the = the(group);
                let (from_s, to_s) = (time(*from_s), time(*to_s));
                if from == to {
                    return write!(f, "{the} mean response time is {from_s} at {from}.");
                }
                write!(f, "{the} mean response time goes from {from_s} at {from} to {to_s} at {to}.")
            }
            Self::Extremes { least, least_s, most, most_s } => {
                let (least_s, most_s) = (time(*least_s), time(*most_s));
                write!(
                    f,
                    "The mean response time is shortest at {least}, {least_s}, and longest at {most}, {most_s}."
                )
            }
            Self::Throughput { least, least_per_s, most, most_per_s } => {
                let (least_per_s, most_per_s) = (significant(*least_per_s, 3), significant(*most_per_s, 3));
                write!(
                    f,
                    "Throughput is highest at {most}, {most_per_s}/s, and lowest at {least}, {least_per_s}/s."
                )
            }
            Self::Agreement { model, ways, agreeing, of, untold } => {
                let ways = match ways.as_slice() {
                    [PredictedBy::Formula] => "formula and measurement",
                    [PredictedBy::Simulation] => "simulation and measurement",
                    _ => "formula, simulation and measurement",
                };
                let that_tell = if *untold > 0 { " with a sufficiently narrow interval" } else { "" };
                let points =
                    if *of == 1 { "the one point".to_owned() } else { format!("{agreeing} of {of} points") };
                write!(
                    f,
                    "{model}: {ways} agree at {points}{that_tell}, within the interval of measurement or 5 %."
                )
            }
            Self::Miss { model, way, place, predicted_s, measured_s, reason, missing, of } => {
                let off = predicted_s / measured_s.value - 1.0;
                let compared = if off > 0.0 { "overestimates" } else { "underestimates" };
                let by = if *way == PredictedBy::Simulation { " by simulation" } else { "" };
                let (predicted, measured) =
                    (time(*predicted_s), time_with_interval(measured_s.value, measured_s.interval));
                let off = percent(off.abs());
                write!(
                    f,
                    "{model}{by} predicts {predicted} at {place}, measured {measured}: it {compared} by {off}"
                )?;
                match *of {
                    1 => f.write_str(".")?,
                    _ if *missing == 1 => write!(f, ", its only miss at {of} points.")?,
                    of => write!(f, ", the worst of its misses at {missing} of {of} points.")?,
                }
                reason.as_ref().map_or(Ok(()), |reason| write!(f, " {reason}"))
            }
            Self::Unstable { place, utilisation, formula_answers, measured_s, growth, also } => {
                let formula = match formula_answers {
                    Answers::None => "the queue grows without bound, so the formula has no answer",
                    Answers::Some => "more work arrives than the servers can do, so requests are rejected",
                };
                let rising = if *growth == Trend::Rising { " and rising" } else { "" };
                let (utilisation, measured) = (significant(*utilisation, 3), time(*measured_s));
                write!(
                    f,
                    "At {place} utilisation is {utilisation}: {formula}; measured: {measured}{rising}."
                )?;
                write_also(f, also)
            }
            Self::Contrast(contrast) => write!(f, "{contrast}"),
            Self::Overload(overload) => write!(f, "{overload}"),
            Self::Losses(losses) => write!(f, "{losses}"),
            Self::Capacity { group, rate_per_s, excess } => {
                let (the, rate) = (the(group), significant(*rate_per_s, 3));
                let there = match excess {
                    Excess::Queues => "utilisation reaches 100 % there",
                    Excess::Lost => "no higher rate is answered",
                };
                write!(f, "{the} capacity of the servers is {rate}/s: {there}.")
            }
            _ => unreachable!("its severity is Answer"),
        }
    }

    fn write_note(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tail(miss) => write!(f, "{miss}"),
            Self::Replaced { attempts } => match &**attempts {
                [one] => {
                    write!(f, "Trial {one} was disturbed by other load; another attempt counts in its place.")
                }
                attempts => write!(
                    f,
                    "{} trials were disturbed by other load, first {}; other attempts count in their place.",
                    attempts.len(),
                    attempts[0]
                ),
            },
            Self::NearlyFull { place, utilisation, also } => {
                let utilisation = significant(*utilisation, 2);
                write!(
                    f,
                    "At {place} utilisation is {utilisation}: this close to 1 the mean depends on rare long queues, "
                )?;
                f.write_str("and only long trials measure it well.")?;
                write_also(f, also)
            }
            Self::LoadDependent { low, low_s, high, high_s } => {
                let longer = percent(high_s / low_s - 1.0);
                let (low_s, high_s) = (time(*low_s), time(*high_s));
                write!(
                    f,
                    "Service takes {high_s} at {high}, {longer} longer than {low_s} at {low}: it depends on the load."
                )
            }
            Self::FixedCost { place, fixed_s, service_s } => {
                let (share, fixed, service) =
                    (percent(fixed_s / service_s), time(*fixed_s), time(*service_s));
                write!(
                    f,
                    "At {place} {fixed} of {service} in service ({share}) are a fixed cost of every request: optimising the rest saves \
                     at most the other {other}.",
                    other = time(service_s - fixed_s)
                )
            }
            Self::MostlyDelay { place, delay_s, response_s } => {
                let (delay, response) = (time(*delay_s), time(*response_s));
                write!(
                    f,
                    "At {place} {delay} of {response} pass outside the station: the network dominates, not the queue."
                )
            }
            Self::LeftOut { trials, left_out, sent, least_s, median_s, most_s } => {
                let (trials, share) =
                    (plural(*trials, "trial"), percent(*left_out as f64 / (*sent).max(1) as f64));
                write!(f, "MSER-5 left out {left_out} of {sent} requests ({share}) as warm-up: the first ")?;
                let [least, median, most] = [least_s, median_s, most_s].map(|seconds| time(*seconds));
                if least == most {
                    return write!(f, "{median} of {trials}.");
                }
                write!(f, "{median} (median of {trials}, from {least} to {most}).")
            }
            Self::NoFormula { model, why } => {
                write!(f, "{model} has no formula: {}.", why.trim_end_matches('.'))
            }
            Self::Approximate { model, source, how } => {
                write!(
                    f,
                    "The formula of {model} is {source} (approximation: {}).",
                    how.trim_end_matches('.')
                )
            }
            _ => unreachable!("its severity is Note"),
        }
    }

    fn write_doubt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Growing { place, first_half_s, second_half_s } => {
                let (first, second) = (time(*first_half_s), time(*second_half_s));
                write!(
                    f,
                    "At {place} response times grow while the trials run, from {first} in the first half to {second} "
                )?;
                f.write_str(
                    "in the second: the mean depends on how long the trials are. Measure at a lower rate.",
                )
            }
            Self::Disturbed { what, trials } => {
                let what = what.trim_end_matches('.');
                match trials.as_slice() {
                    [one] => write!(f, "Trial {one}: {what}."),
                    [first, ..] => write!(f, "In {} trials, first in {first}: {what}.", trials.len()),
                    [] => write!(f, "{what}."),
                }
            }
            Self::LittleBroken { trials, worst, gap } => {
                let (gap, count) = (percent(gap.abs()), plural(*trials, "trial"));
                write!(
                    f,
                    "Little's law is broken in {count}: in {worst} the mean number in the system and throughput × "
                )?;
                write!(
                    f,
                    "mean response differ by {gap}. Requests or instants are missing from the record: measure again."
                )
            }
            Self::NotConserved { trial, sent, ended } => {
                write!(
                    f,
                    "In trial {trial} {sent} requests were sent, and {ended} ended: the record is incomplete."
                )
            }
            Self::Lost { place, lost, sent, also } => {
                let share = percent(*lost as f64 / *sent as f64);
                write!(f, "At {place} {lost} of {sent} requests ({share}) had no answer; ")?;
                f.write_str("response times count only the others.")?;
                write_also(f, also)
            }
            Self::Wrong { place, wrong, sent, also } => {
                let share = percent(*wrong as f64 / *sent as f64);
                write!(f, "At {place} {wrong} of {sent} requests ({share}) had a wrong answer; ")?;
                f.write_str("their response times do not measure the service.")?;
                write_also(f, also)
            }
            Self::TooWide { places, worst_relative } => {
                let worst = percent(*worst_relative);
                write!(f, "At {} the interval of the mean response is wide, up to ±{worst}: ", few(places))?;
                f.write_str("too wide to distinguish models there. Run more trials, or longer ones.")
            }
            Self::TooNarrow { place, half_width_s, expected_s, also } => {
                let narrower = times_narrower(*half_width_s, *expected_s);
                let (half_width, expected) = (time(*half_width_s), time(*expected_s));
                write!(
                    f,
                    "At {place} the trials' means lie within ± {half_width} of each other; theory expects ± {expected} for this number \
                     of requests, {narrower} times as much, and the difference is significant. "
                )?;
                f.write_str("Trials that repeat the same arrivals and requests are not independent.")?;
                write_also(f, also)
            }
            Self::NoInterval { places } => {
                write!(
                    f,
                    "At {} there is no interval: an interval needs at least two trials. Run more trials.",
                    few(places)
                )
            }
            Self::Told { sentence } => write!(f, "{}.", sentence.trim_end_matches('.')),
            Self::Unfinished { done, planned } => {
                write!(
                    f,
                    "{done} of {planned} trials ran: the experiment was interrupted. Continue it with kendall run --resume."
                )
            }
            _ => unreachable!("its severity is Doubt"),
        }
    }
}

/// The first words of a sentence about all points, or about those of one of several groups.
fn the(group: &str) -> String {
    if group.is_empty() { "The".to_owned() } else { format!("With {group} the") }
}

/// Writes the other places at which the same finding holds.
fn write_also(f: &mut fmt::Formatter<'_>, also: &[String]) -> fmt::Result {
    if also.is_empty() { Ok(()) } else { write!(f, " The same holds at {}.", few(also)) }
}

/// "1 trial", "2 trials".
fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
