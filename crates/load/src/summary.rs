//! The figures of a run. They carry no judgement: the generator is judged by the analysis of records.

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
    /// The time from the start until the last request was due, in seconds.
    pub sending_s: f64,
    /// Requests that were due.
    pub sent: u64,
    /// The counts of the requests by outcome, in the order of [`Outcome::ALL`]. They add up to `sent`.
    pub ended: [u64; 5],
    /// The number of complete answers by status, in a protocol whose answers have one, such as HTTP.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<u16, u64>,
    /// How late requests with a free connection were begun: the generator's own delay.
    pub lag: Lag,
    /// The share of that lag in the response times.
    #[serde(default)]
    pub lag_share: LagShare,
    /// How late requests were passed to the kernel, including waiting for a connection and opening it.
    #[serde(default)]
    pub send_lag: Lag,
    /// The number of requests that had to wait for a free connection, whether or not they were begun.
    pub waited_for_connection: u64,
    /// The wait of those that were begun.
    #[serde(default)]
    pub wait_for_connection: Lag,
    /// The number of requests that ended unsent because too many waited for a connection already.
    #[serde(default)]
    pub turned_away: u64,
    /// The number of connections that were opened.
    #[serde(default)]
    pub connections_opened: u64,
    /// The number of connections that failed because this side had no port or file left.
    pub own_failures: u64,
    /// The reason of the first refused request, if it is known.
    #[serde(default)]
    pub refused_because: Option<String>,
    /// The most requests in flight at once; with several threads, the sum of the most of each.
    pub max_in_flight: u64,
    /// The sends: their rate and regularity.
    #[serde(default)]
    pub sends: Sends,
    /// Both sides of Little's law.
    #[serde(default)]
    pub little: Little,
    /// CPU time of the generator's threads, in seconds.
    pub generator_cpu_s: f64,
    /// Other conditions of the generator's thread. With several threads, the lowest priority, the longest wait for a
    /// processor and the sums of their switches.
    #[serde(default)]
    pub thread: ThreadUse,
    /// The figures of each thread; empty if one thread sent all requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadFigures>,
    /// The agents that sent the requests; empty if this process did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFigures>,
}

/// The share of an agent in a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentFigures {
    /// The agent's name.
    pub name: String,
    /// The agent's requests that were due.
    pub sent: u64,
    /// The offset of the agent's clock was known to within this, in seconds: its instants may be off by that much.
    pub clock_bound_s: f64,
    /// How far the agent's clock moved away from that of this machine during the run, in seconds, as far as that was known.
    pub clock_drift_s: f64,
}

/// The figures of one of several threads of a generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadFigures {
    /// The thread's requests that were due.
    pub sent: u64,
    /// From the start until the thread's last request was due or answered, drain included, in seconds.
    pub wall_s: f64,
    /// The thread's CPU time, in seconds.
    pub cpu_s: f64,
    /// How late the thread began requests with a free connection.
    pub lag: Lag,
    /// The share of that lag in the response times of the thread's requests.
    pub lag_share: LagShare,
    /// Other conditions of the thread.
    pub thread: ThreadUse,
}

/// Both sides of Little's law, L = λW, times the length of the run. They are counted separately: a request that
/// the ledger loses, or that ends twice, makes them differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Little {
    /// The number of requests that were due and had not ended, integrated over time, in request-seconds.
    pub in_system_s: f64,
    /// The sum over all requests of the time from the instant it was due until it ended, in seconds.
    pub responses_s: f64,
}

/// The conditions of the generator's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// The way in which the thread waited for the next send.
    pub timing: Timing,
    /// The thread's priority.
    pub priority: Priority,
    /// The core that it was pinned to, if any.
    pub core: Option<u32>,
    /// The source of the stamps of answers.
    pub stamped_by: StampedBy,
    /// How long the thread was ready to run while another thread had its core, in seconds; `None` if the kernel
    /// keeps no such account.
    pub run_queue_s: Option<f64>,
    /// The number of times that the thread went to sleep.
    pub voluntary_switches: Option<u64>,
    /// The number of times that the thread was preempted.
    pub involuntary_switches: Option<u64>,
}

/// The priority of the generator's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// The ordinary one.
    #[default]
    Usual,
    /// Before other ordinary threads: nice -20.
    BeforeOthers,
    /// Before all others: SCHED_FIFO.
    RealTime,
}

/// The source of the stamps of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampedBy {
    /// The generator, by its clock, once it was woken and has read the answer.
    #[default]
    Generator,
    /// The kernel, when it received the packet. This excludes the generator's own wakeup.
    Kernel,
}

/// A distribution of delays, in nanoseconds; 0 if there were none.
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
    /// The share of the mean.
    pub mean: f64,
    /// The share of the median.
    pub p50: f64,
    /// The share of the 99th percentile.
    pub p99: f64,
}

impl RunSummary {
    /// The number of requests with a response time: those with a complete answer, right or wrong.
    pub fn responses(&self) -> u64 {
        self.count(Outcome::Answered) + self.count(Outcome::Wrong)
    }

    /// The number of requests with this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        self.ended[outcome as usize]
    }

    /// CPU time of the generator's threads for each request that was due, in seconds.
    pub fn cpu_per_request_s(&self) -> f64 {
        self.generator_cpu_s / self.sent.max(1) as f64
    }

    /// The share of one core that the generator's thread used, or the busiest of its threads.
    pub fn core_share(&self) -> f64 {
        let share = |cpu_s: f64, wall_s: f64| cpu_s / wall_s.max(1e-9);
        let of_threads = self.threads.iter().map(|one| share(one.cpu_s, one.wall_s)).reduce(f64::max);
        of_threads.unwrap_or_else(|| share(self.generator_cpu_s, self.wall_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A summary in the format of version 1 of `answer.json`.
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
