//! Servers that were loaded in rounds, one after the other in each: the runs to compare, their expectations, and every reason to
//! doubt them.

use std::path::{Path, PathBuf};

use kendall_archive::read_trial;
use kendall_evidence::Trial;
use kendall_evidence::compare::{Metric, Run, Side, SideGroup};
use kendall_evidence::expect::{Expectation, ExpectationVerdict, Judged, MeasuredValues};
use kendall_experiment::RunError;
use kendall_record::{Outcome, RequestRow};
use kendall_station::Estimate;
use kendall_stats::{share_interval, t_interval};

use crate::generator::Trust;
use crate::sides::{CompareError, Sides};
use crate::trial_result::TrialResult;

/// The results of rounds of loads.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// The runs of each server, those of one round in one block, and in `doubts` every reason to doubt them.
    pub sides: Sides,
    /// The expectations of each server, judged by all its rounds.
    pub expected: Vec<(String, Vec<Judged>)>,
    /// Whether every server kept up with the rate and the generator with its schedule, in most rounds.
    pub kept_up: bool,
    /// The servers that answered nothing.
    pub silent: Vec<String>,
}

/// One load of one server, as it was recorded.
struct Round {
    result: TrialResult,
    rows: Vec<RequestRow>,
    warmup_ns: i64,
}

impl Round {
    fn trial(&self) -> Trial<'_> {
        Trial { rows: &self.rows, warmup_ns: self.warmup_ns }
    }
}

/// Reads the records of each server, the i-th of which is of the i-th round.
///
/// # Errors
/// Fails where a record cannot be read.
pub fn rounds(named: &[(String, Vec<PathBuf>)], expected: &[Expectation]) -> Result<Rounds, CompareError> {
    let mut found = Rounds {
        sides: Sides { metrics: Metric::all(), places: Vec::new(), doubts: Vec::new(), letters: Vec::new() },
        expected: Vec::new(),
        kept_up: true,
        silent: Vec::new(),
    };
    let mut place = SideGroup::default();
    for (name, folders) in named {
        let rounds =
            folders.iter().map(|folder| read(folder)).collect::<Result<Vec<Round>, CompareError>>()?;
        let run = |(round, block): (&Round, u64)| Run { block: Some(block), ..Run::of(&round.trial(), None) };
        place.sides.push(Side { name: name.clone(), runs: rounds.iter().zip(0..).map(run).collect() });
        let trials: Vec<Trial<'_>> = rounds.iter().map(Round::trial).collect();
        if !rounds.iter().any(|round| round.result.run.count(Outcome::Answered) > 0) {
            found.silent.push(name.clone());
        }
        found.expected.push((name.clone(), by_trials(expected, &trials)));
        found.doubt(name, &rounds);
    }
    found.sides.places.push(place);
    Ok(found)
}

fn read(folder: &Path) -> Result<Round, CompareError> {
    let result = TrialResult::read(folder).map_err(RunError::from)?;
    let result = result.ok_or_else(|| CompareError::NoRecord(folder.into()))?;
    let rows = read_trial(folder).map_err(RunError::from)?;
    Ok(Round { warmup_ns: result.left_out_ns().unwrap_or_default(), result, rows })
}

impl Rounds {
    /// The reason why the rounds of a server are to be doubted.
    fn doubt(&mut self, name: &str, rounds: &[Round]) {
        let all = rounds.len();
        let doubt_of = |what: &str, count: usize| format!("{name}: in {count} of {all} rounds {what}");
        let overloaded = rounds.iter().filter(|round| round.result.grows).count();
        if 2 * overloaded > all {
            self.kept_up = false;
            self.sides.doubts.push(doubt_of(
                "the number of requests in the system grew: the server could not keep up",
                overloaded,
            ));
        }
        let verdicts = || rounds.iter().map(|round| &round.result.verdict);
        let limited = verdicts().filter(|verdict| verdict.trust == Trust::GeneratorLimited).count();
        if let Some(limit) = verdicts().find_map(|verdict| verdict.limits.first()) {
            self.kept_up &= 2 * limited <= all;
            self.sides.doubts.push(doubt_of(&format!("the generator limited it: {limit}"), limited));
        }
        let doubted = verdicts().filter(|verdict| !verdict.doubts.is_empty()).count();
        if let Some(doubt) = verdicts().find_map(|verdict| verdict.doubts.first()) {
            self.sides.doubts.push(doubt_of(&doubt.to_string(), doubted));
        }
    }

    /// Keeps only the metrics that some run has.
    pub fn only_measured(&mut self) {
        let runs = || self.sides.places.iter().flat_map(|place| &place.sides).flat_map(|side| &side.runs);
        let known: Vec<bool> = (0..self.sides.metrics.len())
            .map(|index| runs().any(|run| run.values.get(index).copied().flatten().is_some()))
            .collect();
        let mut keep = known.iter();
        self.sides.metrics.retain(|_| keep.next().copied().unwrap_or_default());
        for run in
            self.sides.places.iter_mut().flat_map(|place| &mut place.sides).flat_map(|side| &mut side.runs)
        {
            let mut keep = known.iter();
            run.values.retain(|_| keep.next().copied().unwrap_or_default());
        }
    }
}

/// Judges what is expected by what clients saw in several trials.
pub(crate) fn by_trials(expected: &[Expectation], trials: &[Trial<'_>]) -> Vec<Judged> {
    let clients = kendall_evidence::client_side(trials).map_err(|why| why.to_string());
    let (mut due, mut failed, mut refused, mut shares) = (0, 0, 0, Vec::new());
    for trial in trials {
        let (due_before, failed_before) = (due, failed);
        for row in trial.rows.iter().filter(|row| row.scheduled >= trial.warmup_ns) {
            due += 1;
            failed += u64::from(row.outcome != Outcome::Answered);
            refused += u64::from(row.outcome == Outcome::Refused);
        }
        if due > due_before {
            shares.push((failed - failed_before) as f64 / (due - due_before) as f64);
        }
    }
    let judge = |expectation: &Expectation| match &clients {
        Ok(clients) => {
            let errors = Estimate {
                value: failed as f64 / due as f64,
                interval: Some(errors_interval(share_interval(failed, due), &shares)),
            };
            let seen = MeasuredValues {
                response: &clients.response,
                throughput_per_s: clients.throughput_per_s,
                errors,
                requests: due - refused,
            };
            expectation.judge(seen.figure(expectation.measure))
        }
        Err(why) => Judged {
            expected: *expectation,
            verdict: ExpectationVerdict::Undecided,
            seen: None,
            at_least: false,
            why: Some(why.clone()),
        },
    };
    expected.iter().map(judge).collect()
}

/// The interval of a share over trials: the wider of that of independent requests and that of the trials' shares, because errors of one
/// trial have causes in common.
fn errors_interval((low, high): (f64, f64), shares: &[f64]) -> (f64, f64) {
    t_interval(shares).map_or((low, high), |(mean, half_width)| {
        (low.min(mean - half_width).max(0.0), high.max(mean + half_width).min(1.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on an expectation of trials of 1,000 requests each, of which the given numbers fail.
    fn verdict(failed: &[u64], expected: &str) -> ExpectationVerdict {
        let rows = |failed: u64| -> Vec<RequestRow> {
            let row = |index: u64| {
                let due_ns = index as i64 * 1_000_000;
                let outcome = if index < failed { Outcome::Refused } else { Outcome::Answered };
                RequestRow::due(index, due_ns).sent_at(due_ns, 1).ended(outcome, due_ns + 100_000)
            };
            (0..1_000).map(row).collect()
        };
        let rows: Vec<Vec<RequestRow>> = failed.iter().map(|&failed| rows(failed)).collect();
        let trials: Vec<Trial<'_>> = rows.iter().map(|rows| Trial { rows, warmup_ns: 0 }).collect();
        by_trials(&[expected.parse().unwrap()], &trials)[0].verdict
    }

    /// 80 errors of 4,000 requests are 2 % [1.6, 2.5] if they are independent. If all are of one trial, they say little of the others.
    #[test]
    fn errors_of_one_trial_are_one_observation() {
        assert_eq!(verdict(&[20, 20, 20, 20], "errors<1%"), ExpectationVerdict::Failed);
        assert_eq!(verdict(&[0, 0, 80, 0], "errors<1%"), ExpectationVerdict::Undecided);
        assert_eq!(verdict(&[80], "errors<1%"), ExpectationVerdict::Failed);
        assert_eq!(verdict(&[0, 0, 0, 0], "errors<1%"), ExpectationVerdict::Met);
    }
}
