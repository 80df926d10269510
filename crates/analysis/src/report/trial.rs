//! One trial: the requests sent, their outcomes, and the reasons to trust or doubt it.

use kendall_record::Outcome;
use serde::{Deserialize, Serialize};

/// One trial: the requests sent, their outcomes, and the reasons to trust or doubt it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialLine {
    /// The name of its folder: "001-rate=20,length=3".
    pub id: String,
    /// The trial's point, as an index into `Report::points`; `None` if no request was answered.
    pub point: Option<usize>,
    /// The seed of the trial's workload and arrivals. Trials with the same seed had the same requests.
    pub seed: u64,
    /// The trial's own mean response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_s: Option<f64>,
    /// The trial's own 99th percentile of the response time, if there were enough requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p99_s: Option<f64>,
    /// The trial's own mean of weight × response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighted_response_s: Option<f64>,
    /// The counts of the trial's requests by outcome.
    pub counts: Counts,
    /// Mean number in the system over throughput × mean response, less 1 (Little's law says 0); `None` where the
    /// trial did not drain.
    pub little_gap: Option<f64>,
    /// 99 % of the requests were sent at most this long after they were due.
    pub send_lag_p99_s: Option<f64>,
    /// Processor time of the server per second of the trial, in cores.
    pub server_cpu_cores: Option<f64>,
    /// The warm-up that its answer excludes; `None` without a warm-up, or if the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// The reason why the generator or the run is not to be trusted, each as a clause: "a core was busy at 97
    /// %".
    pub doubts: Vec<String>,
    /// The reasons why the trial shows the generator as much as the server, each as a clause; empty where it
    /// does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Whether another attempt of the same trial counts in its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replaced: bool,
}

/// The warm-up that the answer of a trial leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Requests that were due before this, in nanoseconds since the start of the trial.
    pub until_ns: i64,
    /// The number of requests left out.
    pub requests: u64,
    /// The source of the length.
    pub by: WarmupBy,
}

/// The source of a warm-up's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmupBy {
    /// The experiment sets it.
    Set,
    /// MSER-5 found where it ends.
    Found,
    /// There was not enough data to find the end of the warm-up, and nothing is left out.
    Untold,
}

/// How the requests of a trial ended, the warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests that were due.
    pub sent: u64,
    /// Complete and right answers.
    pub answered: u64,
    /// Complete and wrong answers.
    pub wrong: u64,
    /// Turned away by the server.
    pub refused: u64,
    /// No complete answer within the time allowed for one request.
    pub timed_out: u64,
    /// Still out when the trial ended.
    pub unanswered: u64,
}

impl Counts {
    /// The number of requests that ended so.
    pub fn of(&self, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Answered => self.answered,
            Outcome::Wrong => self.wrong,
            Outcome::Refused => self.refused,
            Outcome::TimedOut => self.timed_out,
            Outcome::Unanswered => self.unanswered,
        }
    }

    /// Counts one request that was due and ended so.
    pub fn add(&mut self, outcome: Outcome) {
        self.sent += 1;
        *match outcome {
            Outcome::Answered => &mut self.answered,
            Outcome::Wrong => &mut self.wrong,
            Outcome::Refused => &mut self.refused,
            Outcome::TimedOut => &mut self.timed_out,
            Outcome::Unanswered => &mut self.unanswered,
        } += 1;
    }

    /// The requests that ended in some way. Each ends in exactly one, so this is `sent`.
    pub fn ended(&self) -> u64 {
        Outcome::ALL.iter().map(|&outcome| self.of(outcome)).sum()
    }
}
