//! From the rows of trials to what a station sees of them, and to what its predictions are compared with.

use kendall_record::RequestRow;

use super::fit::{Fit, Pair};
use super::serve::{Visit, departures};
use super::{ArrivedBy, NotReplayed, Replay, Rules};
use crate::Trial;

const NS_PER_S: f64 = 1e9;

/// The requests of some trials, ready to go through stations.
pub(super) struct Visits {
    runs: Vec<Run>,
    left_out: u64,
    arrived_by: ArrivedBy,
    delay_s: f64,
}

/// One trial: the visits in order of arrival, and the measured response of those that are compared.
struct Run {
    visits: Vec<Visit>,
    measured_s: Vec<Option<f64>>,
    /// How late each was sent.
    late_s: Vec<f64>,
}

impl Visits {
    pub(super) fn of(trials: &[Trial<'_>]) -> Result<Self, NotReplayed> {
        let rows = || trials.iter().flat_map(|trial| trial.rows);
        let left_out = rows().filter(|row| row.service.is_none()).count();
        let requests = rows().count();
        if left_out == requests {
            return Err(NotReplayed::NoService { requests });
        }
        let stamped = rows().filter(|row| row.service.is_some()).all(|row| row.queued.is_some());
        let (arrived_by, delay_ns) = match stamped {
            true => (ArrivedBy::Server, quantile(rows().filter_map(outside_ns), 0.5)),
            // Waiting is in it and cannot be told from it; those that waited least have next to none.
            false => (ArrivedBy::Client, quantile(rows().filter_map(not_served_ns), 0.05)),
        };
        let delay_ns = delay_ns.ok_or(NotReplayed::NothingToCompare)?;
        let runs: Vec<Run> = trials.iter().map(|trial| Run::of(trial, delay_ns)).collect();
        if runs.iter().all(|run| run.measured_s.iter().all(Option::is_none)) {
            return Err(NotReplayed::NothingToCompare);
        }
        let delay_s = delay_ns as f64 / NS_PER_S;
        Ok(Self { runs, left_out: left_out as u64, arrived_by, delay_s })
    }

    /// Whether requests of different weights came.
    pub(super) fn are_weighted(&self, rules: &Rules<'_>) -> bool {
        let mut weights = self.runs.iter().flat_map(|run| &run.visits).map(|visit| rules.weight(visit.class));
        let first = weights.next();
        weights.any(|weight| Some(weight) != first)
    }

    /// Through a station, and beside the measurement.
    pub(super) fn replay(&self, rules: &Rules<'_>) -> Replay {
        let (mut pairs, mut turned_away) = (Vec::new(), 0);
        for run in &self.runs {
            let ends_s = departures(&run.visits, rules);
            let measured = run.measured_s.iter().zip(&run.late_s);
            for ((visit, end_s), (measured_s, late_s)) in run.visits.iter().zip(ends_s).zip(measured) {
                match (end_s, *measured_s) {
                    (Some(end_s), Some(measured_s)) => {
                        let predicted_s = (late_s + end_s - visit.arrival_s + self.delay_s).max(0.0);
                        pairs.push(Pair { measured_s, predicted_s });
                    }
                    (None, Some(measured_s)) => {
                        turned_away += 1;
                        // It counts as an answer in no time, so that no room is never a good explanation.
                        pairs.push(Pair { measured_s, predicted_s: 0.0 });
                    }
                    (_, None) => {}
                }
            }
        }
        Replay {
            servers: rules.servers,
            discipline: rules.discipline,
            compared: pairs.len() as u64,
            left_out: self.left_out,
            turned_away,
            arrived_by: self.arrived_by,
            delay_s: self.delay_s,
            fit: Fit::of(&pairs),
            pairs,
        }
    }
}

impl Run {
    fn of(trial: &Trial<'_>, delay_ns: i64) -> Self {
        let arrival_ns = |row: &RequestRow| {
            row.queued.unwrap_or_else(|| row.sent.unwrap_or(row.scheduled) + (delay_ns / 2).max(0))
        };
        let mut rows: Vec<(&RequestRow, i64)> = trial
            .rows
            .iter()
            .filter_map(|row| Some((row, row.service?)))
            .map(|(row, service_ns)| (row, service_ns.max(0)))
            .collect();
        rows.sort_by_key(|(row, _)| (arrival_ns(row), row.index));
        let origin_ns = rows.first().map_or(0, |(row, _)| arrival_ns(row));
        let visit = |&(row, service_ns): &(&RequestRow, i64)| Visit {
            arrival_s: (arrival_ns(row) - origin_ns) as f64 / NS_PER_S,
            service_s: service_ns as f64 / NS_PER_S,
            class: row.class as usize,
        };
        let measured_s = |(row, _): &(&RequestRow, i64)| {
            let counts = row.scheduled >= trial.warmup_ns;
            row.response_ns().filter(|_| counts).map(|response_ns| response_ns as f64 / NS_PER_S)
        };
        Self {
            visits: rows.iter().map(visit).collect(),
            measured_s: rows.iter().map(measured_s).collect(),
            late_s: rows.iter().map(|(row, _)| late_ns(row) as f64 / NS_PER_S).collect(),
        }
    }
}

/// How long after it was due a request was sent.
fn late_ns(row: &RequestRow) -> i64 {
    row.sent.map_or(0, |sent| (sent - row.scheduled).max(0))
}

/// The part of the response that passed between client and station: what is neither waiting for a server nor keeping it
/// busy, nor the client's being late.
fn outside_ns(row: &RequestRow) -> Option<i64> {
    let (queued, started) = (row.queued?, row.started?);
    // Interrupted service takes longer than it keeps a server busy; handing over the answer comes after `finished`.
    let inside_ns = (row.finished? - started).max(row.service?);
    Some(row.response_ns()? - late_ns(row) - (started - queued) - inside_ns)
}

/// The part of the response, once sent, that was not service.
fn not_served_ns(row: &RequestRow) -> Option<i64> {
    Some((row.response_ns()? - late_ns(row) - row.service?).max(0))
}

fn quantile(values: impl Iterator<Item = i64>, p: f64) -> Option<i64> {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    let rank = crate::statistics::quantile_rank(values.len().max(1) as u64, p) as usize;
    values.get(rank - 1).copied()
}
