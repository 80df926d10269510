//! The part of a trial after its warm-up, and the counts in any slice of it.

use crate::seconds::seconds;
use kendall_record::{Outcome, RequestRow};
use kendall_station::Servers;

use super::Trial;

/// A trial from the end of its warm-up to its last due instant: the drain after it is not load.
pub(super) struct Window<'a> {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    /// The requests due in it, in that order.
    pub(super) rows: Vec<&'a RequestRow>,
    /// All requests of the trial: who came before may still be here.
    all: &'a [RequestRow],
    /// The starts and the ends of services, each list in ascending order.
    started: Vec<i64>,
    finished: Vec<i64>,
}

/// Whether a request may have been served although its client gave up.
pub(crate) fn is_censored(row: &RequestRow) -> bool {
    matches!(row.outcome, Outcome::TimedOut | Outcome::Unanswered)
}

/// The time a request spent at the server and not in service, if the server's stamps show it.
pub(super) fn waiting_ns(row: &RequestRow) -> Option<i64> {
    let response_ns = row.response_ns()?;
    let interrupted_ns = match (row.started, row.finished, row.service) {
        (Some(started), Some(finished), Some(service)) => (finished - started - service).max(0),
        _ => 0,
    };
    match (row.queueing_ns(), row.service) {
        (Some(queueing_ns), _) => Some(queueing_ns + interrupted_ns),
        (None, Some(service)) => Some((response_ns - service).max(0)),
        (None, None) => None,
    }
}

impl<'a> Window<'a> {
    /// `None` where the warm-up leaves no time.
    pub(super) fn new(trial: &Trial<'a>) -> Option<Self> {
        let mut rows: Vec<&RequestRow> =
            trial.rows.iter().filter(|row| row.scheduled >= trial.warmup_ns).collect();
        rows.sort_by_key(|row| row.scheduled);
        let to_ns = rows.last()?.scheduled;
        let from_ns = trial.warmup_ns.max(trial.rows.iter().map(|row| row.scheduled).min()?);
        if to_ns <= from_ns {
            return None;
        }
        let served = trial.rows.iter().filter_map(|row| row.started.zip(row.finished));
        let (mut started, mut finished): (Vec<i64>, Vec<i64>) = served.unzip();
        started.sort_unstable();
        finished.sort_unstable();
        Some(Self { from_ns, to_ns, rows, all: trial.rows, started, finished })
    }

    /// The requests due in a slice; the last slice of the window has its end.
    fn due(&self, from_ns: i64, to_ns: i64) -> &[&'a RequestRow] {
        let first = self.rows.partition_point(|row| row.scheduled < from_ns);
        let last = self
            .rows
            .partition_point(|row| row.scheduled < to_ns || (to_ns == self.to_ns && row.scheduled == to_ns));
        &self.rows[first..last]
    }

    /// The share of the requests due in a slice that were turned away or never answered.
    pub(super) fn lost_share(&self, from_ns: i64, to_ns: i64) -> f64 {
        let due = self.due(from_ns, to_ns);
        due.iter().filter(|row| row.response_ns().is_none()).count() as f64 / due.len() as f64
    }

    /// Completed requests per second, whenever they were due.
    pub(super) fn throughput_per_s(&self, from_ns: i64, to_ns: i64) -> f64 {
        self.completions(from_ns, to_ns, |_| true)
    }

    /// Completed requests of one class per second.
    pub(super) fn class_throughput_per_s(&self, class: usize, from_ns: i64, to_ns: i64) -> f64 {
        self.completions(from_ns, to_ns, |row| row.class as usize == class)
    }

    fn completions(&self, from_ns: i64, to_ns: i64, chosen: impl Fn(&RequestRow) -> bool) -> f64 {
        let completed = |row: &&RequestRow| {
            row.response_ns().is_some()
                && row.completed.is_some_and(|at| from_ns < at && at <= to_ns)
                && chosen(row)
        };
        self.all.iter().filter(completed).count() as f64 / seconds(to_ns - from_ns)
    }

    /// The time average of the number of requests that are due and not yet over.
    pub(super) fn in_system(&self, from_ns: i64, to_ns: i64) -> f64 {
        let present = |row: &RequestRow| overlap(row.scheduled, row.completed, from_ns, to_ns);
        self.all.iter().map(present).sum::<f64>() / (to_ns - from_ns) as f64
    }

    /// In-service time over what the servers could have given. Interruptions are taken to be spread evenly between
    /// `started` and `finished`.
    pub(super) fn utilisation(&self, servers: Servers, from_ns: i64, to_ns: i64) -> f64 {
        let in_service = |row: &RequestRow| {
            let (started, finished) = match (row.started, row.finished, row.service) {
                (Some(started), Some(finished), _) => (started, finished),
                // Only its length is known: it ended at the latest with the answer.
                (_, _, Some(service)) => row.completed.map(|end| (end - service, end))?,
                _ => return None,
            };
            let share = row.service.map_or(1.0, |s| s as f64 / (finished - started).max(1) as f64).min(1.0);
            Some(share * overlap(started, Some(finished), from_ns, to_ns))
        };
        let busy: f64 = self.all.iter().filter_map(in_service).sum();
        busy / ((to_ns - from_ns) as f64 * f64::from(servers.get()))
    }

    /// The share of the requests of a slice whose `queued` instant found all servers busy; where the server did not say
    /// when it queued them, the share that waited.
    pub(super) fn delayed_share(&self, servers: Servers, from_ns: i64, to_ns: i64) -> f64 {
        let (mut known, mut delayed) = (0u64, 0u64);
        for row in self.due(from_ns, to_ns) {
            let found = match row.queued {
                // Turned away, and not delayed.
                Some(_) if row.started.is_none() => continue,
                Some(queued) => {
                    // Of those at the same instant, who has started is in service and who has finished is gone.
                    let begun = self.started.partition_point(|&at| at < queued);
                    let ended = self.finished.partition_point(|&at| at <= queued);
                    begun.saturating_sub(ended) >= servers.get() as usize
                }
                None => match waiting_ns(row) {
                    Some(waiting_ns) => waiting_ns > 0,
                    None => continue,
                },
            };
            known += 1;
            delayed += u64::from(found);
        }
        delayed as f64 / known as f64
    }
}

impl Window<'_> {
    /// The share of the requests due in a slice that met at least as many others, due before and not yet over, as there are servers: as
    /// far as clients can see, they had to wait.
    pub(super) fn met_share(&self, servers: Servers, from_ns: i64, to_ns: i64) -> f64 {
        let mut arrived: Vec<i64> = self.all.iter().map(|row| row.scheduled).collect();
        let mut over: Vec<i64> = self.all.iter().filter_map(|row| row.completed).collect();
        arrived.sort_unstable();
        over.sort_unstable();
        let due = self.due(from_ns, to_ns);
        let met = |row: &&&RequestRow| {
            let before = arrived.partition_point(|&at| at < row.scheduled);
            let gone = over.partition_point(|&at| at <= row.scheduled);
            before.saturating_sub(gone) >= servers.get() as usize
        };
        due.iter().filter(met).count() as f64 / due.len() as f64
    }
}

/// How much of the time from one instant to another, or without end, lies in a slice; in nanoseconds.
fn overlap(start_ns: i64, end_ns: Option<i64>, from_ns: i64, to_ns: i64) -> f64 {
    (end_ns.unwrap_or(i64::MAX).min(to_ns) - start_ns.max(from_ns)).max(0) as f64
}
