//! Runs of a station with FIFO and two servers, as a perfect client and server would record them, with faults to put in.

use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Law, Servers, Station};
use kendall_stats::random::{Purpose, stream};

pub(crate) const SECOND: f64 = 1e9;
pub(crate) const MEAN_S: f64 = 0.01;

/// What is run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) requests: usize,
    pub(crate) rate_per_s: f64,
    pub(crate) service: Law,
    /// The part of each service time that is that of the one before.
    pub(crate) kept: f64,
    /// Service that starts while the other server is busy takes this many times as long.
    pub(crate) slowdown: f64,
    /// The last request is served first.
    pub(crate) newest_first: bool,
}

impl Default for Run {
    fn default() -> Self {
        let service = Law::Exponential { mean_s: MEAN_S };
        Self {
            seed: 1,
            requests: 3000,
            rate_per_s: 100.0,
            service,
            kept: 0.0,
            slowdown: 1.0,
            newest_first: false,
        }
    }
}

impl Run {
    /// The model: exponential service, whatever the run has.
    pub(crate) fn station(&self) -> Station {
        let service = Law::Exponential { mean_s: MEAN_S };
        Station::new(Arrivals::poisson(self.rate_per_s), service, Servers::new(2).unwrap())
    }

    pub(crate) fn rows(&self) -> Vec<RequestRow> {
        let mut rng = stream(self.seed, Purpose::Service, 0);
        let arrivals = Arrivals::poisson(self.rate_per_s);
        let due: Vec<i64> =
            arrivals.instants(self.seed).unwrap().take(self.requests).map(|s| (s * SECOND) as i64).collect();
        let (mut waiting, mut next, mut free, mut before) = (Vec::new(), 0, [0i64; 2], MEAN_S);
        let mut rows = Vec::new();
        while rows.len() < due.len() {
            let server = usize::from(free[1] < free[0]);
            if waiting.is_empty() {
                waiting.push(next);
                next += 1;
            }
            // Who came before the server is free waits with the others.
            let at = free[server].max(due[waiting[0]]);
            while next < due.len() && due[next] <= at {
                waiting.push(next);
                next += 1;
            }
            let chosen = if self.newest_first { waiting.len() - 1 } else { 0 };
            let index = waiting.remove(chosen);
            before = self.kept * before + (1.0 - self.kept) * self.service.sample(&mut rng);
            let busy = free[1 - server] > at;
            let service = (before * SECOND * if busy { self.slowdown } else { 1.0 }) as i64;
            free[server] = at + service;
            rows.push(row(index as u64, due[index], at, service));
        }
        rows.sort_by_key(|row| row.index);
        rows
    }
}

fn row(index: u64, due: i64, started: i64, service: i64) -> RequestRow {
    let finished = Some(started + service);
    RequestRow {
        first_byte: finished,
        completed: finished,
        queued: Some(due),
        started: Some(started),
        finished,
        service: Some(service),
        outcome: Outcome::Answered,
        bytes_out: 1,
        bytes_in: 1,
        ..RequestRow::due(index, due).sent_at(due, 1)
    }
}

/// The same request, so much later.
pub(crate) fn move_by(row: &mut RequestRow, ns: i64) {
    row.scheduled += ns;
    for at in [
        &mut row.sent,
        &mut row.first_byte,
        &mut row.completed,
        &mut row.queued,
        &mut row.started,
        &mut row.finished,
    ] {
        *at = at.map(|at| at + ns);
    }
}
