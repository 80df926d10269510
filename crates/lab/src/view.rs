//! The display of a running experiment: on a terminal a bar with the time left, otherwise a line for each trial. Also publishes
//! the state of the run for other processes.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use kendall_analysis::{Measured, TrialResult};
use kendall_experiment::Trial;
use kendall_load::Progress;

use crate::live::Live;

/// The display of a running experiment: on a terminal a bar with the time left, otherwise a line for each trial.
pub(crate) struct View {
    /// The state of the run, published for other processes.
    pub(crate) live: Live,
    bar: Option<ProgressBar>,
    planned: Cell<usize>,
    /// The planned time of the finished trials, in ms.
    done_ms: Cell<u64>,
}

impl View {
    pub(crate) fn new(live: Live) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{wide_bar} {percent:>3} %  {msg}  {prefix} left")
                .expect("the template is valid");
            ProgressBar::new(1).with_style(style)
        });
        Self { live, bar, planned: Cell::new(0), done_ms: Cell::new(0) }
    }

    /// Sets the number of planned trials, and the time that the remaining ones take.
    pub(crate) fn plan(&self, planned: usize, left: usize, expected: Duration) {
        self.live.plan(left, expected);
        self.planned.set(planned);
        self.done_ms.set(0);
        if let Some(bar) = &self.bar {
            bar.set_length(expected.as_millis() as u64);
            bar.set_position(0);
        }
    }

    pub(crate) fn show_activity(&self, message: &str) {
        self.live.set_activity(message);
        if let Some(bar) = &self.bar {
            bar.set_message(message.to_owned());
        }
    }

    pub(crate) fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            // If standard error is closed, there is no reader for the line.
            None => drop(writeln!(io::stderr(), "{line}")),
        }
    }

    /// Shows a trial with this expected length while `work` runs.
    pub(crate) fn watch<T>(
        &self,
        trial: &Trial,
        name: &str,
        expected: Duration,
        progress: &Arc<Progress>,
        work: impl FnOnce() -> T,
    ) -> T {
        self.live.begin(trial.number, name, expected, progress);
        let Some(bar) = &self.bar else { return work() };
        let (before, planned) = (self.done_ms.get(), self.planned.get());
        let (began, over) = (Instant::now(), AtomicBool::new(false));
        thread::scope(|scope| {
            let show = || {
                while !over.load(Ordering::Relaxed) {
                    let sent = progress.sent.load(Ordering::Relaxed);
                    let out = sent.saturating_sub(progress.ended.load(Ordering::Relaxed));
                    bar.set_message(format!(
                        "trial {}/{}{name}: {sent} sent, {out} out",
                        trial.number, planned
                    ));
                    bar.set_position(before + began.elapsed().as_millis() as u64);
                    let left_s = bar.length().unwrap_or(0).saturating_sub(bar.position()).div_ceil(1000);
                    bar.set_prefix(format!("{}:{:02}", left_s / 60, left_s % 60));
                    thread::park_timeout(Duration::from_millis(200));
                }
            };
            // The guard also works where the work panics: the scope waits for its threads.
            let _over = Over(&over, scope.spawn(show).thread().clone());
            work()
        })
    }

    /// Shows that a trial is done, whose record is in this folder.
    pub(crate) fn done(&self, result: &TrialResult, folder: &Path, expected: Duration) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        self.live.done(result, &name, expected);
        self.done_ms.update(|done_ms| done_ms + expected.as_millis() as u64);
        if let Some(bar) = &self.bar {
            bar.set_position(self.done_ms.get());
        }
        let levels: Vec<String> =
            result.levels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mean = match &result.measured {
            Measured::Answer(answer) => format!("mean response {:.3} ms", answer.response.mean_s.value * 1e3),
            Measured::NoAnswer(why) => why.clone(),
        };
        let (limits, doubts) = (result.verdict.limits.iter(), result.verdict.doubts.iter());
        let limits = limits.map(|limit| format!("; GENERATOR-LIMITED: {limit}"));
        let doubts = doubts.map(ToString::to_string).chain(result.hopeless.clone());
        let doubts: String = limits.chain(doubts.map(|doubt| format!("; {doubt}"))).collect();
        self.line(&format!(
            "trial {:>3}/{}  {}  {} sent, {mean}{doubts}",
            result.number,
            self.planned.get(),
            levels.join(", "),
            result.run.sent
        ));
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Ends the thread that shows a trial.
struct Over<'a>(&'a AtomicBool, thread::Thread);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}
