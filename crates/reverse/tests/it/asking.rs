//! One request of the client, sent by the load generator.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kendall_load::{Plan, Progress, Request, RequestClass, Route, RowBatches, Workload, run};
use kendall_record::RequestRow;
use kendall_reverse::ReverseWorkload;
use kendall_station::Arrivals;

/// Sends one request of the workload to its server, and returns its outcome.
pub(crate) fn ask(workload: &ReverseWorkload, request: Request, timeout: Duration) -> RequestRow {
    let once = Arrivals::Trace { instants_s: vec![0.0].into() };
    let plan = Plan { timeout, drain: timeout * 2, ..Plan::lasting(once, Duration::from_secs(1), 1) };
    let one = One { workload, request };
    let last = |rows: RowBatches| rows.flatten().last();
    let (_, row) = run(&plan, &one, &Progress::default(), &AtomicBool::new(false), last).unwrap();
    row.expect("what is due ends")
}

struct One<'a> {
    workload: &'a ReverseWorkload,
    request: Request,
}

impl Workload for One<'_> {
    fn request(&self, _: u64) -> Request {
        self.request.clone()
    }

    fn classes(&self) -> Vec<RequestClass> {
        self.workload.classes()
    }

    fn route(&self) -> Route<'_> {
        self.workload.route()
    }
}
