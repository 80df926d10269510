//! The live state of a run, for readers in other processes: `live.json` in its folder.
//!
//! The file is replaced atomically about twice a second, and its size is limited: it has a ring of samples for the last minutes,
//! and a line for each of the last trials. It remains when the run is over. A killed run cannot record its end; but the file
//! identifies its process uniquely, so that a reader can check whether the process still exists.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::folder::read_json;
use kendall_files::replace;
use kendall_record::Outcome;
use kendall_record::RecordError;

/// The name of the file, in a run's folder.
pub const LIVE: &str = "live.json";
/// The number of newest samples that are kept: five minutes at two samples a second.
pub const MOST_SAMPLES: usize = 600;
/// The number of newest finished trials that are kept.
pub const MOST_TRIALS: usize = 200;
/// The outcomes of failed requests: [`Outcome::ALL`] except its first, in the same order.
pub const FAILURES: usize = Outcome::ALL.len() - 1;

/// The live state of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// The process that runs it.
    pub process: Process,
    /// The state that the run has recorded.
    pub state: LiveState,
    /// The current activity, where it is not a trial.
    pub doing: String,
    /// The number of planned trials, as far as is known.
    pub trials_planned: u64,
    /// The number of finished trials.
    pub trials_done: u64,
    /// The time left, in seconds, where that is known.
    pub left_s: Option<f64>,
    /// The time since the process started, in seconds.
    pub elapsed_s: f64,
    /// The current trial.
    pub trial: Option<LiveTrial>,
    /// The last minutes.
    pub samples: Samples,
    /// The last finished trials.
    pub trials: VecDeque<TrialSeen>,
}

/// The first fields of the live state, for readers that need no more.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Head {
    /// The process of the run, as in [`Live`].
    pub process: Process,
    /// The state of the run, as in [`Live`].
    pub state: LiveState,
    /// The number of planned trials, as in [`Live`].
    pub trials_planned: u64,
    /// The number of finished trials, as in [`Live`].
    pub trials_done: u64,
}

/// The state of a run, as the run recorded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveState {
    /// The run is running, if its process still exists.
    Running,
    /// Every trial is done.
    Done,
    /// The run was stopped; finished trials are kept.
    Interrupted,
    /// The run failed, for this reason.
    Failed(String),
}

/// A trial that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveTrial {
    /// The trial's number in the order of running.
    pub number: u64,
    /// The factors' values: `rate=20%, length=3`.
    pub name: String,
    /// The start, in seconds since the process started.
    pub began_s: f64,
    /// The expected length, in seconds.
    pub expected_s: f64,
    /// The rate of its load; `None` for a closed population, and where it is not known yet.
    pub offered_per_s: Option<f64>,
    /// The number of requests that have become due.
    pub sent: u64,
    /// The number of ended requests by outcome, in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
}

/// A finished trial, as one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialSeen {
    /// The trial's number in the order of running.
    pub number: u64,
    /// The factors' values.
    pub name: String,
    /// The name of its folder under `trials`.
    pub folder: String,
    /// The end, in seconds since the process started.
    pub ended_s: f64,
    /// Requests that were due.
    pub sent: u64,
    /// The number of requests without a right answer.
    pub failed: u64,
    /// Right answers per second.
    pub throughput_per_s: Option<f64>,
    /// The mean response time, in seconds.
    pub mean_s: Option<f64>,
    /// The median response time, in seconds.
    pub p50_s: Option<f64>,
    /// The 90th percentile of the response time, in seconds.
    pub p90_s: Option<f64>,
    /// The 99th percentile of the response time, in seconds.
    pub p99_s: Option<f64>,
    /// The reasons to doubt its numbers; empty without any.
    pub doubts: Vec<String>,
}

/// Samples as columns of equal length, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// The number of older samples that were dropped.
    pub first: u64,
    /// The instant, in seconds since the process started.
    pub at_s: VecDeque<f64>,
    /// Requests that became due, per second since the sample before.
    pub sent_per_s: VecDeque<f64>,
    /// Requests that were answered rightly, per second since the sample before.
    pub answered_per_s: VecDeque<f64>,
    /// Requests on a connection.
    pub in_flight: VecDeque<u64>,
    /// Requests that wait for a connection.
    pub waiting: VecDeque<u64>,
    /// The median response time of the requests answered since the sample before, in seconds; `None` where there were none.
    pub p50_s: VecDeque<Option<f64>>,
    /// The 90th percentiles of the response time, in seconds.
    pub p90_s: VecDeque<Option<f64>>,
    /// The 99th percentiles of the response time, in seconds.
    pub p99_s: VecDeque<Option<f64>>,
    /// Requests that failed since the sample before: wrong, refused, timed out, unanswered.
    pub failed: VecDeque<[u64; FAILURES]>,
    /// Cores that the server used since the sample before, where it can be watched.
    pub server_cores: VecDeque<Option<f64>>,
    /// Cores that the generator used.
    pub generator_cores: VecDeque<Option<f64>>,
}

/// One sample, with the parts of [`Samples`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "each is the column of its name")]
pub struct Sample {
    pub at_s: f64,
    pub sent_per_s: f64,
    pub answered_per_s: f64,
    pub in_flight: u64,
    pub waiting: u64,
    pub p50_s: Option<f64>,
    pub p90_s: Option<f64>,
    pub p99_s: Option<f64>,
    pub failed: [u64; FAILURES],
    pub server_cores: Option<f64>,
    pub generator_cores: Option<f64>,
}

/// Calls a function for each column.
macro_rules! each_column {
    ($samples:expr, $column:ident => $what:expr) => {{
        each_column!(@ $samples, $column, $what;
            at_s, sent_per_s, answered_per_s, in_flight, waiting, p50_s, p90_s, p99_s, failed, server_cores, generator_cores);
    }};
    (@ $samples:expr, $column:ident, $what:expr; $($name:ident),*) => {
        $({ let $column = &mut $samples.$name; $what; })*
    };
}

impl Samples {
    /// The number of samples here.
    pub fn len(&self) -> usize {
        self.at_s.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.at_s.is_empty()
    }

    /// The number of samples ever added: the number of the next one.
    pub fn end(&self) -> u64 {
        self.first + self.len() as u64
    }

    /// Adds the newest sample; drops the oldest where there are too many.
    pub fn push(&mut self, sample: Sample) {
        macro_rules! push {
            ($($name:ident),*) => { $(self.$name.push_back(sample.$name);)* };
        }
        push!(at_s, sent_per_s, answered_per_s, in_flight, waiting, p50_s, p90_s, p99_s);
        push!(failed, server_cores, generator_cores);
        if self.len() > MOST_SAMPLES {
            self.drop_first(self.len() - MOST_SAMPLES);
        }
    }

    /// The samples from this number on, as far as they are kept.
    #[must_use]
    pub fn since(&self, number: u64) -> Self {
        let mut newer = self.clone();
        newer.drop_first(usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX));
        newer
    }

    fn drop_first(&mut self, count: usize) {
        let count = count.min(self.len());
        each_column!(self, column => drop(column.drain(..count)));
        self.first += count as u64;
    }

    /// Whether all columns have the same length, within the limit of the file, and the samples have numbers.
    fn is_even(&mut self) -> bool {
        let length = self.len();
        let mut even = length <= MOST_SAMPLES && self.first.checked_add(length as u64).is_some();
        each_column!(self, column => even &= column.len() == length);
        even
    }
}

impl Live {
    /// Replaces the live state in a run's folder.
    ///
    /// # Errors
    /// Fails where the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), RecordError> {
        let path = folder.join(LIVE);
        let text = serde_json::to_vec(self).map_err(|error| RecordError::write(&path)(error.into()))?;
        replace(&path, &text).map_err(RecordError::write(&path))
    }

    /// Reads the live state in a run's folder.
    ///
    /// # Errors
    /// Fails where the file cannot be read or is of another version.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(LIVE);
        let mut live: Self = read_json(&path)?;
        if !live.samples.is_even() {
            let why = "the columns of its samples differ in length, or its samples have no numbers".into();
            return Err(RecordError::Format { path, what: "the state file of a run", why });
        }
        live.trials.truncate(MOST_TRIALS);
        Ok(live)
    }

    /// Whether the run is running: its state says so, and its process exists.
    pub fn is_running(&self) -> bool {
        self.state == LiveState::Running && self.process.is_there()
    }
}

impl Head {
    /// Reads the live state in a run's folder.
    ///
    /// # Errors
    /// Fails where the file cannot be read or is of another version.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        read_json(&folder.join(LIVE))
    }

    /// Whether the run is running: its state says so, and its process exists.
    pub fn is_running(&self) -> bool {
        self.state == LiveState::Running && self.process.is_there()
    }
}

/// The identity of a process, distinct from earlier processes with the same number and from those of other machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The process number.
    pub pid: u32,
    /// The start of the process, in clock ticks since the machine started (proc(5), field 22 of `/proc/PID/stat`).
    pub started_ticks: u64,
    /// The start of the machine that it runs on, by the kernel's random name for it.
    pub boot: String,
}

impl Process {
    /// This process. Where the kernel does not report its start, it counts as ended.
    pub fn here() -> Self {
        let pid = std::process::id();
        let started_ticks = started_ticks(pid).unwrap_or_default();
        Self { pid, started_ticks, boot: boot().unwrap_or_default() }
    }

    /// Whether the process exists on this machine and has not ended.
    pub fn is_there(&self) -> bool {
        boot().is_some_and(|boot| boot == self.boot) && started_ticks(self.pid) == Some(self.started_ticks)
    }
}

/// The start of a process, if it exists; a zombie counts as ended.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name, field 2, may hold blanks; it ends at the last bracket.
    let mut after_name = stat.rsplit_once(')')?.1.split_whitespace();
    let state = after_name.next()?;
    let started = after_name.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(started)
}

fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn live() -> Live {
        Live {
            process: Process::here(),
            state: LiveState::Running,
            doing: String::new(),
            trials_planned: 4,
            trials_done: 1,
            left_s: Some(3.5),
            elapsed_s: 1.25,
            trial: None,
            samples: Samples::default(),
            trials: VecDeque::new(),
        }
    }

    #[test]
    fn it_is_read_back_as_written_and_damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut live = live();
        for at in 0..3 {
            live.samples.push(Sample { at_s: f64::from(at) * 0.5, p99_s: Some(0.1), ..Sample::default() });
        }
        live.write(folder.path()).unwrap();
        assert_eq!(Live::read(folder.path()).unwrap(), live);
        assert!(live.is_running());
        live.samples.waiting.pop_back();
        live.write(folder.path()).unwrap();
        assert!(Live::read(folder.path()).unwrap_err().to_string().contains("differ in length"));
        live.samples = Samples { first: u64::MAX, ..Samples::default() };
        live.samples.push(Sample::default());
        live.write(folder.path()).unwrap();
        assert!(Live::read(folder.path()).unwrap_err().to_string().contains("have no numbers"));
    }

    #[test]
    fn the_ring_keeps_the_newest_and_their_numbers() {
        let mut samples = Samples::default();
        let taken = MOST_SAMPLES as u64 + 40;
        for number in 0..taken {
            samples.push(Sample { in_flight: number, ..Sample::default() });
        }
        assert_eq!((samples.len(), samples.first, samples.end()), (MOST_SAMPLES, 40, taken));
        let newer = samples.since(taken - 2);
        assert_eq!(newer.in_flight, [taken - 2, taken - 1]);
        assert_eq!((newer.first, newer.end()), (taken - 2, taken));
        assert_eq!(samples.since(0), samples, "who is too far behind gets all that is left");
        assert!(samples.since(taken + 9).is_empty());
    }

    #[test]
    fn the_file_stays_small_however_long_a_run_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut live = live();
        for at in 0..2 * MOST_SAMPLES as u32 {
            live.samples.push(Sample {
                at_s: f64::from(at) * 0.5,
                sent_per_s: 19_870.0,
                answered_per_s: 19_860.0,
                in_flight: 123,
                p50_s: Some(0.001_234),
                p90_s: Some(0.002_345),
                p99_s: Some(0.012_34),
                server_cores: Some(1.234),
                generator_cores: Some(0.123_4),
                ..Sample::default()
            });
        }
        let began = std::time::Instant::now();
        for _ in 0..100 {
            live.write(folder.path()).unwrap();
        }
        let bytes = fs::metadata(folder.path().join(LIVE)).unwrap().len();
        println!("{bytes} bytes, written in {:?}", began.elapsed() / 100);
        assert!(bytes < 100_000, "{bytes}");
    }

    #[test]
    fn a_process_is_told_from_another_with_its_number() {
        let here = Process::here();
        assert!(here.is_there());
        assert!(!Process { started_ticks: here.started_ticks + 1, ..here.clone() }.is_there());
        assert!(!Process { boot: "another".into(), ..here.clone() }.is_there());
        // A zombie counts as ended, even before its parent has waited for it.
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let process = Process { pid: child.id(), started_ticks: started_ticks(child.id()).unwrap(), ..here };
        assert!(process.is_there());
        child.kill().unwrap();
        while fs::read_to_string(format!("/proc/{}/stat", child.id()))
            .is_ok_and(|stat| !stat.contains(") Z "))
        {}
        assert!(!process.is_there());
        child.wait().unwrap();
    }
}
