//! The trials of a combination, read back: which of them count, and the figures over all of them.

use kendall_archive::read_trial;
use kendall_evidence::AnswerPauses;
use kendall_experiment::RunFolder;
use kendall_record::RequestRow;
use kendall_station::{Class, Estimate};

use super::links;
use crate::attempts::counted;
use crate::bottleneck::AnswersSeen;
use crate::disturbance::Usual;
use crate::report::link::TrialLink;
use crate::report::point::Growth;
use crate::report::resources::Resources;
use crate::report::trial::{Counts, TrialLine, WarmupBy};
use crate::thin::sorted;
use crate::trial_result::{Measured, TrialResult};

/// What is said of a trial whose warm-up was to be found and was not.
const UNTOLD: &str = "too few data to find the end of the warm-up: MSER-5 puts the start of the steady state in the second half of the \
                      trial, so nothing was left out";

/// A trial, read back.
pub(super) struct Tried {
    pub(super) id: String,
    pub(super) result: TrialResult,
    pub(super) rows: Vec<RequestRow>,
    /// Requests that were due before this are not in the answers.
    pub(super) warmup_ns: i64,
}

impl Tried {
    /// The trial's rows with its warm-up.
    pub(super) fn view(&self) -> kendall_evidence::Trial<'_> {
        kendall_evidence::Trial { rows: &self.rows, warmup_ns: self.warmup_ns }
    }

    /// The requests that are in the answers.
    pub(super) fn counted(&self) -> impl Iterator<Item = &RequestRow> {
        self.rows.iter().filter(|row| row.scheduled >= self.warmup_ns)
    }

    /// The trial's number and the emulated link that it crossed, if it did.
    pub(super) fn link(&self) -> Option<(usize, TrialLink)> {
        Some((self.result.number, links::link(&self.id, self.result.link.as_ref()?)))
    }

    /// Processor time of the server per second, where it is known.
    pub(super) fn server_cpu_cores(&self) -> Option<f64> {
        Some(self.result.server?.cpu_s / self.result.run.wall_s)
    }

    /// The trial's number and the line that the report shows for it. `why` is the reason why its combination
    /// has no answer, if it has none.
    pub(super) fn line(&self, point: Option<usize>, why: Option<&String>) -> (usize, TrialLine) {
        let Self { id, result, rows, .. } = self;
        let mut counts = Counts::default();
        rows.iter().for_each(|row| counts.add(row.outcome));
        let remarks = result.verdict.remarks.iter().map(|remark| remark.brief().to_owned());
        let doubts = result.verdict.doubts.iter().map(ToString::to_string).chain(remarks);
        let untold =
            result.left_out.filter(|left_out| left_out.by == WarmupBy::Untold).map(|_| UNTOLD.to_owned());
        let answer = match &result.measured {
            Measured::Answer(answer) => Some(answer),
            Measured::NoAnswer(_) => None,
        };
        let line = TrialLine {
            id: id.clone(),
            point,
            seed: result.seed,
            response_s: answer.map(|answer| answer.response.mean_s.value),
            response_p99_s: answer.and_then(|answer| Some(answer.response.quantile(0.99)?.value)),
            weighted_response_s: answer.and_then(|answer| Some(answer.weighted_response_s?.value)),
            counts,
            little_gap: kendall_evidence::little(rows).map(|check| check.relative_gap),
            send_lag_p99_s: Some(result.run.lag.p99_ns as f64 / 1e9),
            server_cpu_cores: self.server_cpu_cores(),
            left_out: result.left_out,
            doubts: doubts.chain(untold).chain(result.hopeless.clone()).chain(why.cloned()).collect(),
            limits: result.verdict.limits.iter().map(ToString::to_string).collect(),
            is_replaced: false,
        };
        (result.number, line)
    }

    /// What was used in it, if it was watched.
    pub(super) fn resources(&self, run: &RunFolder, point: Option<usize>) -> Option<Resources> {
        let answers = match &self.result.measured {
            Measured::Answer(answer) => AnswersSeen {
                response_s: Some(answer.response.mean_s.value),
                request_s: None,
                throughput_per_s: Some(answer.throughput_per_s.value),
                pauses: Some(AnswerPauses::of(&self.rows)),
            },
            Measured::NoAnswer(_) => AnswersSeen::default(),
        };
        let seen = self.result.resources.clone()?.judged(&self.result.run, &self.result.verdict, answers);
        Some(seen.resources(&self.id, point, &run.folder().join("trials").join(&self.id)))
    }
}

/// The line of a trial that is in no answer, and why.
fn cut_off(id: String, seed: u64, rows: &[RequestRow], doubt: String) -> TrialLine {
    let mut counts = Counts::default();
    rows.iter().for_each(|row| counts.add(row.outcome));
    TrialLine {
        id,
        point: None,
        seed,
        response_s: None,
        response_p99_s: None,
        weighted_response_s: None,
        counts,
        little_gap: None,
        send_lag_p99_s: None,
        server_cpu_cores: None,
        left_out: None,
        doubts: vec![doubt],
        limits: Vec::new(),
        is_replaced: false,
    }
}

/// Of each trial the attempt that counts; the others are lines that say why they do not.
fn undisturbed(
    attempts: Vec<(usize, Tried)>,
    usual: &Usual,
    left_out: &mut Vec<(usize, TrialLine)>,
) -> Vec<Tried> {
    let mut kept = Vec::new();
    let mut attempts = attempts.into_iter().peekable();
    while let Some((number, first)) = attempts.next() {
        let mut same = vec![first];
        while let Some((_, next)) = attempts.next_if(|next| next.0 == number) {
            same.push(next);
        }
        let counts = counted(&same.iter().map(|tried| &tried.result).collect::<Vec<_>>(), usual);
        for (place, tried) in same.into_iter().enumerate() {
            if place == counts {
                kept.push(tried);
                continue;
            }
            let why = tried.result.disturbance.map_or_else(
                || "another attempt counts in its place".to_owned(),
                |seen| format!("{}; another attempt counts in its place", usual.words(&seen)),
            );
            let line = cut_off(tried.id, tried.result.seed, &tried.rows, why);
            left_out.push((number, TrialLine { is_replaced: true, ..line }));
        }
    }
    kept
}

/// The trials of one combination.
pub(super) struct Sample {
    /// Those that are done.
    pub(super) trials: Vec<Tried>,
    /// Number and line of those that were cut off or cannot be read.
    pub(super) left_out: Vec<(usize, TrialLine)>,
}

impl Sample {
    pub(super) fn read(run: &RunFolder, combination: usize, usual: &Usual) -> Self {
        let (mut trials, mut left_out) = (Vec::new(), Vec::new());
        for (folder, trial) in run.begun().filter(|(_, trial)| trial.combination == combination) {
            let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (rows, doubt) = match (read_trial(&folder), TrialResult::read(&folder)) {
                (Ok(rows), Ok(Some(result))) => {
                    let warmup_ns = result.warmup_ns(run.load(combination));
                    trials.push((trial.number, Tried { id, result, rows, warmup_ns }));
                    continue;
                }
                (Ok(rows), Ok(None)) => (
                    rows,
                    "it was cut off; its requests until then are kept, but not counted in the answers"
                        .to_owned(),
                ),
                (Ok(rows), Err(error)) => (rows, error.to_string()),
                (Err(error), _) => (Vec::new(), error.to_string()),
            };
            let line = cut_off(id, trial.seed, &rows, doubt);
            left_out.push((trial.number, line));
        }
        let trials = undisturbed(trials, usual, &mut left_out);
        Self { trials, left_out }
    }

    /// The rows of each trial with its warm-up.
    pub(super) fn views(&self) -> Vec<kendall_evidence::Trial<'_>> {
        self.trials.iter().map(Tried::view).collect()
    }

    /// Processor time of the server per second over all trials, where it is known of all.
    pub(super) fn server_cpu_cores(&self) -> Option<f64> {
        let cores: Option<f64> = self.trials.iter().map(Tried::server_cpu_cores).sum();
        Some(cores? / self.trials.len() as f64)
    }

    /// The rows after the warm-up.
    pub(super) fn rows(&self) -> impl Iterator<Item = &RequestRow> {
        self.trials.iter().flat_map(Tried::counted)
    }

    /// Times of the rows after the warm-up, ascending, in seconds.
    pub(super) fn sorted_s(&self, of: impl Fn(&RequestRow) -> Option<i64>) -> Vec<f64> {
        sorted(self.rows().filter_map(|row| Some(of(row)? as f64 / 1e9)))
    }

    /// The classes that came, with the shares in which they came; none where there is only one.
    pub(super) fn classes(&self) -> Vec<Class> {
        let known = &self.trials[0].result.classes;
        let mut counts = vec![0u64; known.len()];
        for row in self.rows() {
            if let Some(count) = counts.get_mut(row.class as usize) {
                *count += 1;
            }
        }
        let all: u64 = counts.iter().sum();
        let classes: Vec<Class> = known
            .iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| Class {
                name: class.name.clone(),
                share: count as f64 / all as f64,
                weight: class.weight,
                service: None,
            })
            .collect();
        if classes.len() > 1 { classes } else { Vec::new() }
    }

    /// From the first request due to the last answer of a trial, over the trials in which there was one.
    pub(super) fn total_time_s(&self) -> Option<Estimate> {
        let total_s = |trial: &Tried| {
            let first = trial.rows.iter().map(|row| row.scheduled).min()?;
            let last =
                trial.rows.iter().filter(|row| row.response_ns().is_some()).filter_map(|row| row.completed);
            Some((last.max()? - first) as f64 / 1e9)
        };
        let totals_s: Vec<f64> = self.trials.iter().filter_map(total_s).collect();
        match (totals_s.as_slice(), kendall_stats::t_interval(&totals_s)) {
            (_, Some((mean_s, half_width))) => Some(Estimate::within(mean_s, half_width)),
            (&[only_s], None) => Some(Estimate::exact(only_s)),
            _ => None,
        }
    }

    /// The growth of response times after the warm-up, if they grew in most trials.
    pub(super) fn growth(&self) -> Option<Growth> {
        let grows = |trial: &&Tried| {
            kendall_evidence::trend(&trial.rows, trial.warmup_ns).is_some_and(|trend| trend.grows)
        };
        if 2 * self.trials.iter().filter(grows).count() <= self.trials.len() {
            return None;
        }
        let mut halves = [(0.0, 0u64); 2];
        for trial in &self.trials {
            let last = trial.rows.iter().map(|row| row.scheduled).max().unwrap_or(0);
            for (row, response_ns) in trial.counted().filter_map(|row| Some((row, row.response_ns()?))) {
                let half = &mut halves[usize::from(row.scheduled > (trial.warmup_ns + last) / 2)];
                *half = (half.0 + response_ns as f64 / 1e9, half.1 + 1);
            }
        }
        let [first, second] = halves.map(|(sum, n)| (n > 0).then(|| sum / n as f64));
        Some(Growth { first_half_s: first?, second_half_s: second? })
    }
}
