//! The runtime under a system that keeps its connections.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::lines::{Peer, Server, config};
use kendall_record::stamps;
use kendall_service::{Config, ServiceError};
use kendall_testbed::{LIMIT, wait_until};

#[test]
fn a_connection_carries_many_requests_and_answers_come_in_their_order() {
    let server = Server::new(config(2));
    let mut peer = Peer::connect(server.address);
    for _ in 0..3 {
        peer.send("work 500000\nnow\nwork 0\nwork 7\n");
        let answers = [peer.line(), peer.line(), peer.line(), peer.line()];
        assert_eq!(answers, ["done 500000", "now", "done 0", "done 7"]);
    }
    assert_eq!(peer.ask("quit\nwork 1\n"), "bye");
    assert_eq!(peer.line(), "", "nothing comes after the last answer");
    assert_eq!(server.requests("answered"), 13);
    assert_eq!(server.metric("requests_received_total"), 13);
    wait_until("the connection is closed", || server.closed("finished") == 1);
}

/// The capacity of the station is K = workers + max_waiting, exactly; 0 waiting makes it a loss system.
#[test]
fn a_full_station_refuses_and_the_connection_goes_on() {
    for max_waiting in [0, 3] {
        let server = Server::new(Config { max_waiting, ..config(2) });
        let mut held: Vec<Peer> = (0..2 + max_waiting).map(|_| Peer::connect(server.address)).collect();
        held.iter_mut().for_each(|peer| peer.send("hold 1\n"));
        wait_until("the station is full", || server.levels() == (max_waiting as u64, 2));
        let mut late = Peer::connect(server.address);
        assert_eq!(late.ask("hold 1\n"), "no");
        assert_eq!(late.ask("now\n"), "now", "a request without work needs no capacity");
        server.gate.open();
        held.iter_mut().for_each(|peer| assert_eq!(peer.line(), "held"));
        wait_until("the workers are free", || server.levels() == (0, 0));
        assert_eq!(late.ask("work 3\n"), "done 3");
        assert_eq!(server.requests("queue-full"), 1);
        assert_eq!(server.requests("answered"), 2 + max_waiting as u64 + 2);
    }
}

/// A client that has an answer finds capacity: a station without a queue never rejects its only client.
#[test]
fn an_answer_frees_capacity_before_it_is_sent() {
    let server = Server::new(Config { max_waiting: 0, ..config(1) });
    let mut peer = Peer::connect(server.address);
    for _ in 0..3000 {
        assert_eq!(peer.ask("work 1\n"), "done 1");
    }
}

#[test]
fn a_panic_of_the_handler_costs_one_request_and_no_worker() {
    let server = Server::new(config(1));
    let mut peer = Peer::connect(server.address);
    for round in 1..=3 {
        assert_eq!(peer.ask("panic\n"), "no");
        assert_eq!(peer.ask("work 9\n"), "done 9");
        assert_eq!((server.requests("crashed"), server.requests("answered")), (round, round));
    }
}

#[test]
fn bytes_that_are_not_a_request_close_the_connection() {
    let server = Server::new(config(1));
    let endless = "x".repeat(crate::lines::MAX_BYTES + 1);
    for text in ["nonsense\n", "\n", &endless] {
        assert_eq!(Peer::connect(server.address).ask(text), "");
    }
    wait_until("all are closed", || server.closed("malformed") == 3);
    assert_eq!(Peer::connect(server.address).ask("now\n"), "now");
}

#[test]
fn a_kept_connection_is_closed_when_it_falls_silent_but_not_while_it_waits_for_service() {
    let patience = Duration::from_millis(200);
    let server = Server::new(Config { patience, ..config(1) });
    let (mut waits, mut silent) = (Peer::connect(server.address), Peer::connect(server.address));
    waits.send("hold 1\n");
    assert_eq!(silent.ask("now\n"), "now");
    assert_eq!(silent.line(), "", "closed after its patience");
    assert_eq!(server.levels(), (0, 1), "the other has waited at least as long");
    server.gate.open();
    assert_eq!(waits.line(), "held");
}

#[test]
fn the_deadline_of_a_request_does_not_end_an_idle_connection() {
    let request_deadline = Duration::from_millis(50);
    let server = Server::new(Config { request_deadline, ..config(1) });
    let mut peer = Peer::connect(server.address);
    for _ in 0..2 {
        std::thread::sleep(3 * request_deadline);
        assert_eq!(peer.ask("now\n"), "now");
    }
    peer.send("no");
    assert_eq!(peer.line(), "", "the rest of the request did not arrive in time");
    wait_until("it is counted", || server.closed("deadline") == 1);
}

/// Fills both socket buffers with answers that the client never reads.
#[test]
fn a_client_that_takes_no_answers_is_dropped() {
    let patience = Duration::from_millis(200);
    let server = Server::new(Config { patience, ..config(1) });
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    let requests = "now\n".repeat(10_000);
    while stream.write_all(requests.as_bytes()).is_ok() {}
    wait_until("it is dropped", || server.closed("deadline") == 1);
    assert_eq!(Peer::connect(server.address).ask("now\n"), "now");
}

/// In order, and one worker's services do not overlap. Service is the time between start and end plus the passing on of
/// the answer.
#[test]
fn stamps_are_written_for_answered_requests_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stamps");
    let server = Server::new(Config { stamps: Some(path.clone()), ..config(1) });
    let mut peer = Peer::connect(server.address);
    for text in ["work 200000\n", "panic\n", "now\n", "work 100000\n"] {
        peer.ask(text);
    }
    drop(server);
    let stamps = stamps::read(&path).unwrap();
    assert_eq!(stamps.len(), 3, "the panic has no answer");
    for pair in stamps.windows(2) {
        assert!(pair[0].finished <= pair[1].queued, "{pair:?}");
    }
    for stamp in stamps {
        assert!(stamp.queued <= stamp.started && stamp.started <= stamp.finished, "{stamp:?}");
        assert!(stamp.service >= stamp.finished - stamp.started, "no service was interrupted: {stamp:?}");
    }
}

/// During the grace period, kept connections get no new service, however many requests they send.
#[test]
fn shutdown_ends_kept_connections_after_the_request_they_are_at() {
    let server = Server::new(Config { grace: LIMIT, ..config(1) });
    let (mut held, mut busy) = (Peer::connect(server.address), Peer::connect(server.address));
    held.send("hold 1\nwork 1\nwork 1\n");
    assert_eq!(busy.ask("now\n"), "now");
    wait_until("one is served", || server.levels() == (0, 1));
    server.shut_down();
    assert_eq!(busy.line(), "", "the idle one is closed though the other is still served");
    server.gate.open();
    assert_eq!([held.line(), held.line()], ["held", ""]);
}

fn http(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{request} HTTP/1.1\r\nHost: kendall\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.into())
}

#[test]
fn metrics_are_answered_over_http_in_the_text_of_openmetrics() {
    let server = Server::new(Config { metrics: Some("127.0.0.1:0".parse().unwrap()), ..config(1) });
    assert_eq!(Peer::connect(server.address).ask("work 5\n"), "done 5");
    let metrics = server.metrics.unwrap();
    let (head, body) = http(metrics, "GET /metrics");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.contains("content-type: application/openmetrics-text"), "{head}");
    assert!(body.ends_with("# EOF\n"), "{body}");
    assert!(body.contains("kendall_requests_total{outcome=\"answered\"} 1\n"), "{body}");
    assert!(body.contains("kendall_response_seconds_count 1\n"), "{body}");
    for name in body.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        assert!(name.starts_with("kendall_"), "{name}");
    }
    assert!(http(metrics, "GET /").0.starts_with("http/1.1 404"));
    assert!(http(metrics, "POST /metrics").0.starts_with("http/1.1 405"));
}

/// Idle connections, fewer than the endpoint holds at a time and more, and how many of the newest must outlast a scrape.
#[test]
fn metrics_are_answered_while_idle_connections_are_open() {
    for (idle, outlasting) in [(40, 40), (200, 30)] {
        let server = Server::new(Config { metrics: Some("127.0.0.1:0".parse().unwrap()), ..config(1) });
        let metrics = server.metrics.unwrap();
        let held: Vec<TcpStream> = (0..idle).map(|_| TcpStream::connect(metrics).unwrap()).collect();
        assert!(http(metrics, "GET /metrics").1.ends_with("# EOF\n"));
        for stream in &held[idle - outlasting..] {
            stream.set_nonblocking(true).unwrap();
            let closed = stream.peek(&mut [0]);
            assert!(
                closed.is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
                "idle ones ended first"
            );
        }
    }
}

/// Histogram sums: response = waiting + service, by construction of each from the same stamps.
#[test]
fn the_times_in_the_metrics_add_up() {
    let server = Server::new(config(1));
    let mut peer = Peer::connect(server.address);
    for _ in 0..20 {
        peer.ask("work 100000\n");
    }
    let text = server.metrics_text();
    let sum = |name: &str| -> f64 {
        let prefix = format!("kendall_{name}_seconds_sum ");
        text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap().parse().unwrap()
    };
    let (response, parts) = (sum("response"), sum("waiting") + sum("service"));
    assert!(response > 0.0 && (response - parts).abs() < 1e-9, "{response} {parts}");
}

#[test]
fn an_address_in_use_is_reported_with_the_option_to_change() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let bind = |config| kendall_service::Server::bind(config, crate::lines::Lines::default());
    let Err(error) = bind(Config { listen: address, ..config(1) }) else { panic!("it is taken") };
    assert!(matches!(error, ServiceError::Listen { .. }));
    let text = error.to_string();
    assert!(text.contains(&address.to_string()) && text.contains("--listen"), "{text}");
    let Err(error) = bind(Config { metrics: Some(address), ..config(1) }) else { panic!("it is taken") };
    assert!(error.to_string().contains("--metrics"), "{error}");
}
