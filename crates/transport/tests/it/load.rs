//! Every operation over every transport, from the generator.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kendall_load::{Connect, Plan, Progress, RowBatches, Stamps, Workload, run};
use kendall_record::{Outcome, RequestRow, stamps};
use kendall_station::{Arrivals, Law};
use kendall_testbed::LIMIT;
use kendall_transport::{Kind, Operation, TransportWorkload};
use tokio::time::{sleep, timeout};

use crate::serving::{options, stamped, start};

/// The rows of some requests of four users, and when the run began.
fn rows(workload: &TransportWorkload, requests: u64) -> (Vec<RequestRow>, i64) {
    let arrivals = Arrivals::Closed { population: 4, think: Law::Constant { mean_s: 0.0 } };
    let plan = Plan {
        requests: Some(requests),
        connections: 4,
        ..Plan::lasting(arrivals, Duration::from_secs(60), 5)
    };
    let collect = |rows: RowBatches| rows.flatten().collect();
    let (summary, rows) =
        run(&plan, workload, &Progress::default(), &AtomicBool::new(false), collect).unwrap();
    (rows, summary.start_ns)
}

#[test]
fn every_operation_is_answered_over_every_transport() {
    for kind in Kind::ALL {
        let server = start(&options(kind));
        for (operation, bytes) in [
            (Operation::Bulk, 3_000_001),
            (Operation::Echo, 1),
            // Far more than sockets buffer: both directions flow at the same time.
            (Operation::Echo, 2_000_003),
            (Operation::Handshake, 1),
        ] {
            let (rows, _) = rows(&TransportWorkload::new(server.address, kind, operation, bytes), 20);
            assert_eq!(rows.len(), 20, "{kind} {operation:?}");
            for row in &rows {
                assert_eq!(row.outcome, Outcome::Answered, "{kind} {operation:?} {bytes}: {row:?}");
                assert_eq!(row.bytes_in, bytes, "{kind} {operation:?}");
            }
            let mut ports: Vec<u16> = rows.iter().map(|row| row.port).collect();
            ports.sort_unstable();
            ports.dedup();
            match operation {
                Operation::Handshake => assert!(ports.len() > 15, "{kind}: a connection for each: {ports:?}"),
                Operation::Bulk | Operation::Echo => assert!(ports.len() <= 4, "{kind}: {ports:?}"),
            }
        }
        server.stop();
    }
}

#[test]
fn the_servers_stamps_find_the_rows_of_their_requests() {
    let folder = tempfile::tempdir().unwrap();
    for kind in Kind::ALL {
        let file = folder.path().join(kind.name());
        let server = start(&stamped(kind, file.clone()));
        let workload = TransportWorkload::new(server.address, kind, Operation::Echo, 100);
        let (mut rows, start_ns) = rows(&workload, 50);
        server.stop();
        stamps::join(&mut rows, &stamps::read(&file).unwrap(), start_ns);
        let joined = rows.iter().filter(|row| row.service.is_some()).count();
        assert_eq!(joined, 50, "{kind}");
    }
}

#[test]
fn the_end_of_an_idle_connection_is_noticed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Over UDP, a server that stops leaves its clients no word.
    for kind in [Kind::Tcp, Kind::Tls, Kind::Https] {
        let server = start(&options(kind));
        let workload = TransportWorkload::new(server.address, kind, Operation::Echo, 1);
        runtime.block_on(async {
            let mut connection = workload.connect().await.unwrap();
            let request = workload.request(0);
            let exchange = connection.exchange(0, &request, &mut Stamps::default()).await;
            assert_eq!(exchange.outcome, Outcome::Answered, "{kind}");
            assert!(connection.is_open(), "{kind}");
            server.stop();
            let closed = async {
                while connection.is_open() {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            timeout(LIMIT, closed).await.unwrap_or_else(|_| panic!("{kind}: it still seems open"));
        });
    }
}

#[test]
fn a_server_that_is_not_there_refuses_every_request() {
    for kind in [Kind::Tcp, Kind::Tls, Kind::Https] {
        let server = start(&options(kind));
        let workload = TransportWorkload::new(server.address, kind, Operation::Handshake, 1);
        server.stop();
        let (rows, _) = rows(&workload, 3);
        assert!(rows.iter().all(|row| row.outcome == Outcome::Refused), "{kind}: {rows:?}");
    }
}
