//! A server that hands chunks to a worker.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::thread;

use kendall_cluster::{Cluster, ClusterOptions, WorkerOptions, work};
use kendall_digest::Engine;
use kendall_digest::gpu::Device;
use kendall_digest::sha256::digest;
use kendall_nats::NatsAccess;
use kendall_reverse::ReverseOptions;
use kendall_testbed::{JETSTREAM, Nats, wait_until};

use crate::peer::{ask, request};
use crate::running::{one_worker, run};

/// A cluster with one worker, which ends with this process.
fn cluster(nats: &Nats) -> Cluster {
    let access = NatsAccess::new(nats.url().parse().unwrap());
    let cluster = Cluster::start(ClusterOptions { access: access.clone(), ledger: None }).unwrap();
    let options =
        WorkerOptions { access, engine: Engine::Portable, cores: NonZeroUsize::MIN, device: Device::Cpu };
    thread::spawn(move || work(options, |_| {}));
    wait_until("the worker is there", || cluster.status().workers == 1);
    cluster
}

#[test]
fn a_worker_takes_part_in_a_search_and_answers_stay_right() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let cluster = cluster(&nats);
    let options = ReverseOptions { cluster: Some(cluster.clone()), ..one_worker() };
    let server = run(options);
    let end = 3 * cluster.status().integers_per_s;
    for (candidate, answer) in [(end - 1, end - 1), (end / 2, end / 2), (end, 0), (7, 7)] {
        assert_eq!(ask(server.address, &request(digest(candidate), 0, end, 1)), answer);
    }
    let by_worker = cluster.counters().tested.load(Ordering::Relaxed);
    assert!((1..2 * end).contains(&by_worker), "{by_worker} of {end}");
    // What this server and the worker tested of a search without an answer is all in the ledger.
    let spec = kendall_cluster::SearchSpec::Integer { digest: digest(end) };
    wait_until("the search is in the ledger", || {
        let job = cluster.open(spec.clone(), 0..end, 1.0, || {});
        job.is_some_and(|job| job.tested_before().candidates() == end)
    });
    server.stop();
}
