//! The client and its workload with the server, and with faulty servers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use crate::asking::ask;
use crate::running::{options, run};
use kendall_load::Workload;
use kendall_record::{Outcome, RequestRow};
use kendall_reverse::{Parameters, ReverseWorkload};
use kendall_testbed::{LIMIT, wait_until};

const PARAMETERS: Parameters =
    Parameters { difficulty: 2000, repeat_percent: 20.0, priority_lambda: 1.5, start: None };

/// One request of the workload.
fn exchange(server: SocketAddr, index: u64) -> RequestRow {
    let workload = ReverseWorkload::new(server, PARAMETERS, 11).unwrap();
    ask(&workload, workload.request(index), LIMIT)
}

/// A server that reads one request and answers with these bytes.
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
    let server = run(options());
    for index in 0..100 {
        let row = exchange(server.address, index);
        assert_eq!(row.outcome, Outcome::Answered);
        assert!(row.sent < row.first_byte && row.first_byte <= row.completed, "{row:?}");
        assert_eq!((row.bytes_out, row.bytes_in), (49, 8));
        assert_ne!(row.port, 0);
    }
    assert_eq!(server.requests("answered"), 100);
    server.check_conservation();
}

/// An abandoned connection is reset, so the server need not finish the search.
#[test]
fn an_abandoned_request_frees_its_worker() {
    let server = run(options());
    let endless = Parameters { difficulty: u64::MAX, ..PARAMETERS };
    let workload = ReverseWorkload::new(server.address, endless, 11).unwrap();
    let row = ask(&workload, workload.request(0), Duration::from_millis(100));
    assert_eq!((row.outcome, row.first_byte), (Outcome::TimedOut, None));
    wait_until("it is cancelled", || server.requests("cancelled") == 1);
    server.check_conservation();
}

#[test]
fn a_wrong_answer_and_a_rejection_are_distinguished() {
    assert_eq!(exchange(server_that_says(vec![0; 8]), 3).outcome, Outcome::Wrong);
    assert_eq!(exchange(server_that_says(vec![0xff; 8]), 3).outcome, Outcome::Wrong);
    for bytes in [0, 7] {
        let row = exchange(server_that_says(vec![0; bytes]), 3);
        assert_eq!((row.outcome, row.bytes_in), (Outcome::Refused, bytes as u64));
    }
}
