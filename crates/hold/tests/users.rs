//! Users with sessions at a synthetic server, with load from the generator.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use kendall_hold::{Config, Dialect, HoldMode, HoldOptions, HoldSessionWorkload, bind_sessions};
use kendall_load::{Plan, Progress, RowBatches, RunSummary, run};
use kendall_record::{Outcome, RequestRow, stamps};
use kendall_station::{Arrivals, Law};

/// Runs a plan for five users, which send this share of their requests for another, with a server of this many workers and
/// this capacity. Its rows have the server's stamps.
fn served(plan: &Plan, to_others: f64, workers: usize, room: usize) -> (RunSummary, Vec<RequestRow>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stamps");
    let usual = Config::new("127.0.0.1:0".parse().unwrap());
    let (workers, stamped) = (NonZeroUsize::new(workers).unwrap(), Some(path.clone()));
    let service = Config { workers, max_waiting: room - workers.get(), stamps: stamped, ..usual };
    let law = Law::Constant { mean_s: 0.002 };
    let options = HoldOptions { service, law, seed: 3, mode: HoldMode::Sleeping, dialect: Dialect::Sessions };
    let server = bind_sessions(&options).unwrap();
    let (address, handle) = (server.local_addr(), server.handle());
    let serving = thread::spawn(move || server.run());
    let workload = HoldSessionWorkload::new(address, 11, NonZeroU32::new(5).unwrap(), to_others);
    let collect = |rows: RowBatches| rows.flatten().collect::<Vec<RequestRow>>();
    let (summary, mut rows) =
        run(plan, &workload, &Progress::default(), &AtomicBool::new(false), collect).unwrap();
    handle.shut_down();
    serving.join().unwrap().unwrap();
    stamps::join(&mut rows, &stamps::read(&path).unwrap(), summary.start_ns);
    (summary, rows)
}

#[test]
fn every_answer_arrives_at_its_user_and_counts_for_its_request() {
    let think = Law::Constant { mean_s: 0.001 };
    for arrivals in [Arrivals::poisson(600.0), Arrivals::Closed { population: 9, think }] {
        for to_others in [0.0, 0.5, 1.0] {
            let plan = Plan::lasting(arrivals.clone(), Duration::from_millis(500), 7);
            let (summary, rows) = served(&plan, to_others, 4, 1000);
            assert!(summary.sent > 50 && summary.count(Outcome::Answered) == summary.sent, "{summary:?}");
            assert_eq!(summary.connections_opened, 5, "one session for each user");
            for row in &rows {
                let stamps = [row.sent, row.queued, row.started, row.finished];
                assert!(stamps.iter().all(Option::is_some) && stamps.is_sorted(), "{row:?}");
                assert!(row.response_ns() >= Some(2_000_000), "held for 2 ms: {row:?}");
            }
        }
    }
}

/// One worker of 2 ms answers 500 requests a second, and two more of the 2,000 that arrive can wait.
#[test]
fn requests_beyond_the_capacity_are_rejected_on_their_own_session() {
    let plan = Plan::lasting(Arrivals::poisson(2000.0), Duration::from_millis(500), 7);
    let (summary, rows) = served(&plan, 1.0, 1, 3);
    let (answered, refused) = (summary.count(Outcome::Answered), summary.count(Outcome::Refused));
    assert_eq!(answered + refused, summary.sent, "{summary:?}");
    assert!(answered > 0 && refused > summary.sent / 3, "{summary:?}");
    assert!(rows.iter().filter(|row| row.outcome == Outcome::Refused).all(|row| row.started.is_none()));
}
