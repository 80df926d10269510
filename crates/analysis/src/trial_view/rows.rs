//! The rows of a trial in the order in which they were due.

use kendall_evidence::Trial;
use kendall_record::RequestRow;

use crate::report::trial_view::EndedRequest;
use crate::thin::sorted;

/// The rows of a trial in the order in which they were due.
pub(super) struct Rows<'a> {
    pub(super) by_due: Vec<&'a RequestRow>,
    /// Requests due before this are in no answer.
    pub(super) warmup_ns: i64,
    /// Until the last one was over.
    pub(super) length_ns: i64,
}

impl<'a> Rows<'a> {
    pub(super) fn of(trial: &Trial<'a>) -> Self {
        let mut by_due: Vec<&RequestRow> = trial.rows.iter().collect();
        by_due.sort_by_key(|row| row.scheduled);
        let last = |row: &&RequestRow| row.completed.unwrap_or(0).max(row.scheduled);
        let length_ns = by_due.iter().map(last).max().unwrap_or(0).max(1);
        Self { by_due, warmup_ns: trial.warmup_ns, length_ns }
    }

    /// When a request was over: what never was is out until the end.
    pub(super) fn end_ns(&self, row: &RequestRow) -> i64 {
        row.completed.unwrap_or(self.length_ns).max(row.scheduled)
    }

    pub(super) fn ended(&self, row: &RequestRow) -> EndedRequest {
        let out_ns = self.end_ns(row) - row.scheduled;
        EndedRequest { due_s: seconds(row.scheduled), out_s: seconds(out_ns), outcome: row.outcome }
    }

    /// The requests that are in the answers.
    pub(super) fn counted(&self) -> &[&'a RequestRow] {
        &self.by_due[self.by_due.partition_point(|row| row.scheduled < self.warmup_ns)..]
    }

    pub(super) fn sorted_responses_s(&self) -> Vec<f64> {
        sorted(self.counted().iter().filter_map(|row| row.response_ns()).map(seconds))
    }
}

/// The places of the slowest requests, in the order in which they were due.
pub(super) fn slowest(rows: &Rows<'_>, most: usize) -> Vec<usize> {
    let responses = rows.by_due.iter().enumerate().filter_map(|(at, row)| Some((row.response_ns()?, at)));
    let mut responses: Vec<(i64, usize)> = responses.collect();
    if responses.len() > most {
        let first = responses.len() - most;
        responses.select_nth_unstable(first);
        responses.drain(..first);
    }
    let mut places: Vec<usize> = responses.into_iter().map(|(_, at)| at).collect();
    places.sort_unstable();
    places
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
pub(super) mod tests {
    use kendall_record::Outcome;
    use kendall_station::Law;
    use kendall_stats::random::{Purpose, stream};

    use super::*;

    /// An M/M/1 queue at half its capacity, with every instant known; one request in a hundred times out.
    pub(in crate::trial_view) fn random_rows(requests: u64) -> Vec<RequestRow> {
        let mut rng = stream(7, Purpose::Trial, requests);
        let (gap, service) = (Law::exponential_rate(1000.0), Law::exponential_rate(2000.0));
        let nanoseconds = |time_s: f64| (time_s * 1e9) as i64;
        let (mut due, mut free) = (0, 0);
        let row = |index| {
            due += nanoseconds(gap.sample(&mut rng));
            let service = nanoseconds(service.sample(&mut rng));
            let (sent, queued) = (due + 20_000, due + 40_000);
            let started = queued.max(free);
            free = started + service;
            let outcome = if index % 100 == 99 { Outcome::TimedOut } else { Outcome::Answered };
            RequestRow {
                first_byte: Some(free + 10_000),
                queued: Some(queued),
                started: Some(started),
                finished: Some(free),
                service: Some(service),
                bytes_out: 1,
                bytes_in: 1,
                ..RequestRow::due(index, due).sent_at(sent, 1).ended(outcome, free + 20_000)
            }
        };
        (0..requests).map(row).collect()
    }

    pub(in crate::trial_view) fn rows(all: &[RequestRow]) -> Rows<'_> {
        let last = |row: &RequestRow| row.completed.unwrap_or(0).max(row.scheduled);
        Rows {
            by_due: all.iter().collect(),
            warmup_ns: 0,
            length_ns: all.iter().map(last).max().unwrap_or(1),
        }
    }
}
