//! Loads that agents make together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kendall_agents::FleetError;
use kendall_load::{Plan, Progress, RowBatches, run};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Law};
use kendall_stats::anderson_darling_exponential;
use kendall_testbed::{Nats, unless_disturbed};

use crate::bed::{Agent, AgentProcess, gather, load};
use crate::echo::{SYSTEMS, Server};

fn plan(arrivals: Arrivals, ms: u64) -> Plan {
    Plan { drain: Duration::from_secs(20), ..Plan::lasting(arrivals, Duration::from_millis(ms), 5) }
}

/// Sorted in nanoseconds.
fn quantile(mut values: Vec<i64>, p: f64) -> i64 {
    values.sort_unstable();
    values[(values.len() as f64 * p) as usize]
}

#[test]
fn two_agents_send_the_requests_of_one_generator() {
    let Some(nats) = Nats::with("") else { return };
    let server = Server::start();
    let allow = server.address.to_string();
    let _agents = ["a", "b"].map(|name| Agent::start(&nats.url(), name, &allow));
    let fleet = gather(&nats.url(), 2).unwrap();
    let plan = plan(Arrivals::poisson(1000.0), 500);
    let (summary, rows) = load(&fleet, &server.target(), &plan, 2).unwrap();
    assert_eq!(summary.count(Outcome::Answered), summary.sent);
    assert_eq!((summary.threads.len(), summary.agents.len()), (4, 2));
    assert_eq!(summary.agents.iter().map(|agent| agent.sent).sum::<u64>(), summary.sent);
    assert!(summary.agents.iter().all(|agent| agent.clock_bound_s < 0.005), "{:?}", summary.agents);
    assert_eq!((summary.sends.count, summary.sends.gaps_ns.len() as u64), (summary.sent, summary.sent - 1));

    let workload =
        (SYSTEMS[0].load)(server.address, &kendall_system::Settings::defaults(SYSTEMS[0].workload), 7);
    let collect = |rows: RowBatches| rows.flatten().collect::<Vec<RequestRow>>();
    let never = AtomicBool::new(false);
    let (one, mut alone) = run(&plan, &*workload.unwrap(), &Progress::default(), &never, collect).unwrap();
    alone.sort_by_key(|row| row.index);
    let due = |rows: &[RequestRow]| {
        rows.iter().map(|row| (row.index, row.scheduled, row.class, row.bytes_out)).collect::<Vec<_>>()
    };
    assert_eq!(due(&rows), due(&alone));
    assert_eq!((one.sent, one.ended), (summary.sent, summary.ended));
    // The agents are free for the next load.
    load(&fleet, &server.target(), &Plan { requests: Some(20), ..plan }, 1).unwrap();
}

/// The gaps between the sends of both agents are those of the arrivals, and the response times those of one generator.
#[test]
fn merged_sends_are_poisson_and_responses_those_of_one_agent() {
    let Some(nats) = Nats::with("") else { return };
    let server = Server::start();
    let allow = server.address.to_string();
    let _agents = ["a", "b"].map(|name| Agent::start(&nats.url(), name, &allow));
    let plan = plan(Arrivals::poisson(500.0), 3000);
    let responses =
        |rows: &[RequestRow]| rows.iter().filter_map(RequestRow::response_ns).collect::<Vec<i64>>();
    unless_disturbed(|| {
        let both = gather(&nats.url(), 2).unwrap();
        let (summary, rows) = load(&both, &server.target(), &plan, 1).unwrap();
        let sends = &summary.sends;
        let gaps: Vec<f64> = sends.gaps_ns.iter().map(|&ns| ns as f64).collect();
        let tested = anderson_darling_exponential(&gaps).expect("there are gaps enough");
        let cv = (sends.gap_cv - 1.0).abs() <= 5.0 / (sends.count as f64).sqrt();
        let allowed = |windows: u64| 0.1 + 4.0 * (2.0 / windows as f64).sqrt();
        let even = sends.dispersion.iter().all(|one| (one.index - 1.0).abs() <= allowed(one.windows));
        let one = gather(&nats.url(), 1).unwrap();
        let (_, alone) = load(&one, &server.target(), &plan, 1).unwrap();
        // The service takes 1 ms; what is beyond it differs by less than that between two undisturbed runs.
        let medians = [responses(&rows), responses(&alone)].map(|times| quantile(times, 0.5));
        let same = (medians[0] - medians[1]).abs() < 500_000;
        let all = tested.p_value >= 1e-3 && cv && even && same;
        if all { Ok(()) } else { Err(format!("{tested:?}, {medians:?}, {sends:?}")) }
    });
}

#[test]
fn users_are_split_among_agents() {
    let Some(nats) = Nats::with("") else { return };
    let server = Server::start();
    let allow = server.address.to_string();
    let _agents = ["a", "b", "c"].map(|name| Agent::start(&nats.url(), name, &allow));
    let fleet = gather(&nats.url(), 3).unwrap();
    let arrivals = Arrivals::Closed { population: 7, think: Law::Exponential { mean_s: 0.002 } };
    let some = Plan { requests: Some(500), ..plan(arrivals, 60_000) };
    let (summary, rows) = load(&fleet, &server.target(), &some, 1).unwrap();
    assert_eq!((summary.sent, rows.len()), (500, 500));
    assert!(summary.max_in_flight <= 7, "{summary:?}");
    assert!(rows.windows(2).all(|pair| pair[0].index < pair[1].index), "each number once");
}

/// A load that lost a share is not the load that was planned.
#[test]
fn a_load_without_the_share_of_an_agent_is_not_valid() {
    let Some(nats) = Nats::with("") else { return };
    let server = Server::start();
    let allow = server.address.to_string();
    let _stays = Agent::start(&nats.url(), "stays", &allow);
    let long = plan(Arrivals::constant(200.0), 3_600_000);
    let mut killed = AgentProcess::start(&nats.url(), "killed", &allow);
    let fleet = gather(&nats.url(), 2).unwrap();
    let failed = thread::scope(|scope| {
        let run = scope.spawn(|| load(&fleet, &server.target(), &long, 1));
        thread::sleep(Duration::from_millis(1500));
        killed.kill();
        run.join().unwrap().unwrap_err()
    });
    assert!(matches!(&failed, FleetError::Silent { agent } if agent == "killed"), "{failed}");

    let interrupted = Agent::start(&nats.url(), "interrupted", &allow);
    let fleet = gather(&nats.url(), 2).unwrap();
    let failed = thread::scope(|scope| {
        let run = scope.spawn(|| load(&fleet, &server.target(), &long, 1));
        thread::sleep(Duration::from_millis(1500));
        interrupted.interrupt();
        run.join().unwrap().unwrap_err()
    });
    assert!(matches!(&failed, FleetError::Failed { agent, .. } if agent == "interrupted"), "{failed}");
}

#[test]
fn agents_stop_when_the_load_is_stopped_or_enough() {
    let Some(nats) = Nats::with("") else { return };
    let server = Server::start();
    let _agents = ["a", "b"].map(|name| Agent::start(&nats.url(), name, &server.address.to_string()));
    let long = plan(Arrivals::constant(200.0), 3_600_000);
    for enough in [false, true] {
        let fleet = gather(&nats.url(), 2).unwrap();
        let (progress, stop) = (Progress::default(), AtomicBool::new(false));
        let target = server.target();
        let load = || fleet.run(&target, &long, Some(1), &progress, &stop, |rows| rows.flatten().count());
        let (summary, rows) = thread::scope(|scope| {
            let run = scope.spawn(load);
            while progress.ended.load(Ordering::Relaxed) < 50 {
                thread::sleep(Duration::from_millis(5));
            }
            if enough { &progress.enough } else { &stop }.store(true, Ordering::Relaxed);
            run.join().unwrap().unwrap()
        });
        assert_eq!(summary.sent, rows as u64);
    }
}
