//! The figures of a part of a run, made by a thread or by a process on another machine, and their sum.
//!
//! Distributions are added count by count, so the quantiles of the sum are those of one generator; no percentile is averaged.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::sends::Sends;
use crate::summary::{Lag, LagShare, Little, RunSummary, StampedBy, ThreadFigures, ThreadUse};

/// The figures of a part of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPart {
    /// The instant to which the instants of the part are relative, by the clock of its machine.
    pub start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) cpu_s: f64,
    pub(crate) thread: ThreadUse,
    /// The figures of each thread; empty if there is one.
    pub(crate) threads: Vec<ThreadFigures>,
    /// Requests that were due.
    pub sent: u64,
    /// The counts of the requests by outcome.
    pub ended: [u64; 5],
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) waited_for_connection: u64,
    pub(crate) turned_away: u64,
    pub(crate) connections_opened: u64,
    pub(crate) own_failures: u64,
    pub(crate) max_in_flight: u64,
    pub(crate) last_due_ns: i64,
    pub(crate) refused_because: Option<String>,
    pub(crate) times: Times,
    pub(crate) little: Little,
}

/// The distributions of a part, in nanoseconds to three digits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Times {
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub(crate) lag: Histogram<u64>,
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub(crate) send_lag: Histogram<u64>,
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub(crate) wait: Histogram<u64>,
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub(crate) response: Histogram<u64>,
    /// Response times minus the send lag of their requests.
    #[serde(serialize_with = "write", deserialize_with = "read")]
    pub(crate) punctual: Histogram<u64>,
}

/// Writes a histogram as pairs of values and counts.
fn write<S: Serializer>(histogram: &Histogram<u64>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(histogram.iter_recorded().map(|one| (one.value_iterated_to(), one.count_at_value())))
}

fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram<u64>, D::Error> {
    let pairs = Vec::<(u64, u64)>::deserialize(from)?;
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    for (value, count) in pairs {
        // No larger value is recorded, so a histogram has a bounded size.
        if value > 2 * 86_400_000_000_000 {
            return Err(de::Error::custom("a time is longer than a day"));
        }
        histogram.record_n(value, count).expect("a histogram that grows takes every value");
    }
    Ok(histogram)
}

impl RunPart {
    /// Whether the counts of a part from elsewhere are possible.
    pub fn is_consistent(&self) -> bool {
        const MOST: u64 = 1 << 40;
        self.sent <= MOST
            && self.ended.iter().try_fold(0u64, |sum, count| sum.checked_add(*count)) == Some(self.sent)
            && [self.waited_for_connection, self.turned_away, self.connections_opened, self.own_failures]
                .iter()
                .all(|&count| count <= MOST)
            && self.max_in_flight <= MOST
            && self.statuses.values().all(|&count| count <= MOST)
            && self.refused_because.as_ref().is_none_or(|why| why.len() <= 1000)
    }

    /// Adds another part of the same run. Its instants are relative to the same instant.
    pub fn add(&mut self, other: &Self) {
        let figures = |part: &Self| match part.threads.as_slice() {
            [] => vec![part.figures()],
            threads => threads.to_vec(),
        };
        self.threads = [figures(self), figures(other)].concat();
        self.add_thread(&other.thread);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.cpu_s += other.cpu_s;
        self.sent += other.sent;
        self.ended.iter_mut().zip(other.ended).for_each(|(sum, one)| *sum += one);
        other.statuses.iter().for_each(|(status, count)| *self.statuses.entry(*status).or_default() += count);
        self.waited_for_connection += other.waited_for_connection;
        self.turned_away += other.turned_away;
        self.connections_opened += other.connections_opened;
        self.own_failures += other.own_failures;
        self.max_in_flight += other.max_in_flight;
        self.last_due_ns = self.last_due_ns.max(other.last_due_ns);
        if self.refused_because.is_none() {
            self.refused_because.clone_from(&other.refused_because);
        }
        self.times.add(&other.times);
        self.little.in_system_s += other.little.in_system_s;
        self.little.responses_s += other.little.responses_s;
    }

    fn add_thread(&mut self, other: &ThreadUse) {
        let own = &mut self.thread;
        let sum = |own: Option<u64>, other: Option<u64>| Some(own? + other?);
        own.priority = own.priority.min(other.priority);
        own.core = None;
        if other.stamped_by == StampedBy::Generator {
            own.stamped_by = StampedBy::Generator;
        }
        // That of the thread that waited longest.
        own.run_queue_s = own.run_queue_s.zip(other.run_queue_s).map(|(own, others)| own.max(others));
        own.voluntary_switches = sum(own.voluntary_switches, other.voluntary_switches);
        own.involuntary_switches = sum(own.involuntary_switches, other.involuntary_switches);
    }

    /// The figures of the thread that made the part alone.
    fn figures(&self) -> ThreadFigures {
        ThreadFigures {
            sent: self.sent,
            wall_s: self.end_ns as f64 / 1e9,
            cpu_s: self.cpu_s,
            lag: lag(&self.times.lag),
            lag_share: self.times.lag_share(),
            thread: self.thread,
        }
    }

    /// The summary of a run whose sum of parts this is.
    pub(crate) fn summary(self, sends: Sends) -> RunSummary {
        RunSummary {
            start_ns: self.start_ns,
            wall_s: self.end_ns as f64 / 1e9,
            sending_s: self.last_due_ns as f64 / 1e9,
            sent: self.sent,
            ended: self.ended,
            statuses: self.statuses,
            lag: lag(&self.times.lag),
            lag_share: self.times.lag_share(),
            send_lag: lag(&self.times.send_lag),
            waited_for_connection: self.waited_for_connection,
            wait_for_connection: lag(&self.times.wait),
            turned_away: self.turned_away,
            connections_opened: self.connections_opened,
            own_failures: self.own_failures,
            refused_because: self.refused_because,
            max_in_flight: self.max_in_flight,
            sends,
            little: self.little,
            generator_cpu_s: self.cpu_s,
            thread: self.thread,
            threads: self.threads,
            agents: Vec::new(),
        }
    }
}

impl Times {
    fn add(&mut self, other: &Self) {
        let histograms = [
            (&mut self.lag, &other.lag),
            (&mut self.send_lag, &other.send_lag),
            (&mut self.wait, &other.wait),
            (&mut self.response, &other.response),
            (&mut self.punctual, &other.punctual),
        ];
        for (sum, one) in histograms {
            sum.add(one).expect("both grow and have three digits");
        }
    }

    /// The generator's own lag as a share of the response times.
    fn lag_share(&self) -> LagShare {
        let share = |all: f64, punctual: f64| if all > 0.0 { (1.0 - punctual / all).max(0.0) } else { 0.0 };
        let of_quantile = |quantile: f64| {
            let of = |times: &Histogram<u64>| times.value_at_quantile(quantile) as f64;
            share(of(&self.response), of(&self.punctual))
        };
        let mean = share(self.response.mean(), self.punctual.mean());
        LagShare { mean, p50: of_quantile(0.5), p99: of_quantile(0.99) }
    }
}

fn lag(histogram: &Histogram<u64>) -> Lag {
    Lag {
        p50_ns: histogram.value_at_quantile(0.5),
        p99_ns: histogram.value_at_quantile(0.99),
        max_ns: histogram.max(),
    }
}
