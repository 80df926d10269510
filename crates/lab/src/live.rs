//! The state of a run while it is under way, written to the run's folder for `kendall web`, which reads it in another process.
//!
//! A separate thread at low priority reads twice a second what the generator counts anyway, and replaces one small file. Neither
//! the generator nor the order of trials ever waits for it. If the file cannot be written, the run continues.

use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_analysis::{Measured, TrialResult};
use kendall_archive::live::{
    FAILURES, Live as LiveReport, LiveState, LiveTrial, MOST_TRIALS, Process, Sample, Samples, TrialSeen,
};
use kendall_load::Progress;
use kendall_record::Outcome;

use crate::server::{cpu_with_children_s, own_cpu_s};

/// How often the file is replaced.
const EVERY: Duration = Duration::from_millis(500);

/// Publishes the state of a run. Dropping it before the end publishes that the run was interrupted.
#[derive(Debug)]
pub struct Live {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    began: Instant,
    over: AtomicBool,
    now: Mutex<Now>,
}

/// What the run has published.
#[derive(Debug)]
struct Now {
    /// Everything except the samples.
    live_report: LiveReport,
    /// The expected time of all trials that are not done.
    left: Option<Duration>,
    watched: Option<CurrentTrial>,
    newest: Option<Sample>,
}

/// The trial that is under way, as the writer reads it.
#[derive(Clone, Debug)]
struct CurrentTrial {
    progress: Arc<Progress>,
    began: Instant,
    expected: Duration,
    server: Option<u32>,
}

impl Live {
    /// Starts to publish in a run's folder; this many trials are done already.
    pub fn start(folder: PathBuf, trials_done: usize) -> Self {
        let live_report = LiveReport {
            process: Process::here(),
            state: LiveState::Running,
            doing: String::new(),
            trials_planned: trials_done as u64,
            trials_done: trials_done as u64,
            left_s: None,
            elapsed_s: 0.0,
            trial: None,
            samples: Samples::default(),
            trials: Default::default(),
        };
        let now = Now { live_report, left: None, watched: None, newest: None };
        let shared = Arc::new(Shared {
            folder,
            began: Instant::now(),
            over: AtomicBool::new(false),
            now: Mutex::new(now),
        });
        let writer = thread::Builder::new().name("live".into()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                // Lowering the priority can fail; the thread then runs at the default priority.
                let _ = rustix::process::setpriority_process(None, 19);
                write(&shared);
            }
        });
        Self { shared, writer: writer.ok() }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.shared.now()
    }

    /// Sets the number of trials to run now, and their expected time.
    pub(crate) fn plan(&self, left: usize, expected: Duration) {
        let mut now = self.now();
        now.live_report.trials_planned = now.live_report.trials_done + left as u64;
        now.left = Some(expected);
    }

    /// Sets what the run is doing now, where that is not a trial.
    pub(crate) fn set_activity(&self, doing: &str) {
        doing.clone_into(&mut self.now().live_report.doing);
    }

    /// The newest sample, for a reader in the same process. Response times can be taken only once, and this takes them.
    pub fn newest(&self) -> Option<Sample> {
        self.now().newest
    }

    /// Starts a trial.
    pub(crate) fn begin(&self, number: usize, name: &str, expected: Duration, progress: &Arc<Progress>) {
        let began_s = self.shared.began.elapsed().as_secs_f64();
        let mut now = self.now();
        now.live_report.doing.clear();
        now.live_report.trial = Some(LiveTrial {
            number: number as u64,
            name: name.trim().to_owned(),
            began_s,
            expected_s: expected.as_secs_f64(),
            offered_per_s: None,
            sent: 0,
            outcomes: Default::default(),
        });
        let progress = Arc::clone(progress);
        now.watched = Some(CurrentTrial { progress, began: Instant::now(), expected, server: None });
    }

    /// Sets the process of the trial's server, which is ready, and the rate of the load.
    pub(crate) fn loaded(&self, server: Option<u32>, offered_per_s: Option<f64>) {
        let mut now = self.now();
        if let Some(trial) = &mut now.live_report.trial {
            trial.offered_per_s = offered_per_s;
        }
        if let Some(watched) = &mut now.watched {
            watched.server = server;
        }
    }

    /// Ends a trial, whose record is in this folder.
    pub(crate) fn done(&self, result: &TrialResult, folder: &str, expected: Duration) {
        let ended_s = self.shared.began.elapsed().as_secs_f64();
        let mut now = self.now();
        now.watched = None;
        now.live_report.trial = None;
        now.live_report.trials_done += 1;
        now.left = now.left.map(|left| left.saturating_sub(expected));
        now.live_report.trials.push_back(described(result, folder, ended_s));
        if now.live_report.trials.len() > MOST_TRIALS {
            now.live_report.trials.pop_front();
        }
    }

    /// Ends the run with this result.
    pub fn end(&mut self, state: LiveState) {
        let Some(writer) = self.writer.take() else { return };
        let mut now = self.now();
        now.live_report.state = state;
        now.live_report.doing.clear();
        now.live_report.trial = None;
        now.watched = None;
        now.left = None;
        drop(now);
        self.shared.over.store(true, Ordering::Relaxed);
        writer.thread().unpark();
        // The thread cannot panic, and if it did, the run would not suffer.
        let _ = writer.join();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end(LiveState::Interrupted);
    }
}

/// Describes a trial in one line.
fn described(result: &TrialResult, folder: &str, ended_s: f64) -> TrialSeen {
    let answer = match &result.measured {
        Measured::Answer(answer) => Some(answer),
        Measured::NoAnswer(_) => None,
    };
    let quantile_s = |p| Some(answer?.response.quantile(p)?.value);
    let levels: Vec<String> = result.levels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let limits = result.verdict.limits.iter().map(|limit| format!("limited by the generator: {limit}"));
    let doubts = result.verdict.doubts.iter().map(ToString::to_string);
    let no_answer = match &result.measured {
        Measured::Answer(_) => None,
        Measured::NoAnswer(why) => Some(why.clone()),
    };
    TrialSeen {
        number: result.number as u64,
        name: levels.join(", "),
        folder: folder.into(),
        ended_s,
        sent: result.run.sent,
        failed: result.run.sent - result.run.ended[Outcome::Answered as usize].min(result.run.sent),
        throughput_per_s: answer.map(|answer| answer.throughput_per_s.value),
        mean_s: answer.map(|answer| answer.response.mean_s.value),
        p50_s: quantile_s(0.5),
        p90_s: quantile_s(0.9),
        p99_s: quantile_s(0.99),
        doubts: limits.chain(doubts).chain(result.hopeless.clone()).chain(no_answer).collect(),
    }
}

impl Shared {
    /// The run may have panicked while it held the lock; what it published before is still right.
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces the file until the run is over, and then once more.
fn write(shared: &Shared) {
    let mut samples = Samples::default();
    let mut before = None;
    loop {
        let over = shared.over.load(Ordering::Relaxed);
        let (mut live_report, watched, left) = {
            let now = shared.now();
            (now.live_report.clone(), now.watched.clone(), now.left)
        };
        live_report.elapsed_s = shared.began.elapsed().as_millis() as f64 / 1e3;
        match (&watched, &mut live_report.trial) {
            (Some(watched), Some(trial)) => {
                let counts = Counts::of(watched, live_report.elapsed_s, trial.number);
                if let Some(sample) = counts.since(before.as_ref(), trial.began_s, watched) {
                    samples.push(sample);
                    shared.now().newest = Some(sample);
                }
                trial.sent = counts.sent;
                trial.outcomes = counts.outcomes;
                before = Some(counts);
            }
            _ => before = None,
        }
        let spent = watched.map_or(Duration::ZERO, |watched| watched.began.elapsed().min(watched.expected));
        live_report.left_s = left.map(|left| left.saturating_sub(spent).as_secs_f64().ceil());
        live_report.samples = mem::take(&mut samples);
        // A full disk stops the record, which reports it; this file is not worth stopping the run for.
        let _ = live_report.write(&shared.folder);
        samples = live_report.samples;
        if over {
            return;
        }
        thread::park_timeout(EVERY);
    }
}

/// The counts at one instant of a trial.
#[derive(Clone, Debug)]
struct Counts {
    trial: u64,
    at_s: f64,
    sent: u64,
    outcomes: [u64; Outcome::ALL.len()],
    server: Option<(u32, f64)>,
    own_cpu_s: Option<f64>,
}

impl Counts {
    fn of(watched: &CurrentTrial, at_s: f64, trial: u64) -> Self {
        Self {
            trial,
            at_s,
            sent: watched.progress.sent.load(Ordering::Relaxed),
            outcomes: Outcome::ALL.map(|outcome| watched.progress.count(outcome)),
            server: watched.server.and_then(|pid| Some((pid, cpu_with_children_s(pid)?))),
            own_cpu_s: own_cpu_s(),
        }
    }

    /// The difference to the counts before, or to the start of the trial; `None` where no time has passed.
    fn since(&self, before: Option<&Self>, began_s: f64, watched: &CurrentTrial) -> Option<Sample> {
        let before = before.filter(|before| before.trial == self.trial);
        let seconds = self.at_s - before.map_or(began_s, |before| before.at_s);
        if seconds <= 0.0 {
            return None;
        }
        let outcomes_before = before.map_or([0; Outcome::ALL.len()], |before| before.outcomes);
        let ended: [u64; Outcome::ALL.len()] =
            std::array::from_fn(|i| self.outcomes[i].saturating_sub(outcomes_before[i]));
        let sent = self.sent.saturating_sub(before.map_or(0, |before| before.sent));
        let cores = |now_s: f64, before_s: f64| tidy((now_s - before_s).max(0.0) / seconds);
        let server = self.server.zip(before.and_then(|before| before.server));
        let server_cores = server
            .filter(|((pid, _), (before, _))| pid == before)
            .map(|((_, now_s), (_, before_s))| cores(now_s, before_s));
        let own = self.own_cpu_s.zip(before.and_then(|before| before.own_cpu_s));
        let responses = watched.progress.take_responses().filter(|responses| !responses.is_empty());
        let quantile_s =
            |p| responses.as_ref().map(|responses| tidy(responses.value_at_quantile(p) as f64 / 1e9));
        Some(Sample {
            at_s: self.at_s,
            sent_per_s: tidy(sent as f64 / seconds),
            answered_per_s: tidy(ended[0] as f64 / seconds),
            in_flight: watched.progress.in_flight.load(Ordering::Relaxed),
            waiting: watched.progress.waiting.load(Ordering::Relaxed),
            p50_s: quantile_s(0.5),
            p90_s: quantile_s(0.9),
            p99_s: quantile_s(0.99),
            failed: std::array::from_fn::<_, FAILURES, _>(|i| ended[i + 1]),
            server_cores,
            generator_cores: own.map(|(now_s, before_s)| cores(now_s, before_s)),
        })
    }
}

/// Rounds to four digits, which is more than a plot shows, to keep the file short.
fn tidy(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the state in a folder once a condition holds.
    fn report_when(folder: &std::path::Path, is_so: impl Fn(&LiveReport) -> bool) -> LiveReport {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            match LiveReport::read(folder) {
                Ok(live_report) if is_so(&live_report) => return live_report,
                report => assert!(Instant::now() < until, "{report:?}"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_the_generator_counts_is_told_and_so_is_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut live = Live::start(folder.path().into(), 2);
        live.set_activity("finding");
        assert!(report_when(folder.path(), |live_report| live_report.doing == "finding").is_running());
        live.plan(3, Duration::from_secs(30));
        let progress = Arc::new(Progress::default());
        live.begin(3, " rate=20", Duration::from_secs(10), &progress);
        live.loaded(Some(std::process::id()), Some(20.0));
        progress.in_flight.store(8, Ordering::Relaxed);
        for (outcome, count) in [(Outcome::Answered, 30), (Outcome::ALL[4], 2)] {
            progress.outcomes[outcome as usize].store(count, Ordering::Relaxed);
        }
        progress.sent.store(40, Ordering::Relaxed);
        // The test process stands in for its server.
        let seen = report_when(folder.path(), |live_report| {
            live_report.samples.server_cores.back().is_some_and(Option::is_some)
        });
        let trial = seen.trial.unwrap();
        assert_eq!((trial.number, &*trial.name, trial.offered_per_s), (3, "rate=20", Some(20.0)));
        assert_eq!((trial.sent, trial.outcomes), (40, [30, 0, 0, 0, 2]));
        assert_eq!((seen.trials_planned, seen.trials_done, seen.doing), (5, 2, String::new()));
        assert!(seen.left_s.is_some_and(|left_s| (20.0..=30.0).contains(&left_s)), "{:?}", seen.left_s);
        // Wherever the samples began, together they are all that was counted.
        let failed: u64 = seen.samples.failed.iter().map(|failed| failed[FAILURES - 1]).sum();
        assert_eq!((failed, seen.samples.in_flight.back()), (2, Some(&8)));
        live.end(LiveState::Done);
        let ended = LiveReport::read(folder.path()).unwrap();
        assert_eq!((ended.state, ended.trial), (LiveState::Done, None));
        assert!(ended.samples.end() >= seen.samples.end(), "what was seen stays");
    }

    #[test]
    fn a_run_that_breaks_off_is_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        drop(Live::start(folder.path().into(), 0));
        assert_eq!(LiveReport::read(folder.path()).unwrap().state, LiveState::Interrupted);
    }
}
