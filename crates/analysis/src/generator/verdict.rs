//! The verdict on the generator as data, as in a trial's `answer.json`.

use kendall_load::Timing;
use serde::{Deserialize, Serialize};

use crate::disturbance::{Stalls, Surroundings};

/// The verdict on what limited a run, with its checks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GeneratorVerdict {
    /// Whether the run can be trusted.
    pub trust: Trust,
    /// Every check, held or not.
    pub checks: Vec<Check>,
    /// The reasons why the generator limited the run, each as a clause; none where it did not.
    pub limits: Vec<Limit>,
    /// Other reasons to doubt the run.
    pub doubts: Vec<Doubt>,
    /// Faults of the generator that are too small to affect the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// Whether a run can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Every check held.
    #[default]
    Trustworthy,
    /// The generator kept up, but other causes may have changed the measurement.
    Doubtful,
    /// The figures describe the generator as much as the server.
    GeneratorLimited,
}

/// A property of the load that a run checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checked {
    /// The rate of the sends, compared with that of the schedule.
    Rate,
    /// The lag of requests with a free connection.
    Lag,
    /// The share of a core that the generator used.
    Processor,
    /// The time for which the generator was ready to run and waited for a core.
    RunQueue,
    /// The law of the gaps between sends.
    Gaps,
    /// How the sends bunch.
    Dispersion,
    /// Little's law, over the generator's own books.
    Little,
    /// Waits for a free connection.
    Connections,
}

/// One check of a run: the requested value and the measured one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The property.
    pub what: Checked,
    /// The requested value, in words.
    pub asked: String,
    /// The measured value, in words.
    pub found: String,
    /// Whether the property held; `None` where there are too few requests, or nothing was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
}

/// A reason why a generator limited its own measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Requests left late although a connection was free.
    Late {
        /// 99 % left at most this late, in seconds.
        lag_p99_s: f64,
        /// The share that the lag has of the mean, the median or the 99th percentile of the response times, whichever is largest.
        #[serde(default)]
        share: f64,
    },
    /// The generator's thread had hardly any time to spare.
    Busy {
        /// The share of one core that it used.
        core_share: f64,
    },
    /// Other programs kept the generator from its core.
    Waited {
        /// The share of the run that it was ready and did not run.
        share: f64,
    },
    /// The rate of the sends differs from the rate that was due.
    Rate {
        /// Sends over what was due.
        ratio: f64,
    },
    /// The gaps between sends follow another law than was requested.
    Gaps {
        /// The coefficient of variation of the gaps.
        cv: f64,
        /// The coefficient of variation of the requested law.
        asked: f64,
    },
    /// The sends were more or less bunched than the requested law makes them.
    Dispersion {
        /// The index of dispersion of the sends per millisecond.
        index: f64,
        /// The index of dispersion of the requested law.
        asked: f64,
    },
    /// Connections failed, and requests with them, because it had no port or file left.
    OwnFailures {
        /// The number of requests that waited.
        count: u64,
    },
    /// The generator's counts contradict Little's law.
    Little {
        /// Arrival rate × response over the number present, less 1.
        gap: f64,
    },
}

/// An imperfection of the generator that shows in the figures and does not break them, with its remedy. Its sentence is its `Display`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remark {
    /// Requests left late although a connection was free.
    Late {
        /// 99 % left at most this late, in seconds.
        lag_p99_s: f64,
        /// The share that the lag has of the mean, the median or the 99th percentile of the response times, whichever is largest.
        share: f64,
        /// How the generator waited for the next send.
        timing: Timing,
    },
}

/// A reason to doubt a run that does not lie in its generator. Its sentence is its `Display`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Other programs or the host took a part of the machine.
    Disturbed(Surroundings),
    /// The machine stalled: a thread that only had to wake woke late.
    Stalled(Stalls),
    /// Requests waited in the generator for a free connection.
    Connections {
        /// The number of requests that waited.
        waited: u64,
        /// The number of requests that were sent.
        sent: u64,
        /// The cause of the wait, if something other than a lack of connections explains it.
        #[serde(default)]
        cause: WaitCause,
    },
    /// Requests ended unsent, because too many waited for a connection already.
    TurnedAway {
        /// The number of requests.
        count: u64,
    },
    /// Requests were still out when the run ended.
    Unanswered {
        /// The number of requests.
        count: u64,
    },
    /// The generator took more of a full machine than the server.
    Crowding(Crowding),
}

/// The reason why requests waited for a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// No other cause was measured: more connections may help.
    #[default]
    Connections,
    /// Other programs had the machine, or it stalled: more connections do not help.
    Disturbance,
}

/// A generator that has more of a full machine than the server, and than all other programs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crowding {
    /// The cores that the generator used.
    pub used_cores: f64,
    /// The number of cores that the server used.
    pub server_cores: f64,
}

/// The verdict on the generator's process, for the search for a server's bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessJudged {
    /// The generator sent on schedule and had time to spare.
    Sound,
    /// The generator sent so late that the lag affects the response times.
    Late,
    /// The generator's thread had hardly any time to spare.
    Busy,
}
