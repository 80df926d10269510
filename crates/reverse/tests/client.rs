//! The client and its workload against the server, and against servers that are not as they should be.

mod peer;
mod running;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use kendall_load::{Reuse, Stamps, Workload};
use kendall_record::Outcome;
use kendall_reverse::{Parameters, ReverseWorkload};
use running::{Running, options, wait_until};

const PARAMETERS: Parameters =
    Parameters { difficulty: 2000, repeat_percent: 20.0, priority_lambda: 1.5, start: None };

/// One exchange, as the load generator does it.
fn exchange(server: SocketAddr, index: u64) -> (Outcome, Stamps) {
    let workload = ReverseWorkload::new(server, PARAMETERS, 11).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let request = workload.request(index);
        let mut connection = workload.connect().await.unwrap();
        assert_ne!(connection.port(), 0);
        let mut stamps = Stamps::default();
        let exchange = connection.exchange(index, &request, &mut stamps).await;
        assert_eq!(exchange.reuse, Reuse::Close);
        (exchange.outcome, stamps)
    })
}

/// A server that takes one request and answers with these bytes.
fn server_that_says(bytes: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 49]).unwrap();
        stream.write_all(&bytes).unwrap();
    });
    address
}

#[test]
fn the_server_answers_the_workload() {
    let server = Running::new(options());
    for index in 0..100 {
        let (outcome, stamps) = exchange(server.address, index);
        assert_eq!(outcome, Outcome::Answered);
        assert!(stamps.sent < stamps.first_byte && stamps.first_byte <= stamps.completed, "{stamps:?}");
        assert_eq!((stamps.bytes_out, stamps.bytes_in), (49, 8));
    }
    assert_eq!(server.requests("answered"), 100);
    server.check_conservation();
}

/// As the load generator gives up a request: it drops the exchange and the connection.
#[test]
fn a_request_that_is_given_up_frees_its_worker() {
    let server = Running::new(options());
    let endless = Parameters { difficulty: u64::MAX, ..PARAMETERS };
    let workload = ReverseWorkload::new(server.address, endless, 11).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let request = workload.request(0);
        let mut connection = workload.connect().await.unwrap();
        let mut stamps = Stamps::default();
        let exchange = connection.exchange(0, &request, &mut stamps);
        assert!(tokio::time::timeout(Duration::from_millis(100), exchange).await.is_err());
        assert!(stamps.sent.is_some() && stamps.completed.is_none());
    });
    wait_until("it is cancelled", || server.requests("cancelled") == 1);
    server.check_conservation();
}

#[test]
fn a_wrong_answer_and_a_refusal_are_told_apart() {
    assert_eq!(exchange(server_that_says(vec![0; 8]), 3).0, Outcome::Wrong);
    assert_eq!(exchange(server_that_says(vec![0xff; 8]), 3).0, Outcome::Wrong);
    for bytes in [0, 7] {
        let (outcome, stamps) = exchange(server_that_says(vec![0; bytes]), 3);
        assert_eq!((outcome, stamps.bytes_in), (Outcome::Refused, bytes as u64));
    }
}
