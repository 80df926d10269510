//! Sends lone requests, which calibrate a server that writes no stamps.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kendall_load::{Plan, Progress, RowBatches, Workload, run};
use kendall_record::RequestRow;
use kendall_station::{Arrivals, Law};

use crate::trial_error::TrialError;

/// The number of lone requests and their total time, whichever comes first.
const LONE: u64 = 2_000;
const LONE_FOR: Duration = Duration::from_secs(2);
/// The first requests open the connection and wake the server, so they do not count.
const FIRST: usize = 10;

/// The response times of requests that meet no other request: one user without think time, in seconds, ascending.
pub(crate) fn lone_s(
    workload: &dyn Workload,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<Vec<f64>, TrialError> {
    let arrivals = Arrivals::Closed { population: 1, think: Law::Constant { mean_s: 0.0 } };
    let plan = Plan { requests: Some(LONE), connections: 1, ..Plan::lasting(arrivals, LONE_FOR, seed) };
    let time_s = |row: RequestRow| {
        let (completed, sent) = row.response_ns().and_then(|_| row.completed.zip(row.sent))?;
        Some((completed - sent) as f64 / 1e9)
    };
    let keep = |rows: RowBatches| rows.flatten().filter_map(time_s).collect();
    let (_, mut times_s): (_, Vec<f64>) = run(&plan, workload, &Progress::default(), cancel, keep)?;
    if times_s.len() > 2 * FIRST {
        times_s.drain(..FIRST);
    }
    if times_s.is_empty() {
        return Err(TrialError::NothingAlone);
    }
    times_s.sort_by(f64::total_cmp);
    Ok(times_s)
}
