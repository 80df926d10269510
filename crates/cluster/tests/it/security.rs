//! Strangers, hostile messages, and what a worker's user needs.

use std::iter;

use kendall_cluster::{
    ChunkMessage, Cluster, ClusterOptions, CoordinatorId, JobId, ReportMessage, SearchSpec, WorkerId,
};
use kendall_digest::sha256::digest;
use kendall_nats::NatsAccess;
use kendall_testbed::{JETSTREAM, Nats, wait_until};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::roles::{Role, cluster_at, cluster_on, search};

/// The users of docs/cluster.md.
const USERS: &str = r#"
authorization {
  users = [
    { user: coordinator, password: c, permissions: {
        publish: ["$JS.API.>", "kendall.search.>", "_INBOX.>"], subscribe: ["_INBOX.>", "kendall.search.>"] } }
    { user: worker, password: w, permissions: {
        publish: ["$JS.API.CONSUMER.INFO.KENDALL_SEARCH.*", "$JS.API.CONSUMER.MSG.NEXT.KENDALL_SEARCH.*",
                  "$JS.ACK.KENDALL_SEARCH.>", "kendall.search.report.*", "kendall.search.beat"],
        subscribe: ["_INBOX.>", "kendall.search.cancel"] } }
  ]
}
"#;

#[test]
fn a_worker_needs_only_the_rights_of_the_page() {
    let page = include_str!("../../../../docs/cluster.md");
    assert!(page.contains(USERS.trim()), "the page and this test have the same users");
    let Some(nats) = Nats::with(&format!("{JETSTREAM}\n{USERS}")) else { return };
    let cluster = cluster_at(&nats.url_of("coordinator:c@"));
    let _worker = Role::worker(&nats.url_of("worker:w@"));
    wait_until("the worker is there", || cluster.status().workers == 1);
    let end = cluster.status().integers_per_s;
    assert_eq!(search(&cluster, end - 1, end, None), Some(end - 1));
    let refused = |user: &str| {
        let access = NatsAccess::new(nats.url_of(user).parse().unwrap());
        let ledger = nats.folder().join("another.db");
        Cluster::start(ClusterOptions { access, ledger: Some(ledger) }).unwrap_err().to_string()
    };
    let stranger = refused("coordinator:wrong@");
    assert!(
        stranger.contains("cannot connect to the NATS server") && !stranger.contains("wrong"),
        "{stranger}"
    );
    assert!(refused("").contains("cannot connect to the NATS server"));
    assert!(refused("worker:w@").contains("cannot create the work queue"));
}

/// Sends bytes to a subject by the protocol of NATS, which is text.
fn publish(nats: &Nats, subject: &str, bytes: &[u8]) {
    use std::io::{Read as _, Write as _};
    let address = nats.url().strip_prefix("nats://").unwrap().to_owned();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!("CONNECT {{\"verbose\":false}}\r\nPUB {subject} {}\r\n", bytes.len());
    stream.write_all(&[head.as_bytes(), bytes, b"\r\nPING\r\n"].concat()).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while !answer.windows(4).any(|window| window == b"PONG") {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend(&buffer[..read]);
    }
}

#[test]
fn hostile_messages_stop_neither_workers_nor_coordinators() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let cluster = cluster_on(&nats);
    let _worker = Role::worker(&nats.url());
    wait_until("the worker is there", || cluster.status().workers == 1);
    let end = cluster.status().integers_per_s;
    let name = format!("{cluster:?}").split("name: ").nth(1).unwrap()[..16].to_owned();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let spec = SearchSpec::Integer { digest: digest(end - 1) };
    let job = JobId::of(&spec, &(0..end));
    let endless = ChunkMessage {
        coordinator: CoordinatorId(1),
        job,
        run: 1,
        range: 0..u64::MAX,
        unit: 0,
        spec: spec.clone(),
    };
    let lie = |found| ReportMessage {
        worker: WorkerId(1),
        job,
        found,
        tested: Vec::new(),
        returned: iter::once(0..u64::MAX).collect(),
    };
    for round in 0..60 {
        let mut bytes = match round % 4 {
            0 => endless.encode(),
            1 => lie(Some(7)).encode(),
            2 => lie(None).encode(),
            _ => (0..random.random_range(0..300)).map(|_| random.random()).collect(),
        };
        if round % 8 >= 4 && !bytes.is_empty() {
            let at = random.random_range(0..bytes.len());
            bytes[at] ^= 1 << random.random_range(0..8);
        }
        let subjects = ["work.hi.0.0", "work.lo.0.0", "beat", "cancel"];
        for subject in subjects.map(|subject| format!("kendall.search.{subject}")) {
            publish(&nats, &subject, &bytes);
        }
        publish(&nats, &format!("kendall.search.report.{name}"), &bytes);
    }
    assert_eq!(search(&cluster, end - 1, end, None), Some(end - 1));
}
