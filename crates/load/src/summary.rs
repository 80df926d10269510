//! The figures of a run. They carry no judgement: the generator is judged where records are analysed.

use std::collections::BTreeMap;

use kendall_record::Outcome;
use serde::{Deserialize, Serialize};

use crate::plan::Timing;
use crate::sends::Sends;

/// The figures of a run, as its generator counted them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The instant to which the rows are relative, by [`kendall_record::clock::now_ns`].
    pub start_ns: i64,
    /// From the start until the last request was due or answered, drain included, in seconds.
    pub wall_s: f64,
    /// From the start until the last request was due, in seconds.
    pub sending_s: f64,
    /// Requests that were due.
    pub sent: u64,
    /// How they ended, in the order of [`Outcome::ALL`]. They add up to `sent`.
    pub ended: [u64; 5],
    /// How many whole answers had each status, in a protocol whose answers have one, such as HTTP.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<u16, u64>,
    /// How late requests with a free connection were begun: the generator's own delay.
    pub lag: Lag,
    /// The share of that delay in the response times.
    #[serde(default)]
    pub lag_share: LagShare,
    /// How late requests were handed to the kernel, any wait for a connection and its opening included.
    #[serde(default)]
    pub send_lag: Lag,
    /// How many requests had to wait for a free connection, begun in the end or not.
    pub waited_for_connection: u64,
    /// How long those that were begun in the end had waited.
    #[serde(default)]
    pub wait_for_connection: Lag,
    /// How many requests ended unsent because too many waited for a connection already.
    #[serde(default)]
    pub turned_away: u64,
    /// How many connections were opened.
    #[serde(default)]
    pub connections_opened: u64,
    /// How many connections failed because this side had no port or file left.
    pub own_failures: u64,
    /// Why the first refused request was refused, if the reason is known.
    #[serde(default)]
    pub refused_because: Option<String>,
    /// The most requests that were out at once.
    pub max_in_flight: u64,
    /// The sends: their rate and how regular they were.
    #[serde(default)]
    pub sends: Sends,
    /// Both sides of Little's law.
    #[serde(default)]
    pub little: Little,
    /// CPU time of the generator's thread, in seconds.
    pub generator_cpu_s: f64,
    /// How the generator's thread fared otherwise.
    #[serde(default)]
    pub thread: ThreadUse,
}

/// Both sides of Little's law, L = λW, times the length of the run. They are kept apart: a request that is lost
/// from the books, or ends twice, makes them differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Little {
    /// The number of requests that were due and had not ended, integrated over time, in request-seconds.
    pub in_system_s: f64,
    /// The sum over all requests of the time from the instant it was due until it ended, in seconds.
    pub responses_s: f64,
}

/// How the generator's thread was run, and what it met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// How it waited for the next send.
    pub timing: Timing,
    /// What it had of the scheduler.
    pub priority: Priority,
    /// The one core that it was kept on, if it was.
    pub core: Option<u32>,
    /// Who says when an answer was there.
    pub stamped_by: StampedBy,
    /// How long it was ready to run and another thread had its core, in seconds; `None` where the kernel keeps no
    /// such account.
    pub run_queue_s: Option<f64>,
    /// How often it went to sleep.
    pub voluntary_switches: Option<u64>,
    /// How often its core was taken from it.
    pub involuntary_switches: Option<u64>,
}

/// What the generator's thread has of the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// No more than others.
    #[default]
    Usual,
    /// It goes before others of the usual kind: nice -20.
    BeforeOthers,
    /// It goes before all others: SCHED_FIFO.
    RealTime,
}

/// Who says when an answer was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampedBy {
    /// The generator, by its clock, once it has been woken and has read the answer.
    #[default]
    Generator,
    /// The kernel, as it received the packet. The generator's own waking is not in it.
    Kernel,
}

/// How late something was, in nanoseconds; 0 where nothing was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// The median.
    pub p50_ns: u64,
    /// 99 % were at most this late.
    pub p99_ns: u64,
    /// The latest.
    pub max_ns: u64,
}

/// The generator's own lag as a share of the response times: 0 where every request left on time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LagShare {
    /// Of the mean.
    pub mean: f64,
    /// Of the median.
    pub p50: f64,
    /// Of the 99th percentile.
    pub p99: f64,
}

impl RunSummary {
    /// How many requests have a response time: those with a complete answer, right or wrong.
    pub fn responses(&self) -> u64 {
        self.count(Outcome::Answered) + self.count(Outcome::Wrong)
    }

    /// How many requests ended with this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.ended[outcome as usize]
    }

    /// CPU time of the generator's thread for each request that was due, in seconds.
    pub fn cpu_per_request_s(&self) -> f64 {
        self.generator_cpu_s / self.sent.max(1) as f64
    }

    /// The share of one core that the generator's thread used.
    pub fn core_share(&self) -> f64 {
        self.generator_cpu_s / self.wall_s.max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A summary as version 1 of `answer.json` has it.
    #[test]
    fn a_summary_of_an_older_record_with_doubts_still_opens() {
        let old = r#"{"start_ns":5,"wall_s":2.0,"sending_s":1.5,"sent":3,"ended":[1,0,0,0,2],
            "lag":{"p50_ns":1,"p99_ns":2,"max_ns":3},"waited_for_connection":1,"own_failures":0,"max_in_flight":2,
            "generator_cpu_s":0.1,
            "doubts":[{"unanswered":{"count":2}},{"late":{"lag_p99_ns":900000,"share":0.3}}]}"#;
        let summary: RunSummary = serde_json::from_str(old).unwrap();
        assert_eq!((summary.sent, summary.responses(), summary.turned_away), (3, 1, 0));
        let text = serde_json::to_string(&summary).unwrap();
        assert!(!text.contains("doubts"), "{text}");
        assert_eq!(serde_json::from_str::<RunSummary>(&text).unwrap(), summary);
    }
}
