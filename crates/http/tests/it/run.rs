//! Runs of an HTTP workload, and how its requests ended.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kendall_http::{HttpOptions, HttpWorkload, Trust};
use kendall_load::{Plan, Progress, RowBatches, RunSummary, run};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Law};

/// A closed load of this many users, until this many requests are due.
pub(crate) fn closed(
    address: SocketAddr,
    options: &HttpOptions,
    users: u32,
    requests: u64,
) -> (RunSummary, Vec<RequestRow>) {
    closed_within(Duration::from_secs(5), address, options, users, requests)
}

/// A closed load whose requests have this timeout.
pub(crate) fn closed_within(
    timeout: Duration,
    address: SocketAddr,
    options: &HttpOptions,
    users: u32,
    requests: u64,
) -> (RunSummary, Vec<RequestRow>) {
    let workload = HttpWorkload::new(address, options, 1).unwrap();
    let arrivals = Arrivals::Closed { population: users, think: Law::Constant { mean_s: 0.0 } };
    let plan = Plan {
        requests: Some(requests),
        connections: users,
        timeout,
        ..Plan::lasting(arrivals, Duration::from_secs(20), 1)
    };
    let collect = |rows: RowBatches| rows.flatten().collect::<Vec<_>>();
    let (summary, rows) =
        run(&plan, &workload, &Progress::default(), &AtomicBool::new(false), collect).unwrap();
    assert_eq!(summary.sent, requests, "{:?}", summary.refused_because);
    assert_eq!(rows.len() as u64, requests, "every request that was due ends once");
    (summary, rows)
}

/// Asserts that all requests of a run have this outcome.
pub(crate) fn all_end(
    address: SocketAddr,
    options: &HttpOptions,
    users: u32,
    requests: u64,
    outcome: Outcome,
) {
    let (summary, _) = closed(address, options, users, requests);
    let ended: Vec<_> = Outcome::ALL.iter().map(|&outcome| (outcome, summary.count(outcome))).collect();
    assert_eq!(summary.count(outcome), requests, "{ended:?} {:?}", summary.refused_because);
}

/// Trusts the certificate of the tests.
pub(crate) fn trusting(url: &str) -> HttpOptions {
    HttpOptions { trust: Trust::File(testdata("localhost.pem")), ..HttpOptions::get(url) }
}

pub(crate) fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}
