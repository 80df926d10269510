//! What a cluster costs: one worker beside the same search without a cluster, two workers beside one, and how soon workers drop a
//! search that is cancelled.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use kendall_cluster::{Cluster, ClusterOptions, JointSearch, JointState, SearchSpec};
use kendall_digest::{Engine, Interrupt, sha256};
use kendall_nats::NatsAccess;
use kendall_testbed::{JETSTREAM, Nats};

use crate::common::{ROUNDS, kendall, median};
use crate::measure::fastest_engine;

/// How long one worker searches.
const SEARCH_S: u64 = 10;
/// How long a search lasts that is cancelled.
const CANCELLED_AFTER: Duration = Duration::from_millis(700);
const CANCELS: usize = 10;

/// A worker on one processor; it is killed when this is dropped.
struct Worker(Child);

impl Worker {
    fn start(url: &str, processor: usize) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", &processor.to_string()]).arg(kendall());
        command.args(["worker", "--cores", "1", "--device", "cpu", "--cluster", url]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("taskset is installed"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## Searching on a cluster\n\n");
    let Some(nats) = Nats::with(JETSTREAM) else {
        page.push_str("No nats-server here, so no cluster was measured.\n");
        return;
    };
    let access = NatsAccess::new(nats.url().parse().expect("it is the address of a NATS server"));
    let ledger = Some(nats.folder().join("ledger.db"));
    let cluster = Cluster::start(ClusterOptions { access, ledger }).expect("the server has a queue");
    let engine = fastest_engine();
    let candidates = candidates_a_second(engine) * SEARCH_S;
    let (mut alone, mut both, mut one, mut two) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS as u64 {
        alone.push(on_this_machine(engine, candidates));
        both.push(on_both_processors(engine, candidates));
        let _first = Worker::start(&nats.url(), 0);
        one.push(on_cluster(&cluster, 1, candidates, 2 * round));
        let _second = Worker::start(&nats.url(), 1);
        two.push(on_cluster(&cluster, 2, candidates, 2 * round + 1));
    }
    let ratios =
        |above: &[f64], below: &[f64]| median(above.iter().zip(below).map(|(above, below)| above / below));
    let (overhead, gain) = (ratios(&one, &alone) - 1.0, ratios(&one, &two));
    let _ = writeln!(
        page,
        "{candidates} integers by SHA-256 ({engine}), one thread on each side; each worker is on its own processor, beside \
         nats-server and the coordinator.\n\n\
         | | s |\n| --- | ---: |\n| one thread without a cluster | {:.2} |\n| two threads | {:.2} |\n| one worker | {:.2} |\n| two workers | {:.2} |\n\n\
         One worker needs {:.1} % more than a thread without a cluster (at most 3 %), and two workers are {gain:.2} times as fast as one \
         (at least 1.9).",
        median(alone.into_iter()),
        median(both.into_iter()),
        median(one.into_iter()),
        median(two.into_iter()),
        overhead * 100.0,
    );
    let (soonest, median_ms, latest) = cancels(&nats, &cluster);
    let _ = writeln!(
        page,
        "\nAfter a search is cancelled, two workers have begun and ended another one within {median_ms:.0} ms ({soonest:.0} to \
         {latest:.0} ms in {CANCELS} cancels; at most 100 ms)."
    );
}

fn candidates_a_second(engine: Engine) -> u64 {
    let candidates = 2_000_000;
    (candidates as f64 / on_this_machine(engine, candidates)) as u64
}

/// Seconds for a search without an answer on one thread.
fn on_this_machine(engine: Engine, candidates: u64) -> f64 {
    let begun = Instant::now();
    let targets = sha256::Targets::one([0; 32]);
    assert_eq!(sha256::scan(engine, &targets, 0..candidates, &Interrupt::new()), sha256::Outcome::Absent);
    begun.elapsed().as_secs_f64()
}

/// The same by two threads: what the machine can give to two workers.
fn on_both_processors(engine: Engine, candidates: u64) -> f64 {
    let begun = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| on_this_machine(engine, candidates / 2));
        on_this_machine(engine, candidates / 2);
    });
    begun.elapsed().as_secs_f64()
}

/// Seconds for a search without an answer by the workers of a cluster.
fn on_cluster(cluster: &Cluster, workers: usize, candidates: u64, salt: u64) -> f64 {
    await_workers(cluster, workers);
    let begun = Instant::now();
    search(cluster, candidates, salt);
    begun.elapsed().as_secs_f64()
}

fn await_workers(cluster: &Cluster, workers: usize) {
    let begun = Instant::now();
    while cluster.status().workers != workers {
        assert!(begun.elapsed() < Duration::from_secs(60), "{workers} workers do not come");
        thread::sleep(Duration::from_millis(10));
    }
}

fn begin(cluster: &Cluster, candidates: u64, salt: u64) -> JointSearch {
    // The ledger has earlier searches, so each is another one.
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&salt.to_be_bytes());
    let spec = SearchSpec::Integer { digest };
    let own = thread::current();
    JointSearch::begin(cluster, spec, 0..candidates, 1.0, move || own.unpark()).expect("it is another search")
}

fn search(cluster: &Cluster, candidates: u64, salt: u64) {
    let mut joint = begin(cluster, candidates, salt);
    while joint.exchange() != JointState::Absent {
        thread::park_timeout(Duration::from_millis(10));
    }
}

/// The shortest, the median and the longest time from a cancel to the end of another search, in ms.
fn cancels(nats: &Nats, cluster: &Cluster) -> (f64, f64, f64) {
    let _workers = [Worker::start(&nats.url(), 0), Worker::start(&nats.url(), 1)];
    await_workers(cluster, 2);
    let mut times: Vec<f64> = (0..CANCELS as u64)
        .map(|cancel| {
            let mut joint = begin(cluster, 1 << 50, 1_000 + 2 * cancel);
            let begun = Instant::now();
            while begun.elapsed() < CANCELLED_AFTER {
                joint.exchange();
                thread::park_timeout(Duration::from_millis(10));
            }
            let cancelled = Instant::now();
            drop(joint);
            search(cluster, 200_000, 1_001 + 2 * cancel);
            cancelled.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[0], median(times.iter().copied()), times[times.len() - 1])
}
