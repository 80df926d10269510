//! Requests of one load, as their client measured them.

use kendall_record::{Outcome, RequestRow};

const NS_PER_S: f64 = 1e9;

/// One request as its client measured it, in seconds since the start of its block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The instant at which the request was sent.
    pub sent_s: f64,
    /// The instant at which the answer was complete.
    pub completed_s: f64,
    /// The request's class in the workload.
    pub class: u32,
    /// The server's timestamps, if it sent any.
    pub stamp: Option<Stamp>,
}

/// A server's timestamps of a request, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stamp {
    /// The time that it kept a worker busy.
    pub service_s: f64,
    /// The part of the time since it was sent that it spent outside the station.
    pub outside_s: f64,
}

/// Requests of one load, measured without a break.
#[derive(Clone, Debug)]
pub struct Block {
    /// In the order of sending.
    pub(crate) requests: Vec<Request>,
    /// Indices of the requests in the order of completion.
    pub(crate) by_completion: Vec<u32>,
    /// Requests before this one are the warm-up.
    pub(crate) first: usize,
    /// The mean time by which requests were sent after they were due.
    pub(crate) lag_s: f64,
    /// All requests that were sent.
    pub(crate) sent: usize,
    /// Requests without a right answer.
    pub(crate) lost: usize,
    /// The mean time of a fixed computation in each second after the warm-up; empty where none was timed.
    pub(crate) computation_s: Vec<f64>,
}

impl Block {
    /// The answered requests of a trial. Requests due before `warmup_ns` shape the queue but are not compared.
    pub fn of(rows: &[RequestRow], warmup_ns: i64) -> Self {
        let seconds = |ns: i64| ns as f64 / NS_PER_S;
        let answered = |row: &&RequestRow| matches!(row.outcome, Outcome::Answered | Outcome::Wrong);
        let mut lags_s = Vec::new();
        let mut requests: Vec<Request> = rows
            .iter()
            .filter(answered)
            .filter_map(|row| {
                let (sent, completed) = (row.sent?, row.completed?);
                if row.scheduled >= warmup_ns {
                    lags_s.push(seconds(sent - row.scheduled));
                }
                Some(Request {
                    sent_s: seconds(sent).max(0.0),
                    completed_s: seconds(completed.max(sent)),
                    class: row.class,
                    stamp: stamp(row),
                })
            })
            .collect();
        requests.sort_by(|a, b| a.sent_s.total_cmp(&b.sent_s));
        let first = requests.partition_point(|request| request.sent_s < seconds(warmup_ns));
        let lost = rows.iter().filter(|row| row.outcome != Outcome::Answered).count();
        let lag_s = if lags_s.is_empty() { 0.0 } else { kendall_stats::mean(&lags_s) };
        Self {
            by_completion: by_completion(&requests),
            requests,
            first,
            lag_s,
            sent: rows.len(),
            lost,
            computation_s: Vec::new(),
        }
    }

    /// Adds the mean processor time that a fixed computation took in each second after the warm-up, on the processors of the server.
    #[must_use]
    pub fn with_computation(self, computation_s: Vec<f64>) -> Self {
        Self { computation_s, ..self }
    }

    /// Returns the block with only its first requests.
    pub(crate) fn shortened(&self, most: usize) -> Self {
        let requests = self.requests[..most.min(self.requests.len())].to_vec();
        let computation_s = self.computation_s.clone();
        Self { by_completion: by_completion(&requests), requests, computation_s, ..*self }
    }

    /// The requests that are compared.
    pub(crate) fn counted(&self) -> &[Request] {
        &self.requests[self.first.min(self.requests.len())..]
    }

    /// The instant at which the first request was sent that is compared.
    fn start_s(&self) -> f64 {
        self.counted().first().map_or(0.0, |first| first.sent_s)
    }

    /// The second of the block in which a request that is compared was sent.
    pub(crate) fn second(&self, request: &Request) -> usize {
        (request.sent_s - self.start_s()) as usize
    }

    /// The mean of the values of the compared requests for each whole second in which these were sent; NaN for a second without a request.
    /// Empty where a second has none because there are few in any.
    pub(crate) fn means_by_second(&self, values: &[f64]) -> Vec<f64> {
        let seconds = self.counted().iter().map(|request| self.second(request));
        means_by_second(std::iter::zip(seconds, values.iter().copied()).collect(), f64::NAN)
    }

    /// The mean time between two answers in each whole second; infinite for a second without an answer. Empty where a second has none
    /// because there are few in any.
    pub(crate) fn gaps_by_second(&self) -> Vec<f64> {
        let start_s = self.start_s();
        let completed_s = self.by_completion.iter().map(|&at| self.requests[at as usize].completed_s);
        let completed_s: Vec<f64> = completed_s.filter(|completed_s| *completed_s >= start_s).collect();
        // After the last request was sent, no longer all users wait.
        let end_s = self.requests.last().map_or(start_s, |last| last.sent_s);
        let until = completed_s.partition_point(|completed_s| *completed_s <= end_s);
        let gap = |pair: &[f64]| {
            let (from_s, until_s) = (pair[0] - start_s, pair[1] - start_s);
            let second = until_s.floor();
            // A pause over whole seconds leaves those without an answer, and counts with its rest in the one in which it ends.
            let from_s = if from_s < second - 1.0 { second } else { from_s };
            (second as usize, until_s - from_s)
        };
        means_by_second(completed_s[..until].windows(2).map(gap).collect(), f64::INFINITY)
    }
}

/// As many values in a second show the speed of the machine in it. Where there are fewer, seconds without any are usual.
const ENOUGH: usize = 5;

/// The means of values in whole seconds, of values in the order of time; the last second is not whole. For a second that has no value,
/// `without`. Empty where a second has none and the others do not have [`ENOUGH`] on average.
fn means_by_second(values: Vec<(usize, f64)>, without: f64) -> Vec<f64> {
    let has_enough = values.last().is_some_and(|last| last.0 <= values.len() / ENOUGH);
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for (second, value) in values {
        if second > sums.len() && !has_enough {
            return Vec::new();
        }
        sums.resize(sums.len().max(second + 1), (0.0, 0.0));
        sums[second].0 += value;
        sums[second].1 += 1.0;
    }
    sums.pop();
    sums.into_iter().map(|(sum, count)| if count > 0.0 { sum / count } else { without }).collect()
}

fn by_completion(requests: &[Request]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..requests.len() as u32).collect();
    order.sort_by(|&a, &b| requests[a as usize].completed_s.total_cmp(&requests[b as usize].completed_s));
    order
}

fn stamp(row: &RequestRow) -> Option<Stamp> {
    let (sent, completed) = (row.sent?, row.completed?);
    let inside = row.finished? - row.queued?;
    Some(Stamp {
        service_s: row.service? as f64 / NS_PER_S,
        outside_s: (completed - sent - inside).max(0) as f64 / NS_PER_S,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests that are sent at these instants, in seconds, and answered as many seconds later.
    fn block(sent_s: &[f64], response_s: f64) -> Block {
        let ns = |s: f64| (s * NS_PER_S).round() as i64;
        let row = |(number, &sent_s): (usize, &f64)| {
            RequestRow::due(number as u64, ns(sent_s))
                .sent_at(ns(sent_s), 1)
                .ended(Outcome::Answered, ns(sent_s + response_s))
        };
        Block::of(&sent_s.iter().enumerate().map(row).collect::<Vec<_>>(), 0)
    }

    #[test]
    fn a_pause_leaves_the_other_seconds() {
        // A hundred in a second, for 10 s, and none from 3.5 to 5.5 s.
        let sent_s: Vec<f64> =
            (0..1_000).map(|at| 0.01 * f64::from(at)).filter(|s| !(3.5..5.5).contains(s)).collect();
        let block = block(&sent_s, 0.0);
        let gaps_s = block.gaps_by_second();
        assert_eq!(gaps_s.len(), 9);
        let expected_s = [0.01, 0.01, 0.01, 0.01, f64::INFINITY, 0.02, 0.01, 0.01, 0.01];
        for (found_s, expected_s) in gaps_s.iter().zip(expected_s) {
            assert!(*found_s == expected_s || (found_s - expected_s).abs() < 1e-3, "{gaps_s:?}");
        }
        let means = block.means_by_second(&vec![2.0; sent_s.len()]);
        assert!(means[4].is_nan() && means.iter().filter(|mean| **mean == 2.0).count() == 8, "{means:?}");
    }

    #[test]
    fn few_requests_show_no_speed_where_seconds_have_none() {
        let sent_s: Vec<f64> = (0..40).map(|at| 1.5 * f64::from(at)).collect();
        assert!(block(&sent_s, 0.1).gaps_by_second().is_empty());
        assert!(block(&[0.0, 0.5, 9e9], 0.0).gaps_by_second().is_empty());
        let every: Vec<f64> = (0..40).map(|at| 0.5 * f64::from(at)).collect();
        assert_eq!(block(&every, 0.1).gaps_by_second().len(), 19);
    }
}
