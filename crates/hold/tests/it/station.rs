//! The synthetic server through the public interface: it is the station of its options.

use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kendall_hold::protocol::{REFUSED, encode_request};
use kendall_hold::{Config, Dialect, Hold, HoldMode, HoldOptions, HoldWorkload, bind};
use kendall_load::{Plan, Progress, RowBatches, run};
use kendall_record::{Outcome, RequestRow};
use kendall_service::{Server, System};
use kendall_station::{Arrivals, Discipline, Law};
use kendall_testbed::{LIMIT, Running, wait_until};

fn ask(server: &Running, nonce: u64) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(&encode_request(nonce)).unwrap();
    stream
}

/// Waits until this many requests are at the server.
fn has_taken(server: &Running, requests: u64) {
    wait_until("they are taken", || server.metric("requests_received_total") == requests);
}

/// Runs a server for the duration of a test.
pub(crate) fn run_server<S: System>(server: Server<S>) -> Running {
    let (address, metrics, stop) = (server.local_addr(), server.handle(), server.handle());
    Running::new(address, move || metrics.metrics_text(), move || stop.shut_down(), || server.run())
}

fn serve(options: HoldOptions) -> Running {
    run_server(bind(options).unwrap())
}

pub(crate) fn options(workers: usize, room: usize, law: Law) -> HoldOptions {
    let usual = Config::new("127.0.0.1:0".parse().unwrap());
    let workers = NonZeroUsize::new(workers).unwrap();
    let service =
        Config { workers, max_waiting: room - workers.get(), grace: Duration::from_millis(10), ..usual };
    HoldOptions { service, law, seed: 7, mode: HoldMode::Sleeping, dialect: Dialect::Requests }
}

fn answer(mut stream: &TcpStream) -> [u8; 8] {
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).unwrap();
    answer
}

#[test]
fn requests_beyond_the_capacity_are_rejected_and_can_be_repeated() {
    let server = serve(options(1, 3, Law::Constant { mean_s: 0.3 }));
    let taken: Vec<TcpStream> = (1..=3).map(|nonce| ask(&server, nonce)).collect();
    has_taken(&server, 3);
    let mut fourth = ask(&server, 4);
    assert_eq!(answer(&fourth), REFUSED, "at once, while the others are held");
    for (nonce, stream) in (1u64..).zip(&taken) {
        assert_eq!(answer(stream), nonce.to_be_bytes());
    }
    fourth.write_all(&encode_request(5)).unwrap();
    assert_eq!(answer(&fourth), 5u64.to_be_bytes(), "on the same connection");
}

#[test]
fn a_hold_is_a_function_of_seed_and_nonce() {
    let law = Law::Exponential { mean_s: 1.0 };
    let hold = |seed| Hold::new(&HoldOptions { seed, ..options(1, 1, law.clone()) });
    let (one, same, other) = (hold(1), hold(1), hold(2));
    assert!((1..100).all(|nonce| one.hold_s(nonce) == same.hold_s(nonce)));
    assert!((1..100).all(|nonce| one.hold_s(nonce) != other.hold_s(nonce)));
    let workload = HoldWorkload::new(([127, 0, 0, 1], 1).into(), 3);
    assert_eq!((0..1000).map(|i| workload.nonce(i)).collect::<HashSet<_>>().len(), 1000);
}

/// More workers than processors hold at the same time: forty requests at once.
#[test]
fn sleeping_workers_need_no_processors() {
    let server = serve(options(40, 40, Law::Constant { mean_s: 1.0 }));
    let all: Vec<TcpStream> = (1..=40).map(|nonce| ask(&server, nonce)).collect();
    wait_until("all are held at once", || server.metric("workers_busy") == 40);
    all.iter().for_each(|stream| assert_ne!(answer(stream), REFUSED));
}

#[test]
fn a_computing_worker_uses_the_time_of_a_processor() {
    let cpu_s = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let busy = HoldOptions { mode: HoldMode::Computing, ..options(1, 10, Law::Constant { mean_s: 0.05 }) };
    let server = serve(busy);
    let before_s = cpu_s();
    for nonce in 1..=3 {
        answer(&ask(&server, nonce));
    }
    assert!(cpu_s() - before_s >= 0.15);
}

/// A shorter request goes first under such a discipline: the one in service yields at once.
#[test]
fn a_shorter_request_interrupts_a_longer_one() {
    let law = Law::Hyperexponential { parts: vec![(0.5, 0.002), (0.5, 3.0)] };
    let order = |options: HoldOptions| HoldOptions {
        service: Config { discipline: Discipline::ShortestRemaining, ..options.service },
        ..options
    };
    let hold = Hold::new(&options(1, 1, law.clone()));
    let by_hold = |wanted: fn(f64) -> bool| (1..).find(|&nonce| wanted(hold.hold_s(nonce))).unwrap();
    let (long, short) = (by_hold(|s| (4.0..8.0).contains(&s)), by_hold(|s| s < 0.01));
    let server = serve(order(options(1, 10, law)));
    let first = ask(&server, long);
    has_taken(&server, 1);
    assert_eq!(answer(&ask(&server, short)), short.to_be_bytes());
    first.set_nonblocking(true).unwrap();
    let waits = first.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(waits, "the long one is answered later");
    first.set_nonblocking(false).unwrap();
    assert_eq!(answer(&first), long.to_be_bytes());
}

/// Requests from the generator: each ends in exactly one way, those beyond the capacity as rejected, and
/// connections are kept.
#[test]
fn the_generator_counts_requests_beyond_the_capacity_as_rejected() {
    let server = serve(options(1, 4, Law::Exponential { mean_s: 0.005 }));
    let plan = Plan::lasting(Arrivals::poisson(400.0), Duration::from_millis(1500), 5);
    let workload = HoldWorkload::new(server.address, 5);
    let collect = |rows: RowBatches| rows.flatten().collect::<Vec<RequestRow>>();
    let (summary, rows) =
        run(&plan, &workload, &Progress::default(), &AtomicBool::new(false), collect).unwrap();
    let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    let (answered, refused) = (count(Outcome::Answered), count(Outcome::Refused));
    assert_eq!(answered + refused, rows.len(), "{summary:?}");
    // At twice its capacity, half are rejected; 600 requests vary by 2 %, and a busy machine slows both.
    let share = refused as f64 / rows.len() as f64;
    assert!((0.3..0.9).contains(&share), "{share}");
    let ports: HashSet<u16> = rows.iter().map(|row| row.port).collect();
    assert!(ports.len() < rows.len() / 4, "{} connections", ports.len());
}
