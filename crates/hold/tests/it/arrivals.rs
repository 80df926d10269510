//! Sessions by all three methods: measured on a synthetic server, by formula and by simulation.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use kendall_evidence::{Trial, measured};
use kendall_hold::{Config, Dialect, HoldMode, HoldOptions, HoldWorkload, bind};
use kendall_load::{Plan, Progress, RowBatches, run};
use kendall_record::{Outcome, RequestRow, stamps};
use kendall_simulation::{StopRule, simulate};
use kendall_station::{Arrivals, Batch, Law, Servers, Sessions, Station};
use kendall_theory::formula;

/// Two servers at half of their capacity: one in three requests finds both busy (Erlang C). From some 1,000 requests, which are
/// not quite independent, the share is known to some 3 %; the delays of a busy machine are in the stamps, and so in the
/// formula. The tolerance is five times as much.
#[test]
fn the_share_that_waits_agrees_with_theory_and_simulation() {
    const RATE_PER_S: f64 = 400.0;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stamps");
    let usual = Config::new("127.0.0.1:0".parse().unwrap());
    let service = Config { workers: NonZeroUsize::new(2).unwrap(), stamps: Some(path.clone()), ..usual };
    let law = Law::Exponential { mean_s: 0.0025 };
    let server =
        bind(HoldOptions { service, law, seed: 3, mode: HoldMode::Sleeping, dialect: Dialect::Requests })
            .unwrap();
    let (address, handle) = (server.local_addr(), server.handle());
    let serving = thread::spawn(move || server.run());
    let sessions = Sessions {
        gap: Law::Exponential { mean_s: 1.0 },
        requests: Batch::Geometric { mean: 4.0 },
        think: Law::Exponential { mean_s: 0.02 },
    };
    let arrivals = Arrivals::Sessions(sessions.at_rate(RATE_PER_S));
    let plan = Plan::lasting(arrivals.clone(), Duration::from_millis(2500), 11);
    let workload = HoldWorkload::new(address, 11);
    let collect = |rows: RowBatches| rows.flatten().collect::<Vec<RequestRow>>();
    let (summary, mut rows) =
        run(&plan, &workload, &Progress::default(), &AtomicBool::new(false), collect).unwrap();
    handle.shut_down();
    serving.join().unwrap().unwrap();
    assert!(rows.iter().all(|row| row.outcome == Outcome::Answered));
    // 250 sessions of 4 requests on average: the number of requests varies by 9 % of it.
    let share = rows.len() as f64 / (2.5 * RATE_PER_S);
    assert!((0.6..1.4).contains(&share), "{} requests", rows.len());
    stamps::join(&mut rows, &stamps::read(&path).unwrap(), summary.start_ns);
    let servers = Servers::new(2).unwrap();
    let seen = measured(&[Trial { rows: &rows, warmup_ns: 200_000_000 }], servers, &[]).unwrap();
    let services: Vec<f64> = rows.iter().map(|row| row.service.unwrap() as f64 / 1e9).collect();
    let mean_s = services.iter().sum::<f64>() / services.len() as f64;
    let at_rate = sessions.at_rate(seen.throughput_per_s.value);
    let station = Station::new(Arrivals::Sessions(at_rate), Law::Exponential { mean_s }, servers);
    let theory = formula(&station).unwrap().p_wait.value;
    let simulated = simulate(&station, StopRule::customers(200_000), 1).unwrap().p_wait.value;
    assert!((simulated - theory).abs() < 0.03, "{simulated}, by theory {theory}");
    assert!((seen.p_wait.value - theory).abs() < 0.15, "{:?}, by theory {theory}", seen.p_wait);
}
